"""Store daily counts, watch settings and alarms of served models."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from octweb.registry.models import TreeModel

MAX_NAME = 300


class DailyCount(models.Model):
    """A growing count per model, UTC day, API, kind, and leaf or column. It contains no cell of a row."""

    model = models.ForeignKey(TreeModel, on_delete=models.CASCADE, related_name="daily_counts")
    day = models.DateField()
    api = models.CharField(max_length=20)  # v1, v2, invocations or batch; a challenger has "file" for batch
    kind = models.CharField(
        max_length=20
    )  # rows; empty, …, above; refused_ and the reason; challenger; right, wrong, due
    # leaf if `kind` is rows, right, wrong or due (without an outcome); challenge, leaf and answer if it is challenger; otherwise column
    name = models.CharField(max_length=MAX_NAME, blank=True)
    number = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["model", "day", "api", "kind", "name"], name="one_number_a_day_and_name")
        ]

    def __str__(self) -> str:
        return f"{self.model_id} {self.day} {self.api} {self.kind} {self.name}: {self.number}"


class Watching(models.Model):
    """Limits that users set for a model, and the result of its last evaluation."""

    model = models.OneToOneField(TreeModel, on_delete=models.CASCADE, related_name="watching")
    limits = models.JSONField(default=dict)  # watch → {"share": largest share, "since": first day that counts}
    evidence = models.JSONField(default=dict)  # watch → log10 of its evidence
    # wrong and all unseen rows by leaf, which the first look at outcomes stores; null: outcomes are not watched
    promised = models.JSONField(null=True, blank=True)
    # rows by leaf, of training and held-out rows, which the first look stores; {}: only those of the training are known
    leaf_rows = models.JSONField(null=True, blank=True)
    outcomes_on = models.DateField(null=True, blank=True)  # last day whose due outcomes are counted
    decided_on = models.DateField(null=True, blank=True)  # decisions up to this day are not counted again
    looked_at = models.DateTimeField(null=True, blank=True)
    looked_on = models.DateField(null=True, blank=True)  # local day of the last look, also of one that a user started

    def __str__(self) -> str:
        return f"{self.model_id}: looked at {self.looked_at}"


class Alarm(models.Model):
    """A watched share that has changed. The alarm is open until a user closes it with a reason."""

    model = models.ForeignKey(TreeModel, on_delete=models.CASCADE, related_name="alarms")
    watch = models.CharField(max_length=MAX_NAME + 20)
    grew = models.BooleanField()
    began = models.DateField()  # an estimate of the day on which the change began
    found = models.DateField()  # last day of the counts on which the alarm is based
    rows = models.BigIntegerField()  # decisions from `began` to `found`
    at = models.DateTimeField(auto_now_add=True)
    told_at = models.DateTimeField(null=True, blank=True)  # when the signal was last sent
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ["found", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["model", "watch"], condition=models.Q(closed_at=None), name="one_open_alarm_a_watch"
            )
        ]

    def __str__(self) -> str:
        return f"{self.watch} of {self.model_id}, {self.found}"
