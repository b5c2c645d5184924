"""Describe the rows of a leaf by column values and sums."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from trainer.data.column_statistics import ColumnStatistics
from trainer.dtypes import FloatArray
from trainer.explain.permission import Permission, reachable_codes
from trainer.explain.statistics import step_above, step_at_most
from trainer.table import ColumnKind
from trainer.tree.nodes import Tree
from trainer.tree.splits.base import AMONG, EMPTY, IS_EMPTY, SUM, Flat, Term

UNKNOWN = -1  # code of a category that the model does not know; splits on sets send it right


@dataclass(frozen=True, kw_only=True)
class Span:
    """Numbers low < x ≤ high; `first` and `last` are the outermost values on the column's steps."""

    low: float
    high: float
    first: float
    last: float


@dataclass(frozen=True, kw_only=True)
class Sum:
    """A weighted sum that must be at most `threshold` (`left`), or above it.

    A term is a column, a category, VALUE or EMPTY, and a coefficient. `fills` has the number that replaces an empty cell in each
    term. If it is NaN, an empty cell sends the row left (`empty_left`) or right.
    """

    terms: tuple[Term, ...]
    threshold: float
    left: bool
    fills: tuple[float, ...] = ()
    empty_left: bool = False

    def values(self, row: FloatArray) -> list[float]:
        """Return the value of each term in the row (columns,); NaN where an empty cell decides."""
        values = []
        for (feature, level, _), fill in zip(self.terms, self.fills or (math.nan,) * len(self.terms), strict=True):
            value = float(row[feature])
            if level == EMPTY:
                value = float(math.isnan(value))
            elif level >= 0:
                value = float(value == level)
            elif math.isnan(value):
                value = fill
            values.append(value)
        return values

    def is_decided_by_gap(self, row: FloatArray) -> bool:
        """Return True if an empty cell of the row decides, whatever the other columns are."""
        return any(map(math.isnan, self.values(row)))

    def holds(self, row: FloatArray) -> bool:
        """Return True if the sum holds in the arithmetic of the prediction kernel."""
        total = 0.0
        for value, (_, _, coefficient) in zip(self.values(row), self.terms, strict=True):
            if math.isnan(value):
                return self.empty_left == self.left
            total += coefficient * value
        return (total <= self.threshold) == self.left


@dataclass(frozen=True, kw_only=True)
class Region:
    """The rows of one leaf: `spans` by numeric column, category codes by categorical column, and sums.

    `empty` tells for each column of `spans` whether its cell may be empty.
    """

    leaf: int
    label: int
    spans: dict[int, tuple[Span, ...]]
    codes: dict[int, frozenset[int]]
    sums: tuple[Sum, ...]
    empty: dict[int, bool] = field(default_factory=dict)

    def holds(self, j: int, value: float) -> bool:
        """Return True if column `j` may have this value, without regard to sums."""
        if j in self.codes:
            return int(value) in self.codes[j]
        if math.isnan(value):
            return self.empty.get(j, True)
        return j not in self.spans or any(span.low < value <= span.high for span in self.spans[j])

    def contains(self, row: FloatArray) -> bool:
        """Return True if the row (columns,) reaches the leaf."""
        return all(self.holds(j, row[j]) for j in (*self.spans, *self.codes)) and all(s.holds(row) for s in self.sums)


Ends = tuple[float, float]


def regions(
    tree: Tree, statistics: Sequence[ColumnStatistics], permissions: Sequence[Permission]
) -> tuple[Region, ...]:
    """Return the region of each leaf, without leaves that no row reaches by the splits on single columns."""
    candidates = (_region(tree, leaf.id, statistics, permissions) for leaf in tree.leaves)
    return tuple(region for region in candidates if region is not None)


def decimals_for(tree: Tree, j: int, statistics: ColumnStatistics, permission: Permission) -> int | None:
    """Return the decimals of changed values of column `j`; None for a continuous column."""
    is_integer = permission.whole or tree.schema[j].kind is ColumnKind.BINARY
    return 0 if is_integer else statistics.decimals


