"""Encodings: uploaded columns to the features that solvers search over, and back to splits in the columns' own units.

The rules of the binary encodings are from Keegan et al. (accelerated BendOCT) and their published tables: categorical columns
become one column per level (two levels: one column), numeric columns quantile buckets (QB-k) or quantile thresholds (QT-k).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from trainer.dtypes import BIT, BitArray, CountArray, FloatArray
from trainer.errors import DataError
from trainer.table import Column, ColumnKind, ColumnSchema, EmptySide, MissingPolicy, Table, row_blocks
from trainer.tree.nodes import Draft, DraftBranch
from trainer.tree.numbers import decimal_text, middle
from trainer.tree.splits import Interval, Missing, Split, Subset, Threshold
from trainer.tree.splits.base import EMPTY, VALUE

MOST_CELLS = 50_000_000  # rows times questions of all thresholds


class Scheme(StrEnum):
    """How numeric columns become binary features."""

    QUANTILE_THRESHOLDS = "quantile-thresholds"
    QUANTILE_BUCKETS = "quantile-buckets"
    ALL_THRESHOLDS = "all-thresholds"  # halfway between every two neighbouring values; `bins` plays no part
    NONE = "none"  # numeric columns are refused: only binary and categorical ones are encoded


class Test(StrEnum):
    """What an encoded feature says about its column."""

    VALUE = "value"  # the value itself (numeric encodings)
    LEVEL = "level"  # 1 if the category is `level`
    ABOVE = "above"  # 1 if x > low
    INTERVAL = "interval"  # 1 if low < x ≤ high
    SPECIAL = "special"  # 1 if low < x ≤ high, where no value but one that is a code lies
    EMPTY = "empty"  # 1 if the cell is empty


INTERVALS = (Test.INTERVAL, Test.SPECIAL)


@dataclass(frozen=True, kw_only=True)
class EncodedFeature:
    """One feature of an encoding: its name, the index of its column, and the test that it is.

    `empty` is what an empty cell has; None if the column of the training rows has none. A value feature of a column with empty cells
    has it below or above all values, which lie from `low` to `high`.
    """

    name: str
    column: int
    test: Test
    level: int = -1
    low: float = -math.inf
    high: float = math.inf
    empty: float | None = None

    @property
    def term(self) -> tuple[int, int]:
        """The column and, as in the terms of a sum, its category, VALUE or EMPTY."""
        if self.test is Test.EMPTY:
            return self.column, EMPTY
        return self.column, self.level if self.test is Test.LEVEL else VALUE

    def apply(self, values: FloatArray) -> FloatArray:
        """The feature for the column's `values` (n,), as float64."""
        found = self._present(values)
        return found if self.empty is None else np.where(np.isnan(values), self.empty, found)

    def _present(self, values: FloatArray) -> FloatArray:
        """The feature of the cells that are not empty."""
        if self.test is Test.EMPTY:
            return np.zeros(len(values))
        if self.test is Test.VALUE:
            return values
        if self.test is Test.LEVEL:
            return (values == self.level).astype(np.float64)
        if self.test is Test.ABOVE:
            return (values > self.low).astype(np.float64)
        return ((values > self.low) & (values <= self.high)).astype(np.float64)

    def split(self) -> tuple[Split, bool]:
        """The split of the own column that this binary feature makes, and whether rows with value 1 go left."""
        if self.test is Test.LEVEL:
            return Subset(feature=self.column, codes=(self.level,)), True
        if self.test is Test.EMPTY:
            return Missing(feature=self.column), True
        if self.test is Test.ABOVE or (self.test in INTERVALS and math.isinf(self.high)):
            return Threshold(feature=self.column, threshold=self.low, missing=self._side(one_left=False)), False
        if self.test in INTERVALS:
            side = self._side(one_left=True)
            if math.isinf(self.low):
                return Threshold(feature=self.column, threshold=self.high, missing=side), True
            return Interval(feature=self.column, low=self.low, high=self.high, missing=side), True
        raise DataError(f"The feature '{self.name}' is numeric and makes no split without a threshold.")

    def _side(self, *, one_left: bool) -> EmptySide:
        """Where empty cells go in the split of this binary feature."""
        if self.empty is None:
            return EmptySide.REFUSE
        return EmptySide.LEFT if (self.empty == 1) == one_left else EmptySide.RIGHT

    def cut(self, threshold: float) -> tuple[Split, bool]:
        """The split "this value feature ≤ threshold" of the own column, and whether its sides are exchanged."""
        if self.empty is None:
            return Threshold(feature=self.column, threshold=threshold), False
        if self.empty < self.low:  # empty cells lie below all values
            if threshold < self.low:
                return Missing(feature=self.column), False
            return Threshold(feature=self.column, threshold=threshold, missing=EmptySide.LEFT), False
        if threshold >= self.high:
            return Missing(feature=self.column), True
        return Threshold(feature=self.column, threshold=threshold, missing=EmptySide.RIGHT), False


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """Encoded features; `schema` is the schema of the table from which they were made."""

    features: tuple[EncodedFeature, ...]
    schema: tuple[ColumnSchema, ...]

    def matrix(self, table: Table) -> FloatArray:
        """The features of `table`, float64 of shape (n, features), C-ordered."""
        out = np.empty((len(table), len(self.features)))
        self._fill(table, out)
        return out

    def bits(self, table: Table) -> BitArray:
        """The binary features of `table`, uint8 of shape (n, features), C-ordered."""
        out = np.empty((len(table), len(self.features)), BIT)
        self._fill(table, out)
        return out

    def _fill(self, table: Table, out: np.ndarray) -> None:
        """Write the features into `out`, some rows at a time."""
        for block in row_blocks(len(table)):
            for h, feature in enumerate(self.features):
                out[block, h] = feature.apply(table.columns[feature.column].values[block])

    def fills(self, features: Sequence[int]) -> tuple[float, ...]:
        """What a sum of these features reads in place of empty cells, NaN where nothing; () if no number learns."""
        used = [self.features[h] for h in features]
        numbers = [f for f in used if f.test is not Test.LEVEL]
        if not any(self.schema[f.column].missing is MissingPolicy.LEARN for f in numbers):
            return ()
        return tuple(math.nan if f.test is not Test.VALUE or f.empty is None else f.empty for f in used)

    def branch(self, feature: int, zero: Draft, one: Draft) -> DraftBranch:
        """The branch on binary feature `feature` whose subtrees are `zero` (value 0) and `one` (value 1)."""
        split, one_left = self.features[feature].split()
        return DraftBranch(split=split, left=one if one_left else zero, right=zero if one_left else one)


