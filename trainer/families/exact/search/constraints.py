"""Translate constraints of the settings to binary features of the search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trainer.constraints import Constraints, forbidden_pairs, required_recalls
from trainer.data.problem import Problem
from trainer.methods.base import Settings


def _recall(problem: Problem, settings: Settings) -> dict[str, Any]:
    required = required_recalls(problem, settings)
    return {"recalls": required} if required else {}


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


# builds the options of the vector search by constraint of `trainer.constraints`; a leaf limit alone needs no vectors
KEEP: dict[str, Callable[[Problem, Settings], dict[str, Any]]] = {
    "recall": _recall,
    "forbidden_pairs": _forbidden_pairs,
    "max_columns": _max_columns,
}
LIMITS = ("max_leaves", *KEEP)  # parameters that limit the whole tree


def exact_constraints(problem: Problem, settings: Settings) -> Constraints | None:
    """Return the constraints over the problem's binary features, or None if at most the leaves are limited."""
    options: dict[str, Any] = {}
    for keep in KEEP.values():
        options |= keep(problem, settings)
    return Constraints(max_leaves=settings["max_leaves"], columns=_columns(problem), **options) if options else None
