"""Encode columns as features of solvers, and decode features to splits.

The binary encodings follow Keegan et al. (accelerated BendOCT) and their published tables. Categorical columns become
one feature per level (two levels: one feature). Numeric columns become quantile buckets (QB-k) or quantile thresholds
(QT-k). Splits are in the columns' units.
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

MAX_CELLS = 50_000_000  # limit on rows × features with all thresholds


class Scheme(StrEnum):
    """The rule that turns numeric columns into binary features."""

    QUANTILE_THRESHOLDS = "quantile-thresholds"
    QUANTILE_BUCKETS = "quantile-buckets"
    ALL_THRESHOLDS = "all-thresholds"  # a threshold halfway between every two neighbouring values; `bins` is ignored
    NONE = "none"  # only binary and categorical columns are encoded; a numeric column is an error


class Test(StrEnum):
    """The test of an encoded feature on its column."""

    VALUE = "value"  # the value itself, for numeric encodings
    LEVEL = "level"  # 1 if the category is `level`
    ABOVE = "above"  # 1 if x > low
    INTERVAL = "interval"  # 1 if low < x ≤ high
    SPECIAL = "special"  # 1 if low < x ≤ high, where the interval contains only one value, a special code
    EMPTY = "empty"  # 1 if the cell is empty


INTERVALS = (Test.INTERVAL, Test.SPECIAL)


@dataclass(frozen=True, kw_only=True)
class EncodedFeature:
    """One feature of an encoding: its name, the index of its column, and its test.

    `empty` is the feature's value for an empty cell; None if the column has no empty training cells. For a value feature it
    lies below or above all values, which lie from `low` to `high`.
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
        """The column, and its category, VALUE or EMPTY, as in the terms of a sum."""
        if self.test is Test.EMPTY:
            return self.column, EMPTY
        return self.column, self.level if self.test is Test.LEVEL else VALUE

    def apply(self, values: FloatArray) -> FloatArray:
        """Return the feature, float64 (n,), of the column's `values`, float64 (n,)."""
        return self.cells(values).astype(np.float64, copy=False)

    def cells(self, values: np.ndarray) -> np.ndarray:
        """Return the feature as `apply` does, of float64 or stored `values`; bool if no cell can be empty."""
        present = self._present(values)
        return present if self.empty is None else np.where(np.isnan(values), self.empty, present)

    def _present(self, values: np.ndarray) -> np.ndarray:
        """Return the feature, ignoring empty cells."""
        if self.test is Test.EMPTY:
            return np.zeros(len(values), bool)
        if self.test is Test.VALUE:
            return values
        if self.test is Test.LEVEL:
            return values == self.level
        if self.test is Test.ABOVE:
            return values > self.low
        return (values > self.low) & (values <= self.high)

    def split(self) -> tuple[Split, bool]:
        """Return the split of the column for this binary feature, and whether rows with value 1 go left."""
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
        """Return the side of empty cells in the split of this binary feature."""
        if self.empty is None:
            return EmptySide.REFUSE
        return EmptySide.LEFT if (self.empty == 1) == one_left else EmptySide.RIGHT

    def cut(self, threshold: float) -> tuple[Split, bool]:
        """Return the split "this value feature ≤ threshold" of the column, and whether its sides are exchanged."""
        if self.empty is None:
            return Threshold(feature=self.column, threshold=threshold), False
        if self.empty < self.low:  # the encoding places empty cells below all values
            if threshold < self.low:
                return Missing(feature=self.column), False
            return Threshold(feature=self.column, threshold=threshold, missing=EmptySide.LEFT), False
        if threshold >= self.high:
            return Missing(feature=self.column), True
        return Threshold(feature=self.column, threshold=threshold, missing=EmptySide.RIGHT), False


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """Encoded features, and the schema of the table that they encode."""

    features: tuple[EncodedFeature, ...]
    schema: tuple[ColumnSchema, ...]

    def matrix(self, table: Table) -> FloatArray:
        """Return the features of `table`, float64 of shape (n, features), C-ordered."""
        matrix = np.empty((len(table), len(self.features)))
        self._fill(table, matrix)
        return matrix

    def bits(self, table: Table) -> BitArray:
        """Return the binary features of `table`, uint8 of shape (n, features), C-ordered."""
        bits = np.empty((len(table), len(self.features)), BIT)
        self._fill(table, bits)
        return bits

    def _fill(self, table: Table, out: np.ndarray) -> None:
        """Write the features into `out`, block by block."""
        for block in row_blocks(len(table)):
            for h, feature in enumerate(self.features):
                out[block, h] = feature.cells(table.columns[feature.column].cells[block])

    def fills(self, features: Sequence[int]) -> tuple[float, ...]:
        """Return the fill value of empty cells for each summand, NaN for none; () if no number learns from empty cells."""
        summands = [self.features[h] for h in features]
        numbers = [f for f in summands if f.test is not Test.LEVEL]
        if not any(self.schema[f.column].missing is MissingPolicy.LEARN for f in numbers):
            return ()
        return tuple(math.nan if f.test is not Test.VALUE or f.empty is None else f.empty for f in summands)

    def branch(self, feature: int, zero: Draft, one: Draft) -> DraftBranch:
        """Return the branch on binary feature `feature` with subtrees `zero` (value 0) and `one` (value 1)."""
        split, one_left = self.features[feature].split()
        return DraftBranch(split=split, left=one if one_left else zero, right=zero if one_left else one)


