"""The smallest change of a row that gives another answer, over all leaves, with its proof.

Questions of one column leave each column on its own: in each leaf every column stays, or takes its nearest permitted value, and
the cheapest leaf is the answer. With weighted sums, one changed column is solved in closed form; where one is not enough, or where
several may be cheaper than one, a small mixed-integer program is solved for each leaf (`program`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from trainer.data.column_statistics import ColumnStatistics
from trainer.dtypes import FloatArray
from trainer.errors import SolverError
from trainer.explain.least import COLUMNS, TOTAL
from trainer.explain.permission import FREE, Permission
from trainer.explain.program import SECONDS, CheapestRow, cheapest
from trainer.explain.region import (
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

ALTERNATIVES = 3
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
        row = np.asarray(row, np.float64).reshape(-1)
        names = self.tree.classes
        empty = [self.tree.schema[j].name for j in self.tree.used_columns if math.isnan(row[j])]
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

    def _none(self, wanted: int | None, targets: Sequence[Region], settled: bool) -> str:
        if not settled:
            return "No change was found, but it is not proved that none exists."
        what = "another answer" if wanted is None else f"the answer {self.tree.classes[wanted]}"
        far = any(r.sums for r in targets)
        within = " within three times the range of the training rows" if far else ""
        return f"No permitted change{within} leads to {what}: all {len(targets)} leaves that give it were compared."

    def _candidates(self, row: FloatArray, targets: Sequence[Region]) -> tuple[list[Flip], bool]:
        flips: list[Flip] = []
        later: list[tuple[float, Region]] = []
        for region in targets:
            forced = [j for j in (*region.spans, *region.codes) if not region.holds(j, row[j])]
            if any(self.permissions[j].never for j in forced):
                continue
            if not region.sums:
                flips += self._plain(row, region, forced)
                continue
            found = self._single(row, region, forced)
            flips += found
            if self.least == TOTAL:
                later.append((self._floor(row, region, forced), region))
            elif not found:
                later.append((max(2, len(forced)), region))
        return self._programs(row, flips, later)

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
        self, row: FloatArray, flips: list[Flip], later: list[tuple[float, Region]]
    ) -> tuple[list[Flip], bool]:
        """Leaves with sums that need several columns, as far as they can beat what was found.

        Each comes with what it needs at least: a number of columns, or a sum of changes. By sums, no leaf is searched beyond the
        best sum that is known.
        """
        settled = True
        by_sum = self.least == TOTAL
        for least, region in sorted(later, key=lambda item: item[0]):
            best = min((self._order(f)[0] for f in flips), default=math.inf)
            if least == math.inf or (best <= least if by_sum else best < least):
                continue
            left = self.until - time.monotonic()
            if left <= 0:
                settled = False
                break
            answer = self._cheapest(row, region, min(left, SECONDS), best if by_sum else None)
            if answer.row is not None:
                flips.append(self._flip(row, answer.row, region.leaf, answer.proved))
            settled = settled and answer.proved  # what is not settled here might beat what other leaves have
        if not settled:
            flips = [Flip(**{**vars(f), "proved": False}) for f in flips]
        return flips, settled

    def _cheapest(self, row: FloatArray, region: Region, seconds: float, below: float | None) -> CheapestRow:
        """What the program of a leaf finds; numbers that the solver does not take settle nothing."""
        try:
            return cheapest(self.tree, region, row, self.statistics, self.permissions, self.full, seconds, below=below)
        except SolverError:
            return CheapestRow(row=None, proved=False)

    def _plain(self, row: FloatArray, region: Region, forced: Sequence[int]) -> list[Flip]:
        """The cheapest row of a leaf if each question on its path is about one column."""
        changed = row.copy()
        for j in forced:
            value = self._nearest(row, region, j)
            if value is None:
                return []
            changed[j] = value
        return self._checked(row, changed, region)

    def _nearest(self, row: FloatArray, region: Region, j: int) -> float | None:
        if j in region.spans:
            return nearest(region.spans[j], float(row[j]), self.permissions[j])
        codes = permitted_codes(self.tree, j, region, self.permissions[j])
        return float(codes[0]) if codes else None

    def _single(self, row: FloatArray, region: Region, forced: Sequence[int]) -> list[Flip]:
        """For each column that can reach the leaf alone: the cheapest row, where the tree asks about sums."""
        if len(forced) > 1:
            return []
        flips: list[Flip] = []
        for j in forced or used_by(region):
            if self.permissions[j].never:
                continue
            if self.tree.schema[j].kind is ColumnKind.CATEGORICAL:
                values: list[float] = [float(c) for c in permitted_codes(self.tree, j, region, self.permissions[j])]
            else:
                values = self._numbers(row, region, j)
            rows = (_with(row, j, value) for value in values if value != row[j])
            found = [flip for changed in rows for flip in self._checked(row, changed, region)]
            flips += sorted(found, key=self._order)[:1]
        return flips

    def _numbers(self, row: FloatArray, region: Region, j: int) -> list[float]:
        """The value nearest to the row's own of column `j`, up and down, in each span that the sums leave."""
        decimals = decimals_for(self.tree, j, self.statistics[j], self.permissions[j])
        own = float(row[j])
        permission = self.permissions[j]
        low = -math.inf
        high = math.inf
        for s in region.sums:
            a = math.fsum(c for f, level, c in s.terms if f == j and level < 0)
            rest = math.fsum(
                c * (float(row[f]) if level < 0 else float(row[f] == level)) for f, level, c in s.terms if f != j
            )
            if a == 0:
                continue
            bound = (s.threshold - rest) / a
            if (a > 0) == s.left:
                high = min(high, bound)
            else:
                low = max(low, bound)
        values: list[float] = []
        for span in region.spans.get(j, self.full[j]):
            bottom = max(low, span.low)
            top = min(high, span.high)
            close = 1e-9 * max(1.0, abs(own))  # the bound of a sum is rounded
            if permission.up and bottom >= own - close:
                start = step_above(max(bottom, own), decimals)
                values += self._nudged(row, region, j, start, span, decimals, up=True)
            if permission.down and top <= own + close:
                start = step_at_most(min(top, own), decimals)
                values += self._nudged(row, region, j, start, span, decimals, up=False)
        return values

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
        columns = tuple(j for j in self.tree.used_columns if changed[j] != row[j])
        distance = math.fsum(self._size(row, j, changed[j]) for j in columns)
        return Flip(row=changed, leaf=leaf, columns=columns, distance=distance, proved=proved)

    def _size(self, row: FloatArray, j: int, value: float) -> float:
        """What it counts to move column `j` to `value`, another than its own."""
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
