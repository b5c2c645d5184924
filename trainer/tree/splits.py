"""The tests that a branch can make, in the uploaded columns' own units.

Routing: a threshold split sends x ≤ threshold left, a subset split sends the listed categories left, an interval split sends
low < x ≤ high left, a linear split sends a·x ≤ threshold left (the sum is taken in the listed order, in double precision).
Unknown categories and missing values go right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainer.dtypes import BoolArray, FloatArray
from trainer.errors import ModelFileError
from trainer.table import ColumnSchema, Kind


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Left if column `feature` ≤ `threshold`."""

    feature: int
    threshold: float

    kind = "threshold"

    @property
    def used(self) -> tuple[int, ...]:
        return (self.feature,)


@dataclass(frozen=True, kw_only=True)
class Interval:
    """Left if `low` < column `feature` ≤ `high`: a bucket of a numeric column; -inf and inf are allowed ends."""

    feature: int
    low: float
    high: float

    kind = "interval"

    @property
    def used(self) -> tuple[int, ...]:
        return (self.feature,)


@dataclass(frozen=True, kw_only=True)
class Subset:
    """Left if the category code of column `feature` is one of `codes` (sorted)."""

    feature: int
    codes: tuple[int, ...]

    kind = "subset"

    @property
    def used(self) -> tuple[int, ...]:
        return (self.feature,)


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Left if Σ coefficients · columns ≤ threshold.

    `levels[h]` is -1 where term h is the column's value and a category code where the term is the indicator of that category.
    """

    features: tuple[int, ...]
    coefficients: tuple[float, ...]
    threshold: float
    levels: tuple[int, ...]

    kind = "linear"

    @property
    def used(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self.features))


Split = Threshold | Interval | Subset | Linear


def coefficients(split: Split, schema: Sequence[ColumnSchema]) -> int:
    """How many terms a split weighs: those of a sum; for a set of categories the smaller of it and the others, at least one."""
    if isinstance(split, Linear):
        return len(split.features)
    if isinstance(split, Subset):
        return max(1, min(len(split.codes), len(schema[split.feature].categories) - len(split.codes)))
    return 1


def goes_left(split: Split, matrix: FloatArray) -> BoolArray:
    """Boolean array of shape (n,): the rows of `matrix` (n, columns) that `split` sends left; NumPy twin of the kernel."""
    if isinstance(split, Threshold):
        return matrix[:, split.feature] <= split.threshold
    if isinstance(split, Interval):
        values = matrix[:, split.feature]
        return (values > split.low) & (values <= split.high)
    if isinstance(split, Subset):
        return np.isin(matrix[:, split.feature], np.asarray(split.codes, dtype=np.float64))
    total = np.zeros(len(matrix))
    for feature, coefficient, level in zip(split.features, split.coefficients, split.levels, strict=True):
        values = matrix[:, feature]
        with np.errstate(invalid="ignore"):  # infinities of both signs cancel to NaN, which goes right
            total = total + coefficient * (values if level < 0 else (values == level).astype(np.float64))
    return total <= split.threshold


def linear(
    features: Sequence[int],
    coefficients: Sequence[float],
    threshold: float,
    levels: Sequence[int] | None = None,
    *,
    schema: Sequence[ColumnSchema],
) -> tuple[Split, bool]:
    """The simplest split that makes the same test as a·x ≤ threshold, and whether its sides are exchanged.

    One numeric column becomes a threshold, indicators of one categorical column become a subset. A threshold is
    recomputed by division, so a caller that needs exact routing checks the rows again.
    """
    levels = [-1] * len(features) if levels is None else list(levels)
    terms = [(f, float(a), lv) for f, a, lv in zip(features, coefficients, levels, strict=True) if a != 0.0]
    if len({f for f, _, _ in terms}) == 1 and all(lv >= 0 for _, _, lv in terms):
        feature = terms[0][0]
        score = np.zeros(len(schema[feature].categories))
        for _, a, level in terms:
            score[level] += a
        return Subset(feature=feature, codes=tuple(int(c) for c in np.flatnonzero(score <= threshold))), False
    if len(terms) == 1 and terms[0][2] < 0:
        feature, a, _ = terms[0]
        cut = threshold / a
        if a > 0:
            return Threshold(feature=feature, threshold=cut), False
        # a·x ≤ c with a < 0 is x ≥ c/a: the left side of x ≤ (just below c/a) is the other one
        return Threshold(feature=feature, threshold=math.nextafter(cut, -math.inf)), True
    return (
        Linear(
            features=tuple(f for f, _, _ in terms),
            coefficients=tuple(a for _, a, _ in terms),
            threshold=float(threshold),
            levels=tuple(lv for _, _, lv in terms),
        ),
        False,
    )


def split_to_json(split: Split, schema: Sequence[ColumnSchema]) -> dict[str, Any]:
    """The split as in the model file: columns and categories by name."""
    if isinstance(split, Threshold):
        return {"kind": "threshold", "feature": schema[split.feature].name, "threshold": split.threshold}
    if isinstance(split, Interval):
        low = None if math.isinf(split.low) else split.low
        high = None if math.isinf(split.high) else split.high
        return {"kind": "interval", "feature": schema[split.feature].name, "low": low, "high": high}
    if isinstance(split, Subset):
        column = schema[split.feature]
        return {"kind": "subset", "feature": column.name, "categories": [column.categories[c] for c in split.codes]}
    record: dict[str, Any] = {
        "kind": "linear",
        "features": [schema[f].name for f in split.features],
        "coefficients": list(split.coefficients),
        "threshold": split.threshold,
    }
    if any(level >= 0 for level in split.levels):
        record["categories"] = [
            schema[f].categories[level] if level >= 0 else None
            for f, level in zip(split.features, split.levels, strict=True)
        ]
    return record


def split_from_json(record: dict[str, Any], schema: Sequence[ColumnSchema]) -> Split:
    """The split from its dictionary; raises ModelFileError where a column or category is not in the schema."""
    index = {column.name: j for j, column in enumerate(schema)}

    def column(name: str) -> int:
        if name not in index:
            raise ModelFileError(f"A split uses the column '{name}', which the model's schema does not have.")
        return index[name]

    def code(feature: int, category: str) -> int:
        if category not in schema[feature].categories:
            raise ModelFileError(f"A split uses '{category}', which is no category of '{schema[feature].name}'.")
        return schema[feature].categories.index(category)

    kind = record.get("kind")
    if kind == "threshold":
        return Threshold(feature=column(record["feature"]), threshold=_number(record["threshold"]))
    if kind == "interval":
        low = -math.inf if record.get("low") is None else _number(record["low"])
        high = math.inf if record.get("high") is None else _number(record["high"])
        return Interval(feature=column(record["feature"]), low=low, high=high)
    if kind == "subset":
        feature = column(record["feature"])
        if schema[feature].kind is not Kind.CATEGORICAL:
            raise ModelFileError(f"A subset split needs a categorical column; '{schema[feature].name}' is none.")
        return Subset(feature=feature, codes=tuple(sorted(code(feature, c) for c in record["categories"])))
    if kind == "linear":
        features = tuple(column(name) for name in record["features"])
        names = record.get("categories") or [None] * len(features)
        coefficients = tuple(_number(a) for a in record["coefficients"])
        if not (len(features) == len(coefficients) == len(names)):
            raise ModelFileError("A linear split has lists of different lengths.")
        levels = tuple(-1 if c is None else code(f, c) for f, c in zip(features, names, strict=True))
        return Linear(
            features=features, coefficients=coefficients, threshold=_number(record["threshold"]), levels=levels
        )
    raise ModelFileError(f"The kind of split '{kind}' is not known to this version.")


def _number(value: Any) -> float:
    try:
        number = float(value)
    except OverflowError:  # an integer of hundreds of digits
        number = math.inf
    if not math.isfinite(number):
        raise ModelFileError("A split has a threshold or coefficient that is not a finite number.")
    return number
