"""Add the time since when a version is served.

Names, with and without version numbers, still serve the same versions.
"""

from datetime import timedelta

from django.db import migrations, models


def served(apps, schema_editor):
    """Set the time for approved versions, which all were served by number. The default, pinned or highest, gets the latest."""
    model, event = apps.get_model("registry", "TreeModel"), apps.get_model("registry", "ReviewEvent")
    approved = model.objects.filter(state="approved").defer("document").select_related("family").order_by("version")
    families = {}
    for one in approved:
        families.setdefault(one.family_id, []).append(one)
    for versions in families.values():
        since = {}
        for one in versions:
            step = event.objects.filter(model=one, after="approved").exclude(before="approved").order_by("-at", "-id").first()
            since[one.pk] = one.created if step is None else step.at
        first = next((one for one in versions if one.pk == one.family.pinned_id), versions[-1])
        others = [at for pk, at in since.items() if pk != first.pk]
        if others:
            since[first.pk] = max(since[first.pk], max(others) + timedelta(microseconds=1))
        for pk, at in since.items():
            model.objects.filter(pk=pk).update(served_since=at)


class Migration(migrations.Migration):
    dependencies = [("registry", "0004_steps_into_the_chain")]

    operations = [
        migrations.AddField(
            model_name="treemodel",
            name="served_since",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.RunPython(served, migrations.RunPython.noop),
    ]
