"""Describe what a queued job waits for, and when it starts at the latest."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils import timezone

from octweb.core.templatetags.octweb import seconds
from octweb.jobs.models import Job, RunStatus
from octweb.jobs.queue import ahead_of, kinds_of_queue, queue_position, workers_seen
from trainer.tree.numbers import count_words

MINUTE = 60.0


@dataclass(frozen=True, kw_only=True)
class Wait:
    """State of a queued job: position in the queue, number of live workers, and running jobs before it.

    `longest` is the maximum seconds until its start, or None if unknown.
    """

    position: int
    workers: int
    busy: str = ""
    longest: float | None = None

    @property
    def words(self) -> str:
        """Return why the job has not started, and the latest time of its start."""
        if not self.busy:
            return "a worker is free and takes it now."
        if self.longest is None:
            return f"it waits for {self.busy}. How long is not known: a workbench keeps its worker while somebody works at it."
        return f"it waits for {self.busy}. As things stand it starts within {seconds(_rounded_up(self.longest))}."


def wait_of(job: Job | None) -> Wait | None:
    """Return what a queued job waits for, or None if the job is not queued."""
    position = None if job is None else queue_position(job)
    if job is None or position is None:
        return None
    workers = workers_seen()
    if not workers:
        return Wait(position=position, workers=0)
    running = _running(type(job))
    free = [0.0] * max(0, workers - len(running)) + [_remaining_seconds(other) for other in running]
    ahead = [_maximum_seconds(other) for queued in ahead_of(job) for other in queued.order_by("created")]
    busy = _busy_words(running) if len(running) >= workers else ""
    return Wait(position=position, workers=workers, busy=busy or _ahead_words(len(ahead)), longest=_start(free, ahead))


def _running(kind: type[Job]) -> list[Any]:
    """Return the running jobs in slots that also take jobs of this kind."""
    return [job for model in kinds_of_queue(kind) for job in model._default_manager.filter(status=RunStatus.RUNNING)]


def _remaining_seconds(job: Job) -> float:
    """Return the maximum seconds for which a running job still occupies its worker. Infinite if unknown."""
    if job.started is None or job.lets_pass:  # its current part may have begun just now
        return _maximum_seconds(job)
    return max(0.0, _maximum_seconds(job) - (timezone.now() - job.started).total_seconds())


def _maximum_seconds(job: Job) -> float:
    """Return the maximum seconds for which a job occupies a worker, including the grace period.

    Infinite if unlimited.
    """
    longest = job.longest()
    return math.inf if longest is None else longest + settings.WORKER_GRACE_SECONDS


def _start(free: list[float], ahead: list[float]) -> float | None:
    """Return the maximum seconds until a worker is free, if all jobs ahead use their whole limits. None if unlimited.

    `free` has the seconds until each worker is free. `ahead` has the limits of the jobs ahead, which the first free
    worker takes.
    """
    heapq.heapify(free)
    for longest in ahead:
        heapq.heapreplace(free, free[0] + longest)
    return None if math.isinf(free[0]) else free[0]


def _busy_words(running: list[Any]) -> str:
    counts: dict[tuple[str, str], int] = {}
    for job in running:
        counts[job.held()] = counts.get(job.held(), 0) + 1
    words = [count_words(count, one, many) for (one, many), count in counts.items()]
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _ahead_words(count: int) -> str:
    return f"{count_words(count, 'job')} before it" if count else ""


def _rounded_up(value: float) -> float:
    """Round up to 5 s below a minute, and to minutes above. This bound does not change at every refresh."""
    step = 5.0 if value < MINUTE - 5 else MINUTE
    return max(step, math.ceil(value / step) * step)
