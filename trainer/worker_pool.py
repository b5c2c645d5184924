"""Share the work on one tree among threads.

Each thread takes an open node. If none is open, it helps another thread with its node.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Job = TypeVar("Job")


@dataclass(eq=False)
class _SharedTask:
    help: Callable[[], None]
    inside: int = 0


@dataclass(kw_only=True)
class WorkerPool(Generic[Job]):
    """Pool of `threads` workers, the calling thread among them; jobs are taken in the order of their places."""

    threads: int = 1
    _open: list[tuple[tuple[int, ...], Job]] = field(default_factory=list)
    _offers: list[_SharedTask] = field(default_factory=list)
    _busy: int = 0
    _error: BaseException | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def run(self, place: tuple[int, ...], job: Job, work: Callable[[Job], list[tuple[tuple[int, ...], Job]]]) -> None:
        """Run a job and all jobs that `work` returns, until none is left; raise an error of any thread here.

        Places of jobs must be unique.
        """
        self._open.append((place, job))
        others = [threading.Thread(target=self._serve, args=(work,), daemon=True) for _ in range(self.threads - 1)]
        for thread in others:
            thread.start()
        self._serve(work)
        for thread in others:
            thread.join()
        if self._error is not None:
            raise self._error

    @contextmanager
    def share_work(self, task: Callable[[], None]) -> Iterator[None]:
        """Let idle threads call `task` during a `with` block; the block ends once all of them have returned."""
        if self.threads == 1:
            yield
            return
        offer = _SharedTask(task)
        with self._changed:
            self._offers.append(offer)
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._withdraw(offer)
                while offer.inside:
                    self._changed.wait()
        if self._error is not None:
            raise self._error

    def _withdraw(self, offer: _SharedTask) -> None:
        if offer in self._offers:
            self._offers.remove(offer)

    def _serve(self, work: Callable[[Job], list[tuple[tuple[int, ...], Job]]]) -> None:
        while True:
            with self._changed:
                while self._error is None and not self._open and not self._offers and self._busy:
                    self._changed.wait()
                if self._error is not None or (not self._open and not self._busy):
                    return
                offer = None if self._open else self._offers[0]
                if offer is None:
                    _, job = heapq.heappop(self._open)
                    self._busy += 1
                else:
                    offer.inside += 1
            more: list[tuple[tuple[int, ...], Job]] = []
            error = None
            try:
                if offer is None:
                    more = work(job)
                else:
                    offer.help()
            except BaseException as found:  # the calling thread raises it again
                error = found
            with self._changed:
                self._error = self._error or error
                for one in more:
                    heapq.heappush(self._open, one)
                if offer is None:
                    self._busy -= 1
                else:
                    # a helper returns when nothing is left to share
                    offer.inside -= 1
                    self._withdraw(offer)
                self._changed.notify_all()
