"""Build linear expressions and rows with operators: `total(b[n, f] for f in F) + p[n] == 1`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trainer.dtypes import CountArray, FloatArray

Number = int | float


class Expression:
    """A linear expression: coefficients by column number, and a constant."""

    __slots__ = ("constant", "terms")
    __hash__ = None  # type: ignore[assignment]  # `==` makes a row, so expressions cannot be keys

    def __init__(self, terms: dict[int, float] | None = None, constant: float = 0.0) -> None:
        self.terms = {} if terms is None else terms
        self.constant = constant

    def add(self, other: Expression | Number, factor: float = 1.0) -> Expression:
        """Add `factor * other` in place, and return self; only for expressions that are not shared."""
        if isinstance(other, Expression):
            terms = self.terms
            for column, value in other.terms.items():
                terms[column] = terms.get(column, 0.0) + factor * value
            self.constant += factor * other.constant
        else:
            self.constant += factor * float(other)
        return self

    def copy(self) -> Expression:
        """Return a copy of the expression."""
        return Expression(dict(self.terms), self.constant)

    def __add__(self, other: Expression | Number) -> Expression:
        return self.copy().add(other)

    __radd__ = __add__

    def __sub__(self, other: Expression | Number) -> Expression:
        return self.copy().add(other, -1.0)

    def __rsub__(self, other: Expression | Number) -> Expression:
        return (-self).add(other)

    def __mul__(self, factor: Number) -> Expression:
        factor = float(factor)
        return Expression({c: factor * v for c, v in self.terms.items()}, factor * self.constant)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Number) -> Expression:
        return self * (1.0 / divisor)

    def __neg__(self) -> Expression:
        return self * -1.0

    def __le__(self, other: Expression | Number) -> Row:
        return row(self - other, upper=0.0)

    def __ge__(self, other: Expression | Number) -> Row:
        return row(self - other, lower=0.0)

    def __eq__(self, other: object) -> Row:  # type: ignore[override]
        if not isinstance(other, (Expression, int, float)):
            return NotImplemented
        return row(self - other, lower=0.0, upper=0.0)


def total(parts: Iterable[Expression | Number]) -> Expression:
    """Return the sum of expressions and numbers."""
    result = Expression()
    for part in parts:
        result.add(part)
    return result


def weighted(columns: Iterable[int], coefficients: Iterable[float]) -> Expression:
    """Return the expression with these columns and coefficients; equal columns are summed."""
    terms: dict[int, float] = {}
    for column, value in zip(columns, coefficients, strict=True):
        terms[int(column)] = terms.get(int(column), 0.0) + float(value)
    return Expression(terms)


@dataclass(frozen=True, eq=False)
class Row:
    """`lower <= coefficients @ x[columns] <= upper`.

    `name` is the family under which the row is counted. A lazy row may reject points that satisfy the base rows. A `user` row only tightens
    the linear relaxation, so a back end may drop it.
    """

    columns: np.ndarray
    coefficients: FloatArray
    lower: float = -math.inf
    upper: float = math.inf
    name: str = ""
    user: bool = False

    def named(self, name: str, *, user: bool = False) -> Row:
        """Return the row with a family name; `user` marks a row that only tightens the relaxation."""
        return replace(self, name=name, user=user)

    def activity(self, values: FloatArray) -> float:
        """Return the value of the left-hand side at a point."""
        return float(self.coefficients @ values[self.columns])

    def violation(self, values: FloatArray) -> float:
        """Return the violation of the row, relative to its size as in the solvers; negative if it has slack."""
        activity = self.activity(values)
        excess = activity - self.upper
        side = self.upper
        if self.lower - activity > excess:
            excess = self.lower - activity
            side = self.lower
        return excess / max(1.0, abs(activity), abs(side))

    def scaled(self, largest: float = 1000.0) -> Row:
        """Return the row scaled so that no coefficient exceeds `largest` in absolute value."""
        size = float(np.abs(self.coefficients).max(initial=0.0))
        if size <= largest:
            return self
        f = largest / size
        return replace(self, coefficients=self.coefficients * f, lower=self.lower * f, upper=self.upper * f)

    def key(self) -> tuple[Any, ...]:
        """Return a key that is equal for equal rows."""
        order = np.argsort(self.columns)
        return (self.columns[order].tobytes(), self.coefficients[order].tobytes(), self.lower, self.upper)


def at_most(ones: Sequence[int] | CountArray, limit: Sequence[int] | CountArray, name: str) -> Row:
    """Return the row Σ x[ones] <= Σ x[limit] of column numbers; for thousands of rows this is faster than expressions."""
    coefficients = np.ones(len(ones) + len(limit))
    coefficients[len(ones) :] = -1.0
    return Row(np.concatenate((ones, limit)), coefficients, upper=0.0, name=name)


def row(expression: Expression, *, lower: float = -math.inf, upper: float = math.inf, name: str = "") -> Row:
    """Return the row `lower <= expression <= upper`, with the constant moved to the bounds."""
    columns = np.fromiter(expression.terms, np.int64, len(expression.terms))
    values = np.fromiter(expression.terms.values(), np.float64, len(expression.terms))
    nonzero = values != 0.0
    return Row(columns[nonzero], values[nonzero], lower - expression.constant, upper - expression.constant, name)
