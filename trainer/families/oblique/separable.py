"""Test whether a hyperplane separates sets, and find minimal inseparable subsets.

Sources: Alston, Validi & Hicks (Farkas problem of a branching node); Gleeson & Ryan (vertices are minimal infeasible subsystems).

Legend     Z (P, m) points in [0, 1]^m;  L, R index sets;  a·z <= c left, > right;  λ weights of a point in both hulls
Margin     ε*(L, R) = max ε with a·z + ε <= c on L, a·z - ε >= c on R, |a_j| <= 1: half the l1 distance of the hulls.
           Solved as its dual, min Σ|p| with Σ_L λz - Σ_R λz = p, Σ_L λ = Σ_R λ = 1/2: m + 2 rows, and the row duals are (a, c).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import highspy
import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.families.oblique.exact_margin import least_distance

# options to try in turn, since an ill-scaled program may end without a verdict and another algorithm or scaling may
# give one
SOLVER_OPTIONS: tuple[dict[str, str | int | float], ...] = (
    {
        "solver": "simplex", "presolve": "off", "simplex_strategy": 1, "simplex_scale_strategy": 2,
        "primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10,
    },
    {"simplex_strategy": 4, "simplex_scale_strategy": 0},
    {"presolve": "on", "simplex_strategy": 1, "simplex_scale_strategy": 4},
    {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
)  # fmt: skip
MARGIN = 1e-7  # sets nearer than twice this count as inseparable; l1 distance in scaled units
SUPPORT = 1e-9
ROUNDING = 1e-12  # tolerance for sums of points in [0, 1]
MAX_CACHED = 20_000


@dataclass(frozen=True, eq=False)
class SeparatingPlane:
    """Points with `a @ z <= c` go left; `margin` is its distance from the points, in scaled units."""

    a: FloatArray
    c: float
    margin: float

    def left(self, Z: FloatArray) -> BoolArray:
        """Return which rows of Z go left, bool."""
        return np.asarray(Z @ self.a <= self.c)


Support = tuple[tuple[int, ...], tuple[int, ...]]  # a minimal inseparable set: its left and its right points


class _Program:
    """One margin problem in HiGHS; columns: weights λ of L, of R, then the positive and negative parts of p."""

    def __init__(self, Z: FloatArray, L: CountArray, R: CountArray) -> None:
        self.L = L
        self.R = R
        self.m = Z.shape[1]
        self.size = len(L) + len(R)
        m = self.m
        size = self.size
        # one column per point with a 1 in the balance row of its side, then the columns of p; a dense matrix for p
        # would have m² entries
        points = np.zeros((size, m + 2))
        points[:, :m] = np.concatenate([Z[L], -Z[R]])
        points[: len(L), m] = points[len(L) :, m + 1] = 1.0
        columns, rows = np.nonzero(points)
        lp = highspy.HighsLp()
        lp.num_col_ = size + 2 * m
        lp.num_row_ = m + 2
        lp.col_cost_ = np.concatenate([np.zeros(size), np.ones(2 * m)])
        lp.col_lower_ = np.zeros(size + 2 * m)
        lp.col_upper_ = np.full(size + 2 * m, highspy.kHighsInf)
        lp.row_lower_ = lp.row_upper_ = np.concatenate([np.zeros(m), [0.5, 0.5]])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lengths = np.concatenate([np.bincount(columns, minlength=size), np.ones(2 * m, np.int64)])
        lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        lp.a_matrix_.index_ = np.concatenate([rows, np.arange(m), np.arange(m)]).astype(np.int32)
        lp.a_matrix_.value_ = np.concatenate([points[columns, rows], np.full(m, -1.0), np.ones(m)])
        self.solver = solver = highspy.Highs()
        for name, value in (("output_flag", False), ("threads", 1), *SOLVER_OPTIONS[0].items()):
            solver.setOptionValue(name, value)
        solver.passModel(lp)

    def run(self) -> bool | None:
        """Return True for an optimal vertex, False for infeasible, None if HiGHS fails with all options."""
        for way in SOLVER_OPTIONS:
            for name, value in way.items():
                self.solver.setOptionValue(name, value)
            self.solver.run()
            status = self.solver.getModelStatus()
            if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kOptimal):
                return bool(status == highspy.HighsModelStatus.kOptimal)
            self.solver.clearSolver()
        return None

    @property
    def value(self) -> float:
        return float(self.solver.getInfo().objective_function_value)

    def normal(self) -> FloatArray:
        """Return the normal of the plane of largest margin: the duals of the balance rows, larger on R than on L."""
        return np.array(self.solver.getSolution().row_dual)[: self.m]

    def weights(self) -> FloatArray:
        return np.array(self.solver.getSolution().col_value)[: self.size]

    def touch_only(self) -> None:
        """Restrict the program to common points of both hulls: p = 0."""
        for j in range(self.size, self.size + 2 * self.m):
            self.solver.changeColBounds(j, 0.0, 0.0)
            self.solver.changeColCost(j, 0.0)

    def weigh(self, costs: FloatArray) -> None:
        self.solver.changeColsCost(self.size, np.arange(self.size, dtype=np.int32), costs)

    def forbid(self, j: int) -> None:
        self.solver.changeColBounds(j, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Verdict:
    """A separating plane, or None; `proved` states whether it is proved that no plane separates the sets."""

    plane: SeparatingPlane | None
    proved: bool


class Separator:
    """Separability tests over fixed points, cached by pair of sets.

    `tests`, `hits` of the cache and `undecided` tests are counted.
    """

    def __init__(self, Z: FloatArray) -> None:
        self.Z = np.ascontiguousarray(Z, np.float64)
        self.tests = self.hits = self.undecided = 0
        self.used = np.zeros(len(Z))  # number of supports that contain each point; rarely used points are preferred
        self._cache: OrderedDict[tuple[bytes, bytes], Verdict] = OrderedDict()

    def plane(self, L: Sequence[int] | CountArray, R: Sequence[int] | CountArray) -> SeparatingPlane | None:
        """Return the hyperplane of largest margin with L left and R right; None if their hulls meet or none was found.

        If a side is empty, the plane sends every point to the other side.
        """
        return self.verdict(L, R).plane

    def verdict(self, L: Sequence[int] | CountArray, R: Sequence[int] | CountArray) -> Verdict:
        """Return the same as `plane`, and whether inseparability is proved."""
        left = np.unique(np.asarray(L, np.int64))
        right = np.unique(np.asarray(R, np.int64))
        if not len(left) or not len(right):
            return Verdict(SeparatingPlane(np.zeros(self.Z.shape[1]), -1.0 if len(right) else 1.0, 1.0), False)
        key = (left.tobytes(), right.tobytes())
        if key in self._cache:
            self.hits += 1
            self._cache.move_to_end(key)
            return self._cache[key]
        verdict = self._solve(left, right)
        self._cache[key] = verdict
        if len(self._cache) > MAX_CACHED:
            self._cache.popitem(last=False)
        return verdict

    def plane_within(self, stopped: Callable[[], bool], left: CountArray, right: CountArray) -> SeparatingPlane | None:
        """Return the same as `plane` for two disjoint sets; None if it is stopped before the result."""
        program = _Program(self.Z, left, right)
        program.solver.cbSimplexInterrupt.subscribe(lambda event: event.interrupt() if stopped() else None)
        program.solver.run()
        ended = program.solver.getModelStatus()
        if ended != highspy.HighsModelStatus.kOptimal or program.value <= MARGIN:
            return None
        return self.plane_between(program.normal(), left, right)

    def _solve(self, left: CountArray, right: CountArray) -> Verdict:
        self.tests += 1
        if np.intersect1d(left, right, assume_unique=True).size:
            return Verdict(None, True)
        program = _Program(self.Z, left, right)
        if program.run() and program.value > MARGIN:
            plane = self.plane_between(program.normal(), left, right)
            if plane is not None:
                return Verdict(plane, False)
        elif self._hulls_meet(left, right, program.weights()):
            return Verdict(None, True)
        distance = least_distance(self.Z[left], self.Z[right], Fraction(MARGIN))
        if distance is not None and distance <= Fraction(MARGIN):
            return Verdict(None, True)
        self.undecided += 1
        return Verdict(None, False)

    def _hulls_meet(self, left: CountArray, right: CountArray, weights: FloatArray) -> bool:
        """Return whether the weighted means, computed again, are within twice the margin, so that the hulls meet."""
        if not np.isfinite(weights).all():
            return False
        sides = np.maximum(weights[: len(left)], 0.0), np.maximum(weights[len(left) :], 0.0)
        if min(side.sum() for side in sides) <= 0:
            return False
        difference = sides[0] @ self.Z[left] / sides[0].sum() - sides[1] @ self.Z[right] / sides[1].sum()
        return float(np.abs(difference).sum()) <= 2 * MARGIN + ROUNDING

    def plane_between(self, a: FloatArray, left: CountArray, right: CountArray) -> SeparatingPlane | None:
        """Return the plane with normal `a` halfway between the sets; None if it does not separate them."""
        low = float((self.Z[left] @ a).max())
        high = float((self.Z[right] @ a).min())
        c = low + (high - low) / 2
        return SeparatingPlane(a, c, (high - low) / 2) if low <= c < high and high - low > 1e-12 else None

    def supports(self, L: Sequence[int] | CountArray, R: Sequence[int] | CountArray, most: int = 5) -> list[Support]:
        """Return up to `most` minimal inseparable subsets of L and R; none if L and R are separable or undecided.

        Each is a vertex of the set of common points of the hulls. Costs avoid points used before, and one point of each set is removed before
        the next. Every set is tested again by itself, so that rounding cannot produce a separable one.
        """
        left = np.unique(np.asarray(L, np.int64))
        right = np.unique(np.asarray(R, np.int64))
        if not len(left) or not len(right):
            return []
        both = np.intersect1d(left, right)
        if both.size:
            return [((int(i),), (int(i),)) for i in both[:most]]
        program = _Program(self.Z, left, right)
        if not program.run() or program.value > MARGIN:  # only a solved program proves inseparability
            return []
        points = np.concatenate([left, right])
        supports: list[Support] = []
        first = program.weights()
        program.touch_only()
        for _ in range(most):
            program.weigh(self.used[points] + 1e-3)
            if not program.run():
                break
            support = self._checked_support(points, len(left), program.weights())
            if support is None:
                break
            if support not in supports:
                supports.append(support)
            members = np.array(support[0] + support[1])
            self.used[members] += 1
            program.forbid(int(np.flatnonzero(points == members[np.argmax(self.used[members])])[0]))
        if not supports:
            support = self._checked_support(points, len(left), first)
            if support is None and self.verdict(left, right).proved:
                support = self._filter(left, right)
            supports = [] if support is None else [support]
        return supports

    def _checked_support(self, points: CountArray, split: int, weights: FloatArray) -> Support | None:
        """Return the points of positive weight as a support; None unless they are proved inseparable."""
        members = np.flatnonzero(weights > SUPPORT)
        support = (
            tuple(int(i) for i in points[members[members < split]]),
            tuple(int(i) for i in points[members[members >= split]]),
        )
        return support if support[0] and support[1] and self.verdict(*support).proved else None

    def _filter(self, left: CountArray, right: CountArray) -> Support:
        """Return a minimal inseparable set: remove one point at a time while inseparability is proved."""
        sides = [list(map(int, left)), list(map(int, right))]
        for side in sides:
            for point in list(side):
                side.remove(point)
                if not side or not self._solve(np.array(sides[0]), np.array(sides[1])).proved:
                    side.append(point)
        return tuple(sorted(sides[0])), tuple(sorted(sides[1]))
