"""Doubt claims about trees with wishes that a bug may have caused.

A check decides on each.
"""

import json

from django.db import migrations, models


def doubt_wished(apps, schema_editor):
    rows = apps.get_model("registry", "TreeModel").objects
    wished = rows.filter(status="optimal", document__contains='"wishes"', method__in=["exact", "exact-numeric"])
    for pk, text in list(wished.values_list("pk", "document")):
        try:
            wishes = json.loads(text)["certificate"].get("wishes")
        except (ValueError, KeyError, AttributeError):  # the application reports this model as damaged
            continue
        if wishes:
            rows.filter(pk=pk).update(doubt="pending")


class Migration(migrations.Migration):
    dependencies = [("registry", "0008_remove_row_digests")]
    operations = [
        migrations.AddField(
            model_name="treemodel",
            name="doubt",
            field=models.CharField(
                blank=True,
                choices=[
                    ("pending", "To be checked again"),
                    ("refuted", "Refuted by a check"),
                    ("open", "Not confirmed"),
                ],
                default="",
                editable=False,
                max_length=10,
            ),
        ),
        migrations.RunPython(doubt_wished, migrations.RunPython.noop),
    ]
