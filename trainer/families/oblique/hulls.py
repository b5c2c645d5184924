"""Test sets of points for separability, with integer weights as certificates.

Sources: Farkas; Gleeson & Ryan (a vertex of the set of common points is a minimal inseparable set).

Legend     points p, columns j;  λ weights of the points of L, μ of those of R
Separable  with `least` 0: Σλx = Σμx with Σλ = Σμ for no weights, x the decimals that the table holds;
           otherwise: max_j |Σλz - Σμz| >= least for all weights with Σλ = Σμ = 1, z scaled
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import highspy
import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray

MEETING_TOLERANCE = 1e-9  # in the linear program, hulls nearer than this count as meeting; in scaled units
SUPPORT_TOLERANCE = 1e-9
WEIGHT_SCALE = 10**7  # integer weights of an approximate mean are its weights multiplied by this
DISTANCE_TOLERANCE = 1e-8  # safety margin by which such means must stay below the distance


@dataclass(frozen=True, eq=False)
class Meeting:
    """Positive integer weights of points of two sides whose weighted means coincide, or are nearer than `least`."""

    left: dict[int, int]
    right: dict[int, int]


@dataclass(frozen=True, eq=False)
class Separation:
    """Points left and right of a hyperplane; points too near to it are on neither side."""

    left: BoolArray
    right: BoolArray


class Hulls:
    """Separability tests over fixed points: X (P, m) in the units of the table, and Z (P, m) the same scaled."""

    def __init__(self, X: FloatArray, Z: FloatArray, least: float, stop: Callable[[], bool]) -> None:
        self.X = X
        self.Z = Z
        self.least = least
        self.stop = stop
        self.tests = self.work = 0

    def test(self, left: CountArray, right: CountArray) -> Meeting | Separation | None:
        """Return the certificate that two sets (indices, not empty) meet, or a separation.

        Returns None if floating point or a stop leaves it open.
        """
        self.tests += 1
        self.work += (len(left) + len(right)) * (self.Z.shape[1] + 2)
        weights, normal, distance = self._nearest(left, right)
        if weights is None:
            return None
        if distance < (self.least - DISTANCE_TOLERANCE if self.least else MEETING_TOLERANCE):
            return self._make_meeting(left, right, weights)
        return self._make_separation(left, right, normal)

    def _nearest(self, left: CountArray, right: CountArray) -> tuple[FloatArray | None, FloatArray, float]:
        """Return weights of the nearest points of the hulls, the normal, and their distance, l∞ with `least`, else l1.

        The weights are None if the program was not solved.
        """
        m = self.Z.shape[1]
        size = len(left) + len(right)
        points = np.concatenate([self.Z[left], -self.Z[right]])
        sums = np.zeros((size, 2))
        sums[: len(left), 0] = 1.0
        sums[len(left) :, 1] = 1.0
        if self.least:
            program = _Columns(np.hstack([points, -points, sums]), np.append(np.full(2 * m, -1.0), [0.0, 0.0])[None])
            lower = np.full(2 * m, -highspy.kHighsInf)
        else:  # a dense matrix for the parts of the difference would have m² entries
            program = _Columns(np.hstack([points, sums]))
            lower = np.zeros(m)
            program.units(np.full(m, -1.0))
            program.units(np.ones(m))
        solver = program.solver(size, np.append(lower, [1.0, 1.0]), np.append(np.zeros(len(lower)), [1.0, 1.0]))
        solver.cbSimplexInterrupt.subscribe(lambda event: event.interrupt() if self.stop() else None)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None, np.zeros(m), 0.0
        solution = solver.getSolution()
        dual = np.array(solution.row_dual)
        normal = dual[:m] - dual[m : 2 * m] if self.least else dual[:m]
        return np.array(solution.col_value)[:size], normal, float(solver.getInfo().objective_function_value)

    def _make_separation(self, left: CountArray, right: CountArray, normal: FloatArray) -> Separation | None:
        """Return the sides of all points; None if rounding leaves the sets inseparable.

        Points within the distance `least` around the middle of the stripe are on neither side.
        """
        for a in (normal, -normal):
            size = float(np.abs(a).sum())
            scores = self.Z @ (a / size if size and self.least else a)
            low = float(scores[left].max())
            high = float(scores[right].min())
            if high - low > self.least + 1e-11:
                middle = (low + high) / 2
                return Separation(scores <= middle - self.least / 2, scores > middle + self.least / 2)
        return None

    def _make_meeting(self, left: CountArray, right: CountArray, weights: FloatArray) -> Meeting | None:
        support = np.flatnonzero(weights > SUPPORT_TOLERANCE)
        one = left[support[support < len(left)]]
        two = right[support[support >= len(left)] - len(left)]
        if not len(one) or not len(two):
            return None
        integers = (
            self._round_weights(weights[support])
            if self.least
            else self._exact_weights(np.concatenate([one, two]), len(one))
        )
        if integers is None:
            return None
        sides = (
            dict(zip(one.tolist(), integers, strict=False)),
            dict(zip(two.tolist(), integers[len(one) :], strict=True)),
        )
        return Meeting(*({p: w for p, w in side.items() if w} for side in sides))

    def _round_weights(self, weights: FloatArray) -> list[int]:
        """Round weights to positive integers; the sums of both sides may differ."""
        return [max(1, round(w * WEIGHT_SCALE)) for w in weights.tolist()]

    def _exact_weights(self, points: CountArray, split: int) -> list[int] | None:
        """Return the positive weights for which the means of the first `split` points and of the others coincide.

        Returns None unless they are unique and positive.
        """
        self.work += len(points) ** 3
        sign = [1] * split + [-1] * (len(points) - split)
        columns = [to_integers(column) for column in self.X[points].T.tolist()]
        rows = [[s * x for s, x in zip(sign, column, strict=True)] for column in columns if any(column)]
        values = unique_solution([*rows, sign], self.stop)
        if values is None:
            return None
        if values[0] < 0:
            values = [-v for v in values]
        if min(values) <= 0:
            return None
        scale = math.lcm(*(v.denominator for v in values))
        integers = [int(v * scale) for v in values]
        shared = math.gcd(*integers)
        return [w // shared for w in integers]


def to_integers(column: Sequence[float]) -> list[int]:
    """Convert numbers, as decimals, to integers up to scale and shift. The first becomes 0."""
    written = [Fraction(repr(value)) for value in column]
    scale = math.lcm(*(w.denominator for w in written))
    integers = [int(w * scale) for w in written]
    return [x - integers[0] for x in integers]


def unique_solution(rows: Sequence[Sequence[int]], stop: Callable[[], bool]) -> list[Fraction] | None:
    """Return x with rows · x = 0 if it is unique up to scale; else None, also if it is stopped."""
    width = len(rows[0])
    pivots: dict[int, list[Fraction]] = {}
    for row in rows:
        if stop():
            return None
        reduced = [Fraction(x) for x in row]
        for column, pivot_row in pivots.items():
            if reduced[column]:
                share = reduced[column]
                reduced = [x - share * y for x, y in zip(reduced, pivot_row, strict=True)]
        column = next((j for j, x in enumerate(reduced) if x), -1)
        if column < 0:
            continue
        unit = [x / reduced[column] for x in reduced]
        for other, pivot_row in pivots.items():
            if pivot_row[column]:
                share = pivot_row[column]
                pivots[other] = [x - share * y for x, y in zip(pivot_row, unit, strict=True)]
        pivots[column] = unit
    free = [j for j in range(width) if j not in pivots]
    if len(free) != 1:
        return None
    values = [Fraction(0)] * width
    values[free[0]] = Fraction(1)
    for column, pivot_row in pivots.items():
        values[column] = -pivot_row[free[0]]
    return values


class _Columns:
    """A linear program that is built from blocks of columns (k, rows)."""

    def __init__(self, *blocks: FloatArray) -> None:
        self.index = list[CountArray]()
        self.value = list[FloatArray]()
        self.length = list[CountArray]()
        self.rows = blocks[0].shape[1]
        for block in blocks:
            columns, rows = np.nonzero(block)
            self._add(rows, block[columns, rows], np.bincount(columns, minlength=len(block)))

    def units(self, values: FloatArray) -> None:
        """Add a column for each of the first rows, with one value in it."""
        self._add(np.arange(len(values)), values, np.ones(len(values), np.int64))

    def _add(self, index: CountArray, value: FloatArray, length: CountArray) -> None:
        self.index.append(index)
        self.value.append(value)
        self.length.append(length)

    def solver(self, size: int, lower: FloatArray, upper: FloatArray) -> highspy.Highs:
        """Return the solver with the program. The first `size` columns cost 0, the others 1; all variables are at least 0."""
        length = np.concatenate(self.length)
        lp = highspy.HighsLp()
        lp.num_row_ = self.rows
        lp.num_col_ = len(length)
        lp.col_cost_ = np.append(np.zeros(size), np.ones(len(length) - size))
        lp.col_lower_ = np.zeros(len(length))
        lp.col_upper_ = np.full(len(length), highspy.kHighsInf)
        lp.row_lower_ = lower
        lp.row_upper_ = upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.append(0, np.cumsum(length)).astype(np.int32)
        lp.a_matrix_.index_ = np.concatenate(self.index).astype(np.int32)
        lp.a_matrix_.value_ = np.concatenate(self.value)
        solver = highspy.Highs()
        for name, value in (
            ("output_flag", False),
            ("threads", 1),
            ("solver", "simplex"),
            ("presolve", "off"),
            ("primal_feasibility_tolerance", 1e-10),
            ("dual_feasibility_tolerance", 1e-10),
        ):
            solver.setOptionValue(name, value)
        solver.passModel(lp)
        return solver
