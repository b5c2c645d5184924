"""Bound the errors of small trees by disjoint sets in planes.

Rows that agree in some columns often lie in a plane of the feature space, where a hyperplane is a line. N points have at most
N (N - 1) / 2 + 1 separations by lines, and pairs of them give the least errors of trees with up to four leaves
(`trainer.families.oblique.lines`). The sum over disjoint sets is a lower bound on the errors of such trees.

Directions and sides are exact integers: columns with at most four decimals and a range of at most 2^20 units.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.families.oblique.instance import DepthTwoErrors
from trainer.families.oblique.lines import Roots, find_least_errors, line_separations

PACKING_SECONDS = 5.0  # the search ends if no set has improved the bound by then
MIN_SET_POINTS = 3  # fewer points are always separable
MAX_SET_POINTS = 200  # larger sets are divided
MAX_UNITS = 1 << 20
DECIMAL_TOLERANCE = 1e-9  # tolerance as a share of the range: a hundredth of the margin of planes
DECIMALS = 4
MAX_COLUMN_SETS = 120


def as_integers(X: FloatArray) -> list[CountArray | None]:
    """Return each column as int64 in its smallest decimal unit, shifted to 0; None if it has too many decimals or values."""
    columns: list[CountArray | None] = []
    for column in X.T:
        columns.append(None)
        for decimals in range(DECIMALS + 1):
            scaled = column * 10.0**decimals
            near = np.rint(scaled)
            if np.abs(scaled).max(initial=0.0) > 1 << 40:
                break
            # the column must consist of exactly these decimals
            if (near / 10.0**decimals == column).all():
                units = near.astype(np.int64)
                units -= units.min()
                # splits compare binary numbers, which may differ from their decimals far from 0
                beside = np.abs((column - column.min()) - units / 10.0**decimals).max()
                if int(units.max()) <= MAX_UNITS and beside <= DECIMAL_TOLERANCE * np.ptp(column):
                    columns[-1] = units
                break
    return columns


def find_plane(units: list[CountArray | None], X: FloatArray, points: CountArray) -> tuple[int, int] | None:
    """Return two columns that determine all others on the points by affine functions, or None.

    The second is -1 if the points lie on a line.
    """
    values = X[points]
    varying = np.flatnonzero((values != values[0]).any(axis=0)).tolist()
    columns = [units[h] for h in varying]
    if not varying or any(c is None for c in columns):
        return None
    some = values[: len(varying) + 8, varying] - values[0, varying]
    # this cheap test avoids exact arithmetic for most columns
    if np.linalg.matrix_rank(some / np.ptp(values[:, varying], axis=0)) > 2:
        return None
    table = np.array([c[points] for c in columns if c is not None]).astype(object)
    table = table - table[:, :1]
    one = int(np.flatnonzero(table[0] != 0)[0])
    for second in range(1, len(varying)):
        cross = table[0, one] * table[second] - table[second, one] * table[0]
        if not (cross != 0).any():
            continue
        two = int(np.flatnonzero(cross != 0)[0])
        for other in table[1:]:  # the determinant of three differences must be 0
            minor = table[0, one] * other[two] - table[0, two] * other[one]
            turn = table[second, one] * other[two] - table[second, two] * other[one]
            area = table[0, one] * table[second, two] - table[0, two] * table[second, one]
            if (table[0] * turn - table[second] * minor + other * area != 0).any():
                return None
        return varying[0], varying[second]
    return varying[0], -1


class Packing:
    """A search for disjoint sets of points in planes; `X` (P, m) in the columns' units, `counts` (P, K).

    The sets maximise the bound of trees with at most `leaves` leaves.
    """

    def __init__(self, X: FloatArray, counts: CountArray, stopped: Callable[[], bool], leaves: int = 4) -> None:
        self.X = X
        self.counts = counts
        self.leaves = leaves
        self.limit = stopped
        self.stopped: Callable[[], bool] = lambda: (
            stopped() or (not self.gained and time.perf_counter() > self.patience)
        )
        self.gained = False
        self.patience = time.perf_counter() + PACKING_SECONDS
        self.units = as_integers(X)
        self.codes = np.column_stack([np.unique(column, return_inverse=True)[1].ravel() for column in X.T])
        self.equal_row_errors = counts.sum(axis=1) - counts.max(axis=1)
        self.known: dict[bytes, DepthTwoErrors | None] = {}

    def solve_all(self) -> DepthTwoErrors | None:
        """Solve all points as one set, with the best trees; None if they are too many or in no plane."""
        return (
            self._solve(np.arange(len(self.X)), trees=True) if MIN_SET_POINTS <= len(self.X) <= MAX_SET_POINTS else None
        )

    def best(self) -> tuple[DepthTwoErrors, ...]:
        """Return disjoint sets with more errors than equal rows cause, greedily by sets of fixed columns."""
        selected: list[DepthTwoErrors] = []
        free = np.ones(len(self.X), bool)
        while not self.stopped():
            best: list[DepthTwoErrors] = []
            for columns in self._column_sets():
                best = max(best, self._sets(columns, free), key=self._gain)
                if self.stopped():
                    break
            if not best:
                break
            selected += best
            for packed in best:
                free[packed.points] = False
        return tuple(selected)

    def _gain(self, sets: list[DepthTwoErrors]) -> int:
        return sum(s.errors[self.leaves - 1] - int(self.equal_row_errors[s.points].sum()) for s in sets)

    def _column_sets(self) -> Iterator[tuple[int, ...]]:
        """Yield sets of columns to hold fixed, small sets first."""
        m = self.X.shape[1]
        every = itertools.chain.from_iterable(itertools.combinations(range(m), k) for k in range(m - 1))
        return itertools.islice(every, MAX_COLUMN_SETS)

    def _sets(self, fixed_columns: tuple[int, ...], free: BoolArray) -> list[DepthTwoErrors]:
        """Return the sets of free points that agree in the fixed columns, lie in a plane, and improve the bound."""
        sets: list[DepthTwoErrors] = []
        for members in self._agreeing_points(np.flatnonzero(free), fixed_columns):
            parts = -(-len(members) // MAX_SET_POINTS)
            for part in range(parts):
                if self.stopped():
                    return sets
                packed = self._solve_cached(members[part::parts])
                if packed is not None and self._gain([packed]) > 0:
                    sets.append(packed)
                    self.gained = True
        return sets

    def _agreeing_points(self, points: CountArray, fixed_columns: tuple[int, ...]) -> Iterator[CountArray]:
        """Yield the sets of points that agree in the fixed columns, if they are large enough."""
        group = np.zeros(len(points), np.int64)
        for column in fixed_columns:
            values = self.codes[points, column]
            group = np.unique(group * (int(values.max(initial=0)) + 1) + values, return_inverse=True)[1].ravel()
        size = np.bincount(group, minlength=1)
        order = np.argsort(group, kind="stable")
        ends = np.cumsum(size)
        for g in np.flatnonzero(size >= MIN_SET_POINTS).tolist():
            yield points[order[ends[g] - size[g] : ends[g]]]

    def _solve_cached(self, points: CountArray) -> DepthTwoErrors | None:
        """Return the set with its least errors; None if it does not lie in a plane or the search is stopped."""
        key = points.tobytes()
        if key not in self.known:
            self.known[key] = self._solve(points)
        return self.known[key]

    def _solve(self, points: CountArray, trees: bool = False) -> DepthTwoErrors | None:
        axes = find_plane(self.units, self.X, points)
        if axes is None:
            return None
        x, y = (self.units[h] if h >= 0 else None for h in axes)
        assert x is not None
        sides = line_separations(x[points], np.zeros(len(points), np.int64) if y is None else y[points])
        roots = Roots(sides, self.counts[points])
        # check the overall limit only, since this set may be the first with a gain
        least = find_least_errors(roots, self.limit)
        if least is None:
            return None
        nodes = tuple(roots.nodes(root, t) for t, root in enumerate(least.roots, start=2)) if trees else ()
        return DepthTwoErrors(points, least.errors, nodes)
