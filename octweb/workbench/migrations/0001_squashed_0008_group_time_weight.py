"""Create the tables of migrations 1 to 8 at once.

The row changes of 5 and 6 are left out: a fresh database has no such rows.
"""

import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("workbench", "0001_initial"),
        ("workbench", "0002_method"),
        ("workbench", "0003_proofs"),
        ("workbench", "0004_deleted_at"),
        ("workbench", "0005_hidden_with_data_set"),
        ("workbench", "0006_remove_row_digests"),
        ("workbench", "0007_list_indexes"),
        ("workbench", "0008_group_time_weight"),
    ]

    initial = True

    dependencies = [
        ("datasets", "0006_list_indexes"),
        ("registry", "0010_list_indexes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Workbench",
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
                ("name", models.CharField(blank=True, max_length=200)),
                ("parameters", models.JSONField(default=dict)),
                ("test_share", models.FloatField(default=0.0)),
                ("position", models.PositiveIntegerField(default=0)),
                ("unseen_looks", models.PositiveIntegerField(default=0)),
                ("used", models.DateTimeField(auto_now_add=True)),
                (
                    "base",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="workbenches",
                        to="registry.treemodel",
                    ),
                ),
                (
                    "dataset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="workbenches", to="datasets.dataset"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("method", models.CharField(default="exact", max_length=40)),
                ("deleted_at", models.DateTimeField(blank=True, db_index=True, null=True)),
                ("group", models.CharField(blank=True, max_length=1000)),
                ("time", models.CharField(blank=True, max_length=1000)),
                ("weight", models.CharField(blank=True, max_length=1000)),
            ],
            options={
                "verbose_name": "workbench",
                "verbose_name_plural": "workbenches",
                "ordering": ["-created", "-id"],
                "abstract": False,
                "indexes": [
                    models.Index(fields=["status", "lease_until"], name="workbench_w_status_3b57ba_idx"),
                    models.Index(fields=["owner", "deleted_at", "-created", "-id"], name="workbench_of_owner"),
                    models.Index(fields=["deleted_at", "-created", "-id"], name="workbench_of_all"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Step",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("parent", models.PositiveIntegerField(default=0)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("complete", "Best tree with the wishes"),
                            ("prices", "Prices of the questions at a place"),
                            ("good", "All good trees"),
                            ("proof", "Proof of a saved version"),
                        ],
                        max_length=10,
                    ),
                ),
                ("wishes", models.JSONField(default=list)),
                ("request", models.JSONField(default=dict)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("working", "Searching"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("tries", models.PositiveIntegerField(default=0)),
                ("stop_requested", models.BooleanField(default=False)),
                ("result", models.JSONField(default=dict)),
                ("document", models.TextField(blank=True)),
                ("error", models.TextField(blank=True)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("finished", models.DateTimeField(blank=True, null=True)),
                (
                    "workbench",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="steps", to="workbench.workbench"
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
                "indexes": [models.Index(fields=["workbench", "state"], name="workbench_s_workben_9c10bd_idx")],
                "constraints": [models.UniqueConstraint(fields=("workbench", "number"), name="one_step_a_number")],
            },
        ),
    ]