def encode_binary(
    table: Table,
    scheme: Scheme = Scheme.QUANTILE_THRESHOLDS,
    bins: int = 5,
    weights: CountArray | None = None,
    extra: Mapping[int, Sequence[float]] | None = None,
) -> Encoding:
    """The binary encoding of `table`, features in the order of the columns.

    `extra` lists thresholds beside the quantiles, by the place of their column.

    A numeric column with empty cells has each of its questions twice, with the empty cells on either side, and the question whether the
    cell is empty; quantiles are those of its values.

    A row of weight w counts w times in quantiles, so that weights and repeated rows give the same features.

    Constant numeric columns are left out, as in the published tables; constant features that the quantile rules make are
    kept, since the published tables keep them. Raises DataError for a numeric column with scheme `none`, and for more than
    50 million answers (rows times questions) with scheme `all-thresholds`.
    """
    if scheme is Scheme.ALL_THRESHOLDS:
        _refuse_too_many(table, weights)
    features: list[EncodedFeature] = []
    for j, column in enumerate(table.columns):
        if column.kind is ColumnKind.CATEGORICAL:
            features += _levels(j, column)
        else:
            present = ~column.missing
            full = bool(present.all())
            own = column if full else replace(column, values=column.values[present])
            counted = weights if weights is None or full else weights[present]
            found = _questions(j, own, scheme, bins, counted, (extra or {}).get(j, ()))
            features += found if full else _with_empty(j, own, found)
    return Encoding(features=tuple(features), schema=table.schema)


