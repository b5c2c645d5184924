"""A bound for trees of at most four leaves: errors on disjoint sets of rows add up, and in a plane they can be counted exactly.

Rows that agree in some columns often lie in a plane of the feature space. There a hyperplane is a line, the ways in which lines part
N points are at most N (N - 1) / 2 + 1, and the least errors of a tree with one, two, three or four leaves follow from the counts of
all pairs of them (`trainer.families.oblique.lines`). No tree makes fewer errors on all rows than the sum over disjoint sets.

Directions and sides are exact integers: columns with at most four decimals and a range of at most 2^20 units.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.families.oblique.instance import DepthTwoErrors
from trainer.families.oblique.lines import Roots, least_errors, ways

PACKING_SECONDS = 5.0  # seconds without any set that helps
LEAST = 3  # points of a set: fewer are never parted wrongly
MAX_SET_POINTS = 200  # points of one set; larger ones are dealt out into several
RANGE = 1 << 20
BESIDE = 1e-9  # of the range; a hundredth of the margin that planes keep
DECIMALS = 4
MOST_CHOICES = 120  # sets of columns that are tried


def as_integers(X: FloatArray) -> list[CountArray | None]:
    """Each column in its smallest decimal unit from its least value, int64, or None if it has more decimals or is too wide."""
    found: list[CountArray | None] = []
    for column in X.T:
        found.append(None)
        for decimals in range(DECIMALS + 1):
            scaled = column * 10.0**decimals
            near = np.rint(scaled)
            if np.abs(scaled).max(initial=0.0) > 1 << 40:
                break
            # the decimals that the values were written as, and no others
            if (near / 10.0**decimals == column).all():
                units = near.astype(np.int64)
                units -= units.min()
                # rows are parted as the binary numbers that they are: far from 0 these lie beside their decimals
                beside = np.abs((column - column.min()) - units / 10.0**decimals).max()
                if int(units.max()) <= RANGE and beside <= BESIDE * np.ptp(column):
                    found[-1] = units
                break
    return found


def plane_of(units: list[CountArray | None], X: FloatArray, points: CountArray) -> tuple[int, int] | None:
    """Two columns from which all others follow by affine functions on the points, or None. The second is -1 if the points lie on a line."""
    here = X[points]
    varying = np.flatnonzero((here != here[0]).any(axis=0)).tolist()
    columns = [units[h] for h in varying]
    if not varying or any(c is None for c in columns):
        return None
    some = here[: len(varying) + 8, varying] - here[0, varying]
    if (
        np.linalg.matrix_rank(some / np.ptp(here[:, varying], axis=0)) > 2
    ):  # saves exact work where rounding does not matter
        return None
    table = np.array([c[points] for c in columns if c is not None]).astype(object)
    table = table - table[:, :1]
    one = int(np.flatnonzero(table[0] != 0)[0])
    for second in range(1, len(varying)):
        cross = table[0, one] * table[second] - table[second, one] * table[0]
        if not (cross != 0).any():
            continue
        two = int(np.flatnonzero(cross != 0)[0])
        for other in table[1:]:  # det of three differences is 0
            minor = table[0, one] * other[two] - table[0, two] * other[one]
            turn = table[second, one] * other[two] - table[second, two] * other[one]
            area = table[0, one] * table[second, two] - table[0, two] * table[second, one]
            if (table[0] * turn - table[second] * minor + other * area != 0).any():
                return None
        return varying[0], varying[second]
    return varying[0], -1


class Packing:
    """Disjoint sets in planes, found column by column; `X` (P, m) in the columns' own units, `counts` (P, K).

    Sets are chosen for trees of at most `leaves` leaves.
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
        self.own = counts.sum(axis=1) - counts.max(axis=1)
        self.known: dict[bytes, DepthTwoErrors | None] = {}

    def everything(self) -> DepthTwoErrors | None:
        """All points as one set with the best trees, or None if they are too many or in no plane."""
        return self._solve(np.arange(len(self.X)), trees=True) if LEAST <= len(self.X) <= MAX_SET_POINTS else None

    def best(self) -> tuple[DepthTwoErrors, ...]:
        """Sets that give more errors than equal rows do: the best choice of columns first, then others for the rows left over."""
        chosen: list[DepthTwoErrors] = []
        free = np.ones(len(self.X), bool)
        while not self.stopped():
            best: list[DepthTwoErrors] = []
            for columns in self._choices():
                best = max(best, self._sets(columns, free), key=self._gain)
                if self.stopped():
                    break
            if not best:
                break
            chosen += best
            for packed in best:
                free[packed.points] = False
        return tuple(chosen)

    def _gain(self, sets: list[DepthTwoErrors]) -> int:
        return sum(s.errors[self.leaves - 1] - int(self.own[s.points].sum()) for s in sets)

    def _choices(self) -> Iterator[tuple[int, ...]]:
        """Sets of columns with values that are held fixed, small sets first."""
        m = self.X.shape[1]
        every = itertools.chain.from_iterable(itertools.combinations(range(m), k) for k in range(m - 1))
        return itertools.islice(every, MOST_CHOICES)

    def _sets(self, held: tuple[int, ...], free: BoolArray) -> list[DepthTwoErrors]:
        """The sets of free points that agree in the held columns, lie in a plane, and gain something."""
        found: list[DepthTwoErrors] = []
        for members in self._agreeing(np.flatnonzero(free), held):
            parts = -(-len(members) // MAX_SET_POINTS)
            for part in range(parts):
                if self.stopped():
                    return found
                packed = self._solved(members[part::parts])
                if packed is not None and self._gain([packed]) > 0:
                    found.append(packed)
                    self.gained = True
        return found

    def _agreeing(self, points: CountArray, held: tuple[int, ...]) -> Iterator[CountArray]:
        """The points that agree in the held columns, if they are enough."""
        group = np.zeros(len(points), np.int64)
        for column in held:
            values = self.codes[points, column]
            group = np.unique(group * (int(values.max(initial=0)) + 1) + values, return_inverse=True)[1].ravel()
        size = np.bincount(group, minlength=1)
        order = np.argsort(group, kind="stable")
        ends = np.cumsum(size)
        for g in np.flatnonzero(size >= LEAST).tolist():
            yield points[order[ends[g] - size[g] : ends[g]]]

    def _solved(self, points: CountArray) -> DepthTwoErrors | None:
        """The set with its least errors, or None if it is not a plane."""
        key = points.tobytes()
        if key not in self.known:
            self.known[key] = self._solve(points)
        return self.known[key]

    def _solve(self, points: CountArray, trees: bool = False) -> DepthTwoErrors | None:
        axes = plane_of(self.units, self.X, points)
        if axes is None:
            return None
        x, y = (self.units[h] if h >= 0 else None for h in axes)
        assert x is not None
        sides = ways(x[points], np.zeros(len(points), np.int64) if y is None else y[points])
        roots = Roots(sides, self.counts[points])
        least = least_errors(roots, self.limit)  # not its patience: the set may be the first that helps
        if least is None:
            return None
        nodes = tuple(roots.nodes(root, t) for t, root in enumerate(least.roots, start=2)) if trees else ()
        return DepthTwoErrors(points, least.errors, nodes)
