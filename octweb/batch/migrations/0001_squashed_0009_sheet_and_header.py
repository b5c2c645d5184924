"""The tables of migrations 1 to 9 at once."""

import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("batch", "0001_predict_files"),
        ("batch", "0002_explain_rows"),
        ("batch", "0003_change_and_cost"),
        ("batch", "0004_least"),
        ("batch", "0005_keep_columns"),
        ("batch", "0006_deleted_at"),
        ("batch", "0007_made_by"),
        ("batch", "0008_list_indexes"),
        ("batch", "0009_sheet_and_header"),
    ]

    initial = True

    dependencies = [
        ("registry", "0010_list_indexes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        migrations.swappable_dependency(settings.KNOX_TOKEN_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="BatchPrediction",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created", models.DateTimeField(auto_now_add=True)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        db_index=True,
                        default="queued",
                        max_length=20,
                    ),
                ),
                ("attempt", models.PositiveIntegerField(default=0)),
                ("worker", models.CharField(blank=True, max_length=100)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("cancel_requested", models.BooleanField(default=False)),
                ("started", models.DateTimeField(blank=True, null=True)),
                ("finished", models.DateTimeField(blank=True, null=True)),
                ("error", models.TextField(blank=True)),
                ("log", models.TextField(blank=True)),
                ("progress", models.JSONField(default=dict)),
                ("summary", models.JSONField(default=dict)),
                ("source", models.FileField(max_length=200, upload_to="")),
                ("source_name", models.CharField(max_length=255)),
                ("source_bytes", models.BigIntegerField(default=0)),
                (
                    "format",
                    models.CharField(choices=[("csv", "CSV"), ("parquet", "Parquet")], default="csv", max_length=10),
                ),
                ("result", models.FileField(blank=True, max_length=200, upload_to="")),
                ("result_bytes", models.BigIntegerField(default=0)),
                (
                    "model",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="predictions", to="registry.treemodel"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("explain", models.BooleanField(default=False)),
                ("change", models.JSONField(blank=True, default=dict)),
                ("cost", models.JSONField(blank=True, default=dict)),
                (
                    "least",
                    models.CharField(
                        choices=[("columns", "Fewest columns first"), ("total", "Smallest total")],
                        default="columns",
                        max_length=10,
                    ),
                ),
                ("keep_columns", models.BooleanField(default=False)),
                ("deleted_at", models.DateTimeField(blank=True, db_index=True, null=True)),
                ("goes_on", models.BooleanField(default=False)),
                ("kept_from", models.DateTimeField(blank=True, null=True)),
                (
                    "made_by",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.KNOX_TOKEN_MODEL,
                    ),
                ),
                ("header", models.BooleanField(default=True)),
                ("sheet", models.CharField(blank=True, max_length=200)),
            ],
            options={
                "verbose_name": "prediction",
                "ordering": ["-created", "-id"],
                "abstract": False,
                "indexes": [
                    models.Index(fields=["status", "lease_until"], name="batch_batch_status_4b891a_idx"),
                    models.Index(fields=["owner", "deleted_at", "-created", "-id"], name="batchprediction_of_owner"),
                    models.Index(fields=["deleted_at", "-created", "-id"], name="batchprediction_of_all"),
                ],
            },
        ),
    ]
