"""Count and list all optimal trees.

They have the best objective and, among such trees, the fewest leaves. N(D, h) is the number of optimal trees of depth ≤
h for the rows D. It is 1 if a leaf is optimal, plus the sum over all splits f with E(D0, h-1) + E(D1, h-1) = E(D, h) of
N(D0, h-1) * N(D1, h-1), where Dv are the rows with f = v.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice

import numpy as np

from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.search.memo import DEFAULT_OPTIONS, INFINITE, UNKNOWN_PATH, ExactOptions
from trainer.families.exact.search.search import UNLIMITED, ExactSearch, begin_search, useful_depth
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits
from trainer.tree.shapes import Shape


@dataclass(frozen=True, kw_only=True)
class OptimalTrees:
    """The number of optimal trees and the first of them in search order; equal columns make different trees."""

    count: int
    trees: tuple[Shape, ...]
    cost: Fraction  # errors + leaf_cost × leaves, in rows


class _Stopped(Exception):
    """The limits ended the search."""


class _Optima:
    def __init__(self, search: ExactSearch) -> None:
        self.search = search
        self.counts: dict[tuple[int, bytes], int] = {}
        self.splits: dict[tuple[int, bytes], tuple[bool, list[int]]] = {}

    def key(self, rows: np.ndarray, height: int) -> tuple[int, bytes]:
        return height, rows.tobytes()

    def value(self, rows: np.ndarray, height: int, ub: int = int(INFINITE)) -> int:
        """Return E(rows, height), or a lower bound of at least `ub`."""
        entry = self.search.solve(rows, UNKNOWN_PATH, height, ub)
        if self.search.stopped():
            raise _Stopped
        return entry.lower

    def optimal_splits(self, rows: np.ndarray, height: int) -> tuple[bool, list[int]]:
        """Return whether a leaf is optimal, and the features of all optimal root splits."""
        key = self.key(rows, height)
        if key not in self.splits:
            self.splits[key] = self._find(rows, height)
        return self.splits[key]

    def _find(self, rows: np.ndarray, height: int) -> tuple[bool, list[int]]:
        s = self.search
        cost = self.value(rows, height)
        node = s.prepare(rows)
        leaf = s._leaf_cost(node) == cost
        if height == 0 or not len(node.features):
            return leaf, []
        frame = s.build_frame(node, height)
        if height == 3:
            s.run_height3(frame, UNKNOWN_PATH, np.array([cost + 1, -2, 0, 0, 0], np.int64), True)
        splits = []
        for p in range(len(node.features)):
            low = [int(frame.lower[0, p]), int(frame.lower[1, p])]
            if low[0] + low[1] > cost:
                continue
            parts = dp_node.split_rows(s.instance.rows, rows, int(node.features[p]))
            for side in (0, 1):
                if low[0] + low[1] <= cost:
                    low[side] = self.value(parts[side], height - 1, cost - low[1 - side] + 1)
            if low[0] + low[1] == cost:
                splits.append(int(node.features[p]))
        return leaf, splits

    def count(self, rows: np.ndarray, height: int) -> int:
        """Return N(rows, height)."""
        key = self.key(rows, height)
        if key not in self.counts:
            leaf, splits = self.optimal_splits(rows, height)
            total = int(leaf)
            for f in splits:
                zero, one = dp_node.split_rows(self.search.instance.rows, rows, f)
                total += self.count(zero, height - 1) * self.count(one, height - 1)
            self.counts[key] = total
        return self.counts[key]

    def trees(self, rows: np.ndarray, height: int) -> Iterator[Shape]:
        """Yield the optimal trees."""
        leaf, splits = self.optimal_splits(rows, height)
        if leaf:
            yield None
        for f in splits:
            zero, one = dp_node.split_rows(self.search.instance.rows, rows, f)
            for low in self.trees(zero, height - 1):
                for high in self.trees(one, height - 1):
                    yield f, low, high


def optimal_trees(
    problem: BinaryProblem,
    *,
    limit: int = 0,
    limits: SearchLimits = UNLIMITED,
    options: ExactOptions = DEFAULT_OPTIONS,
) -> OptimalTrees | None:
    """Count the optimal trees and list the first `limit` of them; return None if the search was stopped.

    Splits that send all rows to one child do not count. Two trees differ if their splits do.
    """
    search = begin_search(
        problem,
        limits=limits,
        options=replace(options, reduce=False, dataset_cache=True),
        depth=2,  # a depth of two skips the table of subtrees by path
    )
    instance = search.instance
    optima = _Optima(search)
    rows = np.arange(len(instance.rows), dtype=np.int32)
    height = useful_depth(problem, instance)
    try:
        cost = optima.value(rows, height)
        return OptimalTrees(
            count=optima.count(rows, height),
            trees=tuple(islice(optima.trees(rows, height), limit)),
            cost=Fraction(cost // instance.scale, instance.Q),
        )
    except _Stopped:
        return None
