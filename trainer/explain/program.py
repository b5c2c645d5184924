"""Find the cheapest row of a leaf by a mixed-integer program.

It serves leaves with weighted sums when several columns change. Legend: y[j,p] = 1 if column j moves into its piece p. v[j,p] is the distance from the row's value, in steps if the column has few of them
(counted from 0, values near 1e9 with steps of 1e-6 would exceed the solver's range). w[j,c] = 1 if column j changes to category c.
t[j] ≥ |change of j|. The program minimises the number of changed columns, then Σ t/scale; or Σ t/scale alone, below a known sum `below`.

A relaxation is solved first, with sums slightly beyond their thresholds. Its value is a lower bound for every row of the leaf, also
for rows exactly on a threshold. If the prediction kernel sends its row elsewhere, this row is cut off and the relaxation solved
again. The first row that the kernel sends to the leaf is the cheapest. If columns have no steps, or too many rows lie on the planes,
a row with a margin is taken. It counts as proved only if it meets the bound.
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

MOST_STEPS = 1_000_000  # a column with more steps in its range is continuous in the program and rounded afterwards
# distances from a boundary as shares of the sum's range; they must exceed the solver's tolerance
MARGINS = (2e-6, 2e-5, 2e-4)
# limit on rows that lie on a plane and that the kernel sends to its other side; each one is cut off in turn
MOST_REFUSED = 30
ROUNDED = 1e-9  # smallest scale of a sum as a share of its largest term, so that margins exceed the rounding of doubles
CLOSE = 1e-4  # relative tolerance when a cost is compared with the bound of the relaxation
NOTHING = 1e-6  # a smaller change, in units, is attributed to the solver's rounding
WIDER = 1.0  # a value may lie beyond the training range by this many widths of that range
SECONDS = 5.0  # time limit of a single solve


@dataclass(frozen=True, kw_only=True)
class CheapestRow:
    """The cheapest row found (None: none), and whether it is proved that no row is cheaper."""

    row: FloatArray | None
    proved: bool


def cheapest(
    tree: Tree,
    region: Region,
    start: FloatArray,
    statistics: Sequence[ColumnStatistics],
    permissions: Sequence[Permission],
    full: Mapping[int, tuple[Span, ...]],
    seconds: float = SECONDS,
    below: float | None = None,
) -> CheapestRow:
    """Return the row of the leaf that is cheapest from `start` (columns,), within the widened range of the training rows.

    Without `below`, the order is the fewest columns, then the least sum of changes. With `below`, it is the least sum, if that is at most
    `below`; if there is no row, that proves that the leaf has no smaller sum. A column with an infinite scale may take any value at no
    cost. A column whose cell is empty in `start` stays empty.
    """
    until = time.monotonic() + seconds
    relaxed = _Program(tree, region, start, statistics, permissions, full, -MARGINS[0], below)
    bound: tuple[int, float] | None = None
    for _ in range(MOST_REFUSED):
        outcome = relaxed.solve(until - time.monotonic())
        if outcome.ended is Termination.INFEASIBLE:
            # only rows that the kernel sends elsewhere were cut off, so the leaf has no row
            return CheapestRow(row=None, proved=True)
        if outcome.values is None or outcome.ended is not Termination.OPTIMAL:
            break
        cheapest_row = relaxed.row_at(outcome.values)
        bound = relaxed.cost(outcome.values)
        if int(tree.apply(cheapest_row.reshape(1, -1))[0]) == region.leaf:
            # only rows that the kernel sends elsewhere were cut off, so no cheaper row exists
            return CheapestRow(row=cheapest_row, proved=True)
        if not relaxed.refuse(outcome.values):
            break
    return _cheapest_with_margin(relaxed, bound, until)


def _cheapest_with_margin(relaxed: _Program, bound: tuple[int, float] | None, until: float) -> CheapestRow:
    """Return the cheapest row with a margin to all planes; proved if it meets `bound`, that of the relaxation."""
    for margin in MARGINS:
        program = relaxed.with_margin(margin)
        outcome = program.solve(until - time.monotonic())
        # the margin may have cut off all rows; if none is below the bound, nothing better was lost
        if outcome.values is None:
            return CheapestRow(row=None, proved=program.is_dominated(bound))
        changed = program.row_at(outcome.values)
        cost = program.cost(outcome.values)
        if int(program.tree.apply(changed.reshape(1, -1))[0]) == program.region.leaf:
            return CheapestRow(row=changed, proved=program.meets_bound(cost, bound))
    return CheapestRow(row=None, proved=False)


class _Program:
    def __init__(
        self,
        tree: Tree,
        region: Region,
        start: FloatArray,
        statistics: Sequence[ColumnStatistics],
        permissions: Sequence[Permission],
        full: Mapping[int, tuple[Span, ...]],
        margin: float,
        below: float | None,
    ) -> None:
        self.tree = tree
        self.region = region
        self.start = start
        self.margin = margin
        self.below = below
        self.statistics = statistics
        self.permissions = permissions
        self.full = full
        self.model = IntegerProgram()
        self.moved: list[Expression] = []  # 1 if the column changes
        self.costs: list[Expression] = []
        self.change: dict[int, Expression] = {}  # change of each numeric column
        self.values: dict[int, list[tuple[Variables, Variables, float, float, int | None]]] = {}
        self.codes: dict[int, Variables] = {}
        self.stepped = True  # whether every number moves in steps, so that rows can be cut off one by one
        self.reach: dict[int, float] = {}
        for j in used_by(region):
            if math.isnan(start[j]):
                continue
            if tree.schema[j].kind is ColumnKind.CATEGORICAL:
                self._add_category(j)
            else:
                self._add_number(j)
        for s in region.sums:
            self._add_sum(s)
        if below is not None and math.isfinite(below) and self.costs:
            self.model.add(total(self.costs) <= below * (1 + 1e-9) + 1e-9)

    def with_margin(self, margin: float) -> _Program:
        """Return the same program with another margin, and without the cuts of refused rows."""
        return _Program(
            self.tree,
            self.region,
            self.start,
            self.statistics,
            self.permissions,
            self.full,
            margin,
            self.below,
        )

    def solve(self, seconds: float) -> Outcome:
        """Minimise the number of changed columns, then the sum of changes; with `below`, the sum alone."""
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
        self.model.rows.pop()  # drop the limit on changed columns, since more may be needed once this row is cut off
        return outcome

    def meets_bound(self, cost: tuple[int, float], bound: tuple[int, float] | None) -> bool:
        """Return True if a row of this cost meets the bound of the relaxation."""
        if bound is None or (self.below is None and cost[0] != bound[0]):
            return False
        return cost[1] <= bound[1] + CLOSE * max(1.0, bound[1])

    def is_dominated(self, bound: tuple[int, float] | None) -> bool:
        """Return True if the bound of the relaxation shows that no row of the leaf is notably cheaper than `below`."""
        return bound is not None and self.below is not None and self.below <= bound[1] + CLOSE * max(1.0, bound[1])

    def refuse(self, values: FloatArray) -> bool:
        """Cut off the row of a solution, and no other; return False if columns without steps make that impossible.

        A row differs if a column moves into another piece, by another number of steps, or to another category: down = 1 only if
        v ≤ v̄ - 1, and up = 1 only if v ≥ v̄ + 1.
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
        """Return an expression that can be 1 only if `v` is an integer other than `at`."""
        column = int(v.columns[0])
        low = self.model.lower[column]
        high = self.model.upper[column]
        away = self.model.binary(f"away{self.model.size}", ("down", "up"))
        self.model.add(v[""] + away["down"] * (high - at + 1) <= high)
        self.model.add(v[""] - away["up"] * (at + 1 - low) >= low)
        return away["down"] + away["up"]

    def cost(self, values: FloatArray) -> tuple[int, float]:
        """Return the number of changed columns and the sum of their scaled changes at a solution."""
        count = total(self.moved)
        size = total(self.costs)
        return tuple(  # type: ignore[return-value]
            kind(e.constant + sum(c * float(values[j]) for j, c in e.terms.items()))
            for kind, e in ((round, count), (float, size))
        )

    def _add_category(self, j: int) -> None:
        code = int(self.start[j])
        codes = [c for c in permitted_codes(self.tree, j, self.region, self.permissions[j]) if c != code]
        stays = self.region.holds(j, code)
        if codes:
            self.codes[j] = w = self.model.binary(f"w{j}", codes)
            moved = total(w.values())
            self.moved.append(moved)
            self.costs.append(moved)
            self.model.add(row(moved, lower=0.0 if stays else 1.0, upper=1.0))
        elif not stays:
            self._add_contradiction()

    def _add_number(self, j: int) -> None:
        value = float(self.start[j])
        unit = self.statistics[j].scale
        has_cost = math.isfinite(unit)
        decimals = decimals_for(self.tree, j, self.statistics[j], self.permissions[j])
        pieces = [piece for piece in (self._piece(j, s) for s in self.region.spans.get(j, self.full[j])) if piece]
        if self.below is not None or not has_cost:
            pieces = [part for piece in pieces for part in _exclude_value(piece, value, decimals)]
        stays = self.region.holds(j, value)
        self.change[j] = Expression()
        self.values[j] = []
        self.reach[j] = 0.0
        if not pieces:
            if not stays:
                self._add_contradiction()
            return
        moved = Expression()
        free_size = unit if has_cost else 1.0
        for p, (low, high) in enumerate(pieces):
            y = self.model.binary(f"y{j}.{p}")
            steps = (high - low) * 10.0 ** (decimals if decimals is not None else 99)
            stepped = decimals is not None and steps <= MOST_STEPS
            self.stepped = self.stepped and stepped
            size = 10.0 ** -(decimals or 0) if stepped else free_size
            base = round(value, decimals) if stepped and decimals is not None else value
            first = (low - base) / size
            last = (high - base) / size
            first, last = (round(first), round(last)) if stepped else (first, last)
            kind = self.model.whole if stepped else self.model.continuous
            v = kind(f"v{j}.{p}", lower=min(0.0, first), upper=max(0.0, last))
            shift = v[""]
            flag = y[""]
            self.model.add(shift - flag * first >= 0)
            self.model.add(shift - flag * last <= 0)
            self.change[j] = self.change[j] + shift * size + flag * (base - value)
            moved = moved + flag
            self.values[j].append((y, v, size, base, decimals))
            self.reach[j] = max(self.reach[j], abs(low - value), abs(high - value))
        self.model.add(row(moved, lower=0.0 if stays else 1.0, upper=1.0))
        if not has_cost:
            return
        self.moved.append(moved)
        t = self.model.continuous(f"t{j}", upper=self.reach[j] / unit)[""]
        self.model.add(t - self.change[j] / unit >= 0)
        self.model.add(t + self.change[j] / unit >= 0)
        self.costs.append(t)

    def _piece(self, j: int, span: Span) -> tuple[float, float] | None:
        """Return the first and last permitted value of a span within the widened training range; None without any."""
        statistics = self.statistics[j]
        permission = self.permissions[j]
        value = float(self.start[j])
        if permission.never:
            return None
        decimals = decimals_for(self.tree, j, statistics, permission)
        width = WIDER * (max(statistics.high, value) - min(statistics.low, value) or 1.0)
        low = max(min(statistics.low, value) - width, span.first, -math.inf if permission.down else value)
        high = min(max(statistics.high, value) + width, span.last, math.inf if permission.up else value)
        low = step_above(math.nextafter(low, -math.inf), decimals)
        high = step_at_most(high, decimals)
        return (low, high) if low <= high else None

    def _add_sum(self, s: Sum) -> None:
        """Add Σ a·x ≤ threshold - margin, or ≥ threshold + margin, scaled to the range of the sum."""
        if s.is_decided_by_gap(self.start):
            if not s.holds(self.start):
                self._add_contradiction()
            return
        fixed = [-s.threshold]
        change = Expression()
        largest = abs(s.threshold)
        size = 0.0
        for (j, level, a), now in zip(s.terms, s.values(self.start), strict=True):
            fixed.append(a * now)
            largest = max(largest, abs(a * now))
            if level == VALUE and j in self.change:
                change = change + self.change[j] * a
                size = max(size, abs(a) * self.reach[j])
            elif level >= 0 and j in self.codes:
                w = self.codes[j]
                if now:
                    flag = total(w.values()) * -1.0
                else:
                    flag = w[level] if level in w.axes[0] else Expression()
                change = change + flag * a
                size = max(size, abs(a))
        size = max(size, abs(math.fsum(fixed)), ROUNDED * largest) or 1.0
        constant = math.fsum(fixed) / size
        scaled = change / size
        if not scaled.terms:
            if (constant <= 0) != s.left:
                self._add_contradiction()
        elif s.left:
            self.model.add(scaled <= -constant - self.margin)
        else:
            self.model.add(scaled >= -constant + self.margin)

    def _add_contradiction(self) -> None:
        """Make the program infeasible: no permitted change meets a condition."""
        never = self.model.binary(f"never{self.model.size}")[""]
        self.model.add(never >= 2)

    def row_at(self, values: FloatArray) -> FloatArray:
        """Return the row of a solution, with values on the steps of their columns."""
        changed = np.array(self.start)
        for j, pieces in self.values.items():
            for y, v, size, base, decimals in pieces:
                if values[y.columns[0]] > 0.5:
                    value = base + float(values[v.columns[0]]) * size
                    changed[j] = self._snap_to_start(j, value if decimals is None else round(value, decimals))
        for j, w in self.codes.items():
            for code, column in zip(w.axes[0], w.columns, strict=True):
                if values[column] > 0.5:
                    changed[j] = float(code)  # type: ignore[arg-type]
        return changed

    def _snap_to_start(self, j: int, value: float) -> float:
        """Return the value, or the start value if `below` is set and both differ only by rounding."""
        current = float(self.start[j])
        scale = self.statistics[j].scale
        close = math.isfinite(scale) and abs(value - current) <= NOTHING * scale
        return current if self.below is not None and close and self.region.holds(j, current) else value


def _exclude_value(piece: tuple[float, float], value: float, decimals: int | None) -> list[tuple[float, float]]:
    """Return the parts of a piece below and above the row's value.

    Where changed columns are not counted, a move to the row's own value would represent the same row twice.
    """
    low, high = piece
    if decimals is None or not low <= value <= high:
        return [piece]
    parts = ((low, step_at_most(math.nextafter(value, -math.inf), decimals)), (step_above(value, decimals), high))
    return [(a, b) for a, b in parts if a <= b]
