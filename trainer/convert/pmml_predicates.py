"""Convert predicates of PMML to splits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from trainer.convert.pmml_fields import Fields, array_of
from trainer.convert.single_precision import double_threshold
from trainer.convert.xml_tree import Element
from trainer.errors import ConversionError
from trainer.table import ColumnKind, EmptySide
from trainer.tree.splits import Interval, Linear, Missing, Split, Subset, Threshold
from trainer.tree.splits.base import AMONG, BELOW, BETWEEN

OPPOSITE = {
    "lessOrEqual": "greaterThan", "lessThan": "greaterOrEqual", "equal": "notEqual", "isMissing": "isNotMissing",
    "isIn": "isNotIn",
}  # fmt: skip
OPPOSITE |= {after: before for before, after in OPPOSITE.items()}


@dataclass(frozen=True, kw_only=True)
class PredicateSplit:
    """A split whose left side holds the rows that satisfy a predicate; the right side if `swapped`."""

    split: Split
    swapped: bool = False


def opposite(one: Element, other: Element) -> bool:
    """Return whether `other` is true for exactly the rows for which `one` is false, missing values aside.

    Only pairs of simple predicates or sets on the same field are recognised.
    """
    if other.name != one.name or one.get("field") != other.get("field"):
        return False
    if one.name == "SimplePredicate":
        if OPPOSITE.get(str(one.get("operator"))) != other.get("operator"):
            return False
        return one.get("value") == other.get("value") or _same_number(one.get("value"), other.get("value"))
    if one.name == "SimpleSetPredicate":
        same = set(array_of(one)) == set(array_of(other))
        return same and OPPOSITE.get(str(one.get("booleanOperator"))) == other.get("booleanOperator")
    return False


def split_of_predicate(predicate: Element, fields: Fields, *, closed: bool) -> PredicateSplit:
    """Return the split of a predicate; raises ConversionError.

    `closed`: the next child has the opposite predicate, so that neither accepts a missing value.
    """
    if predicate.name == "CompoundPredicate":
        return _read_compound(predicate, fields)
    name = predicate.get("field")
    if name in fields.sums:
        return PredicateSplit(split=_read_sum(predicate, fields))
    j = fields.column(name, predicate)
    if predicate.name == "SimpleSetPredicate":
        return _among(j, array_of(predicate), predicate.get("booleanOperator") == "isNotIn", predicate, fields)
    operator = str(predicate.get("operator"))
    if fields.schema[j].kind is ColumnKind.CATEGORICAL:
        if operator not in ("equal", "notEqual"):
            raise ConversionError(f"{predicate} compares the category '{name}' with {operator}. Use equal or notEqual.")
        return _among(j, [str(predicate.get("value"))], operator == "notEqual", predicate, fields)
    return _number(j, operator, predicate, fields, closed)


def _number(j: int, operator: str, predicate: Element, fields: Fields, closed: bool) -> PredicateSplit:
    if operator == "isMissing":
        return PredicateSplit(split=Missing(feature=j))
    if operator == "isNotMissing":
        return PredicateSplit(split=Interval(feature=j, low=-math.inf, high=math.inf, missing=EmptySide.RIGHT))
    if operator not in ("lessOrEqual", "lessThan", "greaterThan", "greaterOrEqual", "equal"):
        raise ConversionError(
            f"{predicate} compares a number with {operator}, which cannot be converted. Use lessOrEqual, lessThan, greaterThan, greaterOrEqual or equal."
        )
    value = _value(predicate)
    at = _at_most(value, j in fields.single)
    below = _below(value, j in fields.single)
    if operator in ("lessOrEqual", "lessThan"):
        return PredicateSplit(split=Threshold(feature=j, threshold=at if operator == "lessOrEqual" else below))
    if operator == "equal":
        return PredicateSplit(split=Interval(feature=j, low=below, high=at))
    low = at if operator == "greaterThan" else below
    if closed:
        return PredicateSplit(split=Threshold(feature=j, threshold=low), swapped=True)
    # use an interval instead of a threshold: a missing value is not above `low`, so it must go right
    return PredicateSplit(split=Interval(feature=j, low=low, high=math.inf))


def _at_most(value: float, single: bool) -> float:
    """Return the double T for which x <= T is equivalent to PMML's x <= value."""
    return double_threshold(_single(value)) if single else value


