"""Search Pareto fronts, for constraints on the whole tree.

Each node has the front of its trees' vectors: cost, errors of each bounded class, and leaves (van der Linden, de Weerdt
& Demirovic, 2023). The unconstrained search supplies lower bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.constraints import Constraints
from trainer.families.exact.instance import ExactInstance
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.kernels import pareto as dp_pareto
from trainer.families.exact.search.memo import INFINITE, UNKNOWN_PATH
from trainer.families.exact.search.search import ExactSearch
from trainer.tree.shapes import LabelledShape

NO_LIMIT = int(INFINITE) - 1


@dataclass(frozen=True)
class VectorFront:
    """The Pareto front of one subproblem, with the data to rebuild its trees."""

    vectors: np.ndarray  # int64 (size, D)
    aux: np.ndarray  # int64 (size, AUX)
    below: int  # the front is complete for costs below this
    terminal: bool
    features: np.ndarray  # features at the positions in `aux`, if terminal
    children: dict[int, tuple[VectorFront, VectorFront]] = field(default_factory=dict)


@dataclass(frozen=True)
class ColumnTolls:
    """Prices of columns that a row pays once: the column of each feature, and its price for one unit of weight in integer costs."""

    columns: np.ndarray
    charges: np.ndarray

    def paid_below(self, paid: frozenset[int], feature: int) -> frozenset[int]:
        """Return the paid columns in the children of a split."""
        return paid | {int(self.columns[feature])} if self.charges[feature] else paid

    def unpaid(self, features: np.ndarray, paid: frozenset[int]) -> np.ndarray:
        """Return the charge of each feature for one unit of weight, 0 if its column is paid; int64."""
        free = np.isin(self.columns[features], list(paid)) if paid else np.zeros(len(features), bool)
        return np.where(free, 0, self.charges[features])

    def pairs(self, features: np.ndarray, paid: frozenset[int]) -> np.ndarray:
        """Return the charge of feature g in a child of feature f, int64 (f, g), on the diagonal that of g at the node."""
        charge = self.unpaid(features, paid)
        columns = self.columns[features]
        pairs = np.where(columns[:, None] == columns[None, :], 0, charge[None, :])
        np.fill_diagonal(pairs, charge)
        return np.ascontiguousarray(pairs, np.int64)


class ParetoSearch:
    """The recurrence over Pareto fronts, for one instance and one set of allowed features.

    Parameters
    ----------
    search : ExactSearch
        The search without constraints and prices.
    constraints : Constraints
        Limits on the whole tree.
    unit, leaf : int
        The costs of an error and of a leaf.
    tolls : ColumnTolls, optional
        Prices of columns.
    """

    def __init__(
        self, search: ExactSearch, constraints: Constraints, unit: int, leaf: int, tolls: ColumnTolls | None = None
    ) -> None:
        self.tolls = tolls
        self.depth = self.full_depth = -1  # depths of the root: current and final
        self.search = search
        self.constraints = constraints
        g = search.instance
        self.costs = np.array([unit, leaf], np.int64)
        self.bounded = np.array([k for k, _ in constraints.recalls], np.int64)
        self.caps = [recall_limit(g, k, share) for k, share in constraints.recalls] if unit else []
        self.caps = self.caps or [NO_LIMIT] * len(self.bounded)
        if constraints.max_leaves is not None:
            self.caps.append(constraints.max_leaves)
        self.conflict = constraints.conflict
        self.allowed = np.ones(g.features, np.uint8) if search.allowed is None else search.allowed
        self.memo: dict[Any, VectorFront] = {}
        self.bytes = 0
        self.best: tuple[int, VectorFront, int] | None = None  # cost, front and position of the incumbent
        self.root_bound = 0

    def limits(self, ub: int) -> np.ndarray:
        """Return the largest admissible vector below the cost `ub`."""
        return np.array([ub - 1, *self.caps], np.int64)

    def solve(
        self, rows: np.ndarray, height: int, allowed: np.ndarray, ub: int, paid: frozenset[int] = frozenset()
    ) -> VectorFront:
        """Return the front of `rows`, which have paid some columns, for costs below `ub`; incomplete if the search was stopped."""
        key = (
            height,
            paid,
            np.packbits(self._row_mask(rows)).tobytes(),
            allowed.tobytes() if self.conflict is not None else b"",
        )
        cached = self.memo.get(key)
        if cached is not None and cached.below >= ub:
            return cached
        self.search.nodes += 1
        node = self._prepare(rows, allowed)
        if height <= 2 or not len(node.features):
            front = self._solve_small(node, height, ub, paid)
        else:
            front = self._solve_large(rows, node, height, allowed, ub, paid)
        if not self.search.stopped():
            self.bytes += 300 + len(key[2]) + len(key[3]) + front.vectors.nbytes + front.aux.nbytes
            if self.bytes > self.search.options.memory // 2:
                self.memo.clear()
                self.bytes = 0
            self.memo[key] = front
        return front

    def _row_mask(self, rows: np.ndarray) -> np.ndarray:
        member = np.zeros(len(self.search.instance.rows), np.uint8)
        member[rows] = 1
        return member

    def _prepare(self, rows: np.ndarray, allowed: np.ndarray) -> dp_node.NodeView:
        s = self.search
        # equal features with different partners or prices must stay apart
        reduce = self.conflict is None and self.tolls is None
        return dp_node.prepare(s.context.data, rows, allowed, s.min_leaf, reduce, True)

    def _solve_small(self, node: dp_node.NodeView, height: int, ub: int, paid: frozenset[int]) -> VectorFront:
        m = len(node.features)
        entries = dp_pareto.VectorEntries(self.costs, self.bounded, self.limits(ub))
        if height == 0 or m == 0:
            vectors, aux = dp_pareto.leaf_front(node.totals, entries)
            return VectorFront(vectors, aux, ub, True, node.features)
        P = np.empty((self.search.instance.n_classes, m, m), np.int32)
        dp_node.pair_counts(node, P)
        tolls = np.zeros((m, m), np.int64) if self.tolls is None else self.tolls.pairs(node.features, paid)
        rules = dp_pareto.SplitRules(self._conflict(node), tolls)
        vectors, aux = dp_pareto.small_front(node, P, rules, height, self.search.min_leaf, entries)
        return VectorFront(vectors, aux, ub, True, node.features)

    def _conflict(self, node: dp_node.NodeView) -> np.ndarray:
        m = len(node.features)
        if self.conflict is None:
            return np.zeros((m, m), np.uint8)
        return np.ascontiguousarray(self.conflict[np.ix_(node.features, node.features)])

    def _bounds(self, node: dp_node.NodeView, height: int, ub: int) -> np.ndarray:
        """Return lower bounds for both children of each split, int64 (2, p), from the search without constraints."""
        if not self.costs[0]:
            return np.zeros((2, len(node.features)), np.int64)
        frame = self.search.build_frame(node, height)
        if height == 3:
            state = np.array([min(ub, NO_LIMIT), -2, 0, 0, 0], np.int64)
            self.search.run_height3(frame, UNKNOWN_PATH, state, True)
        return frame.lower

    def _solve_large(
        self,
        rows: np.ndarray,
        node: dp_node.NodeView,
        height: int,
        allowed: np.ndarray,
        ub: int,
        paid: frozenset[int],
    ) -> VectorFront:
        s = self.search
        root = height == self.depth and len(rows) == len(self.search.instance.rows)
        limit = ub
        lower = self._bounds(node, height, ub)
        entries = dp_pareto.VectorEntries(self.costs, self.bounded, self.limits(ub))
        vectors, aux = dp_pareto.leaf_front(node.totals, entries)
        children: dict[int, tuple[VectorFront, VectorFront]] = {}
        open_bound = int(INFINITE)
        charges = np.zeros(len(node.features), np.int64)
        if self.tolls is not None:
            charges = int(node.totals.sum()) * self.tolls.unpaid(node.features, paid)
        totals = lower.sum(axis=0) + charges
        for p in np.argsort(totals, kind="stable").tolist():
            total = int(totals[p])
            if s.stopped():
                open_bound = min(open_bound, total)
                break
            if total >= ub:
                continue
            f = int(node.features[p])
            charge = int(charges[p])
            inner = paid if self.tolls is None else self.tolls.paid_below(paid, f)
            pair = self._sides(rows, f, height, allowed, ub - charge, lower[:, p], inner)
            if s.stopped():
                open_bound = min(open_bound, total)
            if pair is None:
                continue
            children[f] = pair
            low = pair[0].vectors.copy()
            low[:, 0] += charge
            vectors, aux = dp_pareto.combine(vectors, aux, f, low, pair[1].vectors, self.limits(ub))
            # only the cheapest vector counts at the root, and if vectors have a single entry
            if len(vectors) and (root or vectors.shape[1] == 1):
                ub = min(ub, int(vectors[:, 0].min()))
                if root:
                    self._update_incumbent(VectorFront(vectors, aux, ub, False, node.features, children))
        if root and height == self.full_depth:
            # splits are visited in order of their bounds, so those after the stop cost no less
            self.root_bound = max(self.root_bound, min(open_bound, ub))
        used = {int(f) for f in aux[:, 0]} if len(aux) else set()
        children = {f: pair for f, pair in children.items() if f in used}
        return VectorFront(vectors, aux, limit, False, node.features, children)

    def _sides(
        self,
        rows: np.ndarray,
        f: int,
        height: int,
        allowed: np.ndarray,
        ub: int,
        lower: np.ndarray,
        paid: frozenset[int],
    ) -> tuple[VectorFront, VectorFront] | None:
        s = self.search
        parts = dp_node.split_rows(s.instance.rows, rows, f)
        inner = allowed if self.conflict is None else (allowed & (1 - self.conflict[f])).astype(np.uint8)
        low = [int(lower[0]), int(lower[1])]
        if height > 3 and self.costs[0]:
            for side in (0, 1):
                low[side] = max(low[side], s.solve(parts[side], UNKNOWN_PATH, height - 1, ub - low[1 - side]).lower)
                if s.stopped() or low[0] + low[1] >= ub:
                    return None
        first = 0 if len(parts[0]) <= len(parts[1]) else 1
        a = self.solve(parts[first], height - 1, inner, ub - low[1 - first], paid)
        if not len(a.vectors):
            return None
        b = self.solve(parts[1 - first], height - 1, inner, ub - int(a.vectors[:, 0].min()), paid)
        return (a, b) if first == 0 else (b, a)

    def _update_incumbent(self, front: VectorFront) -> None:
        place = int(front.vectors[:, 0].argmin())
        cost = int(front.vectors[place, 0])
        if self.best is None or cost < self.best[0]:
            self.best = (cost, replace(front, children=dict(front.children)), place)
            self.search.report(cost, self.root_bound, self.search.nodes)

    def run(self, depth: int, floor: int = 0) -> None:
        """Search shallow trees first; each is an incumbent of the next depth. The bound is that of the last depth."""
        g = self.search.instance
        rows = np.arange(len(g.rows), dtype=np.int32)
        self.full_depth = depth
        self.root_bound = floor
        for height in range(min(depth, 1), depth + 1):
            self.depth = height
            ub = int(INFINITE) if self.best is None else self.best[0]
            front = self.solve(rows, height, self.allowed, ub)
            if len(front.vectors):
                self._update_incumbent(front)
            if self.search.stopped():
                return
        self.root_bound = max(self.root_bound, int(INFINITE) if self.best is None else self.best[0])

    def tree(self, front: VectorFront, place: int) -> LabelledShape:
        """Return the tree of a vector."""
        a = [int(x) for x in front.aux[place]]
        if a[0] < 0:
            return a[3]
        if not front.terminal:
            low, high = front.children[a[0]]
            return a[0], self.tree(low, a[1]), self.tree(high, a[2])
        names = front.features
        sides = [
            int(labels[0]) if split < 0 else (int(names[split]), *labels)
            for split, labels in ((a[1], (a[3], a[4])), (a[2], (a[5], a[6])))
        ]
        return int(names[a[0]]), sides[0], sides[1]


def recall_limit(instance: ExactInstance, label: int, share: Fraction) -> int:
    """Return the most errors among the rows of class `label` with a recall of at least `share`."""
    size = int(instance.weights[instance.classes == label].sum())
    return size - math.ceil(share * size)
