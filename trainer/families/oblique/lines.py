"""Points in a plane: all ways in which lines separate them, and the least errors of trees with at most four leaves of depth two.

The tree is decomposed by its root: for each way of the root, the two halves are solved by themselves over all ways.

Symbols:  N points, R ways, K classes, D (R, N) which points a way has on its side
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray

BLOCK = 1 << 22  # pairs of ways at a time
STEPS = (64, 16, 4, 1)  # every so many ways are tried as the root, then those between that may be better


def ways(x: CountArray, y: CountArray) -> BoolArray:
    """All ways (R, N) to part distinct points (x, y) with a line, one side of each pair; the first side has no points.

    Between two neighbouring directions of pairs of points the order of the projections does not change, and a strict separation
    can be turned a little, so that every way is a beginning of one of these orders. Where a direction is passed, only the
    beginnings that end within a turned run of points are new. Neighbours in R mostly differ in two points; a few ways come twice.
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
    # two directions of this size differ by at least 2^-42, far more than a rounding of the angle
    directions = directions[np.argsort(np.arctan2(directions[:, 1], directions[:, 0]))]
    after = np.vstack([directions[1:], -directions[:1]])
    between = directions + after
    if len(directions) == 1:
        between = np.column_stack([-directions[:, 1], directions[:, 0]])
    score = np.outer(between[:, 0], y) - np.outer(between[:, 1], x)
    rank = np.argsort(np.argsort(score, axis=1), axis=1)
    new = np.zeros((len(rank), n + 1), np.int64)  # differences along the cuts: how many points have changed sides
    new[0, 1] = 1
    new[0, n] = -1
    turn, point = np.nonzero(rank[1:] != rank[:-1])
    before = rank[turn, point]
    now = rank[turn + 1, point]
    np.add.at(new, (turn + 1, np.minimum(before, now) + 1), 1)
    np.add.at(new, (turn + 1, np.maximum(before, now) + 1), -1)
    cut, turn = np.nonzero(new.cumsum(axis=1)[:, :n].T > 0)
    side = rank[turn] < cut[:, None]
    side ^= side[:, :1]  # the side without the first point stands for both
    return np.vstack([nothing, side])


class Roots:
    """The best halves below each way as the root; `sides` (R, N) from `ways`, `counts` (N, K)."""

    def __init__(self, sides: BoolArray, counts: CountArray) -> None:
        self.sides = sides
        self.size = counts.sum(axis=1)
        exact: Any = np.float32 if counts.sum() < 1 << 23 else np.float64  # whole numbers that this type holds
        self.D: FloatArray = sides.astype(exact)
        self.weight: FloatArray = counts.astype(exact)
        self.inside = self.D @ self.weight  # (R, K)
        self.outside = self.weight.sum(axis=0) - self.inside
        self.block = max(1, BLOCK // max(1, self.weight.shape[1] * len(sides)))

    def two_leaves(self) -> CountArray:
        """The errors (R,) with two leaves."""
        return (_wrong(self.inside) + _wrong(self.outside)).astype(np.int64)

    def errors(self, roots: CountArray) -> CountArray:
        """The least errors (roots, 2) with three and with four leaves."""
        both = np.stack([(self.D[roots] * column) @ self.D.T for column in self.weight.T])  # (K, roots, R)
        leaf = []
        split = []
        for here, left in ((self.inside[roots], both), (self.outside[roots], self.inside.T[:, None, :] - both)):
            rest = here.T[:, :, None] - left
            leaf.append(_wrong(here))
            split.append(here.sum(axis=1) - (left.max(axis=0) + rest.max(axis=0)).max(axis=1))
        three = np.minimum(leaf[0] + split[1], split[0] + leaf[1])
        return np.column_stack([three, split[0] + split[1]]).astype(np.int64)

    def nodes(self, root: int, leaves: int) -> CountArray:
        """The node (N,) at which each point ends in the best tree with this root and two to four leaves: 2, 3, or below them."""
        at = np.where(self.D[root] > 0, 2, 3)
        both = (self.D[root] * self.weight.T) @ self.D.T  # (K, R)
        halves = []
        for v, here, left in ((2, self.inside[root], both), (3, self.outside[root], self.inside.T - both)):
            right = left.max(axis=0) + (here[:, None] - left).max(axis=0)
            way = int(right.argmax())
            halves.append((float(right[way] - here.max()), v, way))
        for _, v, way in sorted(halves, reverse=True)[: leaves - 2]:
            mine = at == v
            at[mine] = np.where(self.D[way, mine] > 0, 2 * v, 2 * v + 1)
        return at


def _wrong(counts: FloatArray) -> FloatArray:
    return counts.sum(axis=1) - counts.max(axis=1)


@dataclass(frozen=True)
class LeastErrors:
    """`errors[t - 1]`: the least errors with at most t leaves; `roots[t - 2]`: a way for the root of such a tree, t = 2, 3, 4."""

    errors: tuple[int, int, int, int]
    roots: tuple[int, int, int]


def least_errors(roots: Roots, stopped: Callable[[], bool] = lambda: False) -> LeastErrors | None:
    """The least errors of trees with at most one, two, three and four leaves of depth two; None if it was stopped.

    Rows that change sides at the root change the errors by their number at most, so that a root far worse than needed rules out its
    neighbours.
    """
    sides, size, every = roots.sides, roots.size, int(roots.size.sum())
    pairs = roots.two_leaves()
    first = int(pairs.argmin())
    one = every - int(roots.weight.sum(axis=0).max())
    two = min(one, int(pairs[first]))
    # with three and with four leaves
    best = np.full(2, two)
    where = np.full(2, first)
    errors = np.zeros((len(sides), 2), np.int64)
    known = np.zeros(len(sides), bool)
    for step in STEPS:
        left = np.arange(0, len(sides), step)
        left = left[~known[left]]
        if known.any():
            tried = np.flatnonzero(known)
            place = np.searchsorted(tried, left)
            open_ = np.ones(len(left), bool)
            for near in (tried[np.maximum(place - 1, 0)], tried[np.minimum(place, len(tried) - 1)]):
                moved = (sides[near] ^ sides[left]) @ size
                open_ &= (errors[near] - np.minimum(moved, every - moved)[:, None] < best).any(axis=1)
            left = left[open_]
        for begin in range(0, len(left), roots.block):
            if stopped():
                return None
            block = left[begin : begin + roots.block]
            errors[block] = roots.errors(block)
            known[block] = True
            for t in np.flatnonzero(errors[block].min(axis=0) < best):
                where[t] = block[int(errors[block, t].argmin())]
                best[t] = errors[where[t], t]
    three = min(two, int(best[0]))
    return LeastErrors((one, two, three, min(three, int(best[1]))), (first, int(where[0]), int(where[1])))
