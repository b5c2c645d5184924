"""Data sets, and uploads that the user has not confirmed yet."""

from __future__ import annotations

from django.db import models

from octweb.core.ownership import Deletable, Owned


class Dataset(Deletable):
    """A stored table: the rows in a Parquet file, the schema here. The file never changes."""

    name = models.CharField(max_length=200)
    target = models.CharField(max_length=200)
    rows = models.PositiveIntegerField()
    # One record per column: {name, kind, missing, unit, reason, empty, distinct, role: "feature" | "target" |
    # "ignored"}.
    columns = models.JSONField(default=list)
    profile = models.JSONField(default=dict)
    # How cells are parsed, see trainer.data.parsing. Empty if the file was clean.
    reading = models.JSONField(default=dict, blank=True)
    file = models.FileField(upload_to="datasets/%Y/%m/")
    sha256 = models.CharField(max_length=64)
    source_name = models.CharField(max_length=255)
    source_bytes = models.BigIntegerField(default=0)
    sample = models.CharField(max_length=50, blank=True)
    # `previous` is the data set that this version replaces: another file with the same columns.
    version = models.PositiveIntegerField(default=1)
    previous = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="later")

    class Meta(Deletable.Meta):
        verbose_name = "data set"

    def __str__(self) -> str:
        return self.name

    @property
    def base_name(self) -> str:
        """Name without its version, since models of all versions share one served name."""
        return self.name.removesuffix(f", version {self.version}")


class Upload(Owned):
    """An uploaded file that the user has not confirmed yet; removed when confirmed or after a day."""

    file = models.FileField(upload_to="uploads/%Y/%m/")
    source_name = models.CharField(max_length=255)
    source_bytes = models.BigIntegerField(default=0)
    # The results of reading are stored, so that the file is read only once: rows as text, read options, description.
    rows = models.FileField(upload_to="uploads/%Y/%m/", blank=True)
    options = models.JSONField(default=dict)
    found = models.JSONField(default=dict)

    class Meta(Owned.Meta):
        verbose_name = "upload"

    def __str__(self) -> str:
        return self.source_name
