"""Batch predictions: uploaded files of rows, and files of answers."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models

from octweb.core.ownership import Deletable, list_indexes
from octweb.jobs.models import Job, RunStatus
from trainer.explain.least import COLUMNS, ORDERS

FOLDER = "predictions"  # in the file store; each job has its own folder below it


class Format(models.TextChoices):
    """File format of the answers."""

    CSV = "csv", "CSV"
    PARQUET = "parquet", "Parquet"


class BatchPrediction(Job, Deletable):
    """A job that predicts the rows of an uploaded file with a model.

    The uploaded file is removed when the job has ended.
    """

    TASK = "octweb.batch.tasks.predict_batch"
    TIDY = "octweb.batch.actions.tidy"
    ADVICE = "Send the rows in several files, or as Parquet."

    model = models.ForeignKey("registry.TreeModel", on_delete=models.CASCADE, related_name="predictions")
    # The API token that created the job. A token of kind `predict` sees only its own jobs.
    made_by = models.ForeignKey(
        "serving.ApiToken", null=True, blank=True, editable=False, on_delete=models.SET_NULL, related_name="+"
    )
    source = models.FileField(max_length=200)
    source_name = models.CharField(max_length=255)
    source_bytes = models.BigIntegerField(default=0)
    format = models.CharField(max_length=10, choices=Format, default=Format.CSV)
    # The sheet of a workbook. Empty: the sheet that the model was trained on, or the first visible one.
    sheet = models.CharField(max_length=200, blank=True)
    header = models.BooleanField(default=True)  # the first line of the file names the columns
    keep_columns = models.BooleanField(default=False)  # copy the file's columns to the left of the answers
    explain = models.BooleanField(default=False)  # add columns with the path and the smallest change
    # Column → change that the user permits, within the limits that the model's owner set.
    change = models.JSONField(default=dict, blank=True)
    cost = models.JSONField(default=dict, blank=True)  # column → cost of changing it by 1
    least = models.CharField(max_length=10, choices=ORDERS, default=COLUMNS)  # which of two changes counts as smaller
    result = models.FileField(max_length=200, blank=True)
    result_bytes = models.BigIntegerField(default=0)
    goes_on = models.BooleanField(default=False)  # deletion stopped the job, so restoring queues it again
    # time of the last restoring, from which the days until expiry count
    kept_from = models.DateTimeField(null=True, blank=True)

    class Meta(Job.Meta):
        abstract = False
        indexes = [*Job.Meta.indexes, *list_indexes()]
        verbose_name = "prediction"

    def __str__(self) -> str:
        return self.source_name

    @property
    def folder(self) -> str:
        """Folder of this job in the file store."""
        return f"{FOLDER}/{self.pk}"

    @classmethod
    def back_within(cls) -> timedelta:
        """Return how long a deleted job can be restored, at most as long as answers are stored."""
        return min(super().back_within(), timedelta(days=settings.KEEP_PREDICTIONS_DAYS))

    @property
    def is_ready(self) -> bool:
        """Whether the answers can be downloaded."""
        return self.status == RunStatus.SUCCEEDED and bool(self.result)

    @property
    def kept_until(self) -> datetime | None:
        """Time when the result file is removed. None before the job has finished."""
        if self.finished is None:
            return None
        return max(self.finished, self.kept_from or self.finished) + timedelta(days=settings.KEEP_PREDICTIONS_DAYS)
