"""Connect a solver to hooks: rounding, filtering, counting, errors, progress."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from trainer.dtypes import FloatArray
from trainer.errors import SolverError
from trainer.milo.expression import Row
from trainer.milo.hooks import INTEGRALITY, USER_VIOLATION, VIOLATION, Hooks, NodeInfo, SolveOptions, SolveReport
from trainer.milo.model import IntegerProgram, Pace, Point

T = TypeVar("T")
INTERVAL = 0.2


class Exchange:
    """State of one solve between a solver's callbacks and the hooks of a method."""

    def __init__(self, model: IntegerProgram, hooks: Hooks, options: SolveOptions) -> None:
        self.model = model
        self.hooks = hooks
        self.options = options
        self.started = time.perf_counter()
        # checks the clock while the model is passed to the solver
        self.pace = Pace(lambda: self.halted() or self.remaining() == 0.0)
        self.hook_seconds = 0.0
        self.error: BaseException | None = None
        self.cancelled = False
        self.counts: Counter[str] = Counter()
        self.pool: Counter[object] = Counter()
        self.proposed = self.accepted = 0
        self.bound = math.inf
        self.incumbent: float | None = None
        self.best: FloatArray | None = None
        self._best_value = -math.inf
        self.nodes = 0
        self._integers = model.integers
        self._reported = -math.inf
        self._verdicts: dict[bytes, list[Row]] = {}
        self._refused: set[bytes] = set()
        self._lock = threading.RLock()
        self._within = threading.local()

    def elapsed(self) -> float:
        """Return the seconds since the start of the solve."""
        return time.perf_counter() - self.started

    def remaining(self) -> float | None:
        """Return the seconds until the time limit; None without one."""
        return None if self.options.time is None else max(0.0, self.options.time - self.elapsed())

    def guard(self, call: Callable[[], T], otherwise: T) -> T:
        """Return `call()`; on an exception, store it in `error` and return `otherwise`, since solvers swallow exceptions."""
        try:
            with self.measure_hook_time():
                return call()
        except BaseException as error:
            self.error = self.error or error
            return otherwise

    @contextmanager
    def measure_hook_time(self) -> Iterator[None]:
        """Add the processor time of the block to `hook_seconds`; nested blocks count once."""
        outer = getattr(self._within, "callback", False)
        self._within.callback = True
        begin = time.thread_time()
        try:
            yield
        finally:
            self._within.callback = outer
            if not outer:
                self.hook_seconds += time.thread_time() - begin

    def halted(self) -> bool:
        """Return whether the solver must stop because of an error, a cancellation or a request of the method."""
        if self.error is None and not self.cancelled and self.options.stopped():
            self.cancelled = True
        return self.error is not None or self.cancelled

    def round_integers(self, values: FloatArray) -> FloatArray:
        """Round values of integer variables that are integral within the tolerance."""
        nearest = np.round(values)
        return np.where(self._integers & (np.abs(values - nearest) <= INTEGRALITY), nearest, values)

    def integral(self, values: FloatArray, origin: str, *, adding: bool, again: int = 0) -> list[Row]:
        """Return the rows that an integral point violates; without any, accept the point.

        With `adding`, the caller adds the rows now. Then this raises SolverError if a row occurs more than `again` times after it was
        added: the tolerances of method and solver disagree. `again` is for Gurobi, which may submit points from before a row was
        added.
        """
        key = values.tobytes()
        rows = self._verdicts.get(key)
        if rows is None:
            with self.measure_hook_time():
                point = Point(self.round_integers(values))
                rows = [row.scaled() for row in self.hooks.on_integral(point, origin)]
                rows = list({row.key(): row for row in rows if row.violation(values) > VIOLATION}.values())
            # a solver submits the same point a few times in a row, so a small cache suffices
            if len(self._verdicts) > 64:
                self._verdicts.clear()
            self._verdicts[key] = rows
        if adding:
            self.remember(rows, again=again)
        if not rows:
            self.accept(values)
        return rows

    def is_rejected(self, values: FloatArray, origin: str) -> bool:
        """Return whether an integral point violates lazy rows; no row is added."""
        key = values.tobytes()
        if key in self._refused:
            return True
        if key not in self._verdicts:
            with self.measure_hook_time():
                refused = self.hooks.refuses(Point(self.round_integers(values)), origin)
            if refused:
                if len(self._refused) > 1024:
                    self._refused.clear()
                self._refused.add(key)
                return True
        return bool(self.integral(values, origin, adding=False))

    def accept(self, values: FloatArray) -> None:
        """Store an accepted point if it improves the incumbent."""
        objective = self.model.value(values)
        if self.best is None or objective > self._best_value:
            self._best_value = objective
            self.best = self.round_integers(values)
            self.incumbent = objective if self.incumbent is None else max(objective, self.incumbent)

    def fractional(self, values: FloatArray, info: NodeInfo) -> list[Row]:
        """Return the rows that a relaxation's solution violates: new lazy rows, and all user rows."""
        with self.measure_hook_time():
            rows = [row.scaled() for row in self.hooks.on_fractional(Point(values), info)]
            rows = [row for row in rows if row.violation(values) > (USER_VIOLATION if row.user else VIOLATION)]
            fresh = [row for row in rows if row.user or row.key() not in self.pool]
            self.remember([row for row in fresh if not row.user], again=0)
            self.counts.update(row.name for row in fresh if row.user)
        return fresh

    def remember(self, rows: list[Row], *, again: int) -> None:
        """Count added rows. Raises SolverError if one was added more than `again` times before."""
        for row in rows:
            key = row.key()
            times = self.pool[key]
            if times > again:
                raise SolverError(
                    f"The row family '{row.name}' cut off a point that satisfies the same row, added before: the tolerances "
                    "of the solver and of the method disagree. Report this with the data set and the parameters."
                )
            self.pool[key] += 1
            if not times:
                self.counts[row.name] += 1

    def proposals(self) -> list[FloatArray]:
        """Return the method's new points to try."""
        with self.measure_hook_time():
            points = [np.asarray(p, np.float64) for p in self.hooks.propose()]
        self.proposed += len(points)
        return points

    def progress(self, incumbent: float | None, bound: float, nodes: int, *, always: bool = False) -> None:
        """Store the solver's incumbent, bound and nodes; report them every 0.2 s and for each better incumbent."""
        with self._lock:
            self.bound = min(self.bound, bound)
            self.nodes = max(self.nodes, nodes)
            better = incumbent is not None and (self.incumbent is None or incumbent > self.incumbent)
            if better:
                self.incumbent = incumbent
            if not (always or better) and self.elapsed() - self._reported < INTERVAL:
                return
            self._reported = self.elapsed()
            report = SolveReport(
                t=self._reported,
                incumbent=self.incumbent,
                bound=None if math.isinf(self.bound) else self.bound,
                nodes=self.nodes,
                rows=dict(self.counts),
            )
            if self.hooks.on_progress(report):
                self.cancelled = True
