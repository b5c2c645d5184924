"""The queue that all kinds of jobs share; pages and API send jobs to it, workers take them from it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.apps import apps
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.module_loading import import_string

from octweb.core.badges import STATES
from octweb.core.locks import hold_lock
from octweb.core.problems import Conflict
from octweb.demo.visits import refuse_more
from octweb.jobs.models import FINISHED, Job, RunStatus, WorkerBeat

Kind = TypeVar("Kind", bound=Job)


def job_models() -> list[type[Job]]:
    """Every kind of job of the installed applications."""
    return [model for model in apps.get_models() if issubclass(model, Job)]


def send(job: Job) -> None:
    """Put the job's id, and nothing else, into the task queue."""
    task = import_string(job.TASK)
    task.using(priority=task.priority + job.urgency).enqueue(str(job.pk))


def priority_of(model: type[Job]) -> int:
    """Return the priority of a kind of job. Workers take the highest first, and the oldest among equals."""
    return int(import_string(model.TASK).priority)


def tidy(now: datetime) -> int:
    """Let every kind of job remove what is old; returns how much was removed."""
    return sum(import_string(model.TIDY)(now) for model in job_models() if model.TIDY)


def cancel(job: Any) -> Any:
    """Cancel a queued job at once; ask a running one to stop. A finished job raises Conflict."""
    now = timezone.now()
    jobs = type(job).objects
    queued = jobs.filter(pk=job.pk, status=RunStatus.QUEUED)
    if not queued.update(status=RunStatus.CANCELLED, cancel_requested=True, finished=now):
        running = jobs.filter(pk=job.pk, status=RunStatus.RUNNING)
        if not running.update(cancel_requested=True):
            job.refresh_from_db()
            name = job._meta.verbose_name
            raise Conflict(f"The {name} has already ended ({STATES[job.status].words.lower()}).")
    job.refresh_from_db()
    return job


def refuse_unfinished(job: Job) -> None:
    """Raise Conflict for a job that has not ended."""
    if job.status not in FINISHED:
        raise Conflict(f"The {job._meta.verbose_name} has not ended yet. Cancel it first.")


def check_waiting(model: type[Job], owner: Any) -> None:
    """Raise Conflict where the owner has as many jobs of this kind in the queue as one may have, or a visitor too many things.

    Call it in the transaction that adds the job: it locks the owner's count until that transaction ends.
    """
    hold_lock(f"{model._meta.label_lower} of user {owner.pk}")
    refuse_more(owner)
    waiting = model._default_manager.filter(owner=owner, status__in=[RunStatus.QUEUED, RunStatus.RUNNING]).count()
    if waiting >= settings.MAX_QUEUED_RUNS:
        names = model._meta.verbose_name_plural
        raise Conflict(
            f"You have {waiting} {names} queued or running; {settings.MAX_QUEUED_RUNS} is the limit. Wait or cancel one."
        )


def only_one(kind: type[Kind], *, owner: Any, model: Any, **fields: Any) -> Kind:
    """Return the active job of this kind for a model, or queue a new one of `owner` with these fields.

    Two calls at once get the same job: the model's row is locked. Raises Conflict.
    """
    with transaction.atomic():
        type(model)._default_manager.select_for_update().only("pk").get(pk=model.pk)
        waiting = kind._default_manager.filter(model=model, status__in=[RunStatus.QUEUED, RunStatus.RUNNING]).first()
        if waiting is not None:
            return waiting
        check_waiting(kind, owner)
        job = kind._default_manager.create(owner=owner, model=model, **fields)
        transaction.on_commit(lambda: send(job))
    return job


def ahead_of(job: Job) -> list[QuerySet[Any]]:
    """Return the queued jobs of each kind that a worker takes before this one."""
    mine = priority_of(type(job))
    querysets = []
    for model in job_models():
        queued = model._default_manager.filter(status=RunStatus.QUEUED).exclude(pk=job.pk)
        if priority_of(model) == mine:
            querysets.append(queued.filter(created__lt=job.created))
        elif priority_of(model) > mine:
            querysets.append(queued)
    return querysets


def more_urgent_waits(job: Job, since: datetime) -> bool:
    """Return whether a job of higher priority has been queued since then."""
    mine = priority_of(type(job))
    return any(
        model._default_manager.filter(status=RunStatus.QUEUED, created__lt=since).exists()
        for model in job_models()
        if priority_of(model) > mine
    )


def queue_position(job: Job) -> int | None:
    """1 for the job that starts next; None for one that is not queued."""
    if job.status != RunStatus.QUEUED:
        return None
    return sum(queued.count() for queued in ahead_of(job)) + 1


def worker_seen() -> bool:
    """Return whether a worker has sent a heartbeat recently; without one, queued jobs wait forever."""
    return workers_seen() > 0


def workers_seen() -> int:
    """Return the number of workers with a recent heartbeat; each has one slot."""
    since = timezone.now() - timedelta(seconds=settings.WORKER_LEASE_SECONDS)
    return WorkerBeat.objects.filter(seen_at__gte=since).count()
