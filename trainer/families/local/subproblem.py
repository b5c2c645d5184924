"""Solve the subtrees of a deep tree by the searches of other families.

Every row has a rank in each numeric feature. A tree is nested tuples (feature, rank, low, high), where rows of at most this rank go
to the low side, or the label of a leaf. A tree costs Q * errors + P * leaves, where P / Q is the price of a leaf in rows. Ties are
broken by fewer leaves.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from trainer.data.problem import Problem
from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.errors import DataError
from trainer.methods.monitor import Monitor
from trainer.solver_common import cross_family
from trainer.solver_common.binary_problem import never

Shape = Any  # (feature, rank, low, high), or the label of a leaf
INFINITE_COST = 1 << 60
MOST_WEIGHT = (1 << 31) - 1
Cost = tuple[int, int]  # Q * errors + P * leaves, and the leaves


class CountedSubtree(NamedTuple):
    """A subtree, with its errors and leaves on the rows of its node."""

    errors: int
    leaves: int
    shape: Shape


@dataclass(frozen=True, eq=False)
class RankedRows:
    """The rows of positive weight: ranks int32 (F, n) by feature, features float64 (n, F), labels, weights."""

    X: FloatArray
    rank: np.ndarray
    order: np.ndarray  # int32 (F, n): the rows in ascending order of each feature
    y: np.ndarray
    weights: CountArray
    classes: int


def rank_rows(problem: Problem) -> RankedRows:
    """Return the rows of a problem over its numeric features. Raises DataError for too large weights."""
    used = problem.row_weights > 0
    X = problem.numeric.matrix(problem.table)[used]
    weights = np.ascontiguousarray(problem.row_weights[used])
    if int(weights.sum()) > MOST_WEIGHT:
        raise DataError(
            f"The weights add up to {int(weights.sum()):,}, but this search takes at most {MOST_WEIGHT:,}. Scale the weights."
        )
    rank = np.zeros((X.shape[1], len(X)), np.int32)
    for f in range(X.shape[1]):
        rank[f] = np.unique(X[:, f], return_inverse=True)[1].reshape(-1)
    order = np.argsort(rank, axis=1, kind="stable").astype(np.int32)
    y = np.ascontiguousarray(problem.y[used], dtype=np.int32)
    return RankedRows(X, rank, order, y, weights, problem.n_classes)


class Subproblems:
    """The subproblems of one search. Each asks for the best tree of small height for the rows of a node."""

    def __init__(self, problem: Problem, rows: RankedRows, min_leaf: int, monitor: Monitor) -> None:
        self.rows = rows
        self.kappa = problem.kappa
        self.P = self.kappa.numerator
        self.Q = self.kappa.denominator
        self.min_leaf = min_leaf
        self.monitor = monitor
        self.solved = 0  # number of searches
        self._searches: dict[int, Any] = {}
        # lower bounds on the cost, by the digest of a node's rows and the height
        self._bounds: dict[tuple[bytes, int], Cost] = {}

    def cost(self, part: CountedSubtree) -> Cost:
        """Return the cost of a subtree."""
        return self.Q * part.errors + self.P * part.leaves, part.leaves

    def divide(self, order: np.ndarray, feature: int, rank: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the orders of the rows of both sides of a split, int32 (F, m)."""
        low = self.rows.rank[feature] <= rank
        inside = low[order]
        count = int(np.count_nonzero(inside[0]))
        features = len(order)
        return order[inside].reshape(features, count), order[~inside].reshape(features, order.shape[1] - count)

    def class_weights(self, order: np.ndarray) -> CountArray:
        """Return the weight of each class among the rows of a node, int64 (classes,)."""
        at = order[0]
        totals = np.bincount(self.rows.y[at], self.rows.weights[at], minlength=self.rows.classes)
        return totals.astype(np.int64)

    def leaf(self, order: np.ndarray) -> CountedSubtree:
        """Return the leaf of the rows of a node."""
        totals = self.class_weights(order)
        return CountedSubtree(int(totals.sum() - totals.max()), 1, int(totals.argmax()))

    def evaluate(self, order: np.ndarray, shape: Shape) -> CountedSubtree | None:
        """Return a tree with the labels of its rows and without empty sides; None if a leaf is lighter than `min_leaf`."""
        if not isinstance(shape, tuple):
            leaf = self.leaf(order)
            weight = int(self.rows.weights[order[0]].sum()) if self.min_leaf > 1 else self.min_leaf
            return leaf if weight >= self.min_leaf else None
        low, high = self.divide(order, shape[0], shape[1])
        if not low.shape[1] or not high.shape[1]:
            return self.evaluate(order, shape[2] if low.shape[1] else shape[3])
        low_side = self.evaluate(low, shape[2])
        high_side = self.evaluate(high, shape[3])
        if low_side is None or high_side is None:
            return None
        return join(shape, low_side, high_side)

    def predict(self, shape: Shape, at: np.ndarray) -> np.ndarray:
        """Return the labels that a tree gives to rows, int32 (m,)."""
        if not isinstance(shape, tuple):
            return np.full(len(at), shape, np.int32)
        low = self.rows.rank[shape[0], at] <= shape[1]
        labels = np.empty(len(at), np.int32)
        labels[low] = self.predict(shape[2], at[low])
        labels[~low] = self.predict(shape[3], at[~low])
        return labels

    def best_split(self, order: np.ndarray, is_high: BoolArray) -> tuple[int, int] | None:
        """Return the split (feature, rank) that separates two groups of rows best, up to swapped sides; None if none helps."""
        classes = is_high.astype(np.int32)
        costs = np.array([1, 0], np.int64)
        rows = self.rows
        # one scan of the columns needs no limit, and a start must be read even if the time is over
        flag = np.zeros(1, np.int64)
        search = cross_family.numeric_search(rows.rank, classes, rows.weights, 2, costs, flag, never)
        tree = search.solve(order, 1, INFINITE_COST).tree
        return None if tree is None else (int(tree[0]), int(tree[1]))

    def is_proved(self, order: np.ndarray, height: int, part: CountedSubtree) -> bool:
        """Return whether it is known that no tree of at most `height` costs less than `part`."""
        cost = self.cost(part)
        return self._class_bound(order, height) >= cost or self._bounds.get(self._key(order, height), (0, 0)) >= cost

    def find_better(self, order: np.ndarray, height: int, part: CountedSubtree) -> CountedSubtree | None:
        """Return the best tree of at most `height` for the rows of a node if it costs less than `part`, else None.

        A finished search stores its bound, see `is_proved`.
        """
        if self.is_proved(order, height, part) or self.monitor.stopped():
            return None
        self.solved += 1
        return self._solve(order, height, part)

    def _key(self, order: np.ndarray, height: int) -> tuple[bytes, int]:
        return hashlib.blake2b(order[0].tobytes(), digest_size=16).digest(), height

    def _class_bound(self, order: np.ndarray, height: int) -> Cost:
        """Return a lower bound on the cost: t leaves classify at most the rows of t classes correctly."""
        largest = np.cumsum(np.sort(self.class_weights(order))[::-1])
        total = int(largest[-1])
        most = min(1 << height, len(largest))
        return min((self.Q * (total - int(largest[t - 1])) + self.P * t, t) for t in range(1, most + 1))

    def _solve(self, order: np.ndarray, height: int, part: CountedSubtree) -> CountedSubtree | None:
        scale = (
            1 << height
        ) + 2  # exceeds the leaves of a tree of this height by more than 1, so leaves only break ties
        search = self._searches.get(height)
        if search is None:
            unit = scale * self.Q
            price = scale * self.P + 1
            if unit * int(self.rows.weights.sum()) + (price << height) >= INFINITE_COST:
                raise DataError(
                    "The leaf penalty has too many digits for exact integer costs. Give a number with at most six digits."
                )
            rows = self.rows
            costs = np.array([unit, price], np.int64)
            flag = self.monitor.flag
            stop = self.monitor.stopped
            search = cross_family.numeric_search(rows.rank, rows.y, rows.weights, rows.classes, costs, flag, stop)
            if self.min_leaf > 1:
                search = cross_family.sized_search(search, self.min_leaf)
            self._searches[height] = search
        cost = self.cost(part)
        try:
            result = search.solve(order, height, scale * cost[0] + min(cost[1], scale - 1))
        except cross_family.numeric_time_over():
            return None
        if not result.exact:
            self._bounds[self._key(order, height)] = cost
            return None
        return self._store(order, height, part, result.tree)

    def _store(self, order: np.ndarray, height: int, part: CountedSubtree, shape: Shape) -> CountedSubtree | None:
        """Store the cost of the best tree of a node; return the tree if it costs less than `part`."""
        best = self.evaluate(order, shape)
        assert best is not None
        self._bounds[self._key(order, height)] = self.cost(best)
        return best if self.cost(best) < self.cost(part) else None


def join(split: tuple[int, int, Any, Any], low: CountedSubtree, high: CountedSubtree) -> CountedSubtree:
    """Return the subtree of a split and both of its sides."""
    return CountedSubtree(
        low.errors + high.errors, low.leaves + high.leaves, (split[0], split[1], low.shape, high.shape)
    )


def height_of(shape: Shape) -> int:
    """Return the largest number of splits on a path."""
    return 1 + max(height_of(shape[2]), height_of(shape[3])) if isinstance(shape, tuple) else 0
