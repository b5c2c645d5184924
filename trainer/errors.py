"""Exceptions that say what is wrong, where, and what to do."""

from __future__ import annotations


class TrainerError(Exception):
    """Base of all errors of this library; the message is fit to be shown to a person."""


class DataError(TrainerError, ValueError):
    """The data cannot be read or used; `problems` lists every place that was found (line numbers count from 1)."""

    def __init__(self, message: str, *, problems: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class RowError(DataError):
    """A row cannot be predicted: it misses a value or a column that the tree needs."""

    def __init__(self, message: str, *, row: int, column: str | None = None, problems: tuple[str, ...] = ()) -> None:
        super().__init__(message, problems=problems)
        self.row = row
        self.column = column


class ParameterError(TrainerError, ValueError):
    """A parameter is unknown, has the wrong type or lies outside its range; `errors` maps names to sentences."""

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" for name, text in errors.items()))
        self.errors = errors


class ModelFileError(TrainerError):
    """A model file is damaged, of an unknown version, or contradicts itself."""


class SolverError(TrainerError):
    """A solver failed or contradicted itself; nothing it said is used."""


class InfeasibleError(TrainerError):
    """No tree satisfies the limits; `best` is the best value that can be reached, where that is known, and `of` says of what."""

    def __init__(self, message: str, *, best: float | None = None, of: str | None = None) -> None:
        super().__init__(message)
        self.best = best
        self.of = of
