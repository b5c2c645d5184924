"""Create the tables of migrations 1 to 11 at once."""

import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("runs", "0001_initial"),
        ("runs", "0002_worker_beat"),
        ("runs", "0003_begin_with_a_model"),
        ("runs", "0004_repeat_a_request"),
        ("runs", "0005_worker_beat_moves"),
        ("runs", "0006_deleted_at"),
        ("runs", "0007_family"),
        ("runs", "0008_list_indexes"),
        ("runs", "0009_status_index"),
        ("runs", "0010_group_and_time"),
        ("runs", "0011_weight"),
    ]

    initial = True

    dependencies = [
        ("datasets", "0006_list_indexes"),
        ("registry", "0010_list_indexes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="TrainingRun",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("method", models.CharField(max_length=50)),
                ("parameters", models.JSONField(default=dict)),
                ("test_share", models.FloatField(default=0.0)),
                ("folds", models.PositiveIntegerField(default=0)),
                ("name", models.CharField(blank=True, max_length=200)),
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
                (
                    "dataset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="runs", to="datasets.dataset"
                    ),
                ),
                (
                    "model",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="run",
                        to="registry.treemodel",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "warm_start",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="registry.treemodel",
                    ),
                ),
                ("idempotency_key", models.CharField(blank=True, max_length=200)),
                ("request_digest", models.CharField(blank=True, max_length=64)),
                ("deleted_at", models.DateTimeField(blank=True, db_index=True, null=True)),
                (
                    "family",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="registry.family",
                    ),
                ),
                ("group", models.CharField(blank=True, max_length=1000)),
                ("time", models.CharField(blank=True, max_length=1000)),
                ("weight", models.CharField(blank=True, max_length=1000)),
            ],
            options={
                "verbose_name": "run",
                "ordering": ["-created", "-id"],
                "abstract": False,
                "indexes": [
                    models.Index(fields=["status", "lease_until"], name="runs_traini_status_e9a8ff_idx"),
                    models.Index(fields=["owner", "deleted_at", "-created", "-id"], name="trainingrun_of_owner"),
                    models.Index(fields=["deleted_at", "-created", "-id"], name="trainingrun_of_all"),
                    models.Index(
                        fields=["owner", "deleted_at", "status", "-created", "-id"], name="trainingrun_of_owner_status"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("idempotency_key", ""), _negated=True),
                        fields=("owner", "idempotency_key"),
                        name="one_run_a_key",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ProgressRecord",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempt", models.PositiveIntegerField()),
                ("line", models.PositiveIntegerField()),
                ("record", models.JSONField()),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="records", to="runs.trainingrun"
                    ),
                ),
            ],
            options={
                "ordering": ["attempt", "line"],
                "constraints": [models.UniqueConstraint(fields=("run", "attempt", "line"), name="one_record_a_line")],
            },
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.CreateModel(
                    name="WorkerBeat",
                    fields=[
                        ("name", models.CharField(max_length=100, primary_key=True, serialize=False)),
                        ("seen_at", models.DateTimeField()),
                    ],
                    options={
                        "db_table": "jobs_workerbeat",
                    },
                ),
            ],
        ),
    ]
