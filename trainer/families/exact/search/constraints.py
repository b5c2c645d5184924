"""The constraints that the settings ask for, over the binary features of the exact search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trainer.constraints import Constraints, forbidden_pairs, recalls
from trainer.data.problem import Problem
from trainer.errors import ParameterError
from trainer.methods.base import Settings


def _recall(problem: Problem, settings: Settings) -> dict[str, Any]:
    required = []
    names = problem.names
    for name, share in recalls(settings, names):
        code = names.classes.index(name)
        if not (problem.row_weights[problem.y == code] > 0).any():
            raise ParameterError({"recall": f"No training row has the class '{name}'."})
        required.append((code, share))
    return {"recalls": tuple(required)} if required else {}


def _forbidden_pairs(problem: Problem, settings: Settings) -> dict[str, Any]:
    columns = _columns(problem)
    names = problem.names
    conflict = np.zeros((len(columns), len(columns)), np.uint8)
    for pair in forbidden_pairs(settings, names):
        first, second = (columns == names.columns.index(name) for name in pair)
        conflict[np.ix_(first, second)] = conflict[np.ix_(second, first)] = 1
    return {"conflict": conflict} if conflict.any() else {}


def _max_columns(problem: Problem, settings: Settings) -> dict[str, Any]:
    return {} if settings["max_columns"] is None else {"max_columns": settings["max_columns"]}


def _columns(problem: Problem) -> np.ndarray:
    return np.array([f.column for f in problem.binary.features], np.int64)


# how the search over vectors keeps each constraint of `trainer.constraints`, by its name; a limit of leaves alone needs no vectors
KEEP: dict[str, Callable[[Problem, Settings], dict[str, Any]]] = {
    "recall": _recall,
    "forbidden_pairs": _forbidden_pairs,
    "max_columns": _max_columns,
}
LIMITS = ("max_leaves", *KEEP)  # on the whole tree


def exact_constraints(problem: Problem, settings: Settings) -> Constraints | None:
    """The constraints of the exact search over the problem's binary features, or None if only leaves may be limited."""
    asked: dict[str, Any] = {}
    for keep in KEEP.values():
        asked |= keep(problem, settings)
    return Constraints(max_leaves=settings["max_leaves"], columns=_columns(problem), **asked) if asked else None


def column_pairs(problem: Problem, settings: Settings) -> dict[int, frozenset[int]]:
    """For each column of a forbidden pair the columns that no path asks beside it, by number."""
    found: dict[int, frozenset[int]] = {}
    names = problem.names
    for pair in forbidden_pairs(settings, names):
        one, other = (names.columns.index(name) for name in pair)
        found[one] = found.get(one, frozenset()) | {other}
        found[other] = found.get(other, frozenset()) | {one}
    return found
