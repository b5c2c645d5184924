"""Counting and listing of all optimal trees: those with the best objective and, among them, the fewest leaves.

N(D, h), the number of optimal trees of depth ≤ h for the rows D, is 1 where a leaf is optimal, plus the sum over all questions f
with E(D where f = 0, h-1) + E(D where f = 1, h-1) = E(D, h) of N(D where f = 0, h-1) * N(D where f = 1, h-1).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice

import numpy as np

from trainer.dtypes import BitArray, CodeArray, CountArray
from trainer.families.exact.instance import build
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.search.memo import INFINITE, UNKNOWN_PATH, ExactOptions
from trainer.families.exact.search.search import Search
from trainer.tree.shapes import Shape


@dataclass(frozen=True, kw_only=True)
class OptimalTrees:
    """How many optimal trees there are, and the first of them in search order; equal columns make different trees."""

    count: int
    trees: tuple[Shape, ...]
    cost: Fraction  # errors + leaf_cost * leaves, in rows


class _Stopped(Exception):
    """The time is over."""


class _Optima:
    def __init__(self, search: Search) -> None:
        self.search = search
        self.counts: dict[tuple[int, bytes], int] = {}
        self.splits: dict[tuple[int, bytes], tuple[bool, list[int]]] = {}

    def key(self, rows: np.ndarray, height: int) -> tuple[int, bytes]:
        return height, rows.tobytes()

    def value(self, rows: np.ndarray, height: int, ub: int = int(INFINITE)) -> int:
        """E(rows, height), or a value of at least `ub`."""
        known = self.search.solve(rows, UNKNOWN_PATH, height, ub)
        if self.search.stopped():
            raise _Stopped
        return known.lower

    def optimal_splits(self, rows: np.ndarray, height: int) -> tuple[bool, list[int]]:
        """Whether a leaf is optimal, and the features of all optimal first questions."""
        key = self.key(rows, height)
        if key not in self.splits:
            self.splits[key] = self._find(rows, height)
        return self.splits[key]

    def _find(self, rows: np.ndarray, height: int) -> tuple[bool, list[int]]:
        s = self.search
        cost = self.value(rows, height)
        node = s.prepare(rows)
        leaf = s._leaf(node) == cost
        if height == 0 or not len(node.features):
            return leaf, []
        frame = s.frame(node, height)
        if height == 3:
            s._run_three(frame, UNKNOWN_PATH, np.array([cost + 1, -2, 0, 0, 0], np.int64), True)
        found = []
        for p in range(len(node.features)):
            low = [int(frame.lower[0, p]), int(frame.lower[1, p])]
            if low[0] + low[1] > cost:
                continue
            parts = dp_node.split_rows(s.instance.rows, rows, int(node.features[p]))
            for side in (0, 1):
                if low[0] + low[1] <= cost:
                    low[side] = self.value(parts[side], height - 1, cost - low[1 - side] + 1)
            if low[0] + low[1] == cost:
                found.append(int(node.features[p]))
        return leaf, found

    def count(self, rows: np.ndarray, height: int) -> int:
        """N(rows, height)."""
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
        """The optimal trees, one after the other."""
        leaf, splits = self.optimal_splits(rows, height)
        if leaf:
            yield None
        for f in splits:
            zero, one = dp_node.split_rows(self.search.instance.rows, rows, f)
            for low in self.trees(zero, height - 1):
                for high in self.trees(one, height - 1):
                    yield f, low, high


def optimal_trees(
    X: BitArray,
    y: CodeArray,
    *,
    n_classes: int,
    depth: int,
    limit: int = 0,
    leaf_cost: Fraction = Fraction(0),
    weights: CountArray | None = None,
    min_leaf: int = 1,
    allowed: np.ndarray | None = None,
    time_limit: float | None = None,
    stop: Callable[[], bool] | None = None,
    flag: np.ndarray | None = None,
    options: ExactOptions | None = None,
) -> OptimalTrees | None:
    """The number of optimal trees and the first `limit` of them, or None if the search was stopped.

    Arguments as for `solve_binary`.  Questions that send all rows to one side do not count; two trees are different if their questions are.
    """
    instance = build(X, y, n_classes=n_classes, weights=weights, leaf_cost=leaf_cost, depth=depth)
    end = math.inf if time_limit is None else time.perf_counter() + time_limit
    search = Search(
        instance=instance,
        depth=2,  # no table of paths
        min_leaf=min_leaf,
        allowed=allowed,
        options=replace(options or ExactOptions(), reduce=False, dataset_cache=True),
        stop=lambda: time.perf_counter() >= end or (stop is not None and stop()),
    )
    if flag is not None:
        search.flag = flag
    optima = _Optima(search)
    rows = np.arange(len(instance.rows), dtype=np.int32)
    height = min(depth, X.shape[1], len(rows) - 1)
    try:
        cost = optima.value(rows, height)
        return OptimalTrees(
            count=optima.count(rows, height),
            trees=tuple(islice(optima.trees(rows, height), limit)),
            cost=Fraction(cost // instance.scale, instance.Q),
        )
    except _Stopped:
        return None
