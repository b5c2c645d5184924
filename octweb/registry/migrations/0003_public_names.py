"""Make names private to their owners until a version is approved."""

from django.conf import settings
from django.db import migrations, models


def published(apps, schema_editor):
    """Make the names of families public that have, or had, an approved version."""
    family, event = apps.get_model("registry", "Family"), apps.get_model("registry", "ReviewEvent")
    approved = event.objects.filter(after="approved").values("model__family")
    family.objects.filter(pk__in=approved).update(public=True)
    family.objects.filter(versions__state="approved").update(public=True)


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0002_family_pinned_shares"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="family", name="public", field=models.BooleanField(default=False, editable=False)
        ),
        migrations.RunPython(published, migrations.RunPython.noop),
        migrations.AlterField(model_name="family", name="name", field=models.SlugField(max_length=100)),
        migrations.AddConstraint(
            model_name="family",
            constraint=models.UniqueConstraint(fields=("owner", "name"), name="one_family_a_name_of_an_owner"),
        ),
        migrations.AddConstraint(
            model_name="family",
            constraint=models.UniqueConstraint(
                condition=models.Q(("public", True)), fields=("name",), name="one_public_family_a_name"
            ),
        ),
    ]
