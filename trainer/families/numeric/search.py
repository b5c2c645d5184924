"""Exact search over all thresholds of numeric features: interval pruning above a depth-two kernel.

After Brita, van der Linden & Demirovic (2025, ConTree). Costs are integers: unit * errors + leaf * leaves. A node is searched for
trees below an upper bound. The bounds of two thresholds of a feature bound all thresholds between them.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.dtypes import CodeArray, CountArray, FloatArray
from trainer.errors import DataError
from trainer.families.numeric.kernels.depth2 import solve_depth2
from trainer.families.numeric.kernels.orders import change_positions, class_weights, divide_orders
from trainer.families.numeric.kernels.scan import best_single_splits

# (feature, threshold, subtree of x <= threshold, the other subtree); None: a leaf
NumericShape = tuple[int, float, Any, Any] | None
INFINITE = 1 << 60
MOST_KEYS = 1 << 62
MOST_WEIGHT = (1 << 31) - 1
MOST_VISITS = 100_000  # visited thresholds that a search stores, about 40 MB


# visited thresholds: feature, rank, and for each child a bound and the visits that prove it
Visits = list[tuple[int, int, list[Any]]]


@dataclass(frozen=True)
class PreparedSearch:
    """A finished search with the data for a proof of its bound: rows in the order of each column, and integer costs."""

    search: NumericSearch
    order: np.ndarray
    scale: int  # integer cost of 1/Q of a row
    lower: int  # lower bound in integer costs
    visits: Visits | None = None  # prove the bound; None if the search did not store them


@dataclass(frozen=True, kw_only=True)
class NumericResult:
    """The best tree, its cost in rows, and a lower bound of all trees of the depth."""

    shape: NumericShape
    cost: Fraction
    bound: Fraction
    nodes: int  # searched subtrees of depth two or more
    prepared: PreparedSearch = field(repr=False, compare=False)

    @property
    def optimal(self) -> bool:
        return self.bound >= self.cost


@dataclass(frozen=True)
class _NodeResult:
    cost: int  # a lower bound if not exact
    tree: Any  # (feature, rank, left, right), or None for a leaf
    exact: bool
    first: np.ndarray | None = None  # int64 (F,): lower bounds by feature of the root split
    visits: Visits | None = None  # prove the bound; None if no threshold was visited, or visits are not stored


class TimeOver(Exception):
    """The limits ended the search."""


class NumericSearch:
    """One search over rows `rank` (F, n)."""

    def __init__(
        self, rank: np.ndarray, y: CodeArray, weight: CountArray, classes: int, costs: np.ndarray, flag: np.ndarray,
        stop: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.rank = rank
        self.y = y
        self.weight = weight
        self.classes = classes
        self.costs = costs
        # a plain tuple: numba takes twice as long to type a named one
        self.rows = rank, y, weight, np.where(y == 1, weight << 32, weight) if classes == 2 else weight
        self.flag = flag
        self.stop = stop
        self.nodes = 0
        self.unit = int(costs[0])
        self.leaf = int(costs[1])
        self.on_better: Callable[[int, Any], None] = lambda cost, tree: None
        self.visits: Visits | None = None  # visits of the running search, if they are stored
        self.visited = 0
        self.most_visits = MOST_VISITS

    def check(self) -> None:
        """Raise if the search has to end."""
        if self.flag[0] or self.stop():
            self.flag[0] = 1
            raise TimeOver

    def solve(self, order: np.ndarray, height: int, ub: int, first: np.ndarray | None = None) -> _NodeResult:
        """Return the best tree below `ub` for the rows of `order`, or a bound of at least `ub`.

        `first`: lower bounds by feature of the root split, if known.
        """
        self.check()
        self.nodes += 1
        if height <= 2:
            return self._small(order, height, ub, first)
        totals = class_weights(order, self.y, self.weight, self.classes)
        as_leaf = int(totals.sum() - totals.max()) * self.unit + self.leaf
        best = _NodeResult(as_leaf, None, True) if as_leaf < ub else _NodeResult(ub, None, False)
        if as_leaf == self.leaf or best.cost <= 2 * self.leaf or int(totals.sum()) * self.unit <= 2 * self.leaf:
            return best
        below = self.solve(order, height - 1, best.cost)
        if below.exact and below.cost < best.cost:
            best = below
        return self.search(order, height, best, 0)

    def _small(self, order: np.ndarray, height: int, ub: int, first: np.ndarray | None) -> _NodeResult:
        if height < 2:
            return self._solve_stump(order, height, ub)
        answer = np.empty(6, np.int64)
        first = np.zeros(len(order), np.int64) if first is None else first
        cost = int(solve_depth2(order, self.rows, self.classes, self.costs, ub, self.flag, answer, first))
        if cost < 0:
            raise TimeOver
        if cost >= ub:
            totals = class_weights(order, self.y, self.weight, self.classes)
            as_leaf = int(totals.sum() - totals.max()) * self.unit + self.leaf
            return _NodeResult(max(ub, min(as_leaf, int(first.min()))), None, False, first)
        a = [int(v) for v in answer]
        if a[0] < 0:
            return _NodeResult(cost, None, True, first)
        sides = [None if f < 0 else (f, t, None, None) for f, t in ((a[2], a[3]), (a[4], a[5]))]
        return _NodeResult(cost, (a[0], a[1], *sides), True, first)

    def _solve_stump(self, order: np.ndarray, height: int, ub: int) -> _NodeResult:
        totals = class_weights(order, self.y, self.weight, self.classes)
        cost = int(totals.sum() - totals.max()) * self.unit + self.leaf
        tree = None
        if height and order.shape[1] > 1:
            E = np.empty(order.shape, np.int32)
            sizes = np.zeros(len(order), np.int64)
            change_positions(order, self.rank, E, sizes)
            errors = np.empty(len(order), np.int64)
            places = np.empty(len(order), np.int64)
            best_single_splits(order, E, sizes, self.y, self.weight, self.classes, errors, places)
            f = int(errors.argmin())
            if places[f] >= 0 and int(errors[f]) * self.unit + 2 * self.leaf < cost:
                cost = int(errors[f]) * self.unit + 2 * self.leaf
                tree = (f, int(self.rank[f, order[f, E[f, places[f]]]]), None, None)
        return _NodeResult(cost, tree, True) if cost < ub else _NodeResult(ub, None, False)

    def search(self, order: np.ndarray, height: int, best: _NodeResult, slack: int, news: bool = False) -> _NodeResult:
        """Return a tree of full height that costs less than best.cost - slack, or `best` if there is none."""
        E = np.empty(order.shape, np.int32)
        sizes = np.zeros(len(order), np.int64)
        change_positions(order, self.rank, E, sizes)
        errors = np.empty(len(order), np.int64)
        places = np.empty(len(order), np.int64)
        best_single_splits(order, E, sizes, self.y, self.weight, self.classes, errors, places)
        lines = [
            _Line(f, E[f, : sizes[f]], self.weight[order[f]], int(places[f]), self.leaf, len(order))
            for f in np.argsort(errors, kind="stable").tolist()
            if sizes[f]
        ]
        # over all features, the interval with the lowest bound comes first; the errors of one split break ties
        heap = [(2 * self.leaf, k, 0, len(line.W) - 1) for k, line in enumerate(lines)]
        visits_above = self.visits
        self.visits = None if self.visits is None else []
        while heap:
            bound, k, a, b = heapq.heappop(heap)
            if bound >= best.cost - slack:
                break
            c = lines[k].middle(a, b, best.cost - slack, self.unit)
            if c is None:
                continue
            best = self._threshold(order, height, lines[k], a, b, c, best, news)
            for x, z in ((a, c), (c, b)):
                if z - x > 1:
                    heapq.heappush(heap, (lines[k].low[x] + lines[k].high[z], k, x, z))
        visits = self.visits
        self.visits = visits_above
        return replace(best, visits=visits)

    def _threshold(
        self, order: np.ndarray, height: int, line: _Line, a: int, b: int, c: int, best: _NodeResult, news: bool
    ) -> _NodeResult:
        """Solve both children of threshold c within the upper bound and store their bounds."""
        target = best.cost
        unit = self.unit
        # a bound of c above the target also prunes neighbouring thresholds, by the weight of the rows between
        reach = target + unit * min(line.W[c] - line.W[a], line.W[b] - line.W[c]) // 2
        t = int(self.rank[line.f, order[line.f, line.marks[c - 1]]])
        parts = divide_orders(order, self.rank, line.f, t)
        bounds = list(line.floors(a, b, c, unit))
        firsts = line.first_floors(a, b, c, unit)
        children: list[Any] = [None, None]
        # search the smaller child first, since it gives the search of the larger one a tighter bound
        for s in (0, 1) if parts[0].shape[1] <= parts[1].shape[1] else (1, 0):
            budget = reach - bounds[1 - s]
            if bounds[s] >= budget:
                break
            children[s] = self.solve(parts[s], height - 1, budget, firsts[s])
            bounds[s] = max(bounds[s], children[s].cost)
            if not children[s].exact:
                break
        self.visited += 1
        if self.visits is not None and self.visited <= self.most_visits:
            sides = [None if child is None else (child.cost, child.visits) for child in children]
            self.visits.append((line.f, t, sides))
        line.low[c], line.high[c] = bounds
        line.first_low[c], line.first_high[c] = firsts
        if all(child is not None and child.exact for child in children) and sum(bounds) < target:
            best = _NodeResult(sum(bounds), (line.f, t, children[0].tree, children[1].tree), True)
            if news:
                self.on_better(best.cost, best.tree)
        return best


class _Line:
    """The thresholds 1 .. count of a feature and bounds of their children; 0 and count + 1 have all rows on one side."""

    def __init__(self, f: int, marks: np.ndarray, weights: np.ndarray, place: int, leaf: int, features: int) -> None:
        self.f = f
        self.marks = marks
        self.place = place
        behind = np.cumsum(weights)
        count = len(marks)
        self.W = [0, *behind[marks].tolist(), int(behind[-1])]
        self.low = {0: leaf, count + 1: leaf}
        self.high = {0: leaf, count + 1: leaf}
        none = np.zeros(features, np.int64)
        self.first_low = {0: none, count + 1: none}
        self.first_high = {0: none, count + 1: none}

    def floors(self, a: int, b: int, c: int, unit: int) -> tuple[int, int]:
        """Return lower bounds of both children of c from those of a and b."""
        W = self.W
        return (
            max(self.low[a], self.low[b] - unit * (W[b] - W[c])),
            max(self.high[b], self.high[a] - unit * (W[c] - W[a])),
        )

    def first_floors(self, a: int, b: int, c: int, unit: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the same bounds by feature of the children's root splits."""
        W = self.W
        return (
            np.maximum(self.first_low[a], self.first_low[b] - unit * (W[b] - W[c])),
            np.maximum(self.first_high[b], self.first_high[a] - unit * (W[c] - W[a])),
        )

    def middle(self, a: int, b: int, target: int, unit: int) -> int | None:
        """Return the next threshold to visit between a and b, or None if all of them cost at least `target`."""
        first = a + 1
        last = b - 1
        while first <= last and sum(self.floors(a, b, first, unit)) >= target:
            first += 1
        while first <= last and sum(self.floors(a, b, last, unit)) >= target:
            last -= 1
        if first > last:
            return None
        if a == 0 and b == len(self.W) - 1 and first <= self.place + 1 <= last:
            return self.place + 1
        return (first + last) // 2


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
    """Find a tree over all thresholds that minimises errors + leaf_cost * leaves, and prove it.

    Parameters
    ----------
    X : float64 array of shape (n, F)
        Features without missing values.
    y : int array of shape (n,)
        Class codes below `n_classes`.
    n_classes : int
        Number of classes.
    depth : int
        Largest depth.
    leaf_cost : Fraction
        Price of a leaf, in rows.
    weights : int array of shape (n,), optional
        Weights of the rows.
    tolerance : Fraction
        Only trees that are better by more rows are searched, so the bound may be lower than the cost by at most this.
    time_limit : float, optional
        In seconds.
    stop : callable, optional
        Returns True to end the search.
    flag : int64 array of shape (1,), optional
        Anything but 0 ends the search at once.
    report : callable, optional
        Called with cost and bound in rows and a better tree.

    Returns
    -------
    NumericResult
        If stopped early, the incumbent and a valid lower bound.

    Raises
    ------
    DataError
        The weights add up to 2^31 or more, or the leaf penalty has too many digits.
    """
    X, y, weight = _rows_with_weight(X, y, weights)
    P = leaf_cost.numerator
    Q = leaf_cost.denominator
    scale = (1 << depth) + 1  # ties are broken by fewer leaves
    costs = np.array([scale * Q, scale * P + 1], np.int64)
    if scale * (Q * int(weight.sum()) + P * (1 << depth)) >= INFINITE:
        raise DataError("The leaf penalty has too many digits for exact integer costs. Round it to six digits.")
    end = math.inf if time_limit is None else time.perf_counter() + time_limit

    def over() -> bool:
        return time.perf_counter() >= end or (stop is not None and stop())

    levels, rank, is_complete = _ranks(X, over)
    order = np.argsort(rank, axis=1, kind="stable").astype(np.int32)
    flag = np.zeros(1, np.int64) if flag is None else flag
    search = NumericSearch(rank, y, weight, n_classes, costs, flag, over)

    def value(cost: int) -> Fraction:
        return Fraction(cost // scale, Q)

    def shape(tree: Any) -> NumericShape:
        if tree is None:
            return None
        return tree[0], threshold_after(levels[tree[0]], tree[1]), shape(tree[2]), shape(tree[3])

    # if some columns are excluded, the only bound is the price of a leaf
    floor = _floor_of(rank, levels, y, weight, n_classes, costs, over) if is_complete else int(costs[1])
    counts = np.bincount(y, weight, minlength=n_classes).astype(np.int64)
    best = _NodeResult(int(counts.sum() - counts.max()) * int(costs[0]) + int(costs[1]), None, True)
    slack = int(tolerance * Q) * scale

    def better(cost: int, tree: Any) -> None:
        if report is not None:
            report(value(cost), value(min(floor, cost)), shape(tree))

    finished = False
    if is_complete:
        best, finished = _deepen(search, order, depth, best, slack, better)
    cost = value(best.cost)
    used_slack = slack if depth > 2 else 0  # smaller depths are solved without slack
    lower = best.cost - used_slack if finished else floor
    bound = cost
    if not finished or used_slack:
        bound = min(cost, max(value(max(lower, floor)), Fraction(0)))
    prepared = PreparedSearch(
        search, order, scale, min(best.cost, max(lower, floor)), best.visits if lower >= floor else None
    )
    return NumericResult(shape=shape(best.tree), cost=cost, bound=bound, nodes=search.nodes, prepared=prepared)


def _rows_with_weight(
    X: FloatArray, y: CodeArray, weights: CountArray | None
) -> tuple[FloatArray, CodeArray, CountArray]:
    """Return the rows with a positive weight, and the weights. Raises DataError for a sum of 0 or above MOST_WEIGHT."""
    weight = np.ones(len(y), np.int64) if weights is None else np.asarray(weights, np.int64)
    used = weight > 0
    X = X[used]
    y = np.ascontiguousarray(y[used], dtype=np.int32)
    weight = np.ascontiguousarray(weight[used])
    if len(y) == 0 or int(weight.sum()) > MOST_WEIGHT:
        raise DataError(
            f"The weights add up to {int(weight.sum()):,}, but this search takes 1 to {MOST_WEIGHT:,}. Scale the weights."
        )
    return X, y, weight


def _deepen(
    search: NumericSearch,
    order: np.ndarray,
    depth: int,
    best: _NodeResult,
    slack: int,
    better: Callable[[int, Any], None],
) -> tuple[_NodeResult, bool]:
    """Search height after height up to `depth`; return the best tree, and whether the search finished."""
    heights = depth if len(order) else 0

    def keep(cost: int, tree: Any) -> None:
        nonlocal best
        best = _NodeResult(cost, tree, True)  # stays the incumbent if the search is stopped
        better(cost, tree)

    try:
        for height in range(1, min(heights, 2) + 1):
            result = search.solve(order, height, best.cost)
            if result.exact:
                best = result
                better(best.cost, best.tree)
        search.on_better = keep
        for height in range(3, heights + 1):
            search.visits = []
            search.visited = 0
            best = search.search(order, height, best, slack if height == depth else 0, news=True)
    except TimeOver:
        return replace(best, visits=None), False  # the visits are those of a smaller height
    return best if search.visited <= search.most_visits else replace(best, visits=None), True


def _ranks(X: FloatArray, over: Callable[[], bool]) -> tuple[list[FloatArray], np.ndarray, bool]:
    """Return the sorted values of each column, the ranks int32 (F, n) of the rows, and whether there was time for all columns."""
    levels: list[FloatArray] = []
    rank = np.zeros((X.shape[1], len(X)), np.int32)
    for f in range(X.shape[1]):
        if over():
            return levels, rank[:f], False
        values, inverse = np.unique(X[:, f], return_inverse=True)
        levels.append(values)
        rank[f] = inverse.reshape(-1)
    return levels, rank, True


def _floor_of(
    rank: np.ndarray,
    levels: list[FloatArray],
    y: CodeArray,
    weight: CountArray,
    classes: int,
    costs: np.ndarray,
    over: Callable[[], bool],
) -> int:
    """Return a lower bound: of rows that are equal in all features every tree misclassifies all but one class. A leaf if stopped."""
    group = _equal(rank, levels, over)
    if group is None:
        return int(costs[1])
    counts = np.zeros((int(group.max()) + 1, classes), np.int64)
    np.add.at(counts, (group, y), weight)
    return int((counts.sum(axis=1) - counts.max(axis=1)).sum()) * int(costs[0]) + int(costs[1])


def _equal(rank: np.ndarray, levels: list[FloatArray], over: Callable[[], bool]) -> np.ndarray | None:
    """Return a group number for each row, equal for rows that are equal in all features, int64 (n,); None if stopped.

    Ranks of several columns are the digits of one key; keys are renumbered before they overflow. Sorting integers takes a tenth of the
    time of sorting rows.
    """
    group = np.zeros(rank.shape[1], np.int64)
    size = 1
    for column, values in zip(rank, levels, strict=True):
        if size > MOST_KEYS // len(values):
            distinct, group = np.unique(group, return_inverse=True)
            if (size := len(distinct)) == len(group):
                break  # all are different
        if over():
            return None
        group = group * len(values) + column
        size *= len(values)
    return np.unique(group, return_inverse=True)[1].reshape(-1)


def threshold_after(levels: FloatArray, rank: int) -> float:
    """Return a threshold between the values of `rank` and of the next rank."""
    middle = float(levels[rank] / 2 + levels[rank + 1] / 2)
    return middle if levels[rank] <= middle < levels[rank + 1] else float(levels[rank])
