"""Recover jobs whose worker died, and remove what such workers left behind.

A job with an expired lease is requeued, or fails after its last attempt. A queued job without a task gets a new one.
"""

from __future__ import annotations

import logging
import shutil
import time
import uuid
from datetime import datetime, timedelta
from pathlib import Path

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from django_tasks import TaskResultStatus
from django_tasks_db.models import DBTaskResult

from octweb.jobs.child import Process
from octweb.jobs.models import FINISHED, Job, RunStatus, WorkerBeat
from octweb.jobs.queue import job_models, send

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
TASK_GRACE = timedelta(seconds=10)
KEEP_TASKS = timedelta(days=7)


def beat(name: str) -> None:
    """Store a heartbeat of the worker `name`. Delete heartbeats older than a day."""
    now = timezone.now()
    WorkerBeat.objects.update_or_create(name=name, defaults={"seen_at": now})
    WorkerBeat.objects.filter(seen_at__lt=now - timedelta(days=1)).delete()


def reap() -> int:
    """Recover lost jobs, and end lost tasks, once. Return how many jobs and tasks were changed.

    Also delete old finished tasks.
    """
    now = timezone.now()
    changed = sum(_free(model, now) + _resend(model, now) for model in job_models())
    DBTaskResult.objects.finished().filter(finished_at__lt=now - KEEP_TASKS).delete()
    return changed + _end_tasks(now)


def _end_tasks(now: datetime) -> int:
    """Mark "running" tasks as failed if their job is not running, because the worker was killed. Return how many."""
    begun = DBTaskResult.objects.running().filter(started_at__lt=now - TASK_GRACE)
    tasks = {pk: args["args"][0] for pk, args in begun.values_list("pk", "args_kwargs") if args.get("args")}
    if not tasks:
        return 0
    running_ids: set[str] = set()
    for model in job_models():
        running = model._default_manager.filter(pk__in=tasks.values(), status=RunStatus.RUNNING)
        running_ids |= {str(pk) for pk in running.values_list("pk", flat=True)}
    finished = [pk for pk, job in tasks.items() if job not in running_ids]
    return (
        DBTaskResult.objects.running()
        .filter(pk__in=finished)
        .update(
            status=TaskResultStatus.FAILED, finished_at=now, exception_class_path="octweb.jobs.supervisor.LostLease"
        )
    )


def sweep() -> int:
    """Remove this host's scratch folders of jobs that have ended or were deleted. Return how many."""
    folders = {path.name: path for path in Process.scratch().glob("*") if path.is_dir()}
    in_use: set[str] = set()
    for model in job_models():
        ids = [name for name in folders if _is_id(name)]
        in_use |= {
            str(pk)
            for pk in model._default_manager.filter(pk__in=ids)
            .exclude(status__in=FINISHED)
            .values_list("pk", flat=True)
        }
    before = time.time() - TASK_GRACE.total_seconds()
    abandoned = [path for name, path in folders.items() if name not in in_use and _is_older(path, before)]
    for path in abandoned:
        shutil.rmtree(path, ignore_errors=True)
    return len(abandoned)


def _is_older(folder: Path, time_limit: float) -> bool:
    """Return whether a folder was last changed before a time, in seconds since 1970; False if it is gone."""
    try:
        return folder.stat().st_mtime < time_limit
    except FileNotFoundError:  # its job ended meanwhile
        return False


def _is_id(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _free(model: type[Job], now: datetime) -> int:
    """Cancel, fail or requeue running jobs with an expired lease. Return how many."""
    jobs = model._default_manager
    name = model._meta.verbose_name
    changed = 0
    for job in jobs.filter(status=RunStatus.RUNNING, lease_until__lt=now):
        same = jobs.filter(pk=job.pk, status=RunStatus.RUNNING, attempt=job.attempt, lease_until__lt=now)
        if job.cancel_requested:
            changed += same.update(
                status=RunStatus.CANCELLED, finished=now, lease_until=None, error="Cancelled; its worker had died."
            )
        elif job.deaths >= MAX_ATTEMPTS:
            changed += same.update(
                status=RunStatus.FAILED,
                finished=now,
                lease_until=None,
                error=f"The worker died {job.deaths} times during this {name}. {model.ADVICE}",
            )
        elif _send_again(same, job):
            log.warning("%s %s: its worker is gone after attempt %s, back to the queue", name, job.pk, job.attempt)
            changed += 1
    return changed


@transaction.atomic
def _send_again(same: QuerySet, job: Job) -> bool:
    """Requeue the job together with its task. Return False if the job has changed.

    Both happen in one transaction, so another reaper finds no queued job without a task.
    """
    if not same.update(status=RunStatus.QUEUED, worker="", lease_until=None):
        return False
    send(job)
    return True


def _resend(model: type[Job], now: datetime) -> int:
    """Send new tasks for queued jobs without one. Return how many.

    A process may have died between the two writes.
    """
    queued = model._default_manager.filter(status=RunStatus.QUEUED, created__lt=now - TASK_GRACE).order_by(F("created"))
    if not queued:
        return 0
    waiting = {
        result.args_kwargs["args"][0]
        for result in DBTaskResult.objects.filter(status=TaskResultStatus.READY)
        if result.args_kwargs.get("args")
    }
    missing = [job for job in queued if str(job.pk) not in waiting]
    for job in missing:
        # a worker may be about to claim the job with its first task; the second task then finds nothing to claim
        send(job)
    return len(missing)
