"""Store jobs that count the rows of a source."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from octweb.jobs.models import Job


class SourceCount(Job):
    """A job that counts rows of a source. Its result is a data set with counts instead of rows.

    It names the source, and the worker reads the address from the settings.
    """

    TASK = "octweb.sources.tasks.count_source"
    TIDY = "octweb.sources.actions.tidy"
    ADVICE = "Leave columns out, or choose fewer bins or a smaller depth."

    source = models.CharField(max_length=50)
    table = models.CharField(max_length=500, blank=True)
    query = models.TextField(blank=True)
    name = models.CharField(max_length=200)
    target = models.CharField(max_length=1000)
    depth = models.PositiveIntegerField(default=3)
    bins = models.PositiveIntegerField(default=5)
    scheme = models.CharField(max_length=40)
    folds = models.PositiveIntegerField(default=0)
    key = models.CharField(max_length=1000, blank=True)  # the column that assigns rows to folds
    reading = models.JSONField(default=dict)  # as `ParsingChoices.to_json` writes it
    options = models.JSONField(default=dict)  # for columns, see `octweb.datasets.intake.build_options`
    dataset = models.OneToOneField(
        "datasets.Dataset", null=True, blank=True, on_delete=models.SET_NULL, related_name="source_count"
    )

    class Meta(Job.Meta):
        abstract = False
        verbose_name = "count"
        permissions = [("use_sources", "Can count the sources of the settings")]

    def __str__(self) -> str:
        return self.name

    def longest(self) -> float:
        return float(settings.MAX_COUNT_SECONDS)
