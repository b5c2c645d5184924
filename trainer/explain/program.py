"""The cheapest row of a leaf with weighted sums where several columns change: a small mixed-integer program.

Legend: y[j,p] = 1: column j moves into its piece p; v[j,p] how far, counted from the row's own value, in steps where the column has few
of them (from 0 a column of values near 1e9 with steps of 1e-6 would need numbers that no solver takes);
w[j,c] = 1: column j moves to category c; t[j] ≥ |change of j|. First the number of changed columns is minimised, then Σ t/scale; or
Σ t/scale alone, with a sum `below` that is known already as its limit.

A relaxation is solved first, with sums a little beyond their thresholds: its value bounds every row of the leaf from below, rows that
lie exactly on a threshold included. If the kernel sends its row elsewhere, that row alone is cut off and the relaxation solved again: the
first row that passes the kernel is the cheapest. Where columns have no steps, or too many rows lie on the planes, a row with a margin is
taken, and counts as proved only if it reaches the bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trainer.data.column_statistics import ColumnStatistics
from trainer.dtypes import FloatArray
from trainer.explain.permission import Permission
from trainer.explain.region import Region, Span, Sum, decimals_for, permitted_codes, used_by
from trainer.explain.statistics import step_above, step_at_most
from trainer.milo.expression import Expression, row, total
from trainer.milo.highs import Highs
from trainer.milo.hooks import Outcome, SolveOptions, Termination
from trainer.milo.model import IntegerProgram, Variables
from trainer.table import ColumnKind
from trainer.tree.nodes import Tree
from trainer.tree.splits.base import VALUE

MOST_STEPS = 1_000_000  # columns with more steps in their range are continuous in the program, and rounded afterwards
MARGINS = (
    2e-6,
    2e-5,
    2e-4,
)  # distance from a boundary, as a share of what the sum can be: above the solver's tolerance
MOST_REFUSED = 30  # rows exactly on a plane that the kernel sends to its other side, cut off one by one
ROUNDED = 1e-9  # a sum is scaled by this share of its largest term at least, so that margins are above the rounding of doubles
CLOSE = 1e-4  # how near to the bound of the relaxation a row counts as cheapest, as a share of it
NOTHING = (
    1e-6  # a change of a column without steps that is smaller than this share of its unit is the solver's rounding
)
WIDER = 1.0  # widths of the training range that a value may leave it by
SECONDS = 5.0  # of one solve


@dataclass(frozen=True, kw_only=True)
class CheapestRow:
    """The cheapest row (None: there is none), and whether that is proved, up to the margin at sums."""

    row: FloatArray | None
    proved: bool


def cheapest(
    tree: Tree,
    region: Region,
    own: FloatArray,
    statistics: Sequence[ColumnStatistics],
    permissions: Sequence[Permission],
    full: Mapping[int, tuple[Span, ...]],
    seconds: float = SECONDS,
    below: float | None = None,
) -> CheapestRow:
    """The row of the leaf that is cheapest from `own` (columns,), its values within the widened range of the training rows.

    Without `below` that is the fewest columns, then the least sum of changes. With it that is the least sum, if it is at most `below`
    (infinity: whatever it is); no row is then proof that none of the leaf has a smaller sum. A column with an infinite scale
    takes any value without being counted; a column whose cell is empty in `own` stays empty.
    """
    until = time.monotonic() + seconds
    relaxed = _Program(tree, region, own, statistics, permissions, full, -MARGINS[0], below)
    bound: tuple[int, float] | None = None
    for _ in range(MOST_REFUSED):
        outcome = relaxed.solve(until - time.monotonic())
        if outcome.ended is Termination.INFEASIBLE:
            return CheapestRow(row=None, proved=True)  # what was refused before is refused by the kernel, too
        if outcome.values is None or outcome.ended is not Termination.OPTIMAL:
            break
        found = relaxed.row_at(outcome.values)
        bound = relaxed.cost(outcome.values)
        if int(tree.apply(found.reshape(1, -1))[0]) == region.leaf:
            return CheapestRow(row=found, proved=True)  # nothing that is left is cheaper
        if not relaxed.refuse(outcome.values):
            break
    return _inside(relaxed, bound, until)


def _inside(relaxed: _Program, bound: tuple[int, float] | None, until: float) -> CheapestRow:
    """The cheapest row with a margin to all planes; proved if it reaches `bound`, the bound of the relaxation."""
    for margin in MARGINS:
        program = relaxed.again(margin)
        outcome = program.solve(until - time.monotonic())
        if outcome.values is None:  # a margin may have cut off what there is, but nothing below the bound
            return CheapestRow(row=None, proved=program.beaten(bound))
        found = program.row_at(outcome.values)
        cost = program.cost(outcome.values)
        if int(program.tree.apply(found.reshape(1, -1))[0]) == program.region.leaf:
            return CheapestRow(row=found, proved=program.reached(cost, bound))
    return CheapestRow(row=None, proved=False)


class _Program:
    def __init__(
        self,
        tree: Tree,
        region: Region,
        own: FloatArray,
        statistics: Sequence[ColumnStatistics],
        permissions: Sequence[Permission],
        full: Mapping[int, tuple[Span, ...]],
        margin: float,
        below: float | None,
    ) -> None:
        self.tree = tree
        self.region = region
        self.own = own
        self.margin = margin
        self.below = below
        self.statistics = statistics
        self.permissions = permissions
        self.full = full
        self.model = IntegerProgram()
        self.moved: list[Expression] = []  # 1 where a column changes
        self.costs: list[Expression] = []
        self.change: dict[int, Expression] = {}  # of a numeric column
        self.values: dict[int, list[tuple[Variables, Variables, float, float, int | None]]] = {}
        self.codes: dict[int, Variables] = {}
        self.stepped = True  # whether every number moves on steps, so that rows can be refused one by one
        self.reach: dict[int, float] = {}
        for j in used_by(region):
            if math.isnan(own[j]):
                continue
            if tree.schema[j].kind is ColumnKind.CATEGORICAL:
                self._category(j)
            else:
                self._number(j)
        for s in region.sums:
            self._sum(s)
        if below is not None and math.isfinite(below) and self.costs:
            self.model.add(total(self.costs) <= below * (1 + 1e-9) + 1e-9)

    def again(self, margin: float) -> _Program:
        """The same program with another margin, and without the rows that were refused."""
        return _Program(
            self.tree,
            self.region,
            self.own,
            self.statistics,
            self.permissions,
            self.full,
            margin,
            self.below,
        )

    def solve(self, seconds: float) -> Outcome:
        """First the fewest columns, then the smallest change of so many; or the smallest change alone."""
        options = SolveOptions(time=max(seconds, 0.01), absolute_gap=1e-9)
        if self.below is not None:
            self.model.maximize(-total(self.costs))
            return Highs().solve(self.model, options=options)
        count = total(self.moved)
        self.model.maximize(-count)
        if not self.moved:
            return Highs().solve(self.model, options=options)
        fewest = Highs().solve(self.model, options=options)
        if fewest.ended is not Termination.OPTIMAL or fewest.objective is None:
            return fewest
        self.model.add(count <= round(-fewest.objective))
        self.model.maximize(-total(self.costs))
        outcome = Highs().solve(self.model, options=options)
        self.model.rows.pop()  # more columns are allowed once this row is refused
        return outcome

    def reached(self, cost: tuple[int, float], bound: tuple[int, float] | None) -> bool:
        """Whether a row that costs so much is as cheap as the bound of the relaxation allows."""
        if bound is None or (self.below is None and cost[0] != bound[0]):
            return False
        return cost[1] <= bound[1] + CLOSE * max(1.0, bound[1])

    def beaten(self, bound: tuple[int, float] | None) -> bool:
        """Whether the bound of the relaxation shows that what is known already is as cheap as any row of the leaf."""
        return bound is not None and self.below is not None and self.below <= bound[1] + CLOSE * max(1.0, bound[1])

    def refuse(self, values: FloatArray) -> bool:
        """Cut off this one row, and no other; False if columns without steps make that impossible.

        A row is another one if a column moves into another piece, by another number of steps, or to another category:
        down = 1 only if v ≤ v̄ - 1, and up = 1 only if v ≥ v̄ + 1.
        """
        if not self.stepped:
            return False
        other = Expression()
        for pieces in self.values.values():
            for y, v, *_ in pieces:
                at = round(float(values[y.columns[0]]))
                other = other + (1 - y[""] if at else y[""])
                if at:
                    other = other + self._steps_away(v, round(float(values[v.columns[0]])))
        for w in self.codes.values():
            for code, column in zip(w.axes[0], w.columns, strict=True):
                other = other + (1 - w[code] if values[column] > 0.5 else w[code])
        self.model.add(other >= 1)
        return True

    def _steps_away(self, v: Variables, at: int) -> Expression:
        """An expression that can be 1 only where `v` is another whole number than `at`."""
        column = int(v.columns[0])
        low = self.model.lower[column]
        high = self.model.upper[column]
        away = self.model.binary(f"away{self.model.size}", ("down", "up"))
        self.model.add(v[""] + away["down"] * (high - at + 1) <= high)
        self.model.add(v[""] - away["up"] * (at + 1 - low) >= low)
        return away["down"] + away["up"]

    def cost(self, values: FloatArray) -> tuple[int, float]:
        """Changed columns and the sum of their scaled changes at a solution."""
        count = total(self.moved)
        size = total(self.costs)
        return tuple(  # type: ignore[return-value]
            kind(e.constant + sum(c * float(values[j]) for j, c in e.terms.items()))
            for kind, e in ((round, count), (float, size))
        )

    def _category(self, j: int) -> None:
        own = int(self.own[j])
        codes = [c for c in permitted_codes(self.tree, j, self.region, self.permissions[j]) if c != own]
        stays = self.region.holds(j, own)
        if codes:
            self.codes[j] = w = self.model.binary(f"w{j}", codes)
            moved = total(w.values())
            self.moved.append(moved)
            self.costs.append(moved)
            self.model.add(row(moved, lower=0.0 if stays else 1.0, upper=1.0))
        elif not stays:
            self._impossible()

    def _number(self, j: int) -> None:
        own = float(self.own[j])
        unit = self.statistics[j].scale
        counted = math.isfinite(unit)
        decimals = decimals_for(self.tree, j, self.statistics[j], self.permissions[j])
        pieces = [piece for piece in (self._piece(j, s) for s in self.region.spans.get(j, self.full[j])) if piece]
        if self.below is not None or not counted:
            pieces = [part for piece in pieces for part in _exclude_value(piece, own, decimals)]
        stays = self.region.holds(j, own)
        self.change[j], self.values[j], self.reach[j] = Expression(), [], 0.0
        if not pieces:
            if not stays:
                self._impossible()
            return
        moved = Expression()
        for p, (low, high) in enumerate(pieces):
            y = self.model.binary(f"y{j}.{p}")
            steps = (high - low) * 10.0 ** (decimals if decimals is not None else 99)
            stepped = decimals is not None and steps <= MOST_STEPS
            self.stepped = self.stepped and stepped
            size = 10.0 ** -(decimals or 0) if stepped else (unit if counted else 1.0)
            base = round(own, decimals) if stepped and decimals is not None else own
            first = (low - base) / size
            last = (high - base) / size
            first, last = (round(first), round(last)) if stepped else (first, last)
            kind = self.model.whole if stepped else self.model.continuous
            v = kind(f"v{j}.{p}", lower=min(0.0, first), upper=max(0.0, last))
            here = v[""]
            flag = y[""]
            self.model.add(here - flag * first >= 0)
            self.model.add(here - flag * last <= 0)
            self.change[j] = self.change[j] + here * size + flag * (base - own)
            moved = moved + flag
            self.values[j].append((y, v, size, base, decimals))
            self.reach[j] = max(self.reach[j], abs(low - own), abs(high - own))
        self.model.add(row(moved, lower=0.0 if stays else 1.0, upper=1.0))
        if not counted:
            return
        self.moved.append(moved)
        t = self.model.continuous(f"t{j}", upper=self.reach[j] / unit)[""]
        self.model.add(t - self.change[j] / unit >= 0)
        self.model.add(t + self.change[j] / unit >= 0)
        self.costs.append(t)

    def _piece(self, j: int, span: Span) -> tuple[float, float] | None:
        """The first and last value of a span that is permitted and not too far from the training rows."""
        statistics = self.statistics[j]
        permission = self.permissions[j]
        own = float(self.own[j])
        if permission.never:
            return None
        decimals = decimals_for(self.tree, j, statistics, permission)
        width = WIDER * (max(statistics.high, own) - min(statistics.low, own) or 1.0)
        low = max(min(statistics.low, own) - width, span.first, -math.inf if permission.down else own)
        high = min(max(statistics.high, own) + width, span.last, math.inf if permission.up else own)
        low = step_above(math.nextafter(low, -math.inf), decimals)
        high = step_at_most(high, decimals)
        return (low, high) if low <= high else None

    def _sum(self, s: Sum) -> None:
        """Σ a·x at most the threshold less a margin, or at least the threshold and a margin, scaled to how far the sum can move."""
        if s.decided(self.own):
            if not s.holds(self.own):
                self._impossible()
            return
        fixed = [-s.threshold]
        change = Expression()
        largest = abs(s.threshold)
        size = 0.0
        for (j, level, a), now in zip(s.terms, s.values(self.own), strict=True):
            fixed.append(a * now)
            largest = max(largest, abs(a * now))
            if level == VALUE and j in self.change:
                change = change + self.change[j] * a
                size = max(size, abs(a) * self.reach[j])
            elif level >= 0 and j in self.codes:
                w = self.codes[j]
                flag = total(w.values()) * -1.0 if now else w[level] if level in w.axes[0] else Expression()
                change = change + flag * a
                size = max(size, abs(a))
        size = max(size, abs(math.fsum(fixed)), ROUNDED * largest) or 1.0
        constant = math.fsum(fixed) / size
        found = change / size
        if not found.terms:
            if (constant <= 0) != s.left:
                self._impossible()
        elif s.left:
            self.model.add(found <= -constant - self.margin)
        else:
            self.model.add(found >= -constant + self.margin)

    def _impossible(self) -> None:
        """A condition that no permitted change meets."""
        never = self.model.binary(f"never{self.model.size}")[""]
        self.model.add(never >= 2)

    def row_at(self, values: FloatArray) -> FloatArray:
        """The row of a solution, values on the steps of their columns."""
        changed = np.array(self.own)
        for j, pieces in self.values.items():
            for y, v, size, base, decimals in pieces:
                if values[y.columns[0]] > 0.5:
                    value = base + float(values[v.columns[0]]) * size
                    changed[j] = self._settled(j, value if decimals is None else round(value, decimals))
        for j, w in self.codes.items():
            for code, column in zip(w.axes[0], w.columns, strict=True):
                if values[column] > 0.5:
                    changed[j] = float(code)  # type: ignore[arg-type]
        return changed

    def _settled(self, j: int, value: float) -> float:
        """The value, or the row's own where sums alone count and the two differ by rounding only."""
        own = float(self.own[j])
        scale = self.statistics[j].scale
        close = math.isfinite(scale) and abs(value - own) <= NOTHING * scale
        return own if self.below is not None and close and self.region.holds(j, own) else value


def _exclude_value(piece: tuple[float, float], own: float, decimals: int | None) -> list[tuple[float, float]]:
    """What of a piece lies below and above the row's own value, and not on it: where columns are not counted, "moves to its own
    value" would be the same row once more.
    """
    low, high = piece
    if decimals is None or not low <= own <= high:
        return [piece]
    parts = ((low, step_at_most(math.nextafter(own, -math.inf), decimals)), (step_above(own, decimals), high))
    return [(a, b) for a, b in parts if a <= b]
