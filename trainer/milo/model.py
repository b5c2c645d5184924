"""Build mixed-integer linear programs, independent of solvers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from trainer.dtypes import BoolArray, FloatArray
from trainer.errors import SolverError
from trainer.milo.expression import Expression, Row

PIECE = 16  # this many coefficients take as long to add as one variable or row
BREATH = 1 << 16  # coefficients between two checks of the clock; adding them takes 0.05 to 0.1 s
CHUNK = 1 << 12  # number of names that are generated at a time


class Variables(Mapping[Any, Expression]):
    """A family of variables over the product of index sets: `b[n, f]` is an expression, `b.columns` are column numbers.

    `columns` is int64 with one axis per index set, in the given order.
    """

    def __init__(self, name: str, axes: tuple[tuple[Hashable, ...], ...], first: int) -> None:
        self.name = name
        self.axes = axes
        shape = tuple(len(axis) for axis in axes)
        self.columns = first + np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
        self._places = tuple({key: i for i, key in enumerate(axis)} for axis in axes)

    def column(self, key: Any) -> int:
        """Return the column number of one variable."""
        keys = key if len(self.axes) > 1 else (key,)
        return int(self.columns[tuple(place[k] for place, k in zip(self._places, keys, strict=True))])

    def __getitem__(self, key: Any) -> Expression:
        return Expression({self.column(key): 1.0})

    def __iter__(self) -> Iterator[Any]:
        return iter(self.axes[0]) if len(self.axes) == 1 else itertools.product(*self.axes)

    def __len__(self) -> int:
        return int(self.columns.size)


class Point:
    """Values of all variables; `point[b]` are those of a family, with the shape of `b.columns`."""

    def __init__(self, values: FloatArray) -> None:
        self.values = values

    def __getitem__(self, family: Variables) -> FloatArray:
        return self.values[family.columns]


class BuildStopped(Exception):
    """The build of a model was stopped."""


class Pace:
    """A regular check that raises BuildStopped if the build of a model must end.

    It counts coefficients, not only rows: a row over 20,000 features takes as long as a thousand short ones.
    """

    def __init__(self, halted: Callable[[], bool]) -> None:
        self._halted = halted
        self._since = 0

    def wrote(self, terms: int, pieces: int = 1) -> None:
        """Count `pieces` variables or rows with `terms` coefficients in all."""
        self._since += terms + PIECE * pieces
        if self._since >= BREATH:
            self._since = 0
            if self._halted():
                raise BuildStopped


class IntegerProgram:
    """A maximisation over continuous and integer variables, with finite bounds if possible."""

    def __init__(self) -> None:
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.integer: list[bool] = []
        self.priority: list[int] = []
        self.names: list[str] = []
        self.rows: list[Row] = []
        self.objective = Expression()
        # checked while variables and rows are added, which takes minutes for large models
        self.halted: Callable[[], bool] = lambda: False
        self._pace = Pace(lambda: self.halted())

    @property
    def size(self) -> int:
        """Number of variables."""
        return len(self.lower)

    @property
    def integers(self) -> BoolArray:
        """Mask of the variables that must be integers, bool (size,)."""
        return np.array(self.integer, bool)

    def binary(self, name: str, *axes: Iterable[Hashable], priority: int = 0) -> Variables:
        """Add variables in {0, 1} over the product of `axes`; solvers branch on higher `priority` first."""
        return self._variables(name, axes, 0.0, 1.0, True, priority)

    def continuous(self, name: str, *axes: Iterable[Hashable], lower: float = 0.0, upper: float = 1.0) -> Variables:
        """Add continuous variables in [lower, upper] over the product of `axes`."""
        return self._variables(name, axes, lower, upper, False, 0)

    def whole(self, name: str, *axes: Iterable[Hashable], lower: float, upper: float, priority: int = 0) -> Variables:
        """Add integer variables in [lower, upper] over the product of `axes`."""
        return self._variables(name, axes, lower, upper, True, priority)

    def _variables(
        self, name: str, axes: tuple[Iterable[Hashable], ...], lower: float, upper: float, integer: bool, priority: int
    ) -> Variables:
        family = Variables(name, tuple(tuple(axis) for axis in axes) or (("",),), self.size)
        count = len(family)
        self.lower += [lower] * count
        self.upper += [upper] * count
        self.integer += [integer] * count
        self.priority += [priority] * count
        keys = iter(family)
        while chunk := list(itertools.islice(keys, CHUNK)):
            self.names += [f"{name}[{key}]" for key in chunk]
            self._pace.wrote(0, len(chunk))
        return family

    def fix(self, columns: Iterable[int], value: float) -> None:
        """Fix variables to a value by their bounds."""
        for column in columns:
            self.lower[int(column)] = self.upper[int(column)] = value

    def add(self, row: Row, name: str = "") -> None:
        """Add a base row, or nothing for a row without variables; raises SolverError if that cannot hold."""
        if len(row.columns) == 0:
            if not row.lower - 1e-9 <= 0.0 <= row.upper + 1e-9:
                raise SolverError(f"The row '{name or row.name}' has no variable and cannot hold: check its indices.")
            return
        self.rows.append(row.named(name) if name else row)
        self._pace.wrote(len(row.columns))

    def maximize(self, objective: Expression) -> None:
        """Set the objective, which is maximised."""
        self.objective = objective

    def value(self, values: FloatArray) -> float:
        """Return the objective at a point."""
        return self.objective.constant + sum(c * float(values[j]) for j, c in self.objective.terms.items())

    def violated(self, values: FloatArray, tolerance: float = 1e-6) -> Row | None:
        """Return a base row or bound that a point violates by more than `tolerance`; None if the point is feasible."""
        low = np.array(self.lower)
        high = np.array(self.upper)
        outside = np.flatnonzero((values < low - tolerance) | (values > high + tolerance))
        if len(outside):
            j = int(outside[0])
            return Row(np.array([j]), np.ones(1), low[j], high[j], f"bounds of {self.names[j]}")
        return next((row for row in self.rows if row.violation(values) > tolerance), None)
