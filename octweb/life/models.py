"""DailyCount: how many rows of a day ended in a leaf, had an unusual cell or were refused. No cell of a row is kept."""

from __future__ import annotations

from django.db import models

from octweb.registry.models import TreeModel

MAX_NAME = 300


class DailyCount(models.Model):
    """A number that only grows: of a model, UTC day, API and kind, by leaf or column."""

    model = models.ForeignKey(TreeModel, on_delete=models.CASCADE, related_name="daily_counts")
    day = models.DateField()
    api = models.CharField(max_length=20)  # v1, v2, invocations or batch
    kind = models.CharField(max_length=20)  # rows; empty, unknown, below, above; refused_ and the reason
    name = models.CharField(max_length=MAX_NAME, blank=True)  # the leaf of rows, else the column
    number = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["model", "day", "api", "kind", "name"], name="one_number_a_day_and_name")
        ]

    def __str__(self) -> str:
        return f"{self.model_id} {self.day} {self.api} {self.kind} {self.name}: {self.number}"
