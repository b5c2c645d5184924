"""Search trees whose leaves have a least weight of rows (`min_leaf`).

A tree of more rows need not suit fewer rows. So bounds of fewer rows hold for more rows only without the least weight. Each subproblem
is first solved without it. If that tree has large enough leaves, it is the solution.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trainer.families.numeric.intervals import (
    ChildBudget,
    NodeResult,
    NumericSearch,
    SingleSplits,
    ThresholdBounds,
    small_first,
)
from trainer.families.numeric.kernels.scan import best_single_splits


class SizedBounds(ThresholdBounds):
    """The thresholds of a feature, with bounds of their children with and without the least weight."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.free_low = dict(self.low)
        self.free_high = dict(self.high)

    def store(self, a: int, b: int, c: int, bounds: list[int], children: list[Any]) -> None:
        W = self.W
        free = [
            max(self.free_low[a], self.free_low[b] - self.slope * (W[b] - W[c])),
            max(self.free_high[b], self.free_high[a] - self.slope * (W[c] - W[a])),
        ]
        for s, child in enumerate(children):
            if child is not None:
                free[s] = max(free[s], child.free)
        self.free_low[c], self.free_high[c] = free
        super().store(a, b, c, bounds, children)


class SizedSearch(NumericSearch):
    """The search for trees whose leaves have a weight of at least `least`, above the search `plain` without it."""

    bounds_type: type[ThresholdBounds] = SizedBounds

    def __init__(self, plain: NumericSearch, least: int) -> None:
        self.least = least
        super().__init__(plain.rank, plain.y, plain.weight, plain.classes, plain.costs, plain.flag, plain.stop)
        self.plain = plain
        self.most_visits = 0  # proofs have no steps for a least weight, so store no visits

    def count_nodes(self) -> int:
        return self.nodes + self.plain.nodes

    def solve(self, order: np.ndarray, height: int, ub: int, first: np.ndarray | None = None) -> NodeResult:
        return self._solve_above(order, height, ub, self.plain.solve(order, height, ub, first))

    def _solve_above(self, order: np.ndarray, height: int, ub: int, free: NodeResult) -> NodeResult:
        """Return the best tree below `ub`, or a bound; `free` is the result without the least weight."""
        self.nodes += 1
        if not free.exact or self.has_large_leaves(order, free.tree):
            return replace(free, free=free.cost)
        if height <= 2:
            result = self._small(order, height, ub, None if free.first is None else free.first.copy())
        else:
            smaller = self.solve(order, height - 1, ub)
            result = self.search(order, height, smaller if smaller.exact else NodeResult(ub, None, False), 0)
        return replace(result, cost=max(result.cost, free.cost), first=free.first, free=free.cost)

    def _solve_children(
        self, f: int, parts: tuple[np.ndarray, np.ndarray], height: int, budget: ChildBudget
    ) -> list[Any]:
        bounds = budget.bounds
        children = self.plain._solve_children(f, parts, height, budget)
        children = [None if child is None else replace(child, free=child.cost) for child in children]
        if not all(child is not None and child.exact for child in children):
            return children
        for s in small_first(parts):
            free = children[s]
            if self.has_large_leaves(parts[s], free.tree):
                continue
            children[s] = replace(free, exact=False)
            if sum(bounds) >= budget.target:
                break
            children[s] = self._solve_above(parts[s], height, budget.reach - bounds[1 - s], free)
            bounds[s] = max(bounds[s], children[s].cost)
            if not children[s].exact:
                break
        return children

    def has_large_leaves(self, order: np.ndarray, tree: Any) -> bool:
        """Return whether each leaf of a tree weighs at least `least`; True for a single leaf."""
        return tree is None or self._fits(order[0], tree)

    def _fits(self, rows: np.ndarray, tree: Any) -> bool:
        if tree is None:
            return int(self.weight[rows].sum()) >= self.least
        low = self.rank[tree[0], rows] <= tree[1]
        return self._fits(rows[low], tree[2]) and self._fits(rows[~low], tree[3])

    def _single_splits(self, order: np.ndarray) -> SingleSplits:
        """Return the thresholds of each feature whose children both weigh at least `least`, and the best of them."""
        every = super()._single_splits(order)
        positions = np.zeros_like(every.positions)
        sizes = np.zeros_like(every.sizes)
        for f, size in enumerate(every.sizes.tolist()):
            ends = every.positions[f, :size]
            behind = np.cumsum(self.weight[order[f]])
            usable = ends[(behind[ends] >= self.least) & (behind[-1] - behind[ends] >= self.least)]
            sizes[f] = len(usable)
            positions[f, : len(usable)] = usable
        errors = np.empty_like(every.errors)
        places = np.empty_like(every.places)
        best_single_splits(order, positions, sizes, self.y, self.weight, self.classes, errors, places)
        return SingleSplits(positions, sizes, errors, places)
