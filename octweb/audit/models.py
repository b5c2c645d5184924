"""Records of the audit chain, and the head of the chain."""

from __future__ import annotations

from typing import Any

from django.db import models

from octweb.audit import chain

SEALED = "decisions sealed"  # kind of a record: a block of the decisions was signed


class Record(models.Model):
    """A record of the chain: who did what to which object, and when.

    Names are stored as text, so they outlive accounts and objects.
    """

    number = models.PositiveBigIntegerField(primary_key=True)  # counts 1, 2, 3, … without gaps
    at = models.DateTimeField()
    by = models.CharField(max_length=150, blank=True)
    what = models.CharField(max_length=30)
    subject = models.CharField(max_length=20)  # model, dataset, run, experiment, workbench or prediction
    subject_id = models.UUIDField(db_index=True)
    name = models.CharField(max_length=320)
    details = models.JSONField(default=dict)
    before = models.CharField(max_length=64)
    digest = models.CharField(max_length=64, unique=True)

    class Meta:
        ordering = ["number"]

    def __str__(self) -> str:
        return f"{self.number}: {self.what} {self.name}"

    def to_json(self) -> dict[str, Any]:
        """Return the hashed members of the record, and its hash."""
        return {
            "number": self.number,
            "at": chain.moment(self.at),
            "by": self.by,
            "what": self.what,
            "subject": self.subject,
            "subject_id": str(self.subject_id),
            "name": self.name,
            "details": self.details,
            "before": self.before,
            "digest": self.digest,
        }


class Head(models.Model):
    """Length and last hash of the chain: a single row, locked while a record is added.

    It also reveals whether records were removed at the end.
    """

    records = models.PositiveBigIntegerField(default=0)
    digest = models.CharField(max_length=64, default=chain.START)

    def __str__(self) -> str:
        return f"{self.records} records"