def _with_empty(j: int, present: Column, features: Sequence[EncodedFeature]) -> list[EncodedFeature]:
    """Each question with the empty cells on either side, and the question whether the cell is empty (missing.md, section 2).

    `present` are the cells that are not empty. A question that separates none of them would only ask whether the cell is empty.
    """
    found = [
        replace(f, name=f"{f.name}, empty {word}", empty=value)
        for f in features
        if np.ptp(f.apply(present.values)) > 0
        for value, word in ((0.0, "no"), (1.0, "yes"))
    ]
    return [*found, EncodedFeature(name=f"{present.name} is empty", column=j, test=Test.EMPTY, empty=1.0)]


def _questions(
    j: int, column: Column, scheme: Scheme, bins: int, weights: CountArray | None, extra: Sequence[float]
) -> list[EncodedFeature]:
    """The questions about the values of a numeric or binary column without empty cells."""
    if not len(column.values) or (weights is not None and not weights.any()):
        return []
    low, high = column.values.min(), column.values.max()
    if low == high:
        return []
    if (low, high) == (0.0, 1.0) and (column.kind is ColumnKind.BINARY or np.isin(column.values, (0.0, 1.0)).all()):
        return [EncodedFeature(name=column.name, column=j, test=Test.ABOVE, low=0.5)]
    if scheme is Scheme.NONE:
        raise DataError(
            f"Column '{column.name}' is numeric and 'binarise' is 'none'. Choose quantile-thresholds or "
            "quantile-buckets, or make the column categorical."
        )
    return _numbers(j, column, RULES[scheme], bins, weights, extra)


def _numbers(
    j: int, column: Column, rule: Rule, bins: int, weights: CountArray | None, extra: Sequence[float]
) -> list[EncodedFeature]:
    """Return the questions of a numeric column: by the rule, by the thresholds `extra`, and one for each special value that occurs.

    The rule looks at the ordinary values.
    """
    if not column.schema.special or not (special := np.isin(column.values, column.schema.special)).any():
        return _with_extra(j, column, rule(j, column, bins, weights), extra)
    ordinary = column.values[~special]
    own = None if weights is None else weights[~special]
    features: list[EncodedFeature] = []
    if len(ordinary) and ordinary.min() < ordinary.max() and (own is None or own.any()):
        features += _with_extra(j, column, rule(j, replace(column, values=ordinary), bins, own), extra)
    values = np.unique(column.values)
    for at in np.flatnonzero(np.isin(values, column.schema.special)):
        low = -math.inf if at == 0 else middle(float(values[at - 1]), float(values[at]))
        high = math.inf if at == len(values) - 1 else middle(float(values[at]), float(values[at + 1]))
        name = f"{column.name}={decimal_text(values[at])}"
        features.append(EncodedFeature(name=name, column=j, test=Test.SPECIAL, low=low, high=high))
    return features


def _with_extra(j: int, column: Column, features: list[EncodedFeature], extra: Sequence[float]) -> list[EncodedFeature]:
    """Return the features and a threshold for each number of `extra` that none of them has."""
    known = {f.low for f in features}
    return [*features, *(_above(j, column, cut) for cut in dict.fromkeys(extra) if cut not in known)]


def _above(j: int, column: Column, cut: float) -> EncodedFeature:
    return EncodedFeature(name=f"{column.name}>{decimal_text(cut)}", column=j, test=Test.ABOVE, low=cut)


def published_names(encoding: Encoding) -> tuple[str, ...]:
    """The names of the features as in the published tables of Keegan et al.: `Feat<i>_Num<c>.th<j>`, `.buck<j>`, `Feat<i>_Cat<c>.<level>`.

    i is the position of the column, j counts the features of a column, c the categorical columns encoded so far.
    """
    names: list[str] = []
    categorical = 0
    for i, group in itertools.groupby(encoding.features, key=lambda feature: feature.column):
        schema = encoding.schema[i]
        features = list(group)
        if schema.kind is ColumnKind.NUMERIC:
            for j, feature in enumerate(features):
                word = "th" if feature.test is Test.ABOVE else "buck"
                names.append(f"Feat{i}_Num{categorical}.{word}{j}")
            continue
        levels = _published_levels(schema.categories)
        for feature in features:
            level = levels[feature.level] if feature.test is Test.LEVEL else "1"
            names.append(f"Feat{i}_Cat{categorical}.{level}")
        categorical += 1
    return tuple(names)


