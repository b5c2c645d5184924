from django.db import migrations, models


def fill(apps, schema_editor):
    """Copy the ignored columns of data sets to their models."""
    TreeModel, Dataset = apps.get_model("registry", "TreeModel"), apps.get_model("datasets", "Dataset")
    for pk, columns in Dataset.objects.values_list("pk", "columns"):
        if ignored := [c["name"] for c in columns if c.get("role") == "ignored"]:
            TreeModel.objects.filter(dataset=pk).update(ignored=ignored)


class Migration(migrations.Migration):

    dependencies = [
        ('datasets', '0005_reading'),
        ('registry', '0006_remove_family_pinned'),
    ]

    operations = [
        migrations.AddField(
            model_name='treemodel',
            name='ignored',
            field=models.JSONField(blank=True, default=list),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
