"""Claim a job, run its child, and store the outcome.

The job's row is the only record of its state. A worker claims it with an UPDATE that names the expected state. Every
tick renews the lease under the same condition. A last conditional UPDATE ends the job, in the transaction that stores
the result. If two workers believe that they hold a job, only one can finish it. If a worker dies, its job is free once
the lease has expired.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from octweb.core.faults import StoreUnavailable
from octweb.jobs.child import Process
from octweb.jobs.models import FINISHED, Job, RunStatus
from octweb.jobs.queue import send
from octweb.jobs.signals import ended

log = logging.getLogger(__name__)

TICK_SECONDS = 0.5
FIRST_POLL_SECONDS = 0.05  # seconds between two polls for the first report; short, because a user waits for it
NOTE = "note"  # key in a job's summary
RETRIED_NOTE = (
    "note: the system killed attempt {attempt}, probably because memory ran out; the job was tried again once."
)
IGNORED_TERMINATION = "octweb asked the {noun} process to end. It did not end within {seconds:.0f} s, so octweb killed it, and there is no result."
USER_STOP_GRACE_FACTOR = 6  # a solver may need longer for one step on a busy machine than a worker has that shuts down
DATABASE_TIMEOUT_SECONDS = 60.0  # a worker retries for this long while the database is unavailable

stopping = threading.Event()  # the worker command sets it at SIGTERM and SIGINT


def worker_name() -> str:
    """Return the name under which this process holds leases: host name and process id."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _reason(error: Exception) -> str:
    """Return the text of an error for the job's owner. For an OSError, leave out the path."""
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)


def hide_folders(text: str) -> str:
    """Remove this server's folders from paths in a text that the owner of a job reads."""
    folders = {str(folder) for folder in (settings.DATA_DIR, settings.BASE_DIR, tempfile.gettempdir(), sys.prefix)}
    for folder in sorted(folders - {"/"}, key=len, reverse=True):
        text = text.replace(f"{folder}/", "")
    return text


class LostLease(Exception):
    """This worker no longer holds the job: it was claimed by another, requeued, ended or deleted."""


class JobRefused(Exception):
    """The job cannot be run. The message is for its owner."""


