"""Create the tables of migrations 1 to 12 at once.

The row changes of 3, 4, 5, 7, 8, 9 and 11 are left out: a fresh database has no such rows.
"""

import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("registry", "0001_initial"),
        ("registry", "0002_family_pinned_shares"),
        ("registry", "0003_public_names"),
        ("registry", "0004_steps_into_the_chain"),
        ("registry", "0005_served_since"),
        ("registry", "0006_remove_family_pinned"),
        ("registry", "0007_ignored"),
        ("registry", "0008_remove_row_digests"),
        ("registry", "0009_doubt"),
        ("registry", "0010_list_indexes"),
        ("registry", "0011_doubt_refuted"),
        ("registry", "0012_recording"),
    ]

    initial = True

    dependencies = [
        ("audit", "0001_initial"),
        ("datasets", "0006_list_indexes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Family",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=100)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("public", models.BooleanField(default=False, editable=False)),
            ],
            options={
                "verbose_name_plural": "families",
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "name"), name="one_family_a_name_of_an_owner"),
                    models.UniqueConstraint(
                        condition=models.Q(("public", True)), fields=("name",), name="one_public_family_a_name"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TreeModel",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("version", models.PositiveIntegerField()),
                ("title", models.CharField(max_length=200)),
                ("method", models.CharField(max_length=50)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("draft", "Draft"),
                            ("in_review", "In review"),
                            ("approved", "Approved"),
                            ("rejected", "Rejected"),
                            ("retired", "Retired"),
                        ],
                        default="draft",
                        max_length=20,
                    ),
                ),
                ("document", models.TextField()),
                ("sha256", models.CharField(max_length=64)),
                ("status", models.CharField(max_length=20)),
                ("guarantee", models.CharField(max_length=20)),
                ("objective", models.FloatField()),
                ("bound", models.FloatField(blank=True, null=True)),
                ("gap", models.FloatField(blank=True, null=True)),
                ("train_accuracy", models.FloatField()),
                ("unseen_accuracy", models.FloatField(blank=True, null=True)),
                ("leaves", models.PositiveIntegerField()),
                ("depth", models.PositiveIntegerField()),
                (
                    "dataset",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="models",
                        to="datasets.dataset",
                    ),
                ),
                (
                    "family",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="versions", to="registry.family"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("deleted_at", models.DateTimeField(blank=True, db_index=True, null=True)),
                ("served_since", models.DateTimeField(blank=True, editable=False, null=True)),
                ("ignored", models.JSONField(blank=True, default=list)),
                (
                    "doubt",
                    models.CharField(
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
                (
                    "recording",
                    models.CharField(
                        choices=[("counts", "Counts only"), ("full", "A record of each answer")],
                        default="counts",
                        editable=False,
                        max_length=10,
                    ),
                ),
            ],
            options={
                "verbose_name": "model",
                "ordering": ["-created", "-id"],
                "abstract": False,
                "constraints": [models.UniqueConstraint(fields=("family", "version"), name="one_model_a_version")],
                "indexes": [
                    models.Index(fields=["owner", "deleted_at", "-created", "-id"], name="treemodel_of_owner"),
                    models.Index(fields=["deleted_at", "-created", "-id"], name="treemodel_of_all"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ReviewEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "before",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("draft", "Draft"),
                            ("in_review", "In review"),
                            ("approved", "Approved"),
                            ("rejected", "Rejected"),
                            ("retired", "Retired"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "after",
                    models.CharField(
                        choices=[
                            ("draft", "Draft"),
                            ("in_review", "In review"),
                            ("approved", "Approved"),
                            ("rejected", "Rejected"),
                            ("retired", "Retired"),
                        ],
                        max_length=20,
                    ),
                ),
                ("reason", models.TextField(blank=True)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "model",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="events", to="registry.treemodel"
                    ),
                ),
            ],
            options={
                "ordering": ["at", "id"],
            },
        ),
        migrations.CreateModel(
            name="Share",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "level",
                    models.CharField(
                        choices=[("read", "Read"), ("call", "Read and call")], default="read", max_length=10
                    ),
                ),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "model",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="shares", to="registry.treemodel"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "ordering": ["user__username"],
                "constraints": [models.UniqueConstraint(fields=("model", "user"), name="one_share_a_person")],
            },
        ),
    ]
