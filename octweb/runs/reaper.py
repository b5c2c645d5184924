"""Reaper: no run is lost and none is "running" for ever, whichever process died.

A run whose lease is over goes back to the queue, or fails after its last attempt; a queued run without a task gets a new one.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db.models import F
from django.utils import timezone
from django_tasks import TaskResultStatus
from django_tasks_db.models import DBTaskResult

from octweb.runs.actions import send
from octweb.runs.models import RunStatus, TrainingRun, WorkerBeat

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
TASK_GRACE = timedelta(seconds=10)
KEEP_TASKS = timedelta(days=7)


def beat(name: str) -> None:
    """A sign of life of the worker `name`; old ones are forgotten."""
    now = timezone.now()
    WorkerBeat.objects.update_or_create(name=name, defaults={"seen_at": now})
    WorkerBeat.objects.filter(seen_at__lt=now - timedelta(days=1)).delete()


def reap() -> int:
    """Look after all runs once; returns how many were changed."""
    now = timezone.now()
    changed = 0
    expired = TrainingRun.objects.filter(status=RunStatus.RUNNING, lease_until__lt=now)
    for run in expired:
        same = TrainingRun.objects.filter(pk=run.pk, status=RunStatus.RUNNING, attempt=run.attempt, lease_until__lt=now)
        if run.cancel_requested:
            changed += same.update(
                status=RunStatus.CANCELLED, finished=now, lease_until=None, error="Cancelled; its worker had died."
            )
        elif run.attempt >= MAX_ATTEMPTS:
            changed += same.update(
                status=RunStatus.FAILED,
                finished=now,
                lease_until=None,
                error=f"The worker died {run.attempt} times during this run. Ask for less memory or a smaller depth.",
            )
        elif same.update(status=RunStatus.QUEUED, worker="", lease_until=None):
            log.warning("run %s: its worker is gone after attempt %s, back to the queue", run.pk, run.attempt)
            send(run)
            changed += 1
    changed += _resend(now)
    DBTaskResult.objects.finished().filter(finished_at__lt=now - KEEP_TASKS).delete()
    return changed


def _resend(now) -> int:
    """Queued runs whose task was lost, for instance because the process died between the two writes."""
    queued = TrainingRun.objects.filter(status=RunStatus.QUEUED, created__lt=now - TASK_GRACE).order_by(F("created"))
    if not queued:
        return 0
    waiting = {
        result.args_kwargs["args"][0]
        for result in DBTaskResult.objects.filter(status=TaskResultStatus.READY)
        if result.args_kwargs.get("args")
    }
    lost = [run for run in queued if str(run.pk) not in waiting]
    for run in lost:
        # a task that just left the queue is about to claim the run; a second task finds nothing to claim
        send(run)
    return len(lost)
