"""Find the least errors of depth-two trees of lines in a plane.

The tree is decomposed at its root: for each separation at the root, both halves are solved over all separations.

Symbols:  N points, R separations, K classes, D (R, N) whether a point is on the chosen side of a separation
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray

PAIRS_PER_BLOCK = 1 << 22  # limit on the pairs of separations in memory
ROOT_STEPS = (64, 16, 4, 1)  # strides over the root separations; finer ones skip roots that cannot be better


def line_separations(x: CountArray, y: CountArray) -> BoolArray:
    """Return all separations (R, N) of distinct points (x, y) by a line, one side of each pair; the first side is empty.

    Between two neighbouring directions of point pairs the order of the projections is constant. A strict separation can be turned a
    little, so every separation is a prefix of one of these orders. When a direction is passed, only prefixes that end within a reversed
    run of points are new. Neighbours in R mostly differ in two points; a few separations occur twice.
    """
    n = len(x)
    nothing = np.zeros((1, n), bool)
    first, second = np.triu_indices(n, 1)
    dx = x[second] - x[first]
    dy = y[second] - y[first]
    flip = np.where((dy < 0) | ((dy == 0) & (dx < 0)), -1, 1)
    size = np.maximum(np.gcd(dx, dy), 1)
    directions = np.unique(np.column_stack([flip * dx // size, flip * dy // size]), axis=0)
    if not len(directions):
        return nothing
    # angles of two such directions differ by at least 2^-42, far more than a rounding error
    directions = directions[np.argsort(np.arctan2(directions[:, 1], directions[:, 0]))]
    after = np.vstack([directions[1:], -directions[:1]])
    between = directions + after
    if len(directions) == 1:
        between = np.column_stack([-directions[:, 1], directions[:, 0]])
    score = np.outer(between[:, 0], y) - np.outer(between[:, 1], x)
    rank = np.argsort(np.argsort(score, axis=1), axis=1)
    # differences along the cuts, whose sum is the number of points that changed sides
    new = np.zeros((len(rank), n + 1), np.int64)
    new[0, 1] = 1
    new[0, n] = -1
    turn, point = np.nonzero(rank[1:] != rank[:-1])
    before = rank[turn, point]
    now = rank[turn + 1, point]
    np.add.at(new, (turn + 1, np.minimum(before, now) + 1), 1)
    np.add.at(new, (turn + 1, np.maximum(before, now) + 1), -1)
    cut, turn = np.nonzero(new.cumsum(axis=1)[:, :n].T > 0)
    side = rank[turn] < cut[:, None]
    side ^= side[:, :1]  # a separation and its complement are the same, so keep the side without the first point
    return np.vstack([nothing, side])


class Roots:
    """A search for the best halves below root separations: `sides` (R, N) from `line_separations`, `counts` (N, K)."""

    def __init__(self, sides: BoolArray, counts: CountArray) -> None:
        self.sides = sides
        self.size = counts.sum(axis=1)
        exact: Any = np.float32 if counts.sum() < 1 << 23 else np.float64  # this float type holds all counts exactly
        self.D: FloatArray = sides.astype(exact)
        self.weight: FloatArray = counts.astype(exact)
        self.inside = self.D @ self.weight  # shape (R, K)
        self.outside = self.weight.sum(axis=0) - self.inside
        self.block = max(1, PAIRS_PER_BLOCK // max(1, self.weight.shape[1] * len(sides)))

    def two_leaves(self) -> CountArray:
        """Return the errors of the tree with two leaves for each root separation, shape (R,)."""
        return (_errors(self.inside) + _errors(self.outside)).astype(np.int64)

    def errors(self, roots: CountArray) -> CountArray:
        """Return the least errors of trees with three and with four leaves for each of `roots`, shape (roots, 2)."""
        both = np.stack([(self.D[roots] * column) @ self.D.T for column in self.weight.T])  # shape (K, roots, R)
        leaf = []
        split = []
        for side_counts, left in ((self.inside[roots], both), (self.outside[roots], self.inside.T[:, None, :] - both)):
            other_counts = side_counts.T[:, :, None] - left
            leaf.append(_errors(side_counts))
            split.append(side_counts.sum(axis=1) - (left.max(axis=0) + other_counts.max(axis=0)).max(axis=1))
        three = np.minimum(leaf[0] + split[1], split[0] + leaf[1])
        return np.column_stack([three, split[0] + split[1]]).astype(np.int64)

    def nodes(self, root: int, leaves: int) -> CountArray:
        """Return the node of each point, shape (N,), in the best tree with this root and two to four leaves."""
        at = np.where(self.D[root] > 0, 2, 3)
        both = (self.D[root] * self.weight.T) @ self.D.T  # shape (K, R)
        halves = []
        for v, side_counts, left in ((2, self.inside[root], both), (3, self.outside[root], self.inside.T - both)):
            right = left.max(axis=0) + (side_counts[:, None] - left).max(axis=0)
            way = int(right.argmax())
            halves.append((float(right[way] - side_counts.max()), v, way))
        for _, v, way in sorted(halves, reverse=True)[: leaves - 2]:
            members = at == v
            at[members] = np.where(self.D[way, members] > 0, 2 * v, 2 * v + 1)
        return at


def _errors(counts: FloatArray) -> FloatArray:
    return counts.sum(axis=1) - counts.max(axis=1)


@dataclass(frozen=True)
class LeastErrors:
    """`errors[t - 1]`: least errors with at most t leaves; `roots[t - 2]`: root separation of such a tree, t = 2, 3, 4."""

    errors: tuple[int, int, int, int]
    roots: tuple[int, int, int]


def find_least_errors(roots: Roots, stopped: Callable[[], bool] = lambda: False) -> LeastErrors | None:
    """Return the least errors of trees of depth two with at most one to four leaves; None if it is stopped.

    Rows that change sides at the root change the errors by at most their number. A root far worse than the best rules out its
    neighbours.
    """
    sides = roots.sides
    size = roots.size
    every = int(size.sum())
    pairs = roots.two_leaves()
    first = int(pairs.argmin())
    one = every - int(roots.weight.sum(axis=0).max())
    two = min(one, int(pairs[first]))
    # entry 0 is for three leaves, entry 1 for four
    best = np.full(2, two)
    where = np.full(2, first)
    errors = np.zeros((len(sides), 2), np.int64)
    solved = np.zeros(len(sides), bool)
    for step in ROOT_STEPS:
        candidates = np.arange(0, len(sides), step)
        candidates = candidates[~solved[candidates]]
        if solved.any():
            tried = np.flatnonzero(solved)
            place = np.searchsorted(tried, candidates)
            open_ = np.ones(len(candidates), bool)
            for near in (tried[np.maximum(place - 1, 0)], tried[np.minimum(place, len(tried) - 1)]):
                moved = (sides[near] ^ sides[candidates]) @ size
                open_ &= (errors[near] - np.minimum(moved, every - moved)[:, None] < best).any(axis=1)
            candidates = candidates[open_]
        for begin in range(0, len(candidates), roots.block):
            if stopped():
                return None
            block = candidates[begin : begin + roots.block]
            errors[block] = roots.errors(block)
            solved[block] = True
            for t in np.flatnonzero(errors[block].min(axis=0) < best):
                where[t] = block[int(errors[block, t].argmin())]
                best[t] = errors[where[t], t]
    three = min(two, int(best[0]))
    return LeastErrors((one, two, three, min(three, int(best[1]))), (first, int(where[0]), int(where[1])))
