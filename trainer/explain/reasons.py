"""Find the reasons of an answer, and changes of one column.

A reason is a smallest set of answers on the path of a row whose change alone leads to another class. A column
that the path does not test can be part of the change, if the tree then tests it. The other search finds all
values of one column that change the answer. Every change is predicted by the tree itself.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from trainer.data.column_statistics import ColumnStatistics
from trainer.dtypes import FloatArray
from trainer.explain.flip import Flip, Flipper
from trainer.explain.permission import FREE, Permission, reachable_codes
from trainer.explain.record import cell
from trainer.explain.region import Region, Sum, decimals_for, permitted_codes
from trainer.explain.statistics import step_above, step_at_most
from trainer.table import ColumnKind
from trainer.tree.nodes import Tree
from trainer.tree.splits import goes_left
from trainer.tree.splits.base import SUM, VALUE, Flat, Split

# notices of adverse action name at most four (official interpretation of Regulation B, 12 CFR 1002.9(b)(2))
MAX_REASONS = 4
WAYS = 64  # limit on the changes into one leaf that are compared; a threshold gives one, an interval up to three
FILL = Permission(fill=True)
LARGEST = float(np.finfo(np.float64).max)


class PathSplit(NamedTuple):
    """A split on the path of a row, and whether the row goes left there."""

    node: int
    split: Split
    left: bool


@dataclass(frozen=True, kw_only=True)
class Reason:
    """A reason: a change of the row that leads to another class.

    `nodes` are the splits on the path that the changed row answers differently. `further` are changed columns
    that none of these splits tests.
    """

    flip: Flip
    nodes: tuple[int, ...]
    further: tuple[int, ...]

    @property
    def parts(self) -> frozenset[tuple[str, int]]:
        """The changed answers and further columns, as one set for comparisons."""
        return frozenset([*(("node", v) for v in self.nodes), *(("column", j) for j in self.further)])


class Enough(NamedTuple):
    """Values of one column that lead to class `label`, all else unchanged: low < x ≤ high, or category `codes`."""

    label: int
    low: float = -math.inf
    high: float = math.inf
    codes: tuple[int, ...] = ()


class ReasonFinder:
    """Find the reasons of rows in one tree. `seconds` limits the programs for splits on weighted sums."""

    def __init__(self, tree: Tree, statistics: Sequence[ColumnStatistics], *, seconds: float = math.inf) -> None:
        permissions = [FREE if c.kind is ColumnKind.CATEGORICAL else FILL for c in tree.schema]
        self.tree = tree
        self.flipper = Flipper(tree, statistics, permissions, seconds=seconds)

    def principal(self, row: FloatArray) -> tuple[Reason, ...]:
        """Return up to four reasons of a row with an answer, float64 (columns,).

        Smaller sets of changed answers come first, then smaller changes. A set that includes another one is left out,
        and so is one that repeats the answers of another one with other further columns.
        If a leaf with another class lies behind a weighted sum, the sets are those of the smallest changes of columns.
        """
        row = self.flipper.with_unknown_categories(np.asarray(row, np.float64))
        splits = path_splits(self.tree, row)
        targets = self._targets(row)
        if _have_sums(targets):
            result = self.flipper.find(row)
            flips = [] if result.flip is None else [result.flip, *result.alternatives]
        else:
            flips = [flip for region in targets for flip in self._changes_into(row, region, splits)]
        reasons = sorted((self._reason(row, flip, splits) for flip in flips), key=_order)
        smallest: list[Reason] = []
        for reason in reasons:
            if not any(other.parts <= reason.parts for other in smallest):
                smallest.append(reason)
        # the same answers with other further columns would be the same reason again
        distinct: dict[frozenset[int], Reason] = {}
        for reason in smallest:
            distinct.setdefault(frozenset(reason.nodes), reason)
        return tuple(distinct.values())[:MAX_REASONS]

    def is_exact(self, row: FloatArray) -> bool:
        """Return whether `principal` searches the smallest sets of answers, not those of the smallest changes of columns."""
        return not _have_sums(self._targets(row))

    def _targets(self, row: FloatArray) -> list[Region]:
        label = int(self.tree.predict(row.reshape(1, -1))[0])
        return [region for region in self.flipper.regions if region.label != label]

    def enough(self, row: FloatArray, j: int) -> list[Enough]:
        """Return all values of column `j` that lead to another class while the other columns of the row stay.

        The list is empty if no value of this column alone is enough. It is complete: between two neighbouring thresholds
        of the column every value takes the same path.
        """
        row = self.flipper.with_unknown_categories(np.asarray(row, np.float64))
        column = self.tree.schema[j]
        if column.kind is ColumnKind.CATEGORICAL:
            codes = reachable_codes(column, FREE)
            answer, *labels = self._labels(row, j, [float(row[j]), *map(float, codes)])
            return [
                Enough(k, codes=tuple(c for c, label in zip(codes, labels, strict=True) if label == k))
                for k in sorted(set(labels) - {answer})
            ]
        pieces = [
            (low, high, value)
            for low, high in itertools.pairwise(self._ends(row, j))
            if (value := self._value_in(j, low, high)) is not None
        ]
        answer, *labels = self._labels(row, j, [float(row[j]), *(value for _, _, value in pieces)])
        intervals: list[Enough] = []
        before = answer
        for (low, high, _), label in zip(pieces, labels, strict=True):
            if label == before != answer:  # the column has no value between these two intervals, so they are joined
                intervals[-1] = intervals[-1]._replace(high=high)
            elif label != answer:
                intervals.append(Enough(label, low, high))
            before = label
        return intervals

    def _labels(self, row: FloatArray, j: int, values: Sequence[float]) -> list[int]:
        """Return the class of the row with each value in column `j`."""
        rows = np.repeat(row.reshape(1, -1), len(values), axis=0)
        rows[:, j] = values
        return [int(label) for label in self.tree.predict(rows)]

    def _ends(self, row: FloatArray, j: int) -> list[float]:
        """Return the thresholds of a numeric column for this row, between its outermost values."""
        low, high = (-1.0, 1.0) if self.tree.schema[j].kind is ColumnKind.BINARY else (-math.inf, math.inf)
        flats = (node.split.flat(self.tree.schema) for node in self.tree.nodes if node.split and j in node.split.used)
        inner = {end for flat in flats for end in _thresholds(flat, row, j) if low < end < high}
        return [low, *sorted(inner), high]

    def _value_in(self, j: int, low: float, high: float) -> float | None:
        """Return a possible value of column `j` in low < x ≤ high; None without one."""
        decimals = decimals_for(self.tree, j, self.flipper.statistics[j], self.flipper.permissions[j])
        if math.isinf(low):
            return 0.0 if math.isinf(high) else step_at_most(high, decimals)
        value = step_above(low, decimals)
        return value if value <= high else None

    def _changes_into(self, row: FloatArray, region: Region, splits: Sequence[PathSplit]) -> Iterator[Flip]:
        """Yield the changes into a leaf without sums that alter as few answers as possible: at most WAYS of them."""
        forced = [j for j in (*region.spans, *region.codes) if not region.holds(j, row[j])]
        options = [self._options(row, region, j, [s for s in splits if j in s.split.used]) for j in forced]
        for values in itertools.islice(itertools.product(*options), WAYS):
            changed = row.copy()
            changed[forced] = values
            yield from self.flipper.verify(row, changed, region)

    def _options(self, row: FloatArray, region: Region, j: int, tests: Sequence[PathSplit]) -> list[float]:
        """Return values of column `j` that the leaf allows, the nearest of each smallest set of changed answers."""
        if j in region.codes:
            values: list[float] = [float(code) for code in permitted_codes(self.tree, j, region, FREE)]
        else:
            values = self._numbers(row, region, j, tests)
        if not values:
            return []
        options = np.array(values, np.float64)
        if not math.isnan(row[j]):
            options = options[np.argsort(np.abs(options - row[j]), kind="stable")]
        # a column can have thousands of categories, so all of them are tested at once
        alone = np.repeat(row.reshape(1, -1), len(options), axis=0)
        alone[:, j] = options
        changed = np.zeros((len(options), len(tests)), bool)
        for k, s in enumerate(tests):
            changed[:, k] = goes_left(s.split, alone) != s.left
        distinct, first = np.unique(changed, axis=0, return_index=True)
        sets = {frozenset(np.flatnonzero(distinct[k]).tolist()): float(options[first[k]]) for k in np.argsort(first)}
        return [value for nodes, value in sets.items() if not any(other and other < nodes for other in sets)]

    def _numbers(self, row: FloatArray, region: Region, j: int, tests: Sequence[PathSplit]) -> list[float]:
        decimals = decimals_for(self.tree, j, self.flipper.statistics[j], self.flipper.permissions[j])
        start = self.flipper.usual_value(j) if math.isnan(row[j]) else float(row[j])
        thresholds = {end for s in tests for end in _thresholds(s.split.flat(self.tree.schema), row, j)}
        values = []
        for span in region.spans[j]:
            inner = sorted(end for end in thresholds if span.low < end < span.high)
            for low, high in itertools.pairwise([span.low, *inner, span.high]):
                value = start
                if start <= low:
                    value = step_above(low, decimals)
                elif start > high:
                    value = step_at_most(high, decimals)
                if low < value <= high:
                    values.append(value)
        return values

    def _reason(self, row: FloatArray, flip: Flip, splits: Sequence[PathSplit]) -> Reason:
        changed = _changed(splits, flip.row)
        tested = {j for s in changed for j in s.split.used}
        further = tuple(j for j in flip.columns if j not in tested)
        return Reason(flip=flip, nodes=tuple(s.node for s in changed), further=further)


def path_splits(tree: Tree, row: FloatArray) -> list[PathSplit]:
    """Return the splits on the path of a row, float64 (columns,), from the root."""
    path = tree.path_to(int(tree.apply(row.reshape(1, -1))[0]))
    nodes = [(tree.nodes[a], b) for a, b in itertools.pairwise(path)]
    return [PathSplit(node.id, node.split, node.left == b) for node, b in nodes if node.split is not None]


def reasons_record(finder: ReasonFinder, row: FloatArray) -> dict[str, Any]:
    """Return the reasons of a row with an answer, for JSON.

    `principal`: `answers` on the path whose change alone gives the class `without`, `further` columns that it changes,
    `changes` from and to. `empty` of an answer lists the columns whose empty cells decide it. `exact`: false if the sets are
    those of the smallest changes, as behind weighted sums. `columns`: for each column on the path the values that are `enough`
    for another class; an empty list: no value of this column alone is enough.
    """
    tree = finder.tree
    splits = {s.node: s for s in path_splits(tree, row)}
    columns = list(dict.fromkeys(j for s in splits.values() for j in s.split.used))
    return {
        "exact": finder.is_exact(row),
        "principal": [
            {
                "answers": [_answer(tree, splits[node], row) for node in reason.nodes],
                "further": [tree.schema[j].name for j in reason.further],
                "without": tree.classes[int(tree.labels[reason.flip.leaf])],
                "leaf": reason.flip.leaf,
                "changes": {
                    tree.schema[j].name: [
                        cell(finder.flipper, j, float(row[j])),
                        cell(finder.flipper, j, float(reason.flip.row[j])),
                    ]
                    for j in reason.flip.columns
                },
                "proved": reason.flip.proved,
            }
            for reason in finder.principal(row)
        ],
        "columns": [
            {"column": tree.schema[j].name, "enough": [_enough(tree, j, item) for item in finder.enough(row, j)]}
            for j in columns
        ],
    }


def _answer(tree: Tree, split: PathSplit, row: FloatArray) -> dict[str, Any]:
    question = split.split.text(tree.schema)
    empty = [tree.schema[j].name for j in split.split.empty_in(row)]
    head = {"node": split.node, "question": question, "answer": "yes" if split.left else "no"}
    return head | ({"empty": empty} if empty else {})


def _enough(tree: Tree, j: int, item: Enough) -> dict[str, Any]:
    column = tree.schema[j]
    head: dict[str, Any] = {"label": tree.classes[item.label]}
    if item.codes:
        return head | {"categories": [column.categories[code] for code in item.codes]}
    if column.kind is ColumnKind.BINARY:
        return head | {"values": [value for value in (0, 1) if item.low < value <= item.high]}
    ends = {"above": item.low, "at_most": item.high}
    return head | {name: end if math.isfinite(end) else None for name, end in ends.items()}


def _have_sums(targets: Sequence[Region]) -> bool:
    return any(region.sums for region in targets)


def _order(reason: Reason) -> tuple[int, float, int]:
    return len(reason.parts), reason.flip.distance, reason.flip.leaf


def _changed(splits: Sequence[PathSplit], row: FloatArray) -> list[PathSplit]:
    """Return the splits that send the row to the other side."""
    return [s for s in splits if bool(goes_left(s.split, row.reshape(1, -1))[0]) != s.left]


def _thresholds(flat: Flat, row: FloatArray, j: int) -> list[float]:
    """Return the finite values of column `j` up to which a split has one answer for this row, and above it another."""
    if flat.test != SUM:
        return [end for end in (flat.low, flat.high) if math.isfinite(end)] if flat.feature == j else []
    if (j, VALUE) not in flat.terms:
        return []
    terms = tuple((f, level, a) for (f, level), a in zip(flat.terms, flat.coefficients, strict=True))
    total = Sum(terms=terms, threshold=flat.high, left=True, fills=flat.fills, empty_left=flat.empty_left)
    end = _last_with_first_answer(total, row, j)
    return [] if end is None else [end]


def _last_with_first_answer(total: Sum, row: FloatArray, j: int) -> float | None:
    """Return the largest double at which the sum has the answer of the smallest double; None if all have the same.

    A rounded sum rises, or falls, with each of its terms, so that bisection over all doubles is exact. It begins at the solution in
    real numbers, which is a few doubles away.
    """
    other = row.copy()
    other[j] = 0.0
    values = total.values(other)
    if any(map(math.isnan, values)):
        return None  # another empty cell decides
    products = [c * value for (_, _, c), value in zip(total.terms, values, strict=True)]
    factors = [c if (f, level) == (j, VALUE) else None for f, level, c in total.terms]
    parts = list(zip(products, factors, strict=True))

    def holds(value: float) -> bool:
        """Return the same as `total.holds`, with the products of other columns computed once."""
        rounded = 0.0
        for product, factor in parts:
            rounded += product if factor is None else factor * value
        return (rounded <= total.threshold) == total.left

    first = holds(-LARGEST)
    if holds(LARGEST) == first:
        return None
    low = _ordinal(-LARGEST)
    high = _ordinal(LARGEST)
    slope = sum(factor for factor in factors if factor is not None)
    solution = (total.threshold - sum(products)) / slope if slope else math.inf
    place = _ordinal(solution)
    step = 1
    while low < place < high:
        if holds(_double(place)) == first:
            low = place
            place += step
        else:
            high = place
            place -= step
        step *= 2
    while high - low > 1:
        middle = (low + high) // 2
        if holds(_double(middle)) == first:
            low = middle
        else:
            high = middle
    return _double(low)


def _ordinal(value: float) -> int:
    """Return the place of a double in the order of all doubles."""
    (bits,) = struct.unpack(">q", struct.pack(">d", value))
    return int(bits) if bits >= 0 else -(int(bits) + (1 << 63))


def _double(place: int) -> float:
    bits = place if place >= 0 else -place - (1 << 63)
    return float(struct.unpack(">d", struct.pack(">q", bits))[0])