def _below(value: float, single: bool) -> float:
    """Return the double T for which x <= T is equivalent to PMML's x < value."""
    return double_threshold(math.nextafter(_single(value), -math.inf)) if single else math.nextafter(value, -math.inf)


def _single(value: float) -> float:
    """Round a constant to single precision, as PMML does before it compares it with single values."""
    return float(np.float32(value))


def _among(j: int, words: Sequence[str], swapped: bool, predicate: Element, fields: Fields) -> PredicateSplit:
    column = fields.schema[j]
    if column.kind is not ColumnKind.CATEGORICAL:
        raise ConversionError(
            f"{predicate} compares the number '{column.name}' with a set of categories. Declare the field as categorical."
        )
    place = {word: code for code, word in enumerate(column.categories)}
    # a word that the field does not list cannot occur
    codes = tuple(sorted({place[word] for word in words if word in place}))
    return PredicateSplit(split=Subset(feature=j, codes=codes), swapped=swapped)


def _read_compound(predicate: Element, fields: Fields) -> PredicateSplit:
    """Read an `or` of categories of one field, or an `and` of bounds on one number."""
    parts = predicate.children
    operator = predicate.get("booleanOperator")
    names = {part.get("field") for part in parts if part.name in ("SimplePredicate", "SimpleSetPredicate")}
    if len(names) == 1 and all(part.name in ("SimplePredicate", "SimpleSetPredicate") for part in parts):
        splits = [split_of_predicate(part, fields, closed=False) for part in parts]
        flat = [a.split.flat(fields.schema) for a in splits]
        if operator == "or" and all(f.test == AMONG for f in flat) and not any(a.swapped for a in splits):
            codes = tuple(sorted({code for f in flat for code, member in enumerate(f.member) if member}))
            return PredicateSplit(split=Subset(feature=flat[0].feature, codes=codes))
        if operator == "and" and all(f.test in (BELOW, BETWEEN) for f in flat):
            low = max(f.low for f in flat)
            high = min(f.high for f in flat)
            return PredicateSplit(split=Interval(feature=flat[0].feature, low=low, high=high))
    raise ConversionError(
        f"{predicate} combines predicates with '{operator}' in a way that cannot be converted. "
        "Use 'or' for categories of one field, or 'and' for the two ends of one number."
    )


def _read_sum(predicate: Element, fields: Fields) -> Linear:
    if predicate.name != "SimplePredicate" or predicate.get("operator") != "lessOrEqual":
        raise ConversionError(
            f"{predicate} does not compare its derived field with lessOrEqual, which is the only possible operator. Use lessOrEqual."
        )
    weighted_sum = fields.sums[str(predicate.get("field"))]
    return Linear(
        features=tuple(j for j, _, _ in weighted_sum.terms),
        coefficients=tuple(a for *_, a in weighted_sum.terms),
        threshold=_value(predicate),
        levels=tuple(level for _, level, _ in weighted_sum.terms),
        fills=weighted_sum.fills if weighted_sum.has_fills else (),
        missing=EmptySide.FILL if weighted_sum.has_fills else EmptySide.REFUSE,
    )


def _value(predicate: Element) -> float:
    try:
        value = float(str(predicate.get("value")))
    except ValueError as error:
        raise ConversionError(
            f"{predicate} compares with '{str(predicate.get('value'))[:40]}', which is not a number. Correct the value."
        ) from error
    if not math.isfinite(value):
        raise ConversionError(f"{predicate} compares with {value}, which is not a finite number. Correct the value.")
    return value


def _same_number(one: str | None, other: str | None) -> bool:
    to_number: Callable[[str], float] = float
    try:
        return to_number(str(one)) == to_number(str(other))
    except ValueError:
        return False