def encode_binary(
    table: Table,
    scheme: Scheme = Scheme.QUANTILE_THRESHOLDS,
    bins: int = 5,
    weights: CountArray | None = None,
    extra: Mapping[int, Sequence[float]] | None = None,
) -> Encoding:
    """Encode a table as binary features, in the order of the columns.

    A numeric column with empty cells has each feature twice, with the empty cells on either side, and a feature for "the
    cell is empty". Constant numeric columns are left out. Constant features that the quantile rules produce stay, as in the
    published tables.

    Parameters
    ----------
    table : Table
    scheme : Scheme
        Rule for numeric columns.
    bins : int
        Number of quantiles.
    weights : int64 array of shape (n,), optional
        Row weights. A row of weight w counts w times in quantiles.
    extra : mapping, optional
        Thresholds in addition to the quantiles, by column index.

    Raises
    ------
    DataError
        For a numeric column with scheme `none`, and for more than 50 million cells with scheme `all-thresholds`.
    """
    if scheme is Scheme.ALL_THRESHOLDS:
        _refuse_too_many(table, weights)
    features: list[EncodedFeature] = []
    for j, column in enumerate(table.columns):
        if column.kind is ColumnKind.CATEGORICAL:
            features += _levels(j, column)
        else:
            full = not column.has_missing
            present = ~column.missing
            present_column = column if full else replace(column, cells=column.cells[present])
            present_weights = weights if weights is None or full else weights[present]
            questions = _questions(j, present_column, scheme, bins, present_weights, (extra or {}).get(j, ()))
            features += questions if full else _with_empty(j, present_column, questions)
    return Encoding(features=tuple(features), schema=table.schema)


def _with_empty(j: int, present: Column, features: Sequence[EncodedFeature]) -> list[EncodedFeature]:
    """Return each feature with the empty cells on either side, and the feature "the cell is empty".

    `present` is the column without empty cells. A feature that is constant on it is left out: it would repeat "the cell is
    empty".
    """
    questions = [
        replace(f, name=f"{f.name}, empty {word}", empty=value)
        for f in features
        if np.ptp(f.apply(present.values)) > 0
        for value, word in ((0.0, "no"), (1.0, "yes"))
    ]
    return [*questions, EncodedFeature(name=f"{present.name} is empty", column=j, test=Test.EMPTY, empty=1.0)]


