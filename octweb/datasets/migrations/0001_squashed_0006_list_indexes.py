"""The tables of migrations 1 to 6 at once."""

import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("datasets", "0001_initial"),
        ("datasets", "0002_rows_of_an_upload"),
        ("datasets", "0003_deleted_at"),
        ("datasets", "0004_versions"),
        ("datasets", "0005_reading"),
        ("datasets", "0006_list_indexes"),
    ]

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Dataset",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=200)),
                ("target", models.CharField(max_length=200)),
                ("rows", models.PositiveIntegerField()),
                ("columns", models.JSONField(default=list)),
                ("profile", models.JSONField(default=dict)),
                ("file", models.FileField(upload_to="datasets/%Y/%m/")),
                ("sha256", models.CharField(max_length=64)),
                ("source_name", models.CharField(max_length=255)),
                ("source_bytes", models.BigIntegerField(default=0)),
                ("sample", models.CharField(blank=True, max_length=50)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("deleted_at", models.DateTimeField(blank=True, db_index=True, null=True)),
                ("version", models.PositiveIntegerField(default=1)),
                ("reading", models.JSONField(blank=True, default=dict)),
                (
                    "previous",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="later",
                        to="datasets.dataset",
                    ),
                ),
            ],
            options={
                "verbose_name": "data set",
                "ordering": ["-created", "-id"],
                "abstract": False,
                "indexes": [
                    models.Index(fields=["owner", "deleted_at", "-created", "-id"], name="dataset_of_owner"),
                    models.Index(fields=["deleted_at", "-created", "-id"], name="dataset_of_all"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Upload",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("file", models.FileField(upload_to="uploads/%Y/%m/")),
                ("source_name", models.CharField(max_length=255)),
                ("source_bytes", models.BigIntegerField(default=0)),
                ("options", models.JSONField(default=dict)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("found", models.JSONField(default=dict)),
                ("rows", models.FileField(blank=True, upload_to="uploads/%Y/%m/")),
            ],
            options={
                "verbose_name": "upload",
                "ordering": ["-created", "-id"],
                "abstract": False,
            },
        ),
    ]
