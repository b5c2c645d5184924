"""Store data sets, and uploads that are not confirmed yet."""

from __future__ import annotations

from django.db import models

from octweb.core.ownership import Deletable, Owned, list_indexes


class Dataset(Deletable):
    """A stored table: its rows in a Parquet file, its schema in this row. The file never changes.

    A data set of a source has a file of counts instead of rows.
    """

    TEAM_PATH = "team"

    name = models.CharField(max_length=200)
    target = models.CharField(max_length=200)
    rows = models.PositiveIntegerField()
    # one record per column: {name, kind, missing, unit, reason, empty, distinct, role: "feature" | "target" |
    # "ignored"}
    columns = models.JSONField(default=list)
    profile = models.JSONField(default=dict)
    # how cells are parsed, see trainer.data.parsing; empty if the file was clean
    reading = models.JSONField(default=dict, blank=True)
    file = models.FileField(upload_to="datasets/%Y/%m/")
    counts = models.FileField(upload_to="counts/%Y/%m/", blank=True)  # a zip file with a folder of counts
    # the source of the counts, and how they were made: {source, table, query, sha256, depth, asked, key, folds, ...}
    origin = models.JSONField(default=dict, blank=True)
    sha256 = models.CharField(max_length=64)  # of the file
    source_name = models.CharField(max_length=255)
    source_bytes = models.BigIntegerField(default=0)
    sample = models.CharField(max_length=50, blank=True)
    # `previous` is the data set that this version replaces, another file with the same columns
    version = models.PositiveIntegerField(default=1)
    previous = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="later")
    team = models.ForeignKey("core.Team", null=True, blank=True, on_delete=models.PROTECT, related_name="datasets")

    class Meta(Deletable.Meta):
        verbose_name = "data set"
        indexes = [
            *list_indexes("team"),
            models.Index(fields=["team", "id"], condition=models.Q(team__isnull=False), name="dataset_in_team"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def base_name(self) -> str:
        """Name without its version. Models of all versions share this name when they are served."""
        return self.name.removesuffix(f", version {self.version}")


class Upload(Owned):
    """An uploaded file that is not confirmed yet. It is removed on confirmation or after a day.

    A sample of a source is one without a file. Its `origin` names the rows, as `SourceRows.to_json` does.
    """

    file = models.FileField(upload_to="uploads/%Y/%m/")
    source_name = models.CharField(max_length=255)
    source_bytes = models.BigIntegerField(default=0)
    # results of parsing (rows as text, read options, description), stored so that the file is parsed only once
    rows = models.FileField(upload_to="uploads/%Y/%m/", blank=True)
    options = models.JSONField(default=dict)
    found = models.JSONField(default=dict)
    origin = models.JSONField(default=dict, blank=True)

    class Meta(Owned.Meta):
        verbose_name = "upload"

    def __str__(self) -> str:
        return self.source_name
