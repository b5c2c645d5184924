"""Supervisor: takes a run, runs its child, copies its progress, and writes how it ended.

The run's row is the only truth. It is taken with an UPDATE that names the state it expects, held by a lease that every tick
renews with the same condition, and ended by one more conditional UPDATE in the transaction that stores the model. So a run that
two workers believe they have is finished by one of them, and a run whose worker died is free when its lease is over.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import threading
import time
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from octweb.registry import actions as registry
from octweb.runs.child import Child
from octweb.runs.models import ProgressRecord, RunStatus, TrainingRun

log = logging.getLogger(__name__)

TICK = 0.5
DATABASE_PATIENCE = 60.0  # seconds for which a database that is away is waited for
MEMORY_SLACK = 1.25  # the child watches itself; beyond this share of its limit it is killed
START_SECONDS = 120.0  # reading the file and compiling do not count as training time

stopping = threading.Event()  # set by the worker command when it is asked to end


def worker_name() -> str:
    """Who holds a lease: host and process."""
    return f"{socket.gethostname()}:{os.getpid()}"


class LostLease(Exception):
    """Somebody else has the run now, or it was deleted."""


class Supervisor:
    """One attempt at one run."""

    def __init__(self, *, run_id: str, worker: str, stopping: threading.Event) -> None:
        self.run_id = run_id
        self.worker = worker
        self.stopping = stopping
        self.attempt = 0
        self.lines = 0
        self.end_reason = ""

    def run(self) -> str:
        """Claim, supervise, finish; returns the run's status afterwards."""
        if not self._claim():
            return "not claimed"
        run = TrainingRun.objects.select_related("dataset", "owner").get(pk=self.run_id)
        child = Child.prepare(run)
        try:
            child.start()
            code = self._watch(run, child)
            self._finish(run, child, code)
        except LostLease:
            log.warning("run %s attempt %s: the lease is lost, leaving it", self.run_id, self.attempt)
        except Exception as error:
            log.exception("run %s attempt %s failed in its supervisor", self.run_id, self.attempt)
            child.kill()
            reason = f"The worker failed: {error}"
            self._patiently(lambda: self._end(RunStatus.FAILED, error=reason, log=child.log()))
        finally:
            child.kill()
            child.clean()
        return TrainingRun.objects.values_list("status", flat=True).filter(pk=self.run_id).first() or "deleted"

    def _mine(self):
        return TrainingRun.objects.filter(
            pk=self.run_id, status=RunStatus.RUNNING, worker=self.worker, attempt=self.attempt
        )

    def _claim(self) -> bool:
        now = timezone.now()
        with transaction.atomic():
            queued = TrainingRun.objects.filter(pk=self.run_id, status=RunStatus.QUEUED)
            attempt = queued.values_list("attempt", flat=True).first()
            if attempt is None:
                return False
            taken = queued.filter(attempt=attempt).update(
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
        return bool(taken)

    def _watch(self, run: TrainingRun, child: Child) -> int:
        """Tick until the child has ended; returns its exit status."""
        started = time.monotonic()
        limit = self._seconds_allowed(run)
        memory = float(run.parameters.get("memory_limit") or settings.MAX_TRAINING_MB) * MEMORY_SLACK
        terminated: float | None = None
        away: float | None = None
        while True:
            code = child.poll()
            try:
                cancel = self._tick(child)
                away = None
            except (OperationalError, InterfaceError) as error:
                # a database that is locked or away for some seconds costs no run
                away = away or time.monotonic()
                log.warning("run %s: the database does not answer: %s", self.run_id, error)
                connection.close()
                cancel = False
                if time.monotonic() - away > DATABASE_PATIENCE:
                    raise
            if code is not None:
                return code
            if terminated is None:
                terminated = self._reason_to_stop(child, cancel, time.monotonic() - started > limit, memory)
            elif time.monotonic() - terminated > settings.WORKER_GRACE_SECONDS:
                child.signal(signal.SIGKILL)
            time.sleep(TICK)

    def _reason_to_stop(self, child: Child, cancel: bool, late: bool, memory: float) -> float | None:
        """Ask the child to end if there is a reason; returns the time at which it was asked."""
        used = child.megabytes()
        if used > memory:
            self.end_reason = (
                f"The training process used {used:,.0f} MB, beyond its limit. Lower the depth or raise the limit."
            )
            child.signal(signal.SIGKILL)
        elif cancel or late or self.stopping.is_set():
            if late:
                self.end_reason = "The training process did not end after its time limit and was stopped."
            child.signal(signal.SIGTERM)
        else:
            return None
        return time.monotonic()

    def _seconds_allowed(self, run: TrainingRun) -> float:
        each = float(run.parameters.get("time_limit") or settings.MAX_TRAINING_SECONDS)
        return START_SECONDS + each * (1 + run.folds) * 1.1

    def _tick(self, child: Child) -> bool:
        """Copy progress, renew the lease; returns whether a cancel was asked for. Raises LostLease."""
        records, offset = child.read_progress()
        now = timezone.now()
        changes: dict[str, Any] = {
            "heartbeat_at": now,
            "lease_until": now + timedelta(seconds=settings.WORKER_LEASE_SECONDS),
            "log": child.log(),
        }
        if records:
            changes["progress"] = {k: v for k, v in records[-1].items() if k not in {"tree", "columns", "classes"}}
        with transaction.atomic():
            if not self._mine().update(**changes):
                raise LostLease
            ProgressRecord.objects.bulk_create(
                [
                    ProgressRecord(run_id=self.run_id, attempt=self.attempt, line=self.lines + i, record=record)
                    for i, record in enumerate(records)
                ],
                ignore_conflicts=True,  # the commit may have gone through although its answer was lost
            )
        child.offset, self.lines = offset, self.lines + len(records)
        return bool(self._mine().values_list("cancel_requested", flat=True).first())

    def _finish(self, run: TrainingRun, child: Child, code: int) -> None:
        """Store the model and the end of the run in one transaction."""
        summary = child.summary() if code == 0 else {}
        if (
            self.stopping.is_set()
            and self._patiently(self._not_cancelled)
            and summary.get("status") in {None, "cancelled"}
        ):
            self._patiently(self._release)
            return
        if code != 0 or not child.model_path.exists():
            error = self.end_reason or _last_line(child.log()) or _death(code)
            cancelled = self._patiently(lambda: not self._not_cancelled())
            status = RunStatus.CANCELLED if cancelled else RunStatus.FAILED
            self._patiently(lambda: self._end(status, error=error, log=child.log()))
            return
        document = json.loads(child.model_path.read_bytes())
        status = RunStatus.CANCELLED if summary.get("status") == "cancelled" else RunStatus.SUCCEEDED

        def store() -> None:
            with transaction.atomic():
                model = registry.register(owner=run.owner, document=document, dataset=run.dataset, title=run.name)
                self._end(status, model=model, summary=summary, log=child.log())

        self._patiently(store)

    def _not_cancelled(self) -> bool:
        return not self._mine().filter(cancel_requested=True).exists()

    def _end(self, status: Any, **changes: Any) -> None:
        if not self._mine().update(status=status, finished=timezone.now(), lease_until=None, **changes):
            raise LostLease  # rolls back the model that was registered in the same transaction

    def _release(self) -> None:
        """Give the run back: this worker ends, another one takes it from the start."""
        from octweb.runs.actions import send

        if self._mine().update(status=RunStatus.QUEUED, worker="", lease_until=None):
            send(TrainingRun.objects.get(pk=self.run_id))

    def _patiently(self, action):
        """Do something with a database that may be away for some seconds."""
        until = time.monotonic() + DATABASE_PATIENCE
        while True:
            try:
                return action()
            except (OperationalError, InterfaceError):
                if time.monotonic() > until:
                    raise
                connection.close()
                time.sleep(1)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("note:")]
    return lines[-1].removeprefix("CommandError: ") if lines else ""


def _death(code: int) -> str:
    if code < 0:
        return f"The training process was killed by signal {-code}. If that was not you, it may have run out of memory."
    return f"The training process ended with status {code} and no message."
