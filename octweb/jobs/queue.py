"""Queue, cancel, count and order jobs of all kinds."""

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
    """Return the kinds of jobs of all installed apps."""
    return [model for model in apps.get_models() if issubclass(model, Job)]


def kinds_of_queue(kind: type[Job]) -> list[type[Job]]:
    """Return the kinds of jobs that the same slot of a worker takes, this kind included."""
    queue_name = import_string(kind.TASK).queue_name
    return [model for model in job_models() if import_string(model.TASK).queue_name == queue_name]


def send(job: Job) -> None:
    """Put a task into the task queue. Its only argument is the id of the job."""
    task = import_string(job.TASK)
    task.using(priority=task.priority + job.urgency).enqueue(str(job.pk))


def priority_of(model: type[Job]) -> int:
    """Return the priority of a kind of job. Workers take the highest priority first, then the oldest job."""
    return int(import_string(model.TASK).priority)


def tidy(now: datetime) -> int:
    """Let every kind of job remove old rows. Return how many were removed."""
    return sum(import_string(model.TIDY)(now) for model in job_models() if model.TIDY)


def cancel(job: Any) -> Any:
    """Cancel a queued job at once, or ask a running one to stop. Return the job. Raises Conflict if it has ended."""
    now = timezone.now()
    jobs = type(job).objects
    queued = jobs.filter(pk=job.pk, status=RunStatus.QUEUED)
    if not queued.update(status=RunStatus.CANCELLED, cancel_requested=True, finished=now):
        running = jobs.filter(pk=job.pk, status=RunStatus.RUNNING)
        if not running.update(cancel_requested=True):
            job.refresh_from_db()
            name = job._meta.verbose_name
            state = STATES[job.status].words.lower()
            raise Conflict(f"The {name} has already ended ({state}), so it cannot be stopped.")
    job.refresh_from_db()
    return job


def refuse_unfinished(job: Job) -> None:
    """Raise Conflict unless the job has ended."""
    if job.status not in FINISHED:
        raise Conflict(f"The {job._meta.verbose_name} has not ended yet. Cancel it first.")


def check_waiting(model: type[Job], owner: Any) -> None:
    """Raise Conflict if the owner has too many queued or running jobs of this kind.

    Also raise it if the owner is a demo visitor with too many objects. Call it in the transaction that adds the job,
    because it holds a lock until that transaction ends.
    """
    hold_lock(f"{model._meta.label_lower} of user {owner.pk}")
    refuse_more(owner)
    waiting = model._default_manager.filter(owner=owner, status__in=[RunStatus.QUEUED, RunStatus.RUNNING]).count()
    if waiting >= settings.MAX_QUEUED_RUNS:
        names = model._meta.verbose_name_plural
        raise Conflict(
            f"You have {waiting} {names} queued or running; {settings.MAX_QUEUED_RUNS} is the limit. Wait for one, or cancel one."
        )


def only_one(kind: type[Kind], *, owner: Any, model: Any, **fields: Any) -> Kind:
    """Return the queued or running job of this kind for a model, or queue a new one of `owner` with these fields.

    Concurrent calls get the same job, because the model's row is locked. Raises Conflict like `check_waiting`.
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
    """Return, for each kind, a queryset of the queued jobs that workers take before this one."""
    mine = priority_of(type(job))
    querysets = []
    for model in kinds_of_queue(type(job)):
        queued = model._default_manager.filter(status=RunStatus.QUEUED).exclude(pk=job.pk)
        if priority_of(model) == mine:
            querysets.append(queued.filter(created__lt=job.created))
        elif priority_of(model) > mine:
            querysets.append(queued)
    return querysets


def more_urgent_waits(job: Job, since: datetime) -> bool:
    """Return whether a job of a kind with higher priority was queued before `since` and still waits."""
    mine = priority_of(type(job))
    return any(
        model._default_manager.filter(status=RunStatus.QUEUED, created__lt=since).exists()
        for model in kinds_of_queue(type(job))
        if priority_of(model) > mine
    )


def queue_position(job: Job) -> int | None:
    """Return the position in the queue, 1 for the next job. None if the job is not queued."""
    if job.status != RunStatus.QUEUED:
        return None
    return sum(queued.count() for queued in ahead_of(job)) + 1


def worker_seen() -> bool:
    """Return whether a worker has sent a heartbeat recently. Without one, queued jobs wait forever."""
    return workers_seen() > 0


def workers_seen() -> int:
    """Return the number of workers with a recent heartbeat. Each runs one job at a time."""
    since = timezone.now() - timedelta(seconds=settings.WORKER_LEASE_SECONDS)
    return WorkerBeat.objects.filter(seen_at__gte=since).count()