def _published_levels(categories: Sequence[str]) -> list[str]:
    """Categories as the published names write them: as numbers if all are numbers, with '.0' if one of them is not whole."""
    try:
        values = [float(word) for word in categories]
    except ValueError:
        return list(categories)
    whole = all(value.is_integer() for value in values)
    return [str(int(value)) if whole else repr(value) for value in values]


def encode_numeric(table: Table) -> Encoding:
    """Numeric and binary columns as they are, categorical ones as one 0/1 feature per category; constant features left out.

    A column with empty cells appears twice, with the empty cells below and above all values (missing.md, section 3).
    """
    features: list[EncodedFeature] = []
    for j, column in enumerate(table.columns):
        if column.kind is ColumnKind.CATEGORICAL:
            features += _levels(j, column)
        elif column.missing.any():
            features += _virtual(j, column)
        elif len(column.values) and column.values.min() < column.values.max():
            features.append(EncodedFeature(name=column.name, column=j, test=Test.VALUE))
    return Encoding(features=tuple(features), schema=table.schema)


def encode_filled(table: Table, weights: CountArray | None = None, *, indicators: bool = True) -> Encoding:
    """Return the features that sums weigh: as in the numeric encoding, with empty cells filled (missing.md, section 4).

    Parameters
    ----------
    table : Table
    weights : int64 array of shape (n,), optional
        Row weights of the medians.
    indicators : bool
        Whether each column with empty cells also has the feature [the cell is empty]. Without them, columns with one value stay.
    """
    features: list[EncodedFeature] = []
    for j, column in enumerate(table.columns):
        if column.kind is ColumnKind.CATEGORICAL:
            features += _levels(j, column)
            continue
        missing = column.missing
        fill = median_of(column, weights) if missing.any() else None
        values = column.values[~missing]
        if missing.all():
            continue
        if values.min() < values.max() or (fill is not None and not indicators):
            features.append(EncodedFeature(name=column.name, column=j, test=Test.VALUE, empty=fill))
        if fill is not None and indicators:
            features.append(EncodedFeature(name=f"{column.name} is empty", column=j, test=Test.EMPTY, empty=1.0))
    return Encoding(features=tuple(features), schema=table.schema)


