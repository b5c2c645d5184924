"""One key for all hosts: the table, and the key file of the host that migrates."""

from django.conf import settings
from django.db import migrations, models

from octweb.dossier import signing
from octweb.dossier.keys import row_of


def register_key_file(apps, schema_editor):
    if settings.DOSSIER_KEY.exists():
        key = signing.private_key(settings.DOSSIER_KEY)
        apps.get_model("dossier", "SigningKey").objects.create(**row_of(key))


class Migration(migrations.Migration):
    dependencies = [("dossier", "0001_initial")]
    operations = [
        migrations.CreateModel(
            name="SigningKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("fingerprint", models.CharField(max_length=64, unique=True)),
                ("sealed", models.TextField()),
                ("at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.RunPython(register_key_file, migrations.RunPython.noop),
    ]