def _questions(
    j: int, column: Column, scheme: Scheme, bins: int, weights: CountArray | None, extra: Sequence[float]
) -> list[EncodedFeature]:
    """Return the features of a numeric or binary column without empty cells."""
    if not len(column) or (weights is not None and not weights.any()):
        return []
    low = column.cells.min()
    high = column.cells.max()
    if low == high:
        return []
    if (low, high) == (0.0, 1.0) and (column.kind is ColumnKind.BINARY or np.isin(column.cells, (0.0, 1.0)).all()):
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
    """Return the features of a numeric column: by the rule, by `extra` thresholds, and one per special value that occurs.

    The rule applies to ordinary values only.
    """
    if not column.schema.special or not (special := np.isin(column.cells, column.schema.special)).any():
        return _with_extra(j, column, rule(j, column, bins, weights), extra)
    ordinary = column.values[~special]
    ordinary_weights = None if weights is None else weights[~special]
    features: list[EncodedFeature] = []
    if len(ordinary) and ordinary.min() < ordinary.max() and (ordinary_weights is None or ordinary_weights.any()):
        features += _with_extra(j, column, rule(j, replace(column, cells=ordinary), bins, ordinary_weights), extra)
    values = np.unique(column.values)
    for place in np.flatnonzero(np.isin(values, column.schema.special)):
        low = -math.inf if place == 0 else middle(float(values[place - 1]), float(values[place]))
        high = math.inf if place == len(values) - 1 else middle(float(values[place]), float(values[place + 1]))
        name = f"{column.name}={decimal_text(values[place])}"
        features.append(EncodedFeature(name=name, column=j, test=Test.SPECIAL, low=low, high=high))
    return features


def _with_extra(j: int, column: Column, features: list[EncodedFeature], extra: Sequence[float]) -> list[EncodedFeature]:
    """Return the features, with a threshold for each new number of `extra`."""
    cuts = {f.low for f in features}
    return [*features, *(_above(j, column, cut) for cut in dict.fromkeys(extra) if cut not in cuts)]


def _above(j: int, column: Column, cut: float) -> EncodedFeature:
    return EncodedFeature(name=f"{column.name}>{decimal_text(cut)}", column=j, test=Test.ABOVE, low=cut)


