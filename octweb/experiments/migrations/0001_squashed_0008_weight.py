"""The tables of migrations 1 to 8 at once; 5 changes only rows that a fresh database does not have."""

import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("experiments", "0001_initial"),
        ("experiments", "0002_deleted_at"),
        ("experiments", "0003_trees_of_folds"),
        ("experiments", "0004_gave_way"),
        ("experiments", "0005_remove_row_digests"),
        ("experiments", "0006_list_indexes"),
        ("experiments", "0007_group_and_time"),
        ("experiments", "0008_weight"),
    ]

    initial = True

    dependencies = [
        ("datasets", "0006_list_indexes"),
        ("registry", "0001_initial"),
        ("runs", "0005_worker_beat_moves"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Candidate",
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
                ("number", models.PositiveIntegerField()),
                ("name", models.CharField(max_length=200)),
                ("method", models.CharField(max_length=50)),
                ("parameters", models.JSONField(default=dict)),
                ("records", models.JSONField(default=list)),
                ("document", models.TextField(blank=True)),
                (
                    "model",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
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
                    "retrained",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="runs.trainingrun",
                    ),
                ),
            ],
            options={
                "verbose_name": "candidate",
                "ordering": ["number"],
                "abstract": False,
                "indexes": [models.Index(fields=["status", "lease_until"], name="experiments_status_40c6cf_idx")],
            },
        ),
        migrations.CreateModel(
            name="Experiment",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=200)),
                ("folds", models.PositiveIntegerField(default=5)),
                ("seed", models.PositiveIntegerField(default=0)),
                ("test_share", models.FloatField(default=0.0)),
                ("nested", models.BooleanField(default=False)),
                ("time_limit", models.FloatField(default=60.0)),
                ("skipped", models.JSONField(default=list)),
                ("chosen_at", models.DateTimeField(blank=True, null=True)),
                (
                    "chosen",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="experiments.candidate",
                    ),
                ),
                (
                    "dataset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="experiments", to="datasets.dataset"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("deleted_at", models.DateTimeField(blank=True, db_index=True, null=True)),
                ("group", models.CharField(blank=True, max_length=1000)),
                ("time", models.CharField(blank=True, max_length=1000)),
                ("weight", models.CharField(blank=True, max_length=1000)),
            ],
            options={
                "verbose_name": "experiment",
                "ordering": ["-created", "-id"],
                "abstract": False,
                "indexes": [
                    models.Index(fields=["owner", "deleted_at", "-created", "-id"], name="experiment_of_owner"),
                    models.Index(fields=["deleted_at", "-created", "-id"], name="experiment_of_all"),
                ],
            },
        ),
        migrations.AddField(
            model_name="candidate",
            name="experiment",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="candidates", to="experiments.experiment"
            ),
        ),
        migrations.AddField(
            model_name="candidate",
            name="trees",
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name="candidate",
            name="gave_way",
            field=models.PositiveIntegerField(default=0),
        ),
    ]
