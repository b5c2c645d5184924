"""Store training runs and their progress records."""

from __future__ import annotations

from django.db import models

from octweb.core.limits import allowed
from octweb.core.ownership import Deletable, list_indexes
from octweb.jobs.models import START_SECONDS, Job, RunStatus
from trainer.cli.parameters import INFEASIBLE, PROOF_SECONDS


class TrainingRun(Job, Deletable):
    """A request to train one tree, and the resulting model."""

    TEAM_PATH = "dataset__team"
    TASK = "octweb.runs.tasks.train_run"
    ADVICE = "Ask for less memory or a smaller depth."
    TIDY = "octweb.runs.actions.tidy"

    dataset = models.ForeignKey("datasets.Dataset", on_delete=models.PROTECT, related_name="runs")
    method = models.CharField(max_length=50)
    parameters = models.JSONField(default=dict)
    test_share = models.FloatField(default=0.0)
    folds = models.PositiveIntegerField(default=0)
    # columns with the group and the time of each row; empty if there are none
    group = models.CharField(max_length=1000, blank=True)
    time = models.CharField(max_length=1000, blank=True)
    weight = models.CharField(max_length=1000, blank=True)  # column with the weight of each row; empty if there is none
    warm_start = models.ForeignKey(  # the search begins with the tree of this model
        "registry.TreeModel", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    name = models.CharField(max_length=200, blank=True)
    # the tree becomes the next version of this family; without it, of the family named like the run
    family = models.ForeignKey("registry.Family", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    # a client may repeat its request under this key; the digest detects another request with the same key
    idempotency_key = models.CharField(max_length=200, blank=True)
    request_digest = models.CharField(max_length=64, blank=True)
    model = models.OneToOneField(
        "registry.TreeModel", null=True, blank=True, on_delete=models.SET_NULL, related_name="run"
    )

    class Meta(Job.Meta):
        abstract = False
        indexes = [
            *Job.Meta.indexes,
            *list_indexes("dataset"),
            models.Index(
                fields=["owner", "deleted_at", "status", "-created", "-id"], name="trainingrun_of_owner_status"
            ),
        ]
        verbose_name = "run"
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "idempotency_key"], condition=~models.Q(idempotency_key=""), name="one_run_a_key"
            )
        ]

    # computes the property `unreachable` in the database
    UNREACHABLE = models.Q(status=RunStatus.FAILED, summary__status=INFEASIBLE)

    @property
    def unreachable(self) -> bool:
        """Whether the run ended with a proof that its constraints are infeasible."""
        return self.status == RunStatus.FAILED and self.summary.get("status") == INFEASIBLE

    def longest(self) -> float:
        each = allowed(self.parameters, "time_limit")
        return START_SECONDS + PROOF_SECONDS + each * (1 + self.folds) * 1.1

    @property
    def badge(self) -> str:
        """Name of the run's badge: its status, or "unreachable"."""
        return "unreachable" if self.unreachable else self.status

    def __str__(self) -> str:
        return self.name or f"{self.method} on {self.dataset}"


class ProgressRecord(models.Model):
    """A line of a run's progress file, for the live page."""

    run = models.ForeignKey(TrainingRun, on_delete=models.CASCADE, related_name="records")
    attempt = models.PositiveIntegerField()
    line = models.PositiveIntegerField()
    record = models.JSONField()

    class Meta:
        ordering = ["attempt", "line"]
        constraints = [models.UniqueConstraint(fields=["run", "attempt", "line"], name="one_record_a_line")]

    def __str__(self) -> str:
        return f"{self.run_id} {self.attempt}:{self.line}"
