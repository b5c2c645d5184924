"""The constraints that the settings ask for, over the binary features of the exact search."""

from __future__ import annotations

import numpy as np

from trainer.constraints import Constraints, forbidden_pairs, recalls
from trainer.data.problem import Problem
from trainer.errors import ParameterError
from trainer.method import Settings


def exact_constraints(problem: Problem, settings: Settings) -> Constraints | None:
    """The constraints of the exact search over the problem's binary features, or None where only leaves may be limited."""
    names = problem.names
    columns = np.array([f.column for f in problem.binary.features], np.int64)
    required = []
    for name, share in recalls(settings, names):
        code = names.classes.index(name)
        if not (problem.row_weights[problem.y == code] > 0).any():
            raise ParameterError({"recall": f"No training row has the class '{name}'."})
        required.append((code, share))
    conflict = np.zeros((len(columns), len(columns)), np.uint8)
    for pair in forbidden_pairs(settings, names):
        first, second = (columns == names.columns.index(name) for name in pair)
        conflict[np.ix_(first, second)] = conflict[np.ix_(second, first)] = 1
    if not required and not conflict.any() and settings["max_columns"] is None:
        return None
    return Constraints(
        recalls=tuple(required),
        conflict=conflict if conflict.any() else None,
        max_leaves=settings["max_leaves"],
        max_columns=settings["max_columns"],
        columns=columns,
    )
