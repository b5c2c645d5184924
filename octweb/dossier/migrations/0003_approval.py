"""Dossiers of approvals, and the SHA-256 of their files."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dossier", "0002_signing_key"), ("registry", "0012_recording")]
    operations = [
        migrations.AddField(
            model_name="modeldossier",
            name="approval",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="dossiers",
                to="registry.reviewevent",
            ),
        ),
        migrations.AddField(
            model_name="modeldossier",
            name="sha256",
            field=models.CharField(blank=True, default="", max_length=64),
            preserve_default=False,
        ),
    ]
