"""Search subtrees by interval pruning above a depth-two kernel.

After Brita, van der Linden & Demirovic (2025, ConTree). Costs are integers: unit * errors + leaf * leaves. A node is searched for
trees below an upper bound. The bounds of two thresholds of a feature bound all thresholds between them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from trainer.dtypes import CodeArray, CountArray
from trainer.families.numeric.kernels.depth2 import solve_depth2
from trainer.families.numeric.kernels.orders import change_positions, class_weights, divide_orders
from trainer.families.numeric.kernels.scan import best_single_splits

MOST_VISITS = 100_000  # limit on the visited thresholds that a search stores, about 40 MB

# a visited threshold: feature, rank, and for each child a bound with the visits that prove it
Visits = list[tuple[int, int, list[Any]]]


@dataclass(frozen=True)
class NodeResult:
    cost: int  # only a lower bound if not `exact`
    tree: Any  # (feature, rank, left, right); None is a leaf
    exact: bool
    first: np.ndarray | None = None  # int64 (F,): lower bounds by feature of the root
    free: int | None = None  # lower bound without a least weight of leaves; None if `cost` is one
    visits: Visits | None = None  # visits that prove the bound; None if there were none or they are not stored


class SingleSplits(NamedTuple):
    """The thresholds of F features: `positions` int32 (F, n). A feature f uses the first `sizes[f]` of them, int64 (F,).

    `errors` int64 (F,) are those of the best threshold of each feature. `places` int64 (F,) are its index, or -1 if no
    threshold has fewer errors than a leaf.
    """

    positions: np.ndarray
    sizes: np.ndarray
    errors: np.ndarray
    places: np.ndarray


class ChildBudget(NamedTuple):
    """The lower bounds of both children, and of their root splits by feature.

    A tree must cost less than `target`. Bounds up to `reach` still help to prune neighbours.
    """

    bounds: list[int]
    firsts: tuple[np.ndarray, np.ndarray]
    target: int
    reach: int


class TimeOver(Exception):
    """The limits ended the search."""


class ThresholdBounds:
    """The thresholds 1 .. count of a feature and bounds of their children; 0 and count + 1 have all rows on one side.

    `toll`: the price of a split on the feature. `slope`: the most that a unit of weight costs in a child.
    `free_low` and `free_high` are bounds that hold for more rows as well: those without a least weight of leaves.
    """

    def __init__(
        self,
        f: int,
        marks: np.ndarray,
        weights: np.ndarray,
        place: int,
        leaf: int,
        features: int,
        toll: int,
        slope: int,
    ) -> None:
        self.f = f
        self.toll = toll
        self.slope = slope
        self.marks = marks
        self.place = place
        behind = np.cumsum(weights)
        count = len(marks)
        self.W = [0, *behind[marks].tolist(), int(behind[-1])]
        self.low = {0: leaf, count + 1: leaf}
        self.high = {0: leaf, count + 1: leaf}
        self.free_low = self.low
        self.free_high = self.high
        none = np.zeros(features, np.int64)
        self.first_low = {0: none, count + 1: none}
        self.first_high = {0: none, count + 1: none}

    def floors(self, a: int, b: int, c: int) -> tuple[int, int]:
        """Return lower bounds for both children of c from those of a and b."""
        W = self.W
        return (
            max(self.free_low[a], self.low[b] - self.slope * (W[b] - W[c])),
            max(self.free_high[b], self.high[a] - self.slope * (W[c] - W[a])),
        )

    def store(self, a: int, b: int, c: int, bounds: list[int], children: list[Any]) -> None:
        """Store the bounds of the children of c, which lies between a and b; a child that was not solved is None."""
        self.low[c], self.high[c] = bounds

    def first_floors(self, a: int, b: int, c: int, unit: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the same bounds by feature of the children's root splits, without tolls."""
        W = self.W
        return (
            np.maximum(self.first_low[a], self.first_low[b] - unit * (W[b] - W[c])),
            np.maximum(self.first_high[b], self.first_high[a] - unit * (W[c] - W[a])),
        )

    def middle(self, a: int, b: int, target: int) -> int | None:
        """Return the next threshold to visit between a and b, or None if all of them cost at least `target`."""
        first = a + 1
        last = b - 1
        while first <= last and sum(self.floors(a, b, first)) >= target:
            first += 1
        while first <= last and sum(self.floors(a, b, last)) >= target:
            last -= 1
        if first > last:
            return None
        if a == 0 and b == len(self.W) - 1 and first <= self.place + 1 <= last:
            return self.place + 1
        return (first + last) // 2


