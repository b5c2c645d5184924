"""Monitor a training: progress, cancellation and limits.

A training method calls `report` on progress and checks `stopped()` (or its kernels check `flag[0]`) at least every 50 ms. When it is
stopped, it returns its incumbent and its proved bound. The monitor is thread-safe.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psutil

from trainer.certificate import Limits, Progress, Status, relative_gap
from trainer.tree.nodes import Draft

Sink = Callable[[Progress, "Draft | None"], None]
INTERVAL = 0.2
COMPILING = "getting ready; only the first time"
NOTICEABLE_SECONDS = 0.2  # after this time of compilation, `while_compiling` is called


class Monitor:
    """Monitor of one training: its progress, incumbent and bound, and the request to stop."""

    def __init__(self, limits: Limits | None = None, sink: Sink | None = None) -> None:
        self.limits = limits or Limits()
        self.flag = np.zeros(1, np.int64)
        self.reason: Status | None = None
        self.cancelled = False  # whether the user cancelled, even if a limit was reached first
        self.incumbent: float | None = None
        self.bound: float | None = None
        self.draft: Draft | None = None
        self.nodes = 0
        self.leaves: int | None = None
        self.phase = self._interrupted = "start"
        self.started = time.perf_counter()
        self.compile_seconds = 0.0  # total time of finished compilations
        self._compile_began: float | None = None
        self._stage_end = float("inf")  # value of `elapsed` at which the current stage ends
        self.while_compiling: Callable[[], None] | None = None  # called once, if a compilation takes noticeable time
        self.first_draft: Draft | None = None  # a tree of the method's problem, grown while kernels compiled
        self.stop_noticed: float | None = (
            None  # time at which a compiler was first seen to run after the end of the run
        )
        self.ignored: threading.Thread | None = None  # an abandoned thread of the run, whose reports are ignored
        self._sink = sink
        self._lock = threading.RLock()
        self._writing = threading.Lock()  # serialises calls of the sink, so that records keep their order
        self._news: deque[tuple[Progress, Draft | None]] = deque()
        self._emitted = -1.0
        self._pending = False
        self._pending_draft: Draft | None = None
        self._shown = False  # whether the incumbent's tree was reported

    def elapsed(self) -> float:
        """Return the seconds of the search: since the start, without compilation."""
        return time.perf_counter() - self.started - self.compiled()

    def compiled(self) -> float:
        """Return the seconds of compilation so far; they do not count against the time limit."""
        began = self._compile_began
        running = 0.0 if began is None else time.perf_counter() - began
        return self.compile_seconds + running

    def remaining(self) -> float:
        """Return the seconds until the time limit; infinity without one."""
        return float("inf") if self.limits.time is None else max(0.0, self.limits.time - self.elapsed())

    def stop(self, reason: Status) -> None:
        """Request the end of the search; the first reason counts."""
        with self._lock:
            self.cancelled = self.cancelled or reason is Status.CANCELLED
            if self.reason is None:
                self.reason = reason
            self.flag[0] = 1

    def stopped(self) -> bool:
        """Return whether a limit was reached, the run was cancelled, or the time of the current stage is over."""
        if self.reason is None and self.limits.time is not None and self.elapsed() >= self.limits.time:
            self.stop(Status.TIME_LIMIT)
        stage_over = self.elapsed() >= self._stage_end
        if stage_over:
            self.flag[0] = 1
        return stage_over or self.reason is not None

    @contextmanager
    def stage(self, seconds: float) -> Iterator[None]:
        """Stop the work in the block after `seconds` of search, so that the run has time for later steps.

        No thread of the work may still run when the block ends.
        """
        self._stage_end = self.elapsed() + seconds
        try:
            yield
        finally:
            with self._lock:
                self._stage_end = float("inf")
                if self.reason is None:
                    self.flag[0] = 0

    def check_memory(self) -> None:
        """Stop the run if the process uses more than the memory limit (resident megabytes)."""
        if self.limits.memory is not None and psutil.Process().memory_info().rss > self.limits.memory * 1_000_000:
            self.stop(Status.MEMORY_LIMIT)

    def report(
        self,
        *,
        phase: str | None = None,
        incumbent: float | None = None,
        bound: float | None = None,
        nodes: int | None = None,
        leaves: int | None = None,
        draft: Draft | None = None,
    ) -> None:
        """Record progress of the search; ignore an incumbent or bound that is worse than the stored one."""
        if self.ignored is not None and self.ignored is threading.current_thread():
            return
        with self._lock:
            changed = phase is not None and phase != self.phase
            if phase is not None:
                self.phase = phase
            if nodes is not None and nodes != self.nodes:
                self.nodes = nodes
                self._pending = True
            better = incumbent is not None and (self.incumbent is None or incumbent > self.incumbent)
            # also report a tree that arrives after its objective, and the partial tree of a method without objective
            same = (
                incumbent is not None and not better and not self._shown and incumbent >= (self.incumbent or 0) - 1e-12
            )
            if better:
                self.incumbent = incumbent
                self._shown = draft is not None
            if better or incumbent is None or same:
                self.leaves = leaves if leaves is not None or better else self.leaves
                if draft is not None:
                    self.draft = self._pending_draft = draft
                    self._pending = True
                    self._shown = self._shown or incumbent is not None
            changed = changed or (same and draft is not None)
            if bound is not None and (self.bound is None or bound < self.bound):
                self.bound = bound
                self._pending = True
            self._pending = self._pending or changed or better
            due = better or changed or self.elapsed() - self._emitted >= INTERVAL
        if due:
            self.emit()

    def compiling(self, begins: bool) -> None:
        """Set the phase to compilation, or back to the interrupted phase."""
        if begins:
            self._interrupted = self.phase
            self._compile_began = time.perf_counter()
        elif self._compile_began is not None:
            # in this order, the search clock may lag for a moment, but never jumps ahead
            self.compile_seconds = self.compiled()
            self._compile_began = None
        if begins or self.phase == COMPILING:
            self.report(phase=COMPILING if begins else self._interrupted)

    def use_compile_time(self) -> None:
        """Call `while_compiling` if a compilation has begun to take time; the caller is not the thread that compiles."""
        if self.while_compiling is None or self.phase != COMPILING or self.compiled() < NOTICEABLE_SECONDS:
            return
        work = self.while_compiling
        self.while_compiling = None
        work()

    def emit(self) -> None:
        """Send a snapshot to the sink, if anything has changed.

        The sink evaluates a new tree on all rows. It runs outside of the lock, so that `report`, `stop` and `stopped` do not wait for it.
        """
        if self._sink is None:
            return
        with self._lock:
            if not self._pending:
                return
            self._emitted = self.elapsed()
            self._pending = False
            draft = self._pending_draft
            self._pending_draft = None
            self._news.append((self.snapshot(), draft))
        # if another thread holds the lock, it also writes this record
        while self._news and self._writing.acquire(blocking=False):
            try:
                while self._news:
                    self._sink(*self._news.popleft())
            finally:
                self._writing.release()

    def snapshot(self) -> Progress:
        """Return the current progress."""
        return Progress(
            t=self.elapsed(),
            compile_seconds=self.compiled(),
            phase=self.phase,
            incumbent=self.incumbent,
            bound=self.bound,
            gap=relative_gap(self.incumbent, self.bound),
            nodes=self.nodes,
            leaves=self.leaves,
        )


class StoppedMonitor(Monitor):
    """A monitor that only a given function stops."""

    def __init__(self, stop: Callable[[], bool]) -> None:
        super().__init__()
        self._stop = stop

    def stopped(self) -> bool:
        if self._stop():
            self.stop(Status.TIME_LIMIT)
        return super().stopped()


class BoundMonitor(Monitor):
    """The monitor of a search over more trees than those of the run: it passes on bounds, but no trees, to the monitor of the run."""

    def __init__(self, outer: Monitor) -> None:
        super().__init__()
        self._outer = outer
        self.flag = outer.flag

    def stopped(self) -> bool:
        """Return whether the run has to end."""
        return self._outer.stopped()

    def report(self, **progress: Any) -> None:
        """Pass on the phase, the bound and the number of nodes."""
        self._outer.report(**{name: value for name, value in progress.items() if name in ("phase", "bound", "nodes")})
