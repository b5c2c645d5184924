"""BatchPrediction: a file of rows that a model predicts in the background, and the file of answers."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models

from octweb.core.ownership import LIST_INDEXES, Deletable
from octweb.jobs.models import Job, RunStatus
from trainer.explain.least import COLUMNS, ORDERS

FOLDER = "predictions"  # in the store of files; below it a folder for each job


class Format(models.TextChoices):
    """How the answers are written."""

    CSV = "csv", "CSV"
    PARQUET = "parquet", "Parquet"


class BatchPrediction(Job, Deletable):
    """What was uploaded, for which model, and the answers; the uploaded file goes when the job has ended."""

    TASK = "octweb.batch.tasks.predict_batch"
    TIDY = "octweb.batch.actions.tidy"
    ADVICE = "Send the rows in several files, or as Parquet."

    model = models.ForeignKey("registry.TreeModel", on_delete=models.CASCADE, related_name="predictions")
    # the API token of the call that made it; a token for predictions sees only what it made
    made_by = models.ForeignKey(
        "serving.ApiToken", null=True, blank=True, editable=False, on_delete=models.SET_NULL, related_name="+"
    )
    source = models.FileField(max_length=200)
    source_name = models.CharField(max_length=255)
    source_bytes = models.BigIntegerField(default=0)
    format = models.CharField(max_length=10, choices=Format, default=Format.CSV)
    sheet = models.CharField(
        max_length=200, blank=True
    )  # of a workbook; empty: that of the training, or the first visible one
    header = models.BooleanField(default=True)  # whether the first line has names
    keep_columns = models.BooleanField(default=False)  # the columns of the file stand before the answers
    explain = models.BooleanField(default=False)  # path and smallest change as columns
    change = models.JSONField(default=dict, blank=True)  # column → what may change, beyond what the model's owner says
    cost = models.JSONField(default=dict, blank=True)  # column → what a change of 1 costs
    least = models.CharField(max_length=10, choices=ORDERS, default=COLUMNS)  # which change is the smallest
    result = models.FileField(max_length=200, blank=True)
    result_bytes = models.BigIntegerField(default=0)
    goes_on = models.BooleanField(default=False)  # deleting stopped it: it starts again where it is brought back
    kept_from = models.DateTimeField(null=True, blank=True)  # when it was brought back

    class Meta(Job.Meta):
        abstract = False
        indexes = [*Job.Meta.indexes, *LIST_INDEXES]
        verbose_name = "prediction"

    def __str__(self) -> str:
        return self.source_name

    @property
    def folder(self) -> str:
        """Where the files of this job are in the store."""
        return f"{FOLDER}/{self.pk}"

    @classmethod
    def back_within(cls) -> timedelta:
        """How long it can be brought back after it was deleted: no longer than answers are kept."""
        return min(super().back_within(), timedelta(days=settings.KEEP_PREDICTIONS_DAYS))

    @property
    def is_ready(self) -> bool:
        """Whether the answers can be downloaded."""
        return self.status == RunStatus.SUCCEEDED and bool(self.result)

    @property
    def kept_until(self) -> datetime | None:
        """When the answers are removed."""
        if self.finished is None:
            return None
        return max(self.finished, self.kept_from or self.finished) + timedelta(days=settings.KEEP_PREDICTIONS_DAYS)
