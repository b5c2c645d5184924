"""Cache upper bounds for subtrees from time-limited exact searches.

A stopped search has a valid bound, so a short limit only weakens the bounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from trainer.dtypes import CountArray
from trainer.families.mip.instance import Instance
from trainer.solver_common.binary_problem import SearchLimits
from trainer.solver_common.cross_family import solve_binary

SECONDS_PER_SET = 0.5  # time limit for one set of rows
TOTAL_SECONDS = 10.0  # time limit for all sets; later searches get no time, so their bounds are weak


class DeepBounds:
    """Upper bounds on the value, in rows, of trees over one instance; `stop` ends a search early."""

    def __init__(
        self, instance: Instance, *, seconds: float = SECONDS_PER_SET, stop: Callable[[], bool] = lambda: False
    ) -> None:
        self.instance = instance
        self.seconds = seconds
        self.stop = stop
        self.spent = 0.0
        self._cache: dict[tuple[bytes, int], Fraction] = {}

    def __call__(self, rows: CountArray, height: int) -> Fraction:
        """Return an upper bound on the value of trees of at most `height` on `rows` (indices, not empty)."""
        key = rows.tobytes(), height
        if key not in self._cache:
            inst = self.instance
            began = time.perf_counter()
            problem = replace(inst.binary_problem().among(rows), depth=height)
            seconds = min(self.seconds, max(0.0, TOTAL_SECONDS - self.spent))
            result = solve_binary(problem, limits=SearchLimits(time_limit=seconds, stop=self.stop))
            self.spent += time.perf_counter() - began
            self._cache[key] = int(inst.weight[rows].sum()) - result.bound
        return self._cache[key]