class Supervisor(ABC):
    """Supervisor of one attempt at a job, used by its task. Each kind of job has a subclass."""

    jobs: type[Job]
    noun = "process"  # noun for the child in error messages

    def __init__(self, *, job_id: str, worker: str, stopping: threading.Event) -> None:
        self.job_id = job_id
        self.worker = worker
        self.stopping = stopping
        self.attempt = 0
        self.lines = 0
        self.end_reason = ""
        self.lost = ""  # tells the user which results are lost if the child is killed
        self.late = False  # whether this process stopped the child because of its time limit
        # whether the child must end and its job be requeued, because more urgent jobs wait
        self.preempted = False
        self.note = ""  # how the previous attempt ended, if it was killed; first line of the log

    def load(self) -> Any:
        """Return the job with its related objects."""
        return self.jobs._default_manager.get(pk=self.job_id)

    @abstractmethod
    def prepare(self, job: Any) -> Process:
        """Return the child process, not started. Raises JobRefused if the job cannot be run."""

    @abstractmethod
    def limits(self, job: Any) -> tuple[float, float]:
        """Return the child's time limit in seconds and memory limit in megabytes."""

    def keep(self, records: list[dict[str, Any]]) -> None:  # noqa: B027  # most jobs store none
        """Store progress records, in the transaction that renews the lease.

        `self.lines` counts the records stored before.
        """

    @abstractmethod
    def _finish(self, job: Any, child: Process, code: int) -> None:
        """Finish or requeue the job after its child has ended with this status."""

    def run(self) -> str:
        """Claim the job, run its child and finish it. Return the job's last status, "deleted", or "not claimed"."""
        if not self._claim():
            return "not claimed"
        job = self.load()
        self.note = str((job.summary or {}).get(NOTE, ""))
        child: Process | None = None
        try:
            with self._holding():
                child = self._patiently(lambda: self.prepare(job))
            child.start()
            code = self._watch(job, child)
            with self._holding():
                self._finish(job, child, code)
        except LostLease:
            log.warning("%s %s attempt %s: the lease is lost, leaving it", self._name, self.job_id, self.attempt)
        except JobRefused as error:
            reason = str(error)
            self._patiently(lambda: self.end(RunStatus.FAILED, error=reason))
        except Exception as error:
            log.exception("%s %s attempt %s failed in its supervisor", self._name, self.job_id, self.attempt)
            reason = f"The worker failed: {_reason(error).rstrip('.')}. Its log has the details."
            text = ""
            if child is not None:
                child.kill()
                text = self._log(child)
            self._patiently(lambda: self.end(RunStatus.FAILED, error=reason, log=text))
        finally:
            if child is not None:
                child.kill()
                child.clean()
        status = self.jobs._default_manager.values_list("status", flat=True).filter(pk=self.job_id).first() or "deleted"
        if status in FINISHED:
            ended.send_robust(sender=self.jobs, job_id=self.job_id)
        return status

    @property
    def _name(self) -> str:
        return str(self.jobs._meta.verbose_name)

    def _mine(self) -> QuerySet:
        return self.jobs._default_manager.filter(
            pk=self.job_id, status=RunStatus.RUNNING, worker=self.worker, attempt=self.attempt
        )

    def _claim(self) -> bool:
        now = timezone.now()
        with transaction.atomic():
            queued = self.jobs._default_manager.filter(pk=self.job_id, status=RunStatus.QUEUED)
            attempt = queued.values_list("attempt", flat=True).first()
            if attempt is None:
                return False
            updated = queued.filter(attempt=attempt).update(
                status=RunStatus.RUNNING,
                attempt=attempt + 1,
                worker=self.worker,
                started=now,
                finished=None,
                heartbeat_at=now,
                lease_until=now + timedelta(seconds=settings.WORKER_LEASE_SECONDS),
                error="",
                log="",
                progress={},
            )
        self.attempt = attempt + 1
        return bool(updated)

    @contextmanager
    def _holding(self) -> Iterator[None]:
        """Renew the lease in a thread during a `with` block.

        Transfers from and to a remote file store may outlast the lease.
        """
        finished = threading.Event()

        def renew() -> None:
            while not finished.wait(settings.WORKER_LEASE_SECONDS / 3):
                now = timezone.now()
                lease = now + timedelta(seconds=settings.WORKER_LEASE_SECONDS)
                try:
                    self._mine().update(heartbeat_at=now, lease_until=lease)
                except (OperationalError, InterfaceError) as error:
                    log.warning("%s %s: the database does not answer: %s", self._name, self.job_id, error)
                finally:
                    connection.close()

        thread = threading.Thread(target=renew, name="lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            finished.set()
            thread.join()

    def _watch(self, job: Any, child: Process) -> int:
        """Tick until the child has ended, and return its exit status.

        Raises LostLease, and the database's errors after a timeout.
        """
        started = time.monotonic()
        limit, memory = self.limits(job)
        terminated: float | None = None
        away: float | None = None
        while True:
            code = child.poll()
            try:
                cancel = self._tick(child)
                away = None
            except (OperationalError, InterfaceError) as error:
                # a run must survive if the database is locked or unavailable for some time
                away = away or time.monotonic()
                log.warning("%s %s: the database does not answer: %s", self._name, self.job_id, error)
                connection.close()
                cancel = False
                if time.monotonic() - away > DATABASE_TIMEOUT_SECONDS:
                    raise
            if code is not None:
                return code
            if terminated is None:
                terminated = self._reason_to_stop(child, cancel, time.monotonic() - started > limit, memory)
            elif time.monotonic() - terminated > (grace := self._grace(started + limit - terminated)):
                self.end_reason = self.end_reason or IGNORED_TERMINATION.format(noun=self.noun, seconds=grace)
                child.signal(signal.SIGKILL)
            self._pause(child)

    def _pause(self, child: Process) -> None:
        """Wait for the next tick, the end of the child, or its first report."""
        end = time.monotonic() + TICK_SECONDS
        while not child.offset and child.poll() is None and time.monotonic() < end - FIRST_POLL_SECONDS:
            child.pause(FIRST_POLL_SECONDS)
            if child.has_reported():
                return
        child.pause(max(0.0, end - time.monotonic()))

    def _grace(self, left: float) -> float:
        """Return the grace period in seconds. It is longer if a user stops the job `left` seconds before its limit.

        The longer period exceeds the job's limit by at most the short one. A worker that is shutting down uses the
        short one.
        """
        grace = float(settings.WORKER_GRACE_SECONDS)
        return grace if self.stopping.is_set() else min(USER_STOP_GRACE_FACTOR * grace, grace + max(0.0, left))

    def _reason_to_stop(self, child: Process, cancel: bool, late: bool, memory: float) -> float | None:
        """Kill a child above its memory limit, or terminate it for another reason.

        Return the time of the signal, or None if none was sent.
        """
        used_megabytes = child.megabytes()
        if used_megabytes > memory:
            self.end_reason = (
                f"The {self.noun} process used {used_megabytes:,.0f} MB, more than its limit. {self.jobs.ADVICE}"
            )
            child.signal(signal.SIGKILL)
        elif cancel or late or self.preempted or self.stopping.is_set():
            self.late = late
            if late:
                self.end_reason = f"The {self.noun} process did not end by its time limit, so it was stopped."
            child.signal(signal.SIGTERM)
        else:
            return None
        return time.monotonic()

    def _tick(self, child: Process) -> bool:
        """Store progress, and renew the lease. Return whether a cancellation was requested. Raises LostLease."""
        records, offset = child.read_progress()
        now = timezone.now()
        changes: dict[str, Any] = {
            "heartbeat_at": now,
            "lease_until": now + timedelta(seconds=settings.WORKER_LEASE_SECONDS),
            "log": self._log(child),
        }
        if records:
            progress = {k: v for k, v in records[-1].items() if k not in {"tree", "columns", "classes"}}
            changes["progress"] = progress | {"received": now.isoformat()}
        with transaction.atomic():
            if not self._mine().update(**changes):
                raise LostLease
            self.keep(records)
        child.offset = offset
        self.lines = self.lines + len(records)
        return bool(self._mine().values_list("cancel_requested", flat=True).first())

    def _not_cancelled(self) -> bool:
        return not self._mine().filter(cancel_requested=True).exists()

    def end(self, status: Any, **changes: Any) -> None:
        """End the job. Raises LostLease if this worker no longer holds it."""
        if "error" in changes:
            changes["error"] = hide_folders(changes["error"])
        if not self._mine().update(status=status, finished=timezone.now(), lease_until=None, **changes):
            raise LostLease  # this also rolls back what the same transaction stored

    def _release(self, **changes: Any) -> None:
        """Requeue the job if this worker still holds it. A worker then starts it again."""
        # one transaction; otherwise, the reaper could find a queued job without a task and send another one
        with transaction.atomic():
            if self._mine().update(status=RunStatus.QUEUED, worker="", lease_until=None, **changes):
                send(self.jobs._default_manager.get(pk=self.job_id))

    def noted(self) -> dict[str, str]:
        """Return the note on an earlier attempt for the summary, or {}."""
        return {NOTE: self.note} if self.note else {}

    def _log(self, child: Process) -> str:
        return hide_folders("\n".join(filter(None, [self.note, child.log()])))

    def _patiently(self, action: Callable[[], Any]) -> Any:
        """Return the result of `action`. Retry while the database or file store is unavailable, until a timeout."""
        until = time.monotonic() + DATABASE_TIMEOUT_SECONDS
        while True:
            try:
                return action()
            except (OperationalError, InterfaceError, StoreUnavailable):
                if time.monotonic() > until:
                    raise
                connection.close()
                time.sleep(1)


class ResultSupervisor(Supervisor):
    """Supervisor of a job whose child writes one result at its end."""

    def complete(self, summary: dict[str, Any]) -> bool:
        """Return whether the child finished its work, judging by its summary ({} if it failed)."""
        return bool(summary)

    @abstractmethod
    def store(self, job: Any, child: Process, summary: dict[str, Any]) -> None:
        """Store the result, and end the job with `end`, in one transaction."""

    def kept_of(self, child: Process, cancelled: bool) -> dict[str, Any]:
        """Return the summary of a result recovered from a killed child, or {}."""
        return {}

    def on_failure(self, child: Process) -> dict[str, Any]:
        """Return further fields to store for a failed job."""
        return {}

    def _finish(self, job: Any, child: Process, code: int) -> None:
        """Store the result, requeue the job, or end it with the reason for its failure.

        A job is requeued if the worker shuts down, and once after a kill that octweb did not send.
        """
        summary = child.summary() if code == 0 else {}
        if self.stopping.is_set() and self._patiently(self._not_cancelled) and not self.complete(summary):
            self._patiently(self._release)
            return
        if code == -signal.SIGKILL and not self.end_reason and not self.note and self._patiently(self._not_cancelled):
            self._patiently(lambda: self._release(summary={NOTE: RETRIED_NOTE.format(attempt=self.attempt)}))
            return
        cancelled = self._patiently(lambda: not self._not_cancelled())
        if code == -signal.SIGKILL and (recovered := self.kept_of(child, cancelled)):
            code = 0
            summary = recovered
        if code != 0 or not child.result.exists():
            error = f"{self.end_reason or _why(code, child.log(), self.noun, self.jobs.ADVICE)} {self.lost}".strip()
            status = RunStatus.CANCELLED if cancelled else RunStatus.FAILED
            self._patiently(lambda: self.end(status, error=error, log=self._log(child), **self.on_failure(child)))
            return
        self._patiently(lambda: self.store(job, child, summary))


def _why(code: int, log: str, noun: str, advice: str) -> str:
    """Return why a child failed: its last message or, if it has none or a signal ended it, how it ended."""
    return _death(code, noun, advice) if code < 0 else last_line(log) or _death(code, noun, advice)


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("note:")]
    return lines[-1].removeprefix("CommandError: ") if lines else ""


def _death(code: int, noun: str, advice: str) -> str:
    if code == -signal.SIGKILL:
        return f"The {noun} process was killed by the system, probably because memory ran out. {advice}"
    if code < 0:
        return f"The {noun} process was ended by signal {-code} ({signal.strsignal(-code)}). Start it again."
    return f"The {noun} process ended with status {code} and no message. Start it again; if it fails again, tell an administrator."
