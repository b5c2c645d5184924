"""The smallest change of a row that gives another answer, over all leaves, with its proof.

Questions of one column leave each column on its own: in each leaf every column stays, or takes its nearest permitted value, and
the cheapest leaf is the answer. With weighted sums, one changed column is solved in closed form; where one is not enough, or where
several may be cheaper than one, a small mixed-integer program is solved for each leaf (`program`).

An empty cell stays empty, or gets a value where that is permitted: one changed column of the size 0. In a leaf with sums every choice
of the cells that get a value is compared, since an empty cell can decide a sum.
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
MOST_FILLED = 6  # empty cells of a row beyond those that a leaf needs, of which every choice is compared
NUDGES = 64  # a boundary that rounding hides is looked for with a step that is doubled so many times


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
    """A row with some of its empty cells filled: `filled` are their columns, whose value is open, and `row` (columns,) has one."""

    row: FloatArray
    filled: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Search:
    """A leaf to search with a program from a start, and what a change needs at least: columns, or a sum of changes."""

    least: float
    region: Region
    start: FilledRow


@dataclass(frozen=True, kw_only=True)
class FlipResult:
    """The smallest flip (None: there is none, for the `reason`) and further ones that need other columns, best first."""

    flip: Flip | None
    alternatives: tuple[Flip, ...] = ()
    reason: str | None = None


class Flipper:
    """Finds flips in one tree, with the statistics of its training rows and a permission for each column.

    `least` says which flip is the smallest: COLUMNS, the fewest columns and then the sum of changes, or TOTAL, the sum alone.
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
        self.until = time.monotonic() + seconds  # for the programs of all rows together
        self.tree = tree
        self.statistics = tuple(statistics)
        self.permissions = tuple(permissions or (FREE,) * len(tree.schema))
        self.regions = regions(tree, self.statistics, self.permissions)
        self.full = {
            j: full_spans(tree, j, self.statistics[j], self.permissions[j])
            for j in tree.used_columns
            if tree.schema[j].kind is not ColumnKind.CATEGORICAL
        }

    def find(self, row: FloatArray, wanted: int | None = None) -> FlipResult:
        """The smallest change of `row`, float64 (columns,), that leads to the class `wanted`, or to any other than its own."""
        row = self._known(np.asarray(row, np.float64).reshape(-1))
        names = self.tree.classes
        empty = [self.tree.schema[j].name for j in self.tree.refused_columns if math.isnan(row[j])]
        if empty:
            return FlipResult(flip=None, reason=f"The column '{empty[0]}' has no value, and the tree needs one.")
        own = int(self.tree.predict(row.reshape(1, -1))[0])
        if wanted == own:
            return FlipResult(flip=None, reason=f"The answer is already {names[own]}.")
        targets = [r for r in self.regions if (r.label != own if wanted is None else r.label == wanted)]
        if not targets:
            what = "another class" if wanted is None else names[wanted]
            return FlipResult(flip=None, reason=f"No leaf of the tree says {what}.")
        flips, settled = self._candidates(row, targets)
        chosen = _different(flips, self._order)
        if not chosen:
            return FlipResult(flip=None, reason=self._none(wanted, targets, settled))
        return FlipResult(flip=chosen[0], alternatives=tuple(chosen[1 : ALTERNATIVES + 1]))

    def _known(self, row: FloatArray) -> FloatArray:
        """The row with an unknown category in place of an empty cell that has no category; both go the same way."""
        empty = [j for j in self.tree.used_columns if self.tree.schema[j].kind is ColumnKind.CATEGORICAL]
        known = row.copy()
        for j in set(empty) - set(self.tree.refused_columns):
            known[j] = UNKNOWN if math.isnan(row[j]) else row[j]
        return known

    def _none(self, wanted: int | None, targets: Sequence[Region], settled: bool) -> str:
        if not settled:
            return "No change was found, but it is not proved that none exists."
        what = "another answer" if wanted is None else f"the answer {self.tree.classes[wanted]}"
        far = any(r.sums for r in targets)
        within = " within three times the range of the training rows" if far else ""
        return f"No permitted change{within} leads to {what}: all {len(targets)} leaves that give it were compared."

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
                    flips += self._plain(row, start, region, forced)
                    continue
                found = self._single(row, start, region, forced)
                flips += found
                if self.least == TOTAL:
                    floor = self._floor(start.row, region, forced)
                    later.append(Search(least=floor, region=region, start=start))
                elif not found:
                    least = max(2, len(start.filled) + len(forced))
                    later.append(Search(least=least, region=region, start=start))
        return self._programs(row, flips, later, settled=all_starts)

    def _starts(self, row: FloatArray, region: Region) -> tuple[list[FilledRow], bool]:
        """The rows from which a leaf is searched, and whether these are all: one for each choice of the empty cells that get a value.

        Cells that the questions of one column do not allow to be empty get one. Others get one only where a sum reads them.
        """
        empty = [j for j in used_by(region) if math.isnan(row[j]) and self.permissions[j].fill]
        needed = [j for j in empty if not region.holds(j, row[j])]
        read = {f for s in region.sums for f, _, _ in s.terms}
        further = [j for j in empty if j in read and j not in needed]
        chosen = itertools.chain.from_iterable(
            itertools.combinations(further[:MOST_FILLED], size) for size in range(min(len(further), MOST_FILLED) + 1)
        )
        found = (self._start(row, region, (*needed, *more)) for more in chosen)
        return [start for start in found if start is not None], len(further) <= MOST_FILLED

    def _start(self, row: FloatArray, region: Region, filled: Sequence[int]) -> FilledRow | None:
        """The row with values of the leaf in the columns `filled`; None if a column has no such value.

        A value is the one nearest to the column's fill value, or else to the middle of its training values.
        """
        changed = row.copy()
        for j in filled:
            value = self._usual(j)
            spans = region.spans.get(j, self.full[j])
            if not any(span.low < value <= span.high for span in spans):
                found = nearest(spans, value, FREE)
                if found is None:
                    return None
                value = found
            changed[j] = value
        return FilledRow(row=changed, filled=frozenset(filled))

    def _usual(self, j: int) -> float:
        """A value of a column on its steps, as most rows have it."""
        fill = self.tree.schema[j].fill
        statistics = self.statistics[j]
        value = fill if fill is not None else (statistics.low + statistics.high) / 2
        decimals = decimals_for(self.tree, j, statistics, self.permissions[j])
        return step_at_most(value if math.isfinite(value) else 0.0, decimals)

    def _order(self, flip: Flip) -> tuple[float, float, int]:
        """By which flips are compared; sums are rounded, so that equal ones go by their columns."""
        if self.least == TOTAL:
            return float(f"{flip.distance:.12g}"), len(flip.columns), flip.leaf
        return len(flip.columns), flip.distance, flip.leaf

    def _floor(self, row: FloatArray, region: Region, forced: Sequence[int]) -> float:
        """What the columns cost that must change in this leaf; infinity if one of them has no permitted value."""
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
        """Leaves with sums that need several columns, as far as they can beat what was found.

        Each comes with what it needs at least: a number of columns, or a sum of changes. By sums, no leaf is searched beyond the
        best sum that is known.
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
            settled = settled and answer.proved  # what is not settled here might beat what other leaves have
        if not settled:
            flips = [Flip(**{**vars(f), "proved": False}) for f in flips]
        return flips, settled

    def _cheapest(self, search: Search, seconds: float, below: float | None) -> CheapestRow:
        """What the program of a leaf finds; numbers that the solver does not take settle nothing."""
        start = search.start
        allowed = list(self.permissions)
        statistics = list(self.statistics)
        for j in start.filled:  # any value, at no cost: the filled cells count in `_order` and `_floor`
            allowed[j] = replace(allowed[j], up=True, down=True)
            statistics[j] = replace(statistics[j], scale=math.inf)
        try:
            return cheapest(self.tree, search.region, start.row, statistics, allowed, self.full, seconds, below=below)
        except SolverError:
            return CheapestRow(row=None, proved=False)

    def _plain(self, row: FloatArray, start: FilledRow, region: Region, forced: Sequence[int]) -> list[Flip]:
        """The cheapest row of a leaf if each question on its path is about one column."""
        changed = start.row.copy()
        for j in forced:
            value = self._nearest(start.row, region, j)
            if value is None:
                return []
            changed[j] = value
        return self._checked(row, changed, region)

    def _nearest(self, row: FloatArray, region: Region, j: int) -> float | None:
        if j in region.spans:
            return nearest(region.spans[j], float(row[j]), self.permissions[j])
        codes = permitted_codes(self.tree, j, region, self.permissions[j])
        return float(codes[0]) if codes else None

    def _single(self, row: FloatArray, start: FilledRow, region: Region, forced: Sequence[int]) -> list[Flip]:
        """For each column that can reach the leaf alone: the cheapest row, where the tree asks about sums."""
        changed = {*start.filled, *forced}
        if len(changed) > 1:
            return []
        if start.filled:
            return self._filled(row, start, region)
        flips: list[Flip] = []
        for j in forced or used_by(region):
            if self.permissions[j].never or math.isnan(row[j]):
                continue
            if self.tree.schema[j].kind is ColumnKind.CATEGORICAL:
                values: list[float] = [float(c) for c in permitted_codes(self.tree, j, region, self.permissions[j])]
            else:
                values = self._numbers(row, region, j)
            rows = (_with(row, j, value) for value in values if value != row[j])
            found = [flip for changed in rows for flip in self._checked(row, changed, region)]
            flips += sorted(found, key=self._order)[:1]
        return flips

    def _filled(self, row: FloatArray, start: FilledRow, region: Region) -> list[Flip]:
        """The row in which one empty cell gets a value that reaches the leaf, the usual one if it does."""
        (j,) = start.filled
        usual = float(start.row[j])
        values = [usual, *sorted(self._numbers(start.row, region, j, FREE), key=lambda value: abs(value - usual))]
        flips = (self._checked(row, _with(start.row, j, value), region) for value in values)
        return next((found for found in flips if found), [])

    def _numbers(self, row: FloatArray, region: Region, j: int, permission: Permission | None = None) -> list[float]:
        """The value nearest to the row's own of column `j`, up and down, in each span that the sums leave."""
        decimals = decimals_for(self.tree, j, self.statistics[j], self.permissions[j])
        own = float(row[j])
        permission = permission or self.permissions[j]
        low = -math.inf
        high = math.inf
        for s in region.sums:
            a = math.fsum(c for f, level, c in s.terms if f == j and level == VALUE)
            if a == 0 or s.decided(row):
                continue
            values = zip(s.values(row), s.terms, strict=True)
            rest = math.fsum(c * value for value, (f, level, c) in values if (f, level) != (j, VALUE))
            bound = (s.threshold - rest) / a
            if (a > 0) == s.left:
                high = min(high, bound)
            else:
                low = max(low, bound)
        found: list[float] = []
        for span in region.spans.get(j, self.full[j]):
            bottom = max(low, span.low)
            top = min(high, span.high)
            close = 1e-9 * max(1.0, abs(own))  # the bound of a sum is rounded
            if permission.up and bottom >= own - close:
                start = step_above(max(bottom, own), decimals)
                found += self._nudged(row, region, j, start, span, decimals, up=True)
            if permission.down and top <= own + close:
                start = step_at_most(min(top, own), decimals)
                found += self._nudged(row, region, j, start, span, decimals, up=False)
        return found

    def _nudged(
        self, row: FloatArray, region: Region, j: int, start: float, span: Span, decimals: int | None, *, up: bool
    ) -> list[float]:
        """The first value from `start` away from the row's that the kernel sends to the leaf.

        A sum is rounded: the boundary that was computed may be a few steps off, on either side.
        """
        step = 10.0**-decimals if decimals is not None else math.ulp(start or 1.0)
        sign, offset = (1.0, -2 * step) if up else (-1.0, 2 * step)
        near = [_round_to(start + offset + sign * k * step, decimals) for k in range(5)]
        far = [_round_to(start + sign * step * 2.0**k, decimals) for k in range(2, NUDGES if decimals is None else 8)]
        own = float(row[j])
        for value in (*near, *far):
            inside = value != own and (value > own) == up and span.low < value <= span.high
            if inside and all(s.holds(_with(row, j, value)) for s in region.sums):
                return [value]
        return []

    def _checked(self, row: FloatArray, changed: FloatArray, region: Region) -> list[Flip]:
        """The flip, if the prediction kernel really sends the changed row to the leaf."""
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
        """What it counts to move column `j` to `value`, another than its own; from an empty cell nothing."""
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


def _different(flips: Sequence[Flip], order: Callable[[Flip], tuple[float, float, int]]) -> list[Flip]:
    """Flips, the best first; one that changes all columns of a better flip is left out."""
    chosen: list[Flip] = []
    for flip in sorted(flips, key=order):
        if not any(set(other.columns) <= set(flip.columns) for other in chosen):
            chosen.append(flip)
    return chosen
