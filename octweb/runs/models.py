"""TrainingRun: one training of one tree; its row is the only truth about it."""

from __future__ import annotations

from django.db import models

from octweb.core.ownership import Owned


class RunStatus(models.TextChoices):
    """Where a run stands."""

    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


FINISHED = (RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED)


class TrainingRun(Owned):
    """A run: what was asked, who works on it until when, and how it ended."""

    dataset = models.ForeignKey("datasets.Dataset", on_delete=models.PROTECT, related_name="runs")
    method = models.CharField(max_length=50)
    parameters = models.JSONField(default=dict)
    test_share = models.FloatField(default=0.0)
    folds = models.PositiveIntegerField(default=0)
    warm_start = models.ForeignKey(  # the model whose tree the search begins with
        "registry.TreeModel", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    name = models.CharField(max_length=200, blank=True)

    status = models.CharField(max_length=20, choices=RunStatus, default=RunStatus.QUEUED, db_index=True)
    attempt = models.PositiveIntegerField(default=0)
    worker = models.CharField(max_length=100, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    cancel_requested = models.BooleanField(default=False)
    started = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)
    # the key under which a client may send the same request again, and a digest of what was asked with it
    idempotency_key = models.CharField(max_length=200, blank=True)
    request_digest = models.CharField(max_length=64, blank=True)
    log = models.TextField(blank=True)  # the last lines that the child wrote to standard error
    progress = models.JSONField(default=dict)  # the last progress record
    summary = models.JSONField(default=dict)  # the JSON of `train`
    model = models.OneToOneField(
        "registry.TreeModel", null=True, blank=True, on_delete=models.SET_NULL, related_name="run"
    )

    class Meta(Owned.Meta):
        verbose_name = "run"
        indexes = [models.Index(fields=["status", "lease_until"])]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "idempotency_key"], condition=~models.Q(idempotency_key=""), name="one_run_a_key"
            )
        ]

    def __str__(self) -> str:
        return self.name or f"{self.method} on {self.dataset}"


class ProgressRecord(models.Model):
    """One line of a run's progress file, as the live page draws it."""

    run = models.ForeignKey(TrainingRun, on_delete=models.CASCADE, related_name="records")
    attempt = models.PositiveIntegerField()
    line = models.PositiveIntegerField()
    record = models.JSONField()

    class Meta:
        ordering = ["attempt", "line"]
        constraints = [models.UniqueConstraint(fields=["run", "attempt", "line"], name="one_record_a_line")]

    def __str__(self) -> str:
        return f"{self.run_id} {self.attempt}:{self.line}"


class WorkerBeat(models.Model):
    """A worker process and when it was last heard of."""

    name = models.CharField(max_length=100, primary_key=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
