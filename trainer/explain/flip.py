"""Find and prove the smallest change of a row to another answer.

This is a counterfactual over all leaves. If each split uses one column, columns are independent: in each leaf a column stays or
takes its nearest permitted value, and the cheapest leaf wins. With weighted sums, one changed column is solved in closed form. If
one is not enough, or several may be cheaper, a small mixed-integer program is solved for each leaf (`program`).

An empty cell stays empty, or gets a value if that is permitted: one changed column of size 0. In a leaf with sums, the choices of
cells to fill are compared, since an empty cell can decide a sum.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trainer.data.column_statistics import ColumnStatistics
from trainer.dtypes import FloatArray
from trainer.errors import SolverError
from trainer.explain.least import COLUMNS, TOTAL
from trainer.explain.permission import FREE, Permission
from trainer.explain.program import SECONDS, CheapestRow, cheapest
from trainer.explain.region import (
    UNKNOWN,
    Region,
    Span,
    decimals_for,
    full_spans,
    nearest,
    permitted_codes,
    regions,
    used_by,
)
from trainer.explain.statistics import step_above, step_at_most
from trainer.table import ColumnKind
from trainer.tree.nodes import Tree
from trainer.tree.splits.base import VALUE

ALTERNATIVES = 3
MOST_FILLED = 6  # for up to this many optional empty cells, all of their subsets are compared
NUDGES = 64  # limit on doublings of the step when searching beyond a rounded boundary


@dataclass(frozen=True, kw_only=True)
class Flip:
    """A changed row (columns,), its leaf, the changed columns, the sum of their scaled changes, and whether it is proved."""

    row: FloatArray
    leaf: int
    columns: tuple[int, ...]
    distance: float
    proved: bool = True


@dataclass(frozen=True, kw_only=True)
class FilledRow:
    """A row with some of its empty cells filled: `filled` are their columns, and `row` (columns,) has a value for each."""

    row: FloatArray
    filled: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Search:
    """A leaf to search with a program, and a lower bound on the change: a number of columns, or a sum of changes."""

    least: float
    region: Region
    start: FilledRow


@dataclass(frozen=True, kw_only=True)
class FlipResult:
    """The smallest flip, or None with the `reason`, and alternatives that change other columns, best first."""

    flip: Flip | None
    alternatives: tuple[Flip, ...] = ()
    reason: str | None = None


class Flipper:
    """Search for flips in one tree, with the statistics of its training rows and a permission for each column.

    `least` is the order of flips: COLUMNS compares the number of columns, then the sum of changes; TOTAL compares the sum alone.
    """

    def __init__(
        self,
        tree: Tree,
        statistics: Sequence[ColumnStatistics],
        permissions: Sequence[Permission] | None = None,
        *,
        seconds: float = math.inf,
        least: str = COLUMNS,
    ) -> None:
        self.least = least
        self.until = time.monotonic() + seconds  # end of the time that the programs of all rows share
        self.tree = tree
        self.statistics = tuple(statistics)
        self.permissions = tuple(permissions or (FREE,) * len(tree.schema))
        self.regions = regions(tree, self.statistics, self.permissions)
        self.full = {
            j: full_spans(tree, j, self.statistics[j], self.permissions[j])
            for j in tree.used_columns
            if tree.schema[j].kind is not ColumnKind.CATEGORICAL
        }

    def find(self, row: FloatArray, target: int | None = None) -> FlipResult:
        """Find the smallest change of a row that leads to another class.

        Parameters
        ----------
        row : float64 array of shape (columns,)
            The row, NaN where a cell is empty.
        target : int, optional
            The code of the class to reach; None: any other than the row's own.

        Returns
        -------
        FlipResult
        """
        row = self.with_unknown_categories(np.asarray(row, np.float64).reshape(-1))
        names = self.tree.classes
        empty = [self.tree.schema[j].name for j in self.tree.refused_columns if math.isnan(row[j])]
        if empty:
            return FlipResult(flip=None, reason=f"The column '{empty[0]}' has no value, and the tree needs one.")
        label = int(self.tree.predict(row.reshape(1, -1))[0])
        if target == label:
            return FlipResult(flip=None, reason=f"The answer is already {names[label]}.")
        targets = [r for r in self.regions if (r.label != label if target is None else r.label == target)]
        if not targets:
            what = "another class" if target is None else names[target]
            return FlipResult(flip=None, reason=f"No leaf of the tree says {what}.")
        flips, settled = self._candidates(row, targets)
        distinct = _drop_supersets(flips, self._order)
        if not distinct:
            return FlipResult(flip=None, reason=self._no_flip_reason(target, targets, settled))
        return FlipResult(flip=distinct[0], alternatives=tuple(distinct[1 : ALTERNATIVES + 1]))

    def with_unknown_categories(self, row: FloatArray) -> FloatArray:
        """Return the row with empty categorical cells that are not refused set to UNKNOWN, which takes the same path."""
        empty = [j for j in self.tree.used_columns if self.tree.schema[j].kind is ColumnKind.CATEGORICAL]
        changed = row.copy()
        for j in set(empty) - set(self.tree.refused_columns):
            changed[j] = UNKNOWN if math.isnan(row[j]) else row[j]
        return changed

    def _no_flip_reason(self, target: int | None, targets: Sequence[Region], settled: bool) -> str:
        if not settled:
            return "No change was found, but it is not proved that none exists."
        what = "another answer" if target is None else f"the answer {self.tree.classes[target]}"
        has_sums = any(r.sums for r in targets)
        limit = " within three times the range of the training rows" if has_sums else ""
        return f"No permitted change{limit} leads to {what}: all {len(targets)} leaves that give it were compared."

    def _candidates(self, row: FloatArray, targets: Sequence[Region]) -> tuple[list[Flip], bool]:
        flips: list[Flip] = []
        later: list[Search] = []
        all_starts = True
        for region in targets:
            starts, complete = self._starts(row, region)
            all_starts = all_starts and complete
            for start in starts:
                forced = [j for j in (*region.spans, *region.codes) if not region.holds(j, start.row[j])]
                if any(self.permissions[j].never or math.isnan(start.row[j]) for j in forced):
                    continue
                if not region.sums:
                    flips += self._cheapest_without_sums(row, start, region, forced)
                    continue
                single_flips = self._one_column_flips(row, start, region, forced)
                flips += single_flips
                if self.least == TOTAL:
                    floor = self._floor(start.row, region, forced)
                    later.append(Search(least=floor, region=region, start=start))
                elif not single_flips:
                    least = max(2, len(start.filled) + len(forced))
                    later.append(Search(least=least, region=region, start=start))
        return self._programs(row, flips, later, settled=all_starts)

    def _starts(self, row: FloatArray, region: Region) -> tuple[list[FilledRow], bool]:
        """Return the start rows of the search in a leaf, one for each choice of empty cells to fill.

        Cells that the leaf does not allow to be empty are always filled; others only if a sum reads them. The second value is True
        if all choices are covered.
        """
        empty = [j for j in used_by(region) if math.isnan(row[j]) and self.permissions[j].fill]
        required = [j for j in empty if not region.holds(j, row[j])]
        read = {f for s in region.sums for f, _, _ in s.terms}
        further = [j for j in empty if j in read and j not in required]
        choices = itertools.chain.from_iterable(
            itertools.combinations(further[:MOST_FILLED], size) for size in range(min(len(further), MOST_FILLED) + 1)
        )
        rows = (self._start(row, region, (*required, *more)) for more in choices)
        return [start for start in rows if start is not None], len(further) <= MOST_FILLED

    def _start(self, row: FloatArray, region: Region, filled: Sequence[int]) -> FilledRow | None:
        """Return `row` with the columns in `filled` set to values that lead to the leaf; None if a column has no such value.

        The value is nearest to the column's fill value, or else to the middle of its training values.
        """
        changed = row.copy()
        for j in filled:
            value = self.usual_value(j)
            spans = region.spans.get(j, self.full[j])
            if not any(span.low < value <= span.high for span in spans):
                closest = nearest(spans, value, FREE)
                if closest is None:
                    return None
                value = closest
            changed[j] = value
        return FilledRow(row=changed, filled=frozenset(filled))

    def usual_value(self, j: int) -> float:
        """Return a typical value of a column, on its steps: the fill value or the middle of the training range."""
        fill = self.tree.schema[j].fill
        statistics = self.statistics[j]
        value = fill if fill is not None else (statistics.low + statistics.high) / 2
        decimals = decimals_for(self.tree, j, statistics, self.permissions[j])
        return step_at_most(value if math.isfinite(value) else 0.0, decimals)

    def _order(self, flip: Flip) -> tuple[float, float, int]:
        """Return the sort key of a flip; sums are rounded, so that ties are broken by columns."""
        if self.least == TOTAL:
            return float(f"{flip.distance:.12g}"), len(flip.columns), flip.leaf
        return len(flip.columns), flip.distance, flip.leaf

    def _floor(self, row: FloatArray, region: Region, forced: Sequence[int]) -> float:
        """Return a lower bound on the size of a change into this leaf: that of the `forced` columns.

        Returns infinity if one of them has no permitted value.
        """
        parts = []
        for j in forced:
            value = self._nearest(row, region, j)
            if value is None:
                return math.inf
            parts.append(self._size(row, j, value))
        return math.fsum(parts)

    def _programs(
        self, row: FloatArray, flips: list[Flip], later: list[Search], *, settled: bool
    ) -> tuple[list[Flip], bool]:
        """Search the leaves with sums by programs, in order of their lower bounds, while they can improve on `flips`.

        With the order TOTAL no leaf is searched beyond the best known sum.
        """
        by_sum = self.least == TOTAL
        for search in sorted(later, key=lambda item: item.least):
            least = search.least
            best = min((self._order(f)[0] for f in flips), default=math.inf)
            if least == math.inf or (best <= least if by_sum else best < least):
                continue
            left = self.until - time.monotonic()
            if left <= 0:
                settled = False
                break
            answer = self._cheapest(search, min(left, SECONDS), best if by_sum else None)
            if answer.row is not None:
                flips.append(self._flip(row, answer.row, search.region.leaf, answer.proved))
            settled = settled and answer.proved  # a leaf without a proof might contain a smaller change
        if not settled:
            flips = [Flip(**{**vars(f), "proved": False}) for f in flips]
        return flips, settled

    def _cheapest(self, search: Search, seconds: float, below: float | None) -> CheapestRow:
        """Solve the program of a leaf; if the solver rejects its numbers, nothing is proved."""
        start = search.start
        allowed = list(self.permissions)
        statistics = list(self.statistics)
        # the program may choose any value for a filled cell at no cost; `_order` and `_floor` count these cells
        for j in start.filled:
            allowed[j] = replace(allowed[j], up=True, down=True)
            statistics[j] = replace(statistics[j], scale=math.inf)
        try:
            return cheapest(self.tree, search.region, start.row, statistics, allowed, self.full, seconds, below=below)
        except SolverError:
            return CheapestRow(row=None, proved=False)

    def _cheapest_without_sums(
        self, row: FloatArray, start: FilledRow, region: Region, forced: Sequence[int]
    ) -> list[Flip]:
        """Return the cheapest flip into a leaf without sums: each forced column takes its nearest permitted value."""
        changed = start.row.copy()
        for j in forced:
            value = self._nearest(start.row, region, j)
            if value is None:
                return []
            changed[j] = value
        return self.verify(row, changed, region)

    def _nearest(self, row: FloatArray, region: Region, j: int) -> float | None:
        if j in region.spans:
            return nearest(region.spans[j], float(row[j]), self.permissions[j])
        codes = permitted_codes(self.tree, j, region, self.permissions[j])
        return float(codes[0]) if codes else None

    def _one_column_flips(self, row: FloatArray, start: FilledRow, region: Region, forced: Sequence[int]) -> list[Flip]:
        """Return the cheapest flip of each column that alone can reach a leaf with sums."""
        changed = {*start.filled, *forced}
        if len(changed) > 1:
            return []
        if start.filled:
            return self._fill_one_cell(row, start, region)
        flips: list[Flip] = []
        for j in forced or used_by(region):
            if self.permissions[j].never or math.isnan(row[j]):
                continue
            if self.tree.schema[j].kind is ColumnKind.CATEGORICAL:
                values: list[float] = [float(c) for c in permitted_codes(self.tree, j, region, self.permissions[j])]
            else:
                values = self._numbers(row, region, j)
            rows = (_with(row, j, value) for value in values if value != row[j])
            reaching = [flip for changed in rows for flip in self.verify(row, changed, region)]
            flips += sorted(reaching, key=self._order)[:1]
        return flips

    def _fill_one_cell(self, row: FloatArray, start: FilledRow, region: Region) -> list[Flip]:
        """Return the flip that fills one empty cell so that the row reaches the leaf, if possible with the typical value."""
        (j,) = start.filled
        usual = float(start.row[j])
        values = [usual, *sorted(self._numbers(start.row, region, j, FREE), key=lambda value: abs(value - usual))]
        flips = (self.verify(row, _with(start.row, j, value), region) for value in values)
        return next((reaching for reaching in flips if reaching), [])

    def _numbers(self, row: FloatArray, region: Region, j: int, permission: Permission | None = None) -> list[float]:
        """Return the nearest values of column `j` above and below the row's value, in each span that the sums allow."""
        decimals = decimals_for(self.tree, j, self.statistics[j], self.permissions[j])
        current = float(row[j])
        permission = permission or self.permissions[j]
        low = -math.inf
        high = math.inf
        for s in region.sums:
            a = math.fsum(c for f, level, c in s.terms if f == j and level == VALUE)
            if a == 0 or s.is_decided_by_gap(row):
                continue
            values = zip(s.values(row), s.terms, strict=True)
            others = math.fsum(c * value for value, (f, level, c) in values if (f, level) != (j, VALUE))
            bound = (s.threshold - others) / a
            if (a > 0) == s.left:
                high = min(high, bound)
            else:
                low = max(low, bound)
        numbers: list[float] = []
        for span in region.spans.get(j, self.full[j]):
            bottom = max(low, span.low)
            top = min(high, span.high)
            close = 1e-9 * max(1.0, abs(current))  # the bound of a sum is rounded, so allow a small tolerance
            if permission.up and bottom >= current - close:
                start = step_above(max(bottom, current), decimals)
                numbers += self._nudge(row, region, j, start, span, decimals, up=True)
            if permission.down and top <= current + close:
                start = step_at_most(min(top, current), decimals)
                numbers += self._nudge(row, region, j, start, span, decimals, up=False)
        return numbers

    def _nudge(
        self, row: FloatArray, region: Region, j: int, start: float, span: Span, decimals: int | None, *, up: bool
    ) -> list[float]:
        """Return the first value from `start` on, away from the row's value, that satisfies the sums of the leaf.

        Sums are rounded, so that the computed boundary may be a few steps off on either side.
        """
        step = 10.0**-decimals if decimals is not None else math.ulp(start or 1.0)
        sign, offset = (1.0, -2 * step) if up else (-1.0, 2 * step)
        close = [_round_to(start + offset + sign * k * step, decimals) for k in range(5)]
        distant = [
            _round_to(start + sign * step * 2.0**k, decimals) for k in range(2, NUDGES if decimals is None else 8)
        ]
        current = float(row[j])
        for value in (*close, *distant):
            inside = value != current and (value > current) == up and span.low < value <= span.high
            if inside and all(s.holds(_with(row, j, value)) for s in region.sums):
                return [value]
        return []

    def verify(self, row: FloatArray, changed: FloatArray, region: Region) -> list[Flip]:
        """Return the flip if the prediction kernel sends the changed row to the leaf."""
        if int(self.tree.apply(changed.reshape(1, -1))[0]) != region.leaf:
            return []
        return [self._flip(row, changed, region.leaf, True)]

    def _flip(self, row: FloatArray, changed: FloatArray, leaf: int, proved: bool) -> Flip:
        columns = tuple(
            j
            for j in self.tree.used_columns
            if changed[j] != row[j] and not (math.isnan(changed[j]) and math.isnan(row[j]))
        )
        distance = math.fsum(self._size(row, j, changed[j]) for j in columns)
        return Flip(row=changed, leaf=leaf, columns=columns, distance=distance, proved=proved)

    def _size(self, row: FloatArray, j: int, value: float) -> float:
        """Return the scaled size of a change of column `j` to `value`; 0 from an empty cell."""
        if math.isnan(row[j]):
            return 0.0
        categorical = self.tree.schema[j].kind is ColumnKind.CATEGORICAL
        return 1.0 if categorical else float(abs(value - row[j]) / self.statistics[j].scale)


def _with(row: FloatArray, j: int, value: float) -> FloatArray:
    changed = row.copy()
    changed[j] = value
    return changed


def _round_to(value: float, decimals: int | None) -> float:
    return value if decimals is None else round(value, decimals)


def _drop_supersets(flips: Sequence[Flip], order: Callable[[Flip], tuple[float, float, int]]) -> list[Flip]:
    """Sort flips, the best first, and drop those whose columns include all columns of a better one."""
    distinct: list[Flip] = []
    for flip in sorted(flips, key=order):
        if not any(set(other.columns) <= set(flip.columns) for other in distinct):
            distinct.append(flip)
    return distinct
