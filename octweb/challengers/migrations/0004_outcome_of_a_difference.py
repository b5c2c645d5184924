"""Keep the last outcome with each difference, so that one index answers who was right."""

from django.db import migrations, models
from django.db.models import Exists, OuterRef, Subquery


def keep_outcomes(apps, schema_editor):
    entries = apps.get_model("decisions", "ChainEntry").objects.using(schema_editor.connection.alias)
    outcomes = entries.filter(kind="outcome", about=OuterRef("decision"), label__isnull=False).exclude(payload="")
    last = outcomes.order_by("-number").values("label")[:1]
    differences = apps.get_model("challengers", "Difference").objects.using(schema_editor.connection.alias)
    # workers of earlier versions deleted these a minute after the erasure; now the erasure itself does
    differences.filter(Exists(entries.filter(key=OuterRef("decision"), payload=""))).delete()
    differences.update(outcome=Subquery(last))


class Migration(migrations.Migration):
    dependencies = [("challengers", "0003_monthly_price"), ("decisions", "0004_entries_of_leaf")]
    operations = [
        migrations.AddField(
            model_name="difference",
            name="outcome",
            field=models.IntegerField(null=True),
        ),
        migrations.RunPython(keep_outcomes, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="difference",
            index=models.Index(
                fields=["challenge", "leaf", "answer", "silent", "outcome", "at"], name="differences_by_outcome"
            ),
        ),
    ]
