"""Models of jobs and of the heartbeats of workers."""

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


START_SECONDS = 120.0  # reading a file and compiling may take this long in addition to the time limit of a job
FINISHED = (RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED)


class Job(Owned):
    """Work that a worker takes from the queue and runs in a child process.

    The row is the only record of its state: its status, which worker holds it until when, and how it ended.
    """

    TASK = ""  # dotted name of the task that runs the job; the id of the job is its only argument
    TIDY = ""  # dotted name of a function that removes old rows and takes the current time; empty if there is none
    ADVICE = ""  # tells the user what to do after the worker died in every attempt

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
    progress = models.JSONField(default=dict)  # the last progress record, without its tree
    summary = models.JSONField(default=dict)  # the JSON object that the command of the child prints

    class Meta(Owned.Meta):
        abstract = True
        indexes = [models.Index(fields=["status", "lease_until"])]

    @property
    def is_finished(self) -> bool:
        return self.status in FINISHED

    @property
    def urgency(self) -> int:
        """The number added to the priority of its task."""
        return 0

    @property
    def deaths(self) -> int:
        """The number of attempts that count as deaths of a worker: all, unless a kind of job knows better."""
        return self.attempt

    @property
    def lets_pass(self) -> bool:
        """Whether the job gives way to others: `longest` then covers the time up to the next pause, not the whole job."""
        return False

    @classmethod
    def held(cls) -> tuple[str, str]:
        """Return the noun for this job on pages, singular and plural."""
        return str(cls._meta.verbose_name), str(cls._meta.verbose_name_plural)

    def longest(self) -> float | None:
        """Return the number of seconds for which the job may occupy a worker; None if unlimited."""
        return float(settings.MAX_BATCH_SECONDS)


class WorkerBeat(models.Model):
    """A worker process and the time of its last heartbeat."""

    name = models.CharField(max_length=100, primary_key=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
