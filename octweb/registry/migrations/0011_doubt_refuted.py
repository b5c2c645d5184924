"""Doubt the claims of models that an earlier check refuted.

The next round checks them again.
"""

from django.db import migrations

DECIDING = ("refuted", "proved")


def doubt_refuted(apps, schema_editor):
    records = apps.get_model("audit", "Record").objects.filter(what="checked", subject="model").order_by("number")
    last = {}
    for model, details in records.values_list("subject_id", "details"):
        if details.get("verdict") in DECIDING:
            last[model] = details["verdict"]
    refuted = [model for model, verdict in last.items() if verdict == "refuted"]
    apps.get_model("registry", "TreeModel").objects.filter(pk__in=refuted, doubt="").update(doubt="pending")


class Migration(migrations.Migration):
    dependencies = [("registry", "0010_list_indexes"), ("audit", "0001_initial")]
    operations = [migrations.RunPython(doubt_refuted, migrations.RunPython.noop)]
