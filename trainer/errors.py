"""Define exceptions that say what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from enum import StrEnum


def list_names(names: Sequence[str], most: int = 20) -> str:
    """List names with commas; of more than `most`, list the first ones and count the others."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def join_with_and(names: Sequence[str]) -> str:
    """Join at least one name as "a", "a and b" or "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def nearest(name: str, names: Sequence[str]) -> str | None:
    """Return the name with the most similar spelling, if one is near."""
    lower = {n.lower(): n for n in reversed(names)}
    close = difflib.get_close_matches(name.lower()[:200], list(lower)[:2000], n=1)
    return lower[close[0]] if close else None


def closest(name: str, names: Sequence[str]) -> str:
    """Return ' Did you mean ...?' if one of the names is near, else an empty text."""
    near = nearest(name, names)
    return "" if near is None else f" Did you mean '{near}'?"


class TrainerError(Exception):
    """Base class of all errors of this library; the message is written for the user."""


class DataError(TrainerError, ValueError):
    """The data cannot be read or used; `problems` lists every place that was found (line numbers count from 1)."""

    def __init__(self, message: str, *, problems: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class UnknownColumnError(DataError):
    """A column was named that the table does not have."""


class Refusal(StrEnum):
    """The reason why a row gets no prediction."""

    EMPTY = "empty"  # a cell that the tree needs is empty
    UNKNOWN = "unknown"  # the category is new, and the column refuses categories that training did not have
    VALUE = "value"  # the value has the wrong type, or the column cannot hold it
    COLUMN = "column"  # the model does not know the column
    ROW = "row"  # the row is not an object of column names and values


class RowError(DataError):
    """A row cannot be predicted: it lacks a value or a column that the tree needs."""

    def __init__(
        self,
        message: str,
        *,
        row: int,
        column: str | None = None,
        problems: tuple[str, ...] = (),
        reason: Refusal = Refusal.VALUE,
    ) -> None:
        super().__init__(message, problems=problems)
        self.row = row
        self.column = column
        self.reason = reason


class ParameterError(TrainerError, ValueError):
    """A parameter is unknown, has the wrong type or is outside its range; `errors` maps names to sentences."""

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" for name, text in errors.items()))
        self.errors = errors


class ModelFileError(TrainerError):
    """A model file is damaged, of an unknown version, or contradicts itself."""


class SolverError(TrainerError):
    """A solver failed or contradicted itself; none of its results are used."""


class InfeasibleError(TrainerError):
    """No tree satisfies the limits; `best` is the best reachable value, if known, and `of` names its quantity."""

    def __init__(self, message: str, *, best: float | None = None, of: str | None = None) -> None:
        super().__init__(message)
        self.best = best
        self.of = of


class ConversionError(TrainerError, ValueError):
    """A model of another program cannot be read, or cannot be converted exactly."""