def _region(
    tree: Tree, leaf: int, statistics: Sequence[ColumnStatistics], permissions: Sequence[Permission]
) -> Region | None:
    ends: dict[int, list[Ends]] = {}
    codes: dict[int, frozenset[int]] = {}
    sums: list[Sum] = []
    empty: dict[int, bool] = {}
    for a, b in itertools.pairwise(tree.path_to(leaf)):
        node = tree.nodes[a]
        if node.split is None:
            continue
        flat = node.split.flat(tree.schema)
        left = b == node.left
        j = flat.feature
        if flat.test == SUM:
            terms = tuple((f, lv, a) for (f, lv), a in zip(flat.terms, flat.coefficients, strict=True))
            sums.append(Sum(terms=terms, threshold=flat.high, left=left, fills=flat.fills, empty_left=flat.empty_left))
        elif tree.schema[j].kind is ColumnKind.CATEGORICAL:
            codes[j] = codes.get(j, _all_codes(tree, j)) & _codes(tree, flat, left)
        else:
            ends[j] = _intersect(ends.get(j, _all_ends(tree, j)), _ends(flat, left))
            empty[j] = empty.get(j, True) and flat.empty_left == left
    spans = {
        j: tuple(_span(low, high, decimals_for(tree, j, statistics[j], permissions[j])) for low, high in pieces)
        for j, pieces in ends.items()
    }
    if not all(column_spans or empty[j] for j, column_spans in spans.items()) or not all(codes.values()):
        return None
    return Region(leaf=leaf, label=tree.nodes[leaf].label, spans=spans, codes=codes, sums=tuple(sums), empty=empty)


def _all_codes(tree: Tree, j: int) -> frozenset[int]:
    return frozenset(range(UNKNOWN, len(tree.schema[j].categories)))


def _all_ends(tree: Tree, j: int) -> list[Ends]:
    return [(-1.0, 1.0)] if tree.schema[j].kind is ColumnKind.BINARY else [(-math.inf, math.inf)]


def full_spans(tree: Tree, j: int, statistics: ColumnStatistics, permission: Permission) -> tuple[Span, ...]:
    """Return the spans of a numeric column that no split limits."""
    decimals = decimals_for(tree, j, statistics, permission)
    return tuple(_span(low, high, decimals) for low, high in _all_ends(tree, j))


def _codes(tree: Tree, flat: Flat, left: bool) -> frozenset[int]:
    """Return the codes that go left, or right; UNKNOWN goes right at a set, and a threshold compares it as -1."""

    def goes_left(code: int) -> bool:
        if flat.test == AMONG:
            return 0 <= code < len(flat.member) and flat.member[code] == 1
        return flat.low < code <= flat.high

    return frozenset(code for code in _all_codes(tree, flat.feature) if goes_left(code) == left)


def _ends(flat: Flat, left: bool) -> list[Ends]:
    if flat.test == IS_EMPTY:
        return [] if left else [(-math.inf, math.inf)]
    if left:
        return [(flat.low, flat.high)] if flat.low < flat.high else []
    if flat.low >= flat.high:
        return [(-math.inf, math.inf)]
    return [(low, high) for low, high in ((-math.inf, flat.low), (flat.high, math.inf)) if low < high]


def _intersect(first: list[Ends], second: list[Ends]) -> list[Ends]:
    pieces = [(max(a, c), min(b, d)) for a, b in first for c, d in second]
    return [(low, high) for low, high in pieces if low < high]


def _span(low: float, high: float, decimals: int | None) -> Span:
    return Span(
        low=low,
        high=high,
        first=step_above(low, decimals) if math.isfinite(low) else -math.inf,
        last=step_at_most(high, decimals) if math.isfinite(high) else math.inf,
    )


def nearest(spans: Sequence[Span], value: float, permission: Permission) -> float | None:
    """Return the permitted value in a span nearest to `value`, which lies in no span; None without any."""
    best = None
    for span in spans:
        if value <= span.low:
            candidate = span.first if permission.up and span.first <= span.high else None
        else:
            candidate = span.last if permission.down and span.last > span.low else None
        if candidate is not None and (best is None or abs(candidate - value) < abs(best - value)):
            best = candidate
    return best


def permitted_codes(tree: Tree, j: int, region: Region, permission: Permission) -> list[int]:
    """Return the permitted categories of column `j` in this region, in rising order."""
    allowed = region.codes.get(j)
    return [c for c in reachable_codes(tree.schema[j], permission) if allowed is None or c in allowed]


def used_by(region: Region) -> list[int]:
    """Return the columns that the conditions of a leaf read."""
    return sorted({*region.spans, *region.codes, *(f for s in region.sums for f, _, _ in s.terms)})
