"""Find trees whose planes keep a distance from the points.

Models with planes as variables have this class of trees. A branching keeps the distance μ if some (a, c) with Σ|a| <= 1 has a·z <= c for all points that go left and a·z >= c + μ for
all that go right (Bertsimas & Dunn, OCT-H; Boutilier, Michini & Zhou, S-OCT with large constants). All points count, also those
that are misclassified. The planes of a tree outside the class are drawn again, root first, until it is inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import highspy
import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.families.oblique.instance import BRANCH, ObliqueInstance, ObliqueTree
from trainer.families.oblique.local import LocalSearch

DISTANCE_ROUNDING = 1e-9  # added to the distance, so that planes satisfy a model's rows despite rounding
SOLVER_SLACK = 5e-5  # a solver's tolerances may reduce the distance by this
MAX_PROGRAM_CELLS = 60_000  # limit on points × features; larger problems use only random directions
SPREADS = (0.003, 0.01, 0.03, 0.1, 0.3)
DIRECTIONS = 60


def side_distance(Z: FloatArray, a: FloatArray, left: BoolArray) -> float:
    """Return the distance of the sides along a / Σ|a|; infinite if a side is empty."""
    size = float(np.abs(a).sum())
    if left.all() or not left.any():
        return np.inf
    if size == 0.0:
        return 0.0
    scores = Z @ (a / size)
    return float(scores[~left].min() - scores[left].max())


def keeps_distance(instance: ObliqueInstance, tree: ObliqueTree, least: float) -> bool:
    """Return whether every branching keeps the distance along its normal."""
    at = instance.route(tree)
    for v in tree.branches:
        visiting = instance.visits(at, v)
        Z = instance.Z[visiting]
        if side_distance(Z, tree.a[v], Z @ tree.a[v] <= tree.c[v]) < least:
            return False
    return True


def find_widest_normal(
    Z: FloatArray,
    left: BoolArray,
    need: float,
    weight: FloatArray | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> FloatArray | None:
    """Find the normal (m,), Σ|a| <= 1, of largest distance between the sides.

    With weights, minimise Σ weight * (missing distance) for the distance `need` instead. Solves a linear program over a⁺, a⁻, the two
    ends c <= d of the empty stripe, and with weights the missing distance of each point. Returns None after two seconds, if it is
    stopped, or if the normal is 0.
    """
    n, m = Z.shape
    soft = weight is not None
    sign = np.where(left, 1.0, -1.0)
    # left: a·z - c - lack <= 0; right: d - a·z - lack <= 0; Σ a⁺ + a⁻ <= 1; with weights also d - c = need
    columns = 2 * m + 2 + (n if soft else 0)
    signed = sign[:, None] * Z
    index = np.tile(np.arange(2 * m + 1 + soft), (n, 1))
    index[:, 2 * m] = np.where(left, 2 * m, 2 * m + 1)
    value = np.hstack([signed, -signed, -sign[:, None]])
    if weight is not None:
        index[:, 2 * m + 1] = 2 * m + 2 + np.arange(n)
        value = np.hstack([value, np.full((n, 1), -1.0)])
    nonzero = value != 0.0
    lp = highspy.HighsLp()
    lp.num_col_ = columns
    lp.num_row_ = n + 2
    cost = np.zeros(columns)
    if weight is None:
        cost[2 * m] = 1.0
        cost[2 * m + 1] = -1.0
    else:
        cost[2 * m + 2 :] = weight
    lp.col_cost_ = cost
    largest = max(1.0, float(np.abs(Z).max(initial=0.0)))  # |a·z| cannot exceed this
    lp.col_lower_ = np.concatenate([np.zeros(2 * m), [-largest, -largest], np.zeros(columns - 2 * m - 2)])
    lp.col_upper_ = np.concatenate(
        [np.ones(2 * m), [largest, largest], np.full(columns - 2 * m - 2, highspy.kHighsInf)]
    )
    lp.row_lower_ = np.concatenate([np.full(n + 1, -highspy.kHighsInf), [need if soft else -2.0 * largest]])
    lp.row_upper_ = np.concatenate([np.zeros(n), [1.0], [need if soft else 2.0 * largest]])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *nonzero.sum(axis=1).tolist(), 2 * m, 2]).astype(np.int32)
    lp.a_matrix_.index_ = np.concatenate([index[nonzero], np.arange(2 * m + 2)]).astype(np.int32)
    lp.a_matrix_.value_ = np.concatenate([value[nonzero], np.ones(2 * m), [-1.0, 1.0]])
    solver = highspy.Highs()
    for name, setting in (("output_flag", False), ("threads", 1), ("time_limit", 2.0)):
        solver.setOptionValue(name, setting)

    def interrupt(event: highspy.HighsCallbackEvent) -> None:
        if stopped():
            event.interrupt()

    solver.cbSimplexInterrupt.subscribe(interrupt)
    solver.passModel(lp)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    x = np.array(solver.getSolution().col_value)
    a = x[:m] - x[m : 2 * m]
    return a if np.abs(a).sum() > 1e-9 else None


def find_best_stripe(
    Z: FloatArray, directions: FloatArray, gain: CountArray, least: float
) -> tuple[int, FloatArray, float] | None:
    """Return (gain, a, c) of the empty stripe, at least `least` wide, with the largest total gain on its left side.

    `directions` (k, m) are scaled to Σ|a| = 1. `gain` int64 (n,) is the value of a point on the left minus that on the right.
    """
    sizes = np.abs(directions).sum(axis=1)
    A = directions[sizes > 1e-12] / sizes[sizes > 1e-12, None]
    if not len(A) or len(Z) < 2:
        return None
    scores = Z @ A.T
    order = np.argsort(scores, axis=0)
    ordered = np.take_along_axis(scores, order, axis=0)
    total = np.cumsum(gain[order], axis=0)[:-1]
    wide = np.diff(ordered, axis=0) >= least
    if not wide.any():
        return None
    i, j = np.unravel_index(int(np.where(wide, total, np.iinfo(np.int64).min).argmax()), total.shape)
    return int(total[i, j]), A[j], float(ordered[i, j] + (ordered[i + 1, j] - ordered[i, j]) / 2)


class DistantSearch(LocalSearch):
    """Local search that stores the best tree of the class. It first fits better trees outside the class to it."""

    def __init__(
        self,
        instance: ObliqueInstance,
        seed: int,
        flag: CountArray | None,
        least: float,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(instance, seed, flag)
        self.least = least
        self.free = replace(instance, charge=Fraction(0))
        self.stopped: Callable[[], bool] = lambda: bool(self.flag[0]) or stopped()

    def consider(self, tree: ObliqueTree) -> bool:
        """Store the tree, or its version inside the class, if it improves the incumbent."""
        tree = self.free.prune(tree)
        charge = self.instance.charge
        if self.free.value(tree) - charge * len(tree.branches) <= self.value:
            return False
        tree = tree if keeps_distance(self.instance, tree, self.least) else self.fit_to_class(tree)
        return super().consider(self.drop_coefficients(tree) if charge else tree)

    def accept(self, tree: ObliqueTree) -> bool:
        """Consider a tree of a solver, whose tolerances may reduce the distance slightly."""
        pruned = self.instance.prune(tree)
        near = keeps_distance(self.instance, pruned, self.least - SOLVER_SLACK)
        return super().consider(pruned) if near else self.consider(tree)

    def drop_coefficients(self, tree: ObliqueTree) -> ObliqueTree:
        """Remove coefficients one at a time, smallest first, where that increases the value; return the tree."""
        tree = self.instance.prune(tree) if self.instance.value(self.instance.prune(tree)) > self.value else tree
        value = self.instance.value(tree)
        for v in tree.branches:
            for h in np.argsort(np.abs(tree.a[v])):
                if self.stopped() or tree.kind[v] != BRANCH or np.count_nonzero(tree.a[v]) < 2:
                    break
                if tree.a[v, h] == 0.0:
                    continue
                trial = tree.copy()
                trial.a[v, h] = 0.0
                trial = self.fit_to_class(trial, sparse=True)
                if self.instance.value(trial) > value:
                    tree = trial
                    value = self.instance.value(trial)
        return tree

    def fit_to_class(self, tree: ObliqueTree, *, sparse: bool = False) -> ObliqueTree:
        """Return a tree of the class that routes points like `tree` where possible; its value may be lower.

        With `sparse`, coefficients of 0 stay 0.
        """
        inst = self.instance
        tree = self.instance.relabel(tree).copy()
        for v in tree.branches:
            points = np.flatnonzero(inst.visits(inst.route(tree), v))
            allowed = tree.a[v] != 0.0 if sparse else np.ones(len(tree.a[v]), bool)
            plane = None if self.stopped() else self._plane(tree, v, points, allowed)
            if plane is None:  # no plane is admissible, so send all points to the better side
                gain = self._gain(tree, v, points)
                tree.a[v] = 0.0
                tree.c[v] = 1.0 if gain.sum() >= 0 else -1.0
            else:
                tree.a[v], tree.c[v] = plane
        return inst.relabel(tree)

    def _gain(self, tree: ObliqueTree, v: int, points: CountArray) -> CountArray:
        """Return for each point its correct weight on the left of v minus that on the right, with the subtrees as they are."""
        inst = self.instance
        left, right = (inst.counts[points, tree.label[inst.route(tree, u, points)]] for u in (2 * v, 2 * v + 1))
        return np.asarray(left - right)

    def _plane(
        self, tree: ObliqueTree, v: int, points: CountArray, allowed: BoolArray
    ) -> tuple[FloatArray, float] | None:
        """Return the tree's plane if it keeps the distance, else the best of linear programs and random normals near them.

        Returns None if no plane is better than sending all points to one side.
        """
        Z = self.instance.Z[points] * allowed
        need = self.least + DISTANCE_ROUNDING
        left = Z @ tree.a[v] <= tree.c[v]
        if side_distance(Z, tree.a[v], left) >= need:
            return tree.a[v].copy(), float(tree.c[v])
        gain = self._gain(tree, v, points)
        bases: list[FloatArray] = [tree.a[v]]
        if Z.size <= MAX_PROGRAM_CELLS:
            bases += [a for a in self._programs(Z, left, gain) if a is not None]
        best = find_best_stripe(Z, self._near(bases) * allowed, gain, need)
        if best is None or best[0] < max(0, int(gain.sum())):
            return None
        return best[1], best[2]

    def _programs(self, Z: FloatArray, left: BoolArray, gain: CountArray) -> Sequence[FloatArray | None]:
        """Return normals of linear programs: hard margin for all points, then soft margins weighted by gain."""
        hard = find_widest_normal(Z, left, self.least, stopped=self.stopped)
        if hard is not None and side_distance(Z, hard, left) >= self.least + DISTANCE_ROUNDING:
            return [hard]
        care = gain != 0
        if not (gain > 0).any() or not (gain < 0).any():
            return [hard]
        prices = np.abs(gain).astype(float)
        soft = find_widest_normal(Z[care], gain[care] > 0, self.least, prices[care], self.stopped)
        if self.stopped():
            return [hard, soft]
        return [hard, soft, find_widest_normal(Z, left, 2 * self.least, np.maximum(prices, 0.1), self.stopped)]

    def _near(self, bases: Sequence[FloatArray]) -> FloatArray:
        """Return the directions and random ones near them, (k, m)."""
        directions = list(bases)
        for base in bases:
            size = float(np.abs(base).max(initial=0.0))
            if size > 0:
                noise = self.random.normal(size=(DIRECTIONS, len(base)))
                spread = np.repeat(SPREADS, DIRECTIONS // len(SPREADS))[:, None]
                directions += list(base / size + spread * noise)
        return np.array(directions)
