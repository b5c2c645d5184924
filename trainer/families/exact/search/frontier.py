"""Find the fewest errors for every number of leaves, each proved.

The recurrence E(D, h, t) over height and leaves (Demirovic et al. 2022) gives the optimum of every leaf budget and penalty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels import frontier as dp_frontier
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.kernels.depth2_signed import class_differences
from trainer.families.exact.kernels.depth3 import PairBudget
from trainer.families.exact.search.memo import DEFAULT_OPTIONS, ExactOptions
from trainer.families.exact.search.search import UNLIMITED, ExactSearch, begin_search, useful_depth
from trainer.kernels.members import members
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits
from trainer.tree.shapes import Shape, stump


@dataclass(frozen=True, kw_only=True)
class FrontierPoint:
    """The tree with the fewest errors among those with at most `budget` leaves; it has `leaves` leaves."""

    budget: int
    leaves: int
    errors: int
    bound: int  # no tree with at most `budget` leaves has fewer errors
    shape: Shape


@dataclass(frozen=True)
class _Vector:
    best: np.ndarray  # entry t is the fewest errors with at most t + 1 leaves
    bound: np.ndarray
    choice: np.ndarray  # (t, 3): feature and leaves of both sides; feature -1 means a leaf
    inner: np.ndarray | None = None  # (t, 2), only for height two: features of the children
    below: _Vector | None = None  # the vector of the same rows at the height below


class FrontierSearch:
    """The recurrence with equivalent-point, class and similarity bounds, and a cache by rows."""

    def __init__(self, search: ExactSearch, most: int) -> None:
        self.search = search
        self.most = most
        self.memo: dict[tuple[int, bytes], _Vector] = {}

    def solve(self, rows: np.ndarray, height: int, stoppable: bool = True) -> _Vector:
        """Return the fewest errors of `rows` for 1 to 2^height leaves."""
        key = (height, members(rows, len(self.search.instance.rows)).tobytes())
        if key in self.memo:
            return self.memo[key]
        self.search.nodes += 1
        node = self.search.prepare(rows)
        small = height <= 2 or not len(node.features)
        vector = self._solve_small(node, height) if small else self._solve_large(rows, node, height, stoppable)
        if len(self.memo) * (len(key[1]) + 200 + 72 * (1 << height)) > self.search.options.memory // 2:
            self.memo.clear()
        if not (stoppable and self.search.stopped()):
            self.memo[key] = vector
        return vector

    def _solve_small(self, node: dp_node.NodeView, height: int) -> _Vector:
        g = self.search.instance
        m = len(node.features)
        size = 1 << height
        best = np.empty(size, np.int64)
        choice = np.full((size, 3), -1, np.int64)
        inner = np.full((size, 2), -1, np.int64)
        if height == 0 or m == 0:
            best[:] = int(node.totals.sum()) - int(node.totals.max())
            return _Vector(best, best, choice, inner)
        P = np.empty((g.n_classes, m, m), np.int32)
        dp_node.pair_counts(node, P)
        dp_frontier.frontier_depth2(node, P, self.search.min_leaf, height, best, choice, inner)
        is_split = choice[:, 0] >= 0
        choice[is_split, 0] = node.features[choice[is_split, 0]]
        below = inner >= 0
        inner[below] = node.features[inner[below]]
        return _Vector(best, best, choice, inner)

    def _solve_large(self, rows: np.ndarray, node: dp_node.NodeView, height: int, stoppable: bool) -> _Vector:
        g = self.search.instance
        m = len(node.features)
        size = 1 << height
        P = np.empty((g.n_classes, m, m), np.int32)
        dp_node.pair_counts(node, P)
        lb = np.zeros((2, m, size // 2), np.int64)
        dp_frontier.child_frontier_bounds(node, height - 1, lb)
        below = self.solve(rows, height - 1, stoppable)
        best = np.empty(size, np.int64)
        choice = np.full((size, 3), -1, np.int64)
        best[: size // 2] = below.best
        best[size // 2 :] = below.best[-1]
        choice[: size // 2] = below.choice
        choice[size // 2 :] = below.choice[-1]
        # -2 means that the best tree has a lower height, and its splits are stored there
        choice[choice[:, 0] >= 0, 0] = -2
        positions = choice.copy()
        if height == 3:
            self._solve_height3(node, P, lb, best, positions, stoppable)
        else:
            self._search_splits(rows, node, P, lb, best, positions, height, stoppable)
        is_split = positions[:, 0] >= 0
        positions[is_split, 0] = node.features[positions[is_split, 0]]
        dp_frontier.prefer_fewer_leaves(best, positions)
        return _Vector(best, self._valid_bound(node, lb, best, stoppable), positions, below=below)

    def _valid_bound(self, node: dp_node.NodeView, lb: np.ndarray, best: np.ndarray, stoppable: bool) -> np.ndarray:
        if not (stoppable and self.search.stopped()):
            return best
        bound = np.full(len(best), int(node.totals.sum()) - int(node.totals.max()), np.int64)
        unused = np.zeros((len(best), 3), np.int64)
        for p in range(lb.shape[1]):
            dp_frontier.combine(lb[0, p], lb[1, p], 0, bound, unused, len(bound))
        np.minimum.accumulate(bound, out=bound)
        return np.minimum(bound, best)

    def _solve_height3(
        self,
        node: dp_node.NodeView,
        P: np.ndarray,
        lb: np.ndarray,
        best: np.ndarray,
        choice: np.ndarray,
        stoppable: bool,
    ) -> None:
        s = self.search
        state = np.zeros(3, np.int64)
        D = class_differences(node, P, s.min_leaf)
        before = 0
        frontier = dp_frontier.Frontier(best, choice, self.most)
        pairs = s.slice_size(node.columns.shape[1], len(node.valid))
        budget = PairBudget(pairs, s.flag if stoppable else s.no_flag)
        while True:
            dp_frontier.frontier_depth3(node, P, D, s.costs, lb, frontier, state, budget)
            s.depth_two_solves += int(state[dp_frontier.DEPTH_TWO_SOLVES]) - before
            before = int(state[dp_frontier.DEPTH_TWO_SOLVES])
            if not state[dp_frontier.STOPPED] or (stoppable and s.stopped()):
                return

    def _search_splits(
        self,
        rows: np.ndarray,
        node: dp_node.NodeView,
        P: np.ndarray,
        lb: np.ndarray,
        best: np.ndarray,
        choice: np.ndarray,
        height: int,
        stoppable: bool,
    ) -> None:
        s = self.search
        for p in range(len(node.features)):
            if stoppable and s.stopped():
                return
            parts = dp_node.split_rows(s.instance.rows, rows, int(node.features[p]))
            for side in range(2):
                if not dp_frontier.promising(lb[0, p], lb[1, p], best, self.most):
                    break
                child = self.solve(parts[side], height - 1, stoppable)
                np.maximum(lb[side, p], child.bound, out=lb[side, p])
                if stoppable and s.stopped():
                    return
                if s.similar:
                    dp_frontier.apply_similarity_by_leaves(node, P, p, side, child.best, lb)
            else:
                dp_frontier.combine(lb[0, p], lb[1, p], p, best, choice, self.most)

    def extract(self, rows: np.ndarray, height: int, leaves: int) -> Shape:
        """Return the best tree of `rows` with at most `leaves` leaves."""
        return self.tree(rows, height, self.solve(rows, height, stoppable=False), min(leaves, 1 << height))

    def tree(self, rows: np.ndarray, height: int, vector: _Vector, leaves: int) -> Shape:
        """Return the tree of `vector` for `leaves` leaves, even if the search of these rows was stopped."""
        feature, left, right = (int(v) for v in vector.choice[leaves - 1])
        if feature == -2 and vector.below is not None:
            return self.tree(rows, height - 1, vector.below, min(leaves, len(vector.below.best)))
        if feature < 0:
            return None
        if vector.inner is not None:
            zero, one = (stump(int(v)) for v in vector.inner[leaves - 1])
            return feature, zero, one
        zeros, ones = dp_node.split_rows(self.search.instance.rows, rows, feature)
        return feature, self.extract(zeros, height - 1, left), self.extract(ones, height - 1, right)


def solve_frontier(
    problem: BinaryProblem,
    *,
    max_leaves: int | None = None,
    limits: SearchLimits = UNLIMITED,
    options: ExactOptions = DEFAULT_OPTIONS,
) -> list[FrontierPoint]:
    """Find the fewest errors of trees with 1, 2, … leaves, at most `max_leaves`.

    The leaf penalty of the problem is ignored. A point is proved if its errors equal its bound.

    Returns
    -------
    list of FrontierPoint
        One for each number of leaves, ascending.
    """
    free = replace(problem, leaf_cost=Fraction(0))
    # a depth of two skips the table of depth-two optima
    search = begin_search(free, limits=limits, options=options, depth=2)
    instance = search.instance
    depth = useful_depth(free, instance)
    most = min(1 << depth, max_leaves or 1 << depth, len(instance.rows))
    frontier = FrontierSearch(search, most)
    rows = np.arange(len(instance.rows), dtype=np.int32)
    vector = frontier.solve(rows, depth)
    points = []
    for t in range(most):
        shape = frontier.tree(rows, depth, vector, t + 1)
        points.append(
            FrontierPoint(
                budget=t + 1,
                leaves=count_leaves(shape),
                errors=int(vector.best[t]),
                bound=int(vector.bound[t]),
                shape=shape,
            )
        )
    return points


class CheapestPoint(NamedTuple):
    """The cheapest point of a frontier at a leaf price; cost and bound in rows."""

    point: FrontierPoint
    cost: Fraction
    bound: Fraction


def cheapest_point(points: list[FrontierPoint], price: Fraction) -> CheapestPoint:
    """Return the cheapest point at `price` rows per leaf, and a lower bound on all trees of the frontier."""
    cost, _, index = min((p.errors + price * p.leaves, p.leaves, k) for k, p in enumerate(points))
    bound = min(_point_bound(point, price) for point in points)
    return CheapestPoint(points[index], cost, min(cost, bound))


def _point_bound(point: FrontierPoint, price: Fraction) -> Fraction:
    """Return a lower bound on the trees that one point represents."""
    leaves = point.leaves if point.bound == point.errors else point.budget
    return point.bound + price * leaves


def count_leaves(shape: Shape | int) -> int:
    """Return the number of leaves of a tree."""
    return 1 if not isinstance(shape, tuple) else count_leaves(shape[1]) + count_leaves(shape[2])
