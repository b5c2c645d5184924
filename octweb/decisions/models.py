"""Store the chain of decisions: records, sealed blocks, and collection progress."""

from __future__ import annotations

import uuid

from django.db import models

from octweb.audit import chain as audit_chain


class Kind(models.TextChoices):
    """Kind of a record."""

    DECISION = "decision", "Decision"
    OUTCOME = "outcome", "Outcome"
    OVERRIDE = "override", "Override"
    OBJECTION = "objection", "Objection"
    LOOK = "look", "Look at a record"
    ERASED = "erased", "Erased"
    ENDED = "ended", "End of a stream"
    REPLAYED = "replayed", "Replayed"
    UNRECORDED = "unrecorded", "Answers without a record"


class ChainEntry(models.Model):
    """A record of the chain. The commitment covers `payload`. Other columns copy parts of it for queries.

    An erased record keeps number, key, kind, about, model, time, stream, seq and commitment.
    """

    number = models.BigIntegerField(primary_key=True)  # counts 1, 2, 3, …
    key = models.UUIDField(unique=True)  # id that callers see
    kind = models.CharField(max_length=10, choices=Kind)
    about = models.UUIDField(null=True, db_index=True)  # key of the decision that this record is about
    model = models.UUIDField(null=True)  # not a foreign key, because a record outlives its model
    at = models.BigIntegerField()  # ns since 1970
    stream = models.UUIDField(null=True)
    seq = models.BigIntegerField(null=True)
    leaf = models.IntegerField(null=True)
    label = models.IntegerField(null=True)
    subject = models.CharField(max_length=64, blank=True)
    payload = models.TextField(blank=True)
    salt = models.CharField(max_length=32, blank=True)
    commitment = models.CharField(max_length=64)

    class Meta:
        ordering = ["number"]
        indexes = [
            # leaf and label at the end, so that counts by them read only the index
            models.Index(fields=["model", "kind", "-at", "-number", "leaf", "label"], name="entries_in_time"),
            # without it, the list of a rare leaf reads all decisions of the model: 60 ms for 100,000, with it 0.1 ms
            models.Index(fields=["model", "kind", "leaf", "-at", "-number"], name="entries_of_leaf"),
            models.Index(fields=["subject"], condition=~models.Q(subject=""), name="entries_of_subject"),
        ]
        constraints = [models.UniqueConstraint(fields=["stream", "seq"], name="one_entry_a_place_in_a_stream")]

    def __str__(self) -> str:
        return f"{self.number}: {self.kind}"


class Block(models.Model):
    """Up to 4,096 records under one hash. `header` is the hashed text."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    number = models.BigIntegerField(unique=True)
    first = models.BigIntegerField(unique=True)  # number of the block's first record
    records = models.IntegerField()
    last_at = models.BigIntegerField(db_index=True)  # ns since 1970
    header = models.TextField()
    digest = models.CharField(max_length=64)

    class Meta:
        ordering = ["number"]
        verbose_name = "block of decisions"

    def __str__(self) -> str:
        return f"block {self.number} of decisions"


class RecordStream(models.Model):
    """Collection progress of one process's records."""

    id = models.UUIDField(primary_key=True)
    seq = models.BigIntegerField(default=0)  # number of the next record
    end = models.CharField(max_length=10, blank=True)  # "closed" or "cut"

    def __str__(self) -> str:
        return f"{self.id}: {self.seq} records"


class SpoolPart(models.Model):
    """Collection progress of one spool file. The row is deleted after the file."""

    name = models.CharField(max_length=80, primary_key=True)
    offset = models.BigIntegerField(default=0)
    last = models.SmallIntegerField(default=0)  # kind of the last frame
    is_done = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"{self.name}: {self.offset} bytes"


class DecisionHead(models.Model):
    """End of the chain: a single row, locked while records are added or sealed."""

    records = models.BigIntegerField(default=0)
    sealed = models.BigIntegerField(default=0)  # number of records in blocks
    blocks = models.BigIntegerField(default=0)
    digest = models.CharField(max_length=64, default=audit_chain.START)  # digest of the last block
    signed = models.BigIntegerField(default=0)  # number of the last signed block
    signed_on = models.DateField(null=True)
    anchor_due = models.DateTimeField(null=True)  # a worker may try to anchor the last signed block from this time on
    anchor_tries = models.PositiveIntegerField(default=0)  # failed ones since the last anchor
    anchor_error = models.CharField(max_length=300, blank=True)  # why the last one failed

    def __str__(self) -> str:
        return f"{self.records} records, {self.blocks} blocks"