def published_names(encoding: Encoding) -> tuple[str, ...]:
    """Return the feature names of the published tables of Keegan et al.

    `Feat<i>_Num<c>.th<j>`, `.buck<j>` or `Feat<i>_Cat<c>.<level>`: i is the index of the column, j counts the features of a
    column, c the categorical columns so far.
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
    """Return categories as the published names write them: numbers get '.0' if one of them is not whole."""
    try:
        values = [float(word) for word in categories]
    except ValueError:
        return list(categories)
    all_whole = all(value.is_integer() for value in values)
    return [str(int(value)) if all_whole else repr(value) for value in values]


def encode_numeric(table: Table) -> Encoding:
    """Encode a table as numeric features: numbers unchanged, one 0/1 feature per category, without constant features.

    A column with empty cells appears twice, with the empty cells below and above all values.
    """
    features: list[EncodedFeature] = []
    for j, column in enumerate(table.columns):
        if column.kind is ColumnKind.CATEGORICAL:
            features += _levels(j, column)
        elif column.has_missing:
            features += _virtual(j, column)
        elif len(column) and column.cells.min() < column.cells.max():
            features.append(EncodedFeature(name=column.name, column=j, test=Test.VALUE))
    return Encoding(features=tuple(features), schema=table.schema)


def encode_filled(table: Table, weights: CountArray | None = None, *, indicators: bool = True) -> Encoding:
    """Encode a table for linear splits: the numeric encoding with empty cells filled.

    Parameters
    ----------
    table : Table
    weights : int64 array of shape (n,), optional
        Row weights of the medians.
    indicators : bool
        Whether each column with empty cells also has the feature "the cell is empty". If False, such columns stay even
        with a single value.
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
    """Return the weighted lower median of the values that are not empty; None without values."""
    present = ~column.missing
    values = column.values[present]
    if not len(values):
        return None
    present_weights = None if weights is None or not weights[present].any() else weights[present]
    return _order_statistics(values, present_weights, [(_size(values, present_weights) - 1) // 2])[0]


def _virtual(j: int, column: Column) -> list[EncodedFeature]:
    """Return the two features of a column with empty cells; one if it has a single value, none if it has no value.

    Raise DataError if no number is left below or above its values.
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
    # levels that do not occur would give constant features; of two levels, the second suffices
    present = [int(c) for c in column.distinct]
    if len(present) < 2:
        return []
    encoded = present[1:] if len(present) == 2 else present
    names = column.schema.categories
    return [EncodedFeature(name=f"{column.name}={names[c]}", column=j, test=Test.LEVEL, level=c) for c in encoded]


def _order_statistics(values: np.ndarray, weights: CountArray | None, places: Sequence[int]) -> list[float]:
    """Return the order statistics at `places` (from 0), with each row repeated by its weight."""
    if weights is None:
        return (np.sort(values)[list(places)] + 0.0).tolist()  # adding 0.0 turns -0.0 into 0.0
    order = np.argsort(values, kind="stable")
    behind = np.cumsum(weights[order])
    return [float(values[order[np.searchsorted(behind, place, side="right")]]) for place in places]


def _size(values: np.ndarray, weights: CountArray | None) -> int:
    return len(values) if weights is None else int(weights.sum())


def _thresholds(j: int, column: Column, bins: int, weights: CountArray | None) -> list[EncodedFeature]:
    n = _size(column.cells, weights)
    # use exact integer arithmetic, because (n-1) r / bins is rarely representable as a float
    parts = [divmod((n - 1) * r, bins) for r in range(1, bins)]
    places = [at for place, remainder in parts for at in (place, place + (remainder > 0))]
    ordered = _order_statistics(column.cells, weights, places)
    cuts = [low if low == high else middle(low, high) for low, high in zip(ordered[::2], ordered[1::2], strict=True)]
    # the paper's thresholds are quantile + 1e-8, which amounts to x > quantile; a fixed shift would depend on the
    # column's unit
    return [_above(j, column, cut) for cut in dict.fromkeys(cuts)]


def _buckets(j: int, column: Column, bins: int, weights: CountArray | None) -> list[EncodedFeature]:
    values = column.values
    if weights is None:
        quantiles = np.quantile(values, np.arange(bins + 1) / bins)
    else:
        position = (_size(values, weights) - 1) * (np.arange(bins + 1) / bins)
        below = np.floor(position).astype(np.int64)
        share = position - below
        low = np.array(_order_statistics(values, weights, [int(b) for b in below]))
        high = np.array(_order_statistics(values, weights, [int(b) for b in np.ceil(position)]))
        # use both of NumPy's interpolation formulas, so that weighted and repeated rows agree to the last bit
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
    """Return the distinct values in rows of positive weight, sorted."""
    cells = column.cells if weights is None else column.cells[weights > 0]
    return np.unique(cells).astype(np.float64)


def _refuse_too_many(table: Table, weights: CountArray | None) -> None:
    """Raise DataError if all thresholds of the numeric columns would take too many cells."""
    numeric = (column for column in table.columns if column.kind is ColumnKind.NUMERIC)
    questions = sum(max(len(_distinct_values(column, weights)) - 1, 0) for column in numeric)
    if questions * len(table) > MAX_CELLS:
        raise DataError(
            f"All thresholds give {questions:,} questions about {len(table):,} rows, which is too many. "
            "Set 'binarise' to quantile-thresholds and choose 'bins'."
        )


def _every_threshold(j: int, column: Column, bins: int, weights: CountArray | None) -> list[EncodedFeature]:
    """Return thresholds halfway between neighbouring values in rows of positive weight."""
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
