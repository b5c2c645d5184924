"""Check on a tree the rules that couple its leaves: monotone columns and rates of groups."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from trainer.constraints.fairness import compared_groups
from trainer.constraints.monotone import directions
from trainer.data.encoding import EncodedFeature, Test
from trainer.data.problem import Problem
from trainer.errors import ParameterError
from trainer.methods.base import Settings, exact_fraction
from trainer.tree.nodes import Tree

# parameters that couple the classes of leaves, with the values that switch them off
RULES = {"fairness": "none", "monotone": ""}
NUMBER = -1  # the code of a term about the number of a cell; others are about a category, or about being empty


def active_rules(settings: Settings) -> list[str]:
    """Return the names of the rules that are switched on."""
    return [name for name, off in RULES.items() if settings.get(name, off) != off]


def rules_hold(problem: Problem, settings: Settings, tree: Tree) -> bool:
    """Return whether a tree satisfies the settings `monotone` and `fairness` on the training rows."""
    return _is_monotone(problem, settings, tree) and _has_similar_rates(problem, settings, tree)


def require_thresholds(problem: Problem, settings: Settings, features: tuple[EncodedFeature, ...]) -> None:
    """Raise ParameterError if a feature tests a monotone column by anything but a threshold."""
    for name, _ in directions(settings, problem.names):
        column = problem.names.columns.index(name)
        if any(f.column == column and f.test not in (Test.ABOVE, Test.VALUE, Test.EMPTY) for f in features):
            raise not_by_thresholds(name)


def not_by_thresholds(name: str) -> ParameterError:
    """Return the error for a monotone column whose questions are not thresholds."""
    message = f"'{name}' is not encoded by thresholds. Use a column of numbers with binarise=quantile-thresholds."
    return ParameterError({"monotone": message})


def _is_monotone(problem: Problem, settings: Settings, tree: Tree) -> bool:
    """Return whether no leaf on the low side of a threshold of a monotone column has a higher class than one on the high side."""
    columns = directions(settings, problem.names)
    if not columns:
        return True
    falls = {problem.names.columns.index(name): falling for name, falling in columns}
    low = [v.label for v in tree.nodes]
    high = [v.label for v in tree.nodes]
    for v in reversed(tree.nodes):  # children follow their parents in the list
        if v.split is None:
            continue
        plane = v.split.plane()
        column, code, _ = (-1, 0, 0.0) if plane is None else plane[0][0]
        if column in falls and code == NUMBER:
            lower, upper = (v.right, v.left) if falls[column] else (v.left, v.right)
            if high[lower] > low[upper]:
                return False
        low[v.id] = min(low[v.left], low[v.right])
        high[v.id] = max(high[v.left], high[v.right])
    return True


def _has_similar_rates(problem: Problem, settings: Settings, tree: Tree) -> bool:
    groups = compared_groups(problem, settings)
    if groups is None:
        return True
    is_favoured = tree.predict(problem.matrix) == groups.label
    rates = [
        Fraction(int(problem.row_weights[rows & is_favoured].sum()), int(problem.row_weights[rows].sum()))
        for rows in (groups.group == g for g in np.unique(groups.group[groups.group >= 0]))
    ]
    return not rates or max(rates) - min(rates) <= exact_fraction(settings["fairness_delta"])