class NumericSearch:
    """A search over rows given by their ranks, `rank` (F, n).

    `costs` int64 (2,): the cost of an error, and that of a leaf.
    """

    least = 1  # least weight of a leaf in a tree of several leaves

    bounds_type: type[ThresholdBounds] = ThresholdBounds

    def __init__(
        self,
        rank: np.ndarray,
        y: CodeArray,
        weight: CountArray,
        classes: int,
        costs: np.ndarray,
        flag: np.ndarray,
        stop: Callable[[], bool],
    ) -> None:
        self.rank = rank
        self.y = y
        self.weight = weight
        self.classes = classes
        self.costs = np.array([costs[0], costs[1], self.least], np.int64)
        # numba takes twice as long to type a named tuple
        self.rows = rank, y, weight, np.where(y == 1, weight << 32, weight) if classes == 2 else weight
        self.flag = flag
        self.stop = stop
        self.nodes = 0
        self.unit = int(costs[0])
        self.leaf = int(costs[1])
        self.on_better: Callable[[int, Any], None] = lambda cost, tree: None
        self.visits: Visits | None = None  # visits of the current search, if they are stored
        self.visited = 0
        self.most_visits = MOST_VISITS
        # price of a split on each feature for one unit of weight, in integer costs, int64 (F,)
        self.tolls = np.zeros(len(rank), np.int64)

    def slope(self, f: int, height: int) -> int:
        """Return the most that one unit of weight costs in a tree of `height` below a split on `f`."""
        return self.unit

    def child_search(self, f: int) -> NumericSearch:
        """Return the search of the children of a split on `f`."""
        return self

    def count_nodes(self) -> int:
        """Return the number of searched subtrees."""
        return self.nodes

    def check(self) -> None:
        """Raise TimeOver if the search has to end."""
        if self.flag[0] or self.stop():
            self.flag[0] = 1
            raise TimeOver

    def solve(self, order: np.ndarray, height: int, ub: int, first: np.ndarray | None = None) -> NodeResult:
        """Return the best tree below `ub` for the rows of `order`, or a bound of at least `ub`.

        `first`: lower bounds by feature of the root split, if known.
        """
        self.check()
        self.nodes += 1
        if height <= 2:
            return self._small(order, height, ub, first)
        totals = class_weights(order, self.y, self.weight, self.classes)
        as_leaf = int(totals.sum() - totals.max()) * self.unit + self.leaf
        best = NodeResult(as_leaf, None, True) if as_leaf < ub else NodeResult(ub, None, False)
        if as_leaf == self.leaf or best.cost <= 2 * self.leaf or int(totals.sum()) * self.unit <= 2 * self.leaf:
            return best
        below = self.solve(order, height - 1, best.cost)
        if below.exact and below.cost < best.cost:
            best = below
        return self.search(order, height, best, 0)

    def _small(self, order: np.ndarray, height: int, ub: int, first: np.ndarray | None) -> NodeResult:
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
            return NodeResult(max(ub, min(as_leaf, int(first.min()))), None, False, first)
        a = [int(v) for v in answer]
        if a[0] < 0:
            return NodeResult(cost, None, True, first)
        sides = [None if f < 0 else (f, t, None, None) for f, t in ((a[2], a[3]), (a[4], a[5]))]
        return NodeResult(cost, (a[0], a[1], *sides), True, first)

    def _solve_stump(self, order: np.ndarray, height: int, ub: int) -> NodeResult:
        totals = class_weights(order, self.y, self.weight, self.classes)
        cost = int(totals.sum() - totals.max()) * self.unit + self.leaf
        tree = None
        if height and order.shape[1] > 1:
            splits = self._single_splits(order)
            costs = splits.errors * self.unit + 2 * self.leaf + self.tolls * int(totals.sum())
            f = int(costs.argmin())
            place = splits.places[f]
            if place >= 0 and int(costs[f]) < cost:
                cost = int(costs[f])
                tree = (f, int(self.rank[f, order[f, splits.positions[f, place]]]), None, None)
        return NodeResult(cost, tree, True) if cost < ub else NodeResult(cost, None, False)

    def _single_splits(self, order: np.ndarray) -> SingleSplits:
        """Return the thresholds of each feature for the rows of `order`, and the best of them."""
        positions = np.empty(order.shape, np.int32)
        sizes = np.zeros(len(order), np.int64)
        change_positions(order, self.rank, positions, sizes)
        errors = np.empty(len(order), np.int64)
        places = np.empty(len(order), np.int64)
        best_single_splits(order, positions, sizes, self.y, self.weight, self.classes, errors, places)
        return SingleSplits(positions, sizes, errors, places)

    def search(
        self,
        order: np.ndarray,
        height: int,
        best: NodeResult,
        slack: int,
        is_reported: bool = False,
        first: np.ndarray | None = None,
    ) -> NodeResult:
        """Return a tree of full height that costs less than best.cost - slack, or `best` if there is none.

        `first`: lower bounds by feature of the root split, without tolls, if known.
        """
        splits = self._single_splits(order)
        total = int(self.weight[order[0]].sum()) if len(order) else 0
        lines = [
            self.bounds_type(
                f,
                splits.positions[f, : splits.sizes[f]],
                self.weight[order[f]],
                int(splits.places[f]),
                self.leaf,
                len(order),
                int(self.tolls[f]) * total,
                self.slope(f, height - 1),
            )
            for f in np.argsort(splits.errors, kind="stable").tolist()
            if splits.sizes[f]
        ]
        # the heap orders intervals of all features by their bounds; errors of a single split break ties
        heap = [
            (line.toll + max(2 * self.leaf, 0 if first is None else int(first[line.f])), k, 0, len(line.W) - 1)
            for k, line in enumerate(lines)
        ]
        heapq.heapify(heap)
        visits_above = self.visits
        self.visits = None if self.visits is None else []
        while heap:
            bound, k, a, b = heapq.heappop(heap)
            if bound >= best.cost - slack:
                break
            c = lines[k].middle(a, b, best.cost - slack - lines[k].toll)
            if c is None:
                continue
            best = self._threshold(order, height, lines[k], a, b, c, best, is_reported)
            for x, z in ((a, c), (c, b)):
                if z - x > 1:
                    heapq.heappush(heap, (lines[k].toll + lines[k].free_low[x] + lines[k].free_high[z], k, x, z))
        visits = self.visits
        self.visits = visits_above
        return replace(best, visits=visits)

    def _threshold(
        self,
        order: np.ndarray,
        height: int,
        line: ThresholdBounds,
        a: int,
        b: int,
        c: int,
        best: NodeResult,
        is_reported: bool,
    ) -> NodeResult:
        """Solve both children of threshold c within the upper bound and store their bounds."""
        target = best.cost - line.toll
        # aim above the target: such a bound also prunes neighbours of c, by the weight of the rows between
        reach = target + line.slope * min(line.W[c] - line.W[a], line.W[b] - line.W[c]) // 2
        t = int(self.rank[line.f, order[line.f, line.marks[c - 1]]])
        parts = divide_orders(order, self.rank, line.f, t)
        bounds = list(line.floors(a, b, c))
        firsts = line.first_floors(a, b, c, self.unit)
        children = self._solve_children(line.f, parts, height - 1, ChildBudget(bounds, firsts, target, reach))
        self.visited += 1
        if self.visits is not None and self.visited <= self.most_visits:
            sides = [None if child is None else (child.cost, child.visits) for child in children]
            self.visits.append((line.f, t, sides))
        line.store(a, b, c, bounds, children)
        line.first_low[c], line.first_high[c] = firsts
        if all(child is not None and child.exact for child in children) and sum(bounds) < target:
            best = NodeResult(line.toll + sum(bounds), (line.f, t, children[0].tree, children[1].tree), True)
            if is_reported:
                self.on_better(best.cost, best.tree)
        return best

    def _solve_children(
        self, f: int, parts: tuple[np.ndarray, np.ndarray], height: int, budget: ChildBudget
    ) -> list[Any]:
        """Solve the children of a split on `f` within their budget and raise its bounds; a child that needs no search is None."""
        below = self.child_search(f)
        bounds = budget.bounds
        children: list[Any] = [None, None]
        for s in small_first(parts):
            most = budget.reach - bounds[1 - s]
            if bounds[s] >= most:
                break
            children[s] = below.solve(parts[s], height, most, budget.firsts[s])
            bounds[s] = max(bounds[s], children[s].cost)
            if not children[s].exact:
                break
        return children


def small_first(parts: tuple[np.ndarray, np.ndarray]) -> tuple[int, int]:
    """Return the children in the order of the search: the cost of the smaller one tightens the bound for the larger one."""
    return (0, 1) if parts[0].shape[1] <= parts[1].shape[1] else (1, 0)