def median_of(column: Column, weights: CountArray | None = None) -> float | None:
    """Return the lower median of the values that are not empty, each counted as often as its weight says; None without values."""
    present = ~column.missing
    values = column.values[present]
    if not len(values):
        return None
    own = None if weights is None or not weights[present].any() else weights[present]
    return _order_statistics(values, own, [(_size(values, own) - 1) // 2])[0]


def _virtual(j: int, column: Column) -> list[EncodedFeature]:
    """The two features of a column with empty cells; one if it has a single value, none if it has no value.

    Raises DataError if no number is left below or above its values.
    """
    values = column.values[~column.missing]
    if not len(values):
        return []
    low = float(values.min())
    high = float(values.max())
    step = max(1.0, high / 2 - low / 2, abs(low) / 2**40, abs(high) / 2**40)
    if not (math.isfinite(low - step) and math.isfinite(high + step)):
        raise DataError(f"Column '{column.name}' has empty cells and numbers of more than 10^307. Divide its values.")
    below = EncodedFeature(
        name=f"{column.name}, empty low", column=j, test=Test.VALUE, low=low, high=high, empty=low - step
    )
    above = replace(below, name=f"{column.name}, empty high", empty=high + step)
    return [below] if low == high else [below, above]


def _levels(j: int, column: Column) -> list[EncodedFeature]:
    # levels that do not occur would be constant columns; two levels need one column, for the second of them
    present = [int(c) for c in np.unique(column.values[~column.missing])]
    if len(present) < 2:
        return []
    kept = present[1:] if len(present) == 2 else present
    names = column.schema.categories
    return [EncodedFeature(name=f"{column.name}={names[c]}", column=j, test=Test.LEVEL, level=c) for c in kept]


def _order_statistics(values: FloatArray, weights: CountArray | None, places: Sequence[int]) -> list[float]:
    """The values at `places` (from 0) of the column, sorted, with each row repeated as often as its weight says."""
    if weights is None:
        return (np.sort(values)[list(places)] + 0.0).tolist()  # no zero with a sign
    order = np.argsort(values, kind="stable")
    behind = np.cumsum(weights[order])
    return [float(values[order[np.searchsorted(behind, place, side="right")]]) for place in places]


def _size(values: FloatArray, weights: CountArray | None) -> int:
    return len(values) if weights is None else int(weights.sum())


def _thresholds(j: int, column: Column, bins: int, weights: CountArray | None) -> list[EncodedFeature]:
    n = _size(column.values, weights)
    # exact integer arithmetic: (n-1) r / bins is rarely a representable fraction
    parts = [divmod((n - 1) * r, bins) for r in range(1, bins)]
    places = [at for place, rest in parts for at in (place, place + (rest > 0))]
    ordered = _order_statistics(column.values, weights, places)
    cuts = [low if low == high else middle(low, high) for low, high in zip(ordered[::2], ordered[1::2], strict=True)]
    # the published thresholds are quantile + 1e-8, "in effect x > quantile"; a shift would depend on the column's unit
    return [_above(j, column, cut) for cut in dict.fromkeys(cuts)]


def _buckets(j: int, column: Column, bins: int, weights: CountArray | None) -> list[EncodedFeature]:
    if weights is None:
        quantiles = np.quantile(column.values, np.arange(bins + 1) / bins)
    else:
        position = (_size(column.values, weights) - 1) * (np.arange(bins + 1) / bins)
        below = np.floor(position).astype(np.int64)
        share = position - below
        low = np.array(_order_statistics(column.values, weights, [int(b) for b in below]))
        high = np.array(_order_statistics(column.values, weights, [int(b) for b in np.ceil(position)]))
        # the two forms of NumPy's interpolation, so that weights and repeated rows agree to the last bit
        quantiles = np.where(share >= 0.5, high - (high - low) * (1 - share), low + (high - low) * share)
    edges = np.unique(quantiles)
    if len(edges) < 2:
        return []
    ends: Sequence[float] = [-math.inf, *(float(e) for e in edges[1:-1]), math.inf]
    return [
        EncodedFeature(
            name=f"{column.name} in ({_end(low)}, {_end(high)}]", column=j, test=Test.INTERVAL, low=low, high=high
        )
        for low, high in itertools.pairwise(ends)
    ]


def _end(value: float) -> str:
    return decimal_text(value) if math.isfinite(value) else str(value)


def _distinct_values(column: Column, weights: CountArray | None) -> FloatArray:
    """The distinct values of a numeric column in rows that count, rising."""
    return np.unique(column.values if weights is None else column.values[weights > 0])


def _refuse_too_many(table: Table, weights: CountArray | None) -> None:
    """Raises DataError if all thresholds of the numeric columns would be more answers than fit, before any question is made."""
    numeric = (column for column in table.columns if column.kind is ColumnKind.NUMERIC)
    questions = sum(max(len(_distinct_values(column, weights)) - 1, 0) for column in numeric)
    if questions * len(table) > MOST_CELLS:
        raise DataError(
            f"All thresholds give {questions:,} questions about {len(table):,} rows, which is too many. "
            "Set 'binarise' to quantile-thresholds and choose 'bins'."
        )


def _every_threshold(j: int, column: Column, bins: int, weights: CountArray | None) -> list[EncodedFeature]:
    """Halfway between neighbouring values of rows that count, whatever `bins`."""
    cuts = []
    for low, high in itertools.pairwise(_distinct_values(column, weights).tolist()):
        cuts.append(middle(low, high))
    return [_above(j, column, cut) for cut in cuts]


Rule = Callable[[int, Column, int, "CountArray | None"], list[EncodedFeature]]
RULES: dict[Scheme, Rule] = {
    Scheme.QUANTILE_THRESHOLDS: _thresholds,
    Scheme.QUANTILE_BUCKETS: _buckets,
    Scheme.ALL_THRESHOLDS: _every_threshold,
}
