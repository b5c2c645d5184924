"""Store the common part of all jobs, and heartbeats of workers."""

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


START_SECONDS = 120.0  # reading a file and compiling may take this long, on top of a job's time limit
FINISHED = (RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED)


class Job(Owned):
    """Work that a worker takes from the queue and runs in a child process. Each kind of job has a subclass.

    The row is the only record of its state: status, worker and lease, and how it ended.
    """

    TASK = ""  # dotted name of the task that runs the job; its only argument is the job's id
    TIDY = ""  # dotted name of a function of the current time that removes old rows; empty if there is none
    ADVICE = ""  # advice to the user after the worker died in every attempt

    status = models.CharField(max_length=20, choices=RunStatus, default=RunStatus.QUEUED, db_index=True)
    attempt = models.PositiveIntegerField(default=0)
    worker = models.CharField(max_length=100, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    cancel_requested = models.BooleanField(default=False)
    started = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)
    log = models.TextField(blank=True)  # last lines that the child wrote to standard error
    progress = models.JSONField(default=dict)  # last progress record, without its tree
    summary = models.JSONField(default=dict)  # JSON object that the child's command prints

    class Meta(Owned.Meta):
        abstract = True
        indexes = [models.Index(fields=["status", "lease_until"])]

    @property
    def is_finished(self) -> bool:
        return self.status in FINISHED

    @property
    def urgency(self) -> int:
        """Amount added to the task's priority."""
        return 0

    @property
    def deaths(self) -> int:
        """Number of attempts that count as deaths of a worker: all, unless a subclass excludes some."""
        return self.attempt

    @property
    def lets_pass(self) -> bool:
        """Whether the job can be preempted. `longest` is then the time to its next pause."""
        return False

    @classmethod
    def held(cls) -> tuple[str, str]:
        """Return the noun for a running job on pages, singular and plural."""
        return str(cls._meta.verbose_name), str(cls._meta.verbose_name_plural)

    def longest(self) -> float | None:
        """Return how many seconds the job may occupy a worker, or None if unlimited."""
        return float(settings.MAX_BATCH_SECONDS)


class WorkerBeat(models.Model):
    """A worker process and the time of its last heartbeat."""

    name = models.CharField(max_length=100, primary_key=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
