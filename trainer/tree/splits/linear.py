"""Split at a weighted sum of columns: a hyperplane."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.errors import ModelFileError
from trainer.table import MISSING_CATEGORY, ColumnKind, EmptySide
from trainer.tree.numbers import (
    DIGITS,
    MAX_DIGITS,
    MINUS,
    TIMES,
    decimal_text,
    label,
    number_text,
    read_number,
    round_digits,
    shortest_between,
    unit,
)
from trainer.tree.splits.base import (
    EMPTY,
    SUM,
    VALUE,
    Condition,
    Dialect,
    Flat,
    NumericSplit,
    OnnxGraph,
    PmmlModel,
    Schema,
    Split,
    Term,
    Values,
    category_code,
    column_index,
    finite,
    read_empty,
)
from trainer.tree.splits.missing import Missing
from trainer.tree.splits.subset import Subset
from trainer.tree.splits.threshold import Threshold

OTHER_SIDE = {EmptySide.LEFT: EmptySide.RIGHT, EmptySide.RIGHT: EmptySide.LEFT} | {
    side: side for side in (EmptySide.FILL, EmptySide.REFUSE)
}
KEPT = 0.5  # rounded coefficients must leave at least this share of the gap between the sides
FEW = 4096  # with more rows than this, the nearest ones are tried before all are summed


@dataclass(frozen=True, kw_only=True)
class Linear(NumericSplit):
    """A split that sends a row left if Σ coefficients · columns ≤ threshold.

    The sum is taken in the listed order, in double precision.

    `levels[h]` is VALUE if term h is the column's value, and EMPTY if it indicates an empty cell. Otherwise it is the
    code of the category that the term indicates. With the side FILL, a value of `fills` replaces an empty cell; it is
    NaN for other terms. With another side, one empty cell decides.
    """

    features: tuple[int, ...]
    coefficients: tuple[float, ...]
    threshold: float
    levels: tuple[int, ...]
    fills: tuple[float, ...] = ()

    kind = "linear"

    @property
    def used(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self.features))

    @property
    def terms(self) -> tuple[Term, ...]:
        """Column, category (or VALUE or EMPTY), and coefficient of every term."""
        return tuple(zip(self.features, self.levels, self.coefficients, strict=True))

    @property
    def many(self) -> bool:
        return len(self.used) > 2

    @property
    def weighted(self) -> tuple[tuple[Term, ...], float] | None:
        return self.terms, self.threshold

    def size(self, schema: Schema) -> int:
        return len(self.features)

    def parts(self) -> int:
        return len(self.features)

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(f for f, level in zip(self.features, self.levels, strict=True) if level < 0))

    @property
    def refused(self) -> tuple[int, ...]:
        """The columns in which an empty cell gets no answer: of categories, and with the side FILL of values without a fill."""
        if self.missing is EmptySide.REFUSE:
            return self.used
        categories = (f for f, level in zip(self.features, self.levels, strict=True) if level >= 0)
        values = self.deciding if self.missing is EmptySide.FILL else ()
        return tuple(dict.fromkeys((*categories, *values)))

    @property
    def filled(self) -> Mapping[int, float]:
        return {f: fill for f, fill in zip(self.features, self.fills, strict=False) if not math.isnan(fill)}

    def with_filled(self, fills: Mapping[int, float]) -> Linear:
        terms = tuple(
            fills.get(f, fill) if level == VALUE else fill
            for f, level, fill in zip(self.features, self.levels, self.fills, strict=True)
        )
        return replace(self, fills=terms)

    def sums(self, matrix: FloatArray) -> FloatArray:
        """Return the sum of every row, float64 (n,), in the order and arithmetic of the kernel."""
        total = np.zeros(len(matrix))
        for h, (feature, level, coefficient) in enumerate(self.terms):
            values = matrix[:, feature]
            if level == EMPTY:
                values = np.isnan(values).astype(np.float64)
            elif level >= 0:
                values = (values == level).astype(np.float64)
            elif self.fills:
                values = np.where(np.isnan(values), self.fills[h], values)
            # infinities of opposite signs add up to NaN, which goes right
            with np.errstate(invalid="ignore", over="ignore"):
                total = total + np.multiply(coefficient, values, dtype=np.float64)  # values may be bytes
        return total

    def goes_left(self, matrix: FloatArray) -> BoolArray:
        left = self.sums(matrix) <= self.threshold
        return left if self.missing is EmptySide.FILL else self.sides(left, matrix)

    def with_empty(self, side: EmptySide, *, seen: bool = True) -> Linear:
        return replace(self, missing=side, missing_seen=seen, fills=self.fills if side is EmptySide.FILL else ())

    def flat(self, schema: Schema) -> Flat:
        terms = tuple(zip(self.features, self.levels, strict=True))
        return Flat(
            test=SUM,
            high=self.threshold,
            terms=terms,
            coefficients=self.coefficients,
            fills=self.fills,
            empty_left=self.missing is EmptySide.LEFT,
        )

    def to_json(self, schema: Schema) -> dict[str, Any]:
        record: dict[str, Any] = {
            "kind": self.kind,
            "features": [schema[f].name for f in self.features],
            "coefficients": list(self.coefficients),
            "threshold": self.threshold,
        }
        if any(level != VALUE for level in self.levels):
            record["categories"] = [_category_name(schema, f, lv) for f, lv, _ in self.terms]
        return record | self.empty_json()

    @classmethod
    def from_json(cls, record: Mapping[str, Any], schema: Schema) -> Linear:
        features = tuple(column_index(name, schema) for name in record["features"])
        names = record.get("categories") or [None] * len(features)
        coefficients = tuple(finite(a) for a in record["coefficients"])
        if not (len(features) == len(coefficients) == len(names)):
            raise ModelFileError("A linear split has lists of different lengths.")
        levels = tuple(_level(f, c, schema) for f, c in zip(features, names, strict=True))
        empty = read_empty(record)
        filled = empty["missing"] is EmptySide.FILL
        return cls(
            features=features,
            coefficients=coefficients,
            threshold=finite(record["threshold"]),
            levels=levels,
            fills=tuple(_fill(f, lv, schema) for f, lv in zip(features, levels, strict=True)) if filled else (),
            **empty,
        )

    def rename(self, column: Callable[[int], int], code: Callable[[int, int], int]) -> Linear:
        positions = [
            (column(f), lv if lv < 0 else code(f, lv), a, fill)
            for (f, lv, a), fill in zip(self.terms, self.replacements, strict=True)
            if lv < 0 or code(f, lv) >= 0
        ]
        return replace(
            self,
            features=tuple(f for f, _, _, _ in positions),
            coefficients=tuple(a for _, _, a, _ in positions),
            levels=tuple(lv for _, lv, _, _ in positions),
            fills=tuple(fill for _, _, _, fill in positions) if self.fills else (),
        )

    def text(self, schema: Schema, most: int | None = None) -> str:
        parts: list[str] = []
        for feature, level, a in self.terms:
            name = _term_name(schema, feature, level)
            size = name if abs(a) == 1 else f"{number_text(abs(a), full=True)} {TIMES} {name}"
            if parts:
                parts.append(f"{MINUS if a < 0 else '+'} {size}")
            else:
                parts.append(f"{MINUS}{size}" if a < 0 else size)
        # if the first coefficient is 1, the sum has the unit of the first column
        same = bool(self.terms) and self.coefficients[0] == 1 and self.levels[0] == VALUE
        words = unit(schema[self.features[0]]) if same else ""
        return f"{' '.join(parts) or '0'} ≤ {number_text(self.threshold, full=True)}{words}{self.empty_words()}"

    def value_text(self, schema: Schema, row: FloatArray) -> str:
        """Return the sum with the fewest digits, at least three, that distinguish it from the threshold."""
        total = float(self.sums(np.asarray(row, np.float64).reshape(1, -1))[0])
        for digits in range(DIGITS, MAX_DIGITS):
            text = number_text(total, digits)
            if not math.isfinite(total) or _same_side(read_number(text), total, self.threshold):
                return text
        return number_text(total, full=True)

    def conditions(self, schema: Schema, left: bool) -> tuple[Condition, ...]:
        sums: dict[str, float] = {}
        for feature, level, a in self.terms:  # a column that appears in several terms counts once
            key = schema[feature].name if level == VALUE else _term_name(schema, feature, level)
            sums[key] = sums[key] + a if key in sums else a
        levels = {
            _term_name(schema, f, lv): (schema[f].name, str(_category_name(schema, f, lv)))
            for f, lv, _ in self.terms
            if lv != VALUE
        }
        filled = zip(self.features, self.replacements, strict=True)
        fills = {schema[f].name: fill for f, fill in filled if not math.isnan(fill)}
        return (
            Condition(
                terms=tuple(sums.items()),
                fills=tuple(fills.items()),
                levels=tuple((key, *names) for key, names in levels.items()),
                op="<=" if left else ">",
                value=decimal_text(self.threshold),
                missing=None if self.missing is EmptySide.FILL else self.empty_condition(left),
            ),
        )

    @property
    def replacements(self) -> tuple[float, ...]:
        """The number that replaces an empty cell in each term; NaN if none does."""
        return self.fills or (math.nan,) * len(self.features)

    @property
    def deciding(self) -> tuple[int, ...]:
        """The columns of the values that no fill replaces."""
        terms = zip(self.features, self.levels, self.replacements, strict=True)
        return tuple(dict.fromkeys(f for f, level, fill in terms if level == VALUE and math.isnan(fill)))

    @property
    def reads_empty(self) -> bool:
        return EMPTY in self.levels or super().reads_empty

    def comparison(self, dialect: Dialect) -> str:
        return dialect.sum_at_most(self.terms, self.threshold, self.replacements)

    def onnx(self, graph: OnnxGraph, node: int) -> None:
        values = [
            graph.filled(f, fill) if level == VALUE else graph.indicator(f, level)
            for (f, level, _), fill in zip(self.terms, self.replacements, strict=True)
        ]
        total = graph.weighted_sum(values, self.coefficients)
        graph.test_value(node, total, self.threshold, empty_left=self.empty_left)

    def pmml(self, model: PmmlModel, node: int) -> ET.Element:
        field = model.sum_field(node, self.terms, self.replacements)
        return model.simple(field, "lessOrEqual", repr(self.threshold))

    def plane(self) -> tuple[tuple[Term, ...], float, bool] | None:
        return self.terms, self.threshold, False

    def shorten(self, values: Values, matrix: FloatArray, rows: CountArray) -> tuple[Split, bool]:
        """Divide the coefficients by the first, and round them as long as the rows go the same way.

        The fewest digits are used that leave half of the gap between the two sides; the threshold is a short decimal
        near its middle. If doubles allow no division by the first, as with columns of 1e-300 and 1e300, another term
        becomes the first.
        """
        inside = matrix[rows]
        if self.missing is not EmptySide.FILL:
            inside = inside[~self.empty_rows(inside)]
        left = self.goes_left(inside)
        if left.all() or not left.any():
            return self, False
        size = np.abs(self.coefficients)
        for h in dict.fromkeys([0, *np.argsort(-size, kind="stable").tolist()]):
            divided = self._led_by(h)._divide(inside, left)
            if divided is not None:
                return divided
        return self, False

    def _led_by(self, h: int) -> Linear:
        """Return the sum with term h in front."""
        order = [h, *(k for k in range(len(self.features)) if k != h)]
        return replace(
            self,
            features=tuple(self.features[k] for k in order),
            coefficients=tuple(self.coefficients[k] for k in order),
            levels=tuple(self.levels[k] for k in order),
            fills=tuple(self.fills[k] for k in order) if self.fills else (),
        )

    def _divide(self, rows: FloatArray, left: BoolArray) -> tuple[Split, bool] | None:
        """Divide the sum by its first coefficient and round it; return None if the rows would not go the same way."""
        first = self.coefficients[0]
        if first == 0:
            return None
        low_side = left if first > 0 else ~left
        scaled = [a / first for a in self.coefficients]
        if not all(math.isfinite(a) and (a != 0) == (b != 0) for a, b in zip(scaled, self.coefficients, strict=True)):
            return None
        width = _gap(replace(self, coefficients=tuple(scaled)), rows, low_side)
        least_gap = KEPT * (width[1] - width[0]) if width else 0.0
        near = _nearest_rows(self.sums(rows), left) if len(rows) > FEW else np.zeros(0, np.int64)
        close = rows[near]
        close_side = low_side[near]
        for digits in range(1, MAX_DIGITS + 1):
            candidate = replace(self, coefficients=tuple(round_digits(a, digits) for a in scaled))
            if len(near) and not _parts(candidate, close, close_side, least_gap):
                continue  # the nearest rows already leave too small a gap, and more rows cannot widen it
            gap = _gap(candidate, rows, low_side)
            if gap is not None and gap[1] - gap[0] >= least_gap:
                candidate = replace(candidate, threshold=shortest_between(*gap))
                return (
                    (candidate.with_empty(OTHER_SIDE[candidate.missing], seen=candidate.missing_seen), True)
                    if first < 0
                    else (candidate, False)
                )
        return None


def _nearest_rows(sums: FloatArray, left: BoolArray) -> CountArray:
    """Return the rows of both sides that lie nearest to the threshold, at most FEW / 4 of each."""
    positions = []
    for side, distance in ((left, -sums), (~left, sums)):
        rows = np.flatnonzero(side)
        most = FEW // 4
        positions.append(rows[np.argpartition(distance[rows], most)[:most]] if len(rows) > most else rows)
    return np.concatenate(positions)


def _parts(split: Linear, rows: FloatArray, low_side: BoolArray, least_gap: float) -> bool:
    """Return whether the sums of the low side lie below the others by `least_gap` or more."""
    sums = split.sums(rows)
    low = float(sums[low_side].max())
    high = float(sums[~low_side].min())
    return low < high and high - low >= least_gap


def _gap(split: Linear, rows: FloatArray, low_side: BoolArray) -> tuple[float, float] | None:
    """Return the largest sum of the low side and the smallest of the other; None if no threshold separates them."""
    sums = split.sums(rows)
    low = float(sums[low_side].max())
    high = float(sums[~low_side].min())
    return (low, high) if low < high and math.isfinite(low) and math.isfinite(high) else None


def _same_side(rounded_total: float, total: float, threshold: float) -> bool:
    """Return whether the rounded sum lies on the same side of the threshold as the sum."""
    return (rounded_total < threshold, rounded_total == threshold) == (total < threshold, total == threshold)


def _category_name(schema: Schema, feature: int, level: int) -> str | None:
    """Return the name of the category of a term for the model file; None for a value."""
    if level == VALUE:
        return None
    return MISSING_CATEGORY if level == EMPTY else schema[feature].categories[level]


def _level(feature: int, name: Any, schema: Schema) -> int:
    """Return the level of a term from its name in a model file; raise ModelFileError if the column lacks it."""
    if name is None:
        return VALUE
    if name == MISSING_CATEGORY and schema[feature].kind is not ColumnKind.CATEGORICAL:
        return EMPTY
    return category_code(feature, name, schema)


def _fill(feature: int, level: int, schema: Schema) -> float:
    """Return the fill value of a term; NaN for a column without one, whose empty cells get no answer, and for other terms."""
    fill = schema[feature].fill
    if level != VALUE or fill is None:
        return math.nan
    if not math.isfinite(fill):
        raise ModelFileError(f"The fill value of '{schema[feature].name}' is not a finite number.")
    return fill


def _term_name(schema: Schema, feature: int, level: int) -> str:
    column = schema[feature]
    if level == VALUE:
        return label(column.name)
    return f"[{label(column.name)} is {'empty' if level == EMPTY else label(column.categories[level])}]"


def linear(
    features: Sequence[int],
    coefficients: Sequence[float],
    threshold: float,
    levels: Sequence[int] | None = None,
    *,
    schema: Schema,
    fills: Sequence[float] = (),
) -> tuple[Split, bool]:
    """Return the simplest split for the test a·x ≤ threshold, and whether its sides are exchanged.

    One numeric column becomes a threshold or a test for empty cells; indicators of one categorical column become a
    subset. A threshold is computed by division, so a caller that needs exact routing must check the rows again. `fills`
    as in `Linear`.
    """
    levels = [-1] * len(features) if levels is None else list(levels)
    positions = [h for h, a in enumerate(coefficients) if a != 0.0]
    terms = [(features[h], float(coefficients[h]), levels[h]) for h in positions]
    own_fills = tuple(fills[h] for h in positions) if fills else ()
    if len({f for f, _, _ in terms}) == 1 and all(lv >= 0 for _, _, lv in terms):
        feature = terms[0][0]
        score = np.zeros(len(schema[feature].categories))
        for _, a, level in terms:
            score[level] += a
        return Subset(feature=feature, codes=tuple(int(c) for c in np.flatnonzero(score <= threshold))), False
    if len({f for f, _, _ in terms}) == 1 and len({lv for _, _, lv in terms}) == len(terms):
        by_level = {lv: a for _, a, lv in terms}
        fill = next((fill for fill, (_, _, lv) in zip(own_fills, terms, strict=False) if lv == VALUE), math.nan)
        return _one_column(terms[0][0], by_level.get(VALUE, 0.0), by_level.get(EMPTY, 0.0), fill, threshold)
    return (
        Linear(
            features=tuple(f for f, _, _ in terms),
            coefficients=tuple(a for _, a, _ in terms),
            threshold=float(threshold),
            levels=tuple(lv for _, _, lv in terms),
            fills=own_fills,
            missing=EmptySide.FILL if own_fills else EmptySide.REFUSE,
        ),
        False,
    )


def _one_column(feature: int, value: float, empty: float, fill: float, threshold: float) -> tuple[Split, bool]:
    """Return the split value·x + empty·[x is empty] ≤ threshold, and whether its sides are exchanged; `fill` replaces an empty x."""
    if value == 0.0:
        return Missing(feature=feature), empty > threshold
    empty_left = value * fill + empty <= threshold
    cut = threshold / value
    exchanged = value < 0
    if exchanged:
        # a·x ≤ c with a < 0 is x ≥ c/a, which is the right side of x ≤ (just below c/a)
        cut = math.nextafter(cut, -math.inf)
    side = EmptySide.LEFT if empty_left != exchanged else EmptySide.RIGHT
    return Threshold(feature=feature, threshold=cut, missing=EmptySide.REFUSE if math.isnan(fill) else side), exchanged
