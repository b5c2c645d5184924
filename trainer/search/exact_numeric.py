"""Exact search over all thresholds of numeric features: interval pruning above, the depth-two kernel below.

After Brita, van der Linden & Demirovic (2025, ConTree).  Costs are integers: unit * errors + leaf * leaves.  A node is searched for
trees below an upper bound; what is proved of two thresholds of a feature bounds all of those between them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.dtypes import CodeArray, CountArray, FloatArray
from trainer.errors import DataError
from trainer.kernels import numeric

NumericShape = tuple[int, float, Any, Any] | None  # (feature, threshold, subtree of x <= threshold, the other); None: a leaf
INFINITE = 1 << 60
MOST_WEIGHT = (1 << 31) - 1


@dataclass(frozen=True, kw_only=True)
class NumericResult:
    """The best tree, its cost in rows, and a bound that no tree of the depth falls below."""

    shape: NumericShape
    cost: Fraction
    bound: Fraction
    nodes: int  # depth-two subtrees and larger ones that were searched

    @property
    def optimal(self) -> bool:
        return self.bound >= self.cost


@dataclass(frozen=True)
class _Found:
    cost: int  # exact where a tree is given, else a lower bound
    tree: Any  # (feature, rank, left, right), or None for a leaf
    exact: bool
    first: np.ndarray | None = None  # int64 (F,): lower bounds of the trees with each first question


class _Stopped(Exception):
    """The time is over."""


class NumericSearch:
    """One search over rows `rank` (F, n)."""

    def __init__(
        self, rank: np.ndarray, y: CodeArray, weight: CountArray, classes: int, costs: np.ndarray, flag: np.ndarray,
        stop: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.rank, self.y, self.weight, self.classes, self.costs = rank, y, weight, classes, costs
        self.inc = np.where(y == 1, weight << 32, weight) if classes == 2 else weight
        self.flag, self.stop, self.nodes = flag, stop, 0
        self.unit, self.leaf = int(costs[0]), int(costs[1])
        self.on_better: Callable[[int, Any], None] = lambda cost, tree: None

    def check(self) -> None:
        """Raise where the search has to end."""
        if self.flag[0] or self.stop():
            self.flag[0] = 1
            raise _Stopped

    def solve(self, O: np.ndarray, height: int, ub: int, first: np.ndarray | None = None) -> _Found:
        """The best tree below `ub` for the rows of O, or the proof that there is none.

        `first`: lower bounds of the trees with each first question, where they are known.
        """
        self.check()
        self.nodes += 1
        if height <= 2:
            return self._small(O, height, ub, first)
        totals = numeric.class_weights(O, self.y, self.weight, self.classes)
        as_leaf = int(totals.sum() - totals.max()) * self.unit + self.leaf
        best = _Found(as_leaf, None, True) if as_leaf < ub else _Found(ub, None, False)
        if as_leaf == self.leaf or best.cost <= 2 * self.leaf or int(totals.sum()) * self.unit <= 2 * self.leaf:
            return best
        below = self.solve(O, height - 1, best.cost)
        if below.exact and below.cost < best.cost:
            best = below
        return self.search(O, height, best, 0)

    def _small(self, O: np.ndarray, height: int, ub: int, first: np.ndarray | None) -> _Found:
        if height < 2:
            return self._one(O, height, ub)
        answer = np.empty(6, np.int64)
        first = np.zeros(len(O), np.int64) if first is None else first
        cost = int(
            numeric.depth_two(
                O, self.rank, self.y, self.weight, self.inc, self.classes, self.costs, ub, self.flag, answer, first
            )
        )
        if cost < 0:
            raise _Stopped
        if cost >= ub:
            totals = numeric.class_weights(O, self.y, self.weight, self.classes)
            as_leaf = int(totals.sum() - totals.max()) * self.unit + self.leaf
            return _Found(max(ub, min(as_leaf, int(first.min()))), None, False, first)
        a = [int(v) for v in answer]
        if a[0] < 0:
            return _Found(cost, None, True, first)
        sides = [None if f < 0 else (f, t, None, None) for f, t in ((a[2], a[3]), (a[4], a[5]))]
        return _Found(cost, (a[0], a[1], *sides), True, first)

    def _one(self, O: np.ndarray, height: int, ub: int) -> _Found:
        totals = numeric.class_weights(O, self.y, self.weight, self.classes)
        cost, tree = int(totals.sum() - totals.max()) * self.unit + self.leaf, None
        if height and O.shape[1] > 1:
            E, sizes = np.empty(O.shape, np.int32), np.zeros(len(O), np.int64)
            numeric.ends(O, self.rank, E, sizes)
            errors, places = np.empty(len(O), np.int64), np.empty(len(O), np.int64)
            numeric.best_one(O, E, sizes, self.y, self.weight, self.classes, errors, places)
            f = int(errors.argmin())
            if places[f] >= 0 and int(errors[f]) * self.unit + 2 * self.leaf < cost:
                cost = int(errors[f]) * self.unit + 2 * self.leaf
                tree = (f, int(self.rank[f, O[f, E[f, places[f]]]]), None, None)
        return _Found(cost, tree, True) if cost < ub else _Found(ub, None, False)

    def search(self, O: np.ndarray, height: int, best: _Found, slack: int, news: bool = False) -> _Found:
        """A tree of full height that costs less than best.cost - slack, or the proof that there is none."""
        E, sizes = np.empty(O.shape, np.int32), np.zeros(len(O), np.int64)
        numeric.ends(O, self.rank, E, sizes)
        errors, places = np.empty(len(O), np.int64), np.empty(len(O), np.int64)
        numeric.best_one(O, E, sizes, self.y, self.weight, self.classes, errors, places)
        for f in np.argsort(errors, kind="stable").tolist():
            if sizes[f]:
                best = self._feature(O, height, f, E[f, : sizes[f]], int(places[f]), best, slack, news)
        return best

    def _feature(
        self, O: np.ndarray, height: int, f: int, marks: np.ndarray, place: int, best: _Found, slack: int, news: bool
    ) -> _Found:
        """The thresholds of one feature, intervals halved until their bounds are no less than the upper bound."""
        count, unit, leaf = len(marks), self.unit, self.leaf
        behind = np.cumsum(self.weight[O[f]])
        W = [0, *behind[marks].tolist(), int(behind[-1])]
        low, high = {0: leaf, count + 1: leaf}, {0: leaf, count + 1: leaf}
        none = np.zeros(len(O), np.int64)
        firsts: tuple[dict[int, np.ndarray], ...] = ({0: none, count + 1: none}, {0: none, count + 1: none})
        stack = [(0, count + 1)]

        def floors(a: int, b: int, c: int) -> tuple[int, int]:
            return max(low[a], low[b] - unit * (W[b] - W[c])), max(high[b], high[a] - unit * (W[c] - W[a]))

        while stack:
            a, b = stack.pop()
            target = best.cost - slack
            if low[a] + high[b] >= target:
                continue
            first, last = a + 1, b - 1
            while first <= last and sum(floors(a, b, first)) >= target:
                first += 1
            while first <= last and sum(floors(a, b, last)) >= target:
                last -= 1
            if first > last:
                continue
            c = (first + last) // 2
            if a == 0 and b == count + 1 and first <= place + 1 <= last:
                c = place + 1
            t = int(self.rank[f, O[f, marks[c - 1]]])
            parts = numeric.divide(O, self.rank, f, t)
            bounds = list(floors(a, b, c))
            order = (0, 1) if parts[0].shape[1] <= parts[1].shape[1] else (1, 0)
            found: list[Any] = [None, None]
            for s in order:
                budget = target - bounds[1 - s]
                if bounds[s] >= budget:
                    break
                first_floor = (
                    np.maximum(firsts[0][a], firsts[0][b] - unit * (W[b] - W[c]))
                    if s == 0
                    else np.maximum(firsts[1][b], firsts[1][a] - unit * (W[c] - W[a]))
                )
                firsts[s][c] = first_floor
                found[s] = self.solve(parts[s], height - 1, budget, first_floor)
                bounds[s] = max(bounds[s], found[s].cost)
                if not found[s].exact:
                    break
            low[c], high[c] = bounds
            for known in firsts:
                known.setdefault(c, none)
            if all(part is not None and part.exact for part in found) and sum(bounds) < target:
                best = _Found(sum(bounds), (f, t, found[0].tree, found[1].tree), True)
                if news:
                    self.on_better(best.cost, best.tree)
            stack += [(a, c), (c, b)]
        return best


def solve_numeric(
    X: FloatArray,
    y: CodeArray,
    *,
    n_classes: int,
    depth: int,
    leaf_cost: Fraction = Fraction(0),
    weights: CountArray | None = None,
    tolerance: Fraction = Fraction(0),
    time_limit: float | None = None,
    stop: Callable[[], bool] | None = None,
    flag: np.ndarray | None = None,
    report: Callable[[Fraction, Fraction, NumericShape], None] | None = None,
) -> NumericResult:
    """The tree of depth ≤ `depth` over all thresholds of X with the smallest errors + leaf_cost * leaves, and the proof of it.

    X: float64 (n, F) without missing values; y: class codes below n_classes; `leaf_cost` and `tolerance` in rows (weights).  With a
    tolerance only trees that are better by more are looked for: the bound then lies at most so far below the cost.  A stopped
    search returns its best tree and a valid bound.  Raises DataError for weights that add up to 2^31 or more.
    """
    weight = np.ones(len(y), np.int64) if weights is None else np.asarray(weights, np.int64)
    used = weight > 0
    X, y, weight = X[used], np.ascontiguousarray(y[used], dtype=np.int32), np.ascontiguousarray(weight[used])
    if len(y) == 0 or int(weight.sum()) > MOST_WEIGHT:
        raise DataError(f"The weights add up to {int(weight.sum())}; this search takes 1 to {MOST_WEIGHT}.")
    P, Q = leaf_cost.numerator, leaf_cost.denominator
    scale = (1 << depth) + 1  # of two trees of the same objective the one with fewer leaves is cheaper
    costs = np.array([scale * Q, scale * P + 1], np.int64)
    if scale * (Q * int(weight.sum()) + P * (1 << depth)) >= INFINITE:
        raise DataError("The leaf penalty has too many digits for exact integer costs; round it to six digits.")
    levels = [np.unique(X[:, f], return_inverse=True) for f in range(X.shape[1])]
    rank = np.array([inverse.reshape(-1) for _, inverse in levels], np.int32).reshape(X.shape[1], len(y))
    O = np.argsort(rank, axis=1, kind="stable").astype(np.int32)
    end = math.inf if time_limit is None else time.perf_counter() + time_limit
    search = NumericSearch(
        rank, y, weight, n_classes, costs, np.zeros(1, np.int64) if flag is None else flag,
        lambda: time.perf_counter() >= end or (stop is not None and stop()),
    )  # fmt: skip

    def value(cost: int) -> Fraction:
        return Fraction(cost // scale, Q)

    def shape(tree: Any) -> NumericShape:
        if tree is None:
            return None
        return tree[0], _between(levels[tree[0]][0], tree[1]), shape(tree[2]), shape(tree[3])

    floor = _floor_of(X, y, weight, n_classes, costs)
    counts = np.bincount(y, weight, minlength=n_classes).astype(np.int64)
    best = _Found(int(counts.sum() - counts.max()) * int(costs[0]) + int(costs[1]), None, True)
    slack = int(tolerance * Q) * scale

    def better(cost: int, tree: Any) -> None:
        if report is not None:
            report(value(cost), value(min(floor, cost)), shape(tree))

    search.on_better = better
    finished = False
    try:
        for height in range(1, min(depth, 2) + 1 if len(rank) else 0):
            found = search.solve(O, height, best.cost)
            if found.exact:
                best = found
                better(best.cost, best.tree)
        for height in range(3, depth + 1 if len(rank) else 0):
            # the incumbent grows inside, so that a stop keeps it
            search.on_better = lambda cost, tree: (kept.append(_Found(cost, tree, True)), better(cost, tree))
            kept: list[_Found] = []
            try:
                best = search.search(O, height, best, slack if height == depth else 0, news=True)
            except _Stopped:
                best = kept[-1] if kept else best
                raise
        finished = True
    except _Stopped:
        pass
    cost = value(best.cost)
    lower = best.cost - (slack if depth > 2 else 0) if finished else floor
    bound = cost if finished and not (slack and depth > 2) else min(cost, max(value(max(lower, floor)), Fraction(0)))
    return NumericResult(shape=shape(best.tree), cost=cost, bound=bound, nodes=search.nodes)


def _floor_of(X: FloatArray, y: CodeArray, weight: CountArray, classes: int, costs: np.ndarray) -> int:
    """Rows that are equal in all features share a leaf: the smaller classes among them are wrong in every tree."""
    _, group = np.unique(X, axis=0, return_inverse=True)
    counts = np.zeros((int(group.max()) + 1, classes), np.int64)
    np.add.at(counts, (group.reshape(-1), y), weight)
    return int((counts.sum(axis=1) - counts.max(axis=1)).sum()) * int(costs[0]) + int(costs[1])


def _between(levels: FloatArray, rank: int) -> float:
    """A number that the values of rank ≤ `rank` do not exceed and the next one does."""
    middle = float(levels[rank] / 2 + levels[rank + 1] / 2)
    return middle if levels[rank] <= middle < levels[rank + 1] else float(levels[rank])
