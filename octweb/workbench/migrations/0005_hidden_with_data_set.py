from django.db import migrations
from django.db.models import OuterRef, Subquery


def hide(apps, schema_editor):
    """Mark the workbenches of deleted data sets, which they need, as deleted at the same time."""
    Workbench, Dataset = apps.get_model("workbench", "Workbench"), apps.get_model("datasets", "Dataset")
    deleted = Dataset.objects.filter(pk=OuterRef("dataset")).values("deleted_at")[:1]
    Workbench.objects.filter(dataset__deleted_at__isnull=False).update(deleted_at=Subquery(deleted))


class Migration(migrations.Migration):

    dependencies = [
        ('datasets', '0005_reading'),
        ('workbench', '0004_deleted_at'),
    ]

    operations = [migrations.RunPython(hide, migrations.RunPython.noop)]
