"""Job: work in the queue, whose row is the only record of its state; WorkerBeat: the last sign of life of a worker."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from octweb.core.ownership import Owned


class RunStatus(models.TextChoices):
    """The status of a job."""

    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


START_SECONDS = 120.0  # reading a file and compiling do not count as time of what was asked
FINISHED = (RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED)


class Job(Owned):
    """Work that waits in the queue and is done in a child process: who works on it until when, and how it ended."""

    TASK = ""  # the dotted name of the task that does it; its one argument is the id of the job
    TIDY = ""  # the dotted name of a function that removes what is old, if there is one; takes the time
    ADVICE = ""  # what to do where the worker died each time

    status = models.CharField(max_length=20, choices=RunStatus, default=RunStatus.QUEUED, db_index=True)
    attempt = models.PositiveIntegerField(default=0)
    worker = models.CharField(max_length=100, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    cancel_requested = models.BooleanField(default=False)
    started = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)
    log = models.TextField(blank=True)  # the last lines that the child wrote to standard error
    progress = models.JSONField(default=dict)  # the last progress record
    summary = models.JSONField(default=dict)  # the JSON object that the command of the child prints

    class Meta(Owned.Meta):
        abstract = True
        indexes = [models.Index(fields=["status", "lease_until"])]

    @property
    def is_finished(self) -> bool:
        return self.status in FINISHED

    @property
    def urgency(self) -> int:
        """The amount added to the priority of its task."""
        return 0

    @property
    def deaths(self) -> int:
        """The number of attempts that octweb did not end itself."""
        return self.attempt

    @property
    def lets_pass(self) -> bool:
        """Whether `longest` counts from one pause to the next, and not from its start."""
        return False

    @classmethod
    def held(cls) -> tuple[str, str]:
        """The noun for this job on pages, singular and plural."""
        return str(cls._meta.verbose_name), str(cls._meta.verbose_name_plural)

    def longest(self) -> float | None:
        """The most seconds for which it may occupy a worker; None if unknown."""
        return float(settings.MAX_BATCH_SECONDS)


class WorkerBeat(models.Model):
    """A worker process and when it was last heard of."""

    name = models.CharField(max_length=100, primary_key=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
