"""Linear expressions and rows, written with the usual operators: `total(b[n, f] for f in F) + p[n] == 1`."""

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
        """Add `factor * other` in place, and return self; only for expressions that nobody else holds."""
        if isinstance(other, Expression):
            terms = self.terms
            for column, value in other.terms.items():
                terms[column] = terms.get(column, 0.0) + factor * value
            self.constant += factor * other.constant
        else:
            self.constant += factor * float(other)
        return self

    def copy(self) -> Expression:
        """A separate expression with the same terms."""
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
    """The sum of expressions and numbers."""
    result = Expression()
    for part in parts:
        result.add(part)
    return result


def weighted(columns: Iterable[int], coefficients: Iterable[float]) -> Expression:
    """The expression with these columns and coefficients; equal columns are added up."""
    terms: dict[int, float] = {}
    for column, value in zip(columns, coefficients, strict=True):
        terms[int(column)] = terms.get(int(column), 0.0) + float(value)
    return Expression(terms)


@dataclass(frozen=True, eq=False)
class Row:
    """`lower <= coefficients @ x[columns] <= upper`.

    `name` is the family under which the row is counted. A lazy row may cut off points that satisfy the base rows; a `user` row
    only tightens the linear relaxation, so a back end may drop it.
    """

    columns: np.ndarray
    coefficients: FloatArray
    lower: float = -math.inf
    upper: float = math.inf
    name: str = ""
    user: bool = False

    def named(self, name: str, *, user: bool = False) -> Row:
        """The same row under a family name; `user` marks it as one that only tightens the relaxation."""
        return replace(self, name=name, user=user)

    def activity(self, values: FloatArray) -> float:
        """The value of the left-hand side at a point."""
        return float(self.coefficients @ values[self.columns])

    def violation(self, values: FloatArray) -> float:
        """How far the row is violated, relative to its size as the solvers measure it; negative if it has slack."""
        activity = self.activity(values)
        excess = activity - self.upper
        side = self.upper
        if self.lower - activity > excess:
            excess = self.lower - activity
            side = self.lower
        return excess / max(1.0, abs(activity), abs(side))

    def scaled(self, largest: float = 1000.0) -> Row:
        """The same row with no coefficient above `largest` in absolute value."""
        size = float(np.abs(self.coefficients).max(initial=0.0))
        if size <= largest:
            return self
        f = largest / size
        return replace(self, coefficients=self.coefficients * f, lower=self.lower * f, upper=self.upper * f)

    def key(self) -> tuple[Any, ...]:
        """What makes two rows the same row."""
        order = np.argsort(self.columns)
        return (self.columns[order].tobytes(), self.coefficients[order].tobytes(), self.lower, self.upper)


def at_most(ones: Sequence[int] | CountArray, limit: Sequence[int] | CountArray, name: str) -> Row:
    """Σ x[ones] <= Σ x[limit], by column numbers: thousands of rows are written sooner so than as expressions."""
    coefficients = np.ones(len(ones) + len(limit))
    coefficients[len(ones) :] = -1.0
    return Row(np.concatenate((ones, limit)), coefficients, upper=0.0, name=name)


def row(expression: Expression, *, lower: float = -math.inf, upper: float = math.inf, name: str = "") -> Row:
    """`lower <= expression <= upper`, the constant brought to the other side."""
    columns = np.fromiter(expression.terms, np.int64, len(expression.terms))
    values = np.fromiter(expression.terms.values(), np.float64, len(expression.terms))
    used = values != 0.0
    return Row(columns[used], values[used], lower - expression.constant, upper - expression.constant, name)
