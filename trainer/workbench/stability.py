"""Certify how many training rows must change before another tree than a trained one is as good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from trainer.constraints.coupling import active_rules
from trainer.data.problem import Problem
from trainer.errors import ParameterError
from trainer.families.exact.method import binary_problem
from trainer.families.exact.search.constraints import LIMITS
from trainer.families.exact.stability import (
    Change,
    Stability,
    answer_stability,
    root_stability,
    tree_stability,
)
from trainer.goal import GOAL_NAMES, count_goal
from trainer.methods.base import Method, Settings
from trainer.methods.capabilities import Role
from trainer.registry import method_for
from trainer.solver_common.binary_problem import never
from trainer.table import Table
from trainer.tree.nodes import Tree
from trainer.tree.splits import goes_left

SCOPES = ("root", "tree")
UNSUPPORTED = (*LIMITS, "column_price")


def stability_of(
    method: Method,
    problem: Problem,
    settings: Settings,
    tree: Tree,
    *,
    scope: str = "root",
    row: Table | None = None,
    change: Change = "remove",
    stop: Callable[[], bool] = never,
) -> Stability:
    """Certify how many training rows must change before another tree is as good.

    A leaf keeps its price in rows, and the questions stay those of the training.

    Parameters
    ----------
    method : Method
        The method of the training, `exact`.
    problem : Problem
        The training rows.
    settings : Settings
        The settings of the training.
    tree : Tree
        The trained tree, which must be optimal.
    scope : str
        Which tree counts as another: "root" (another first question), or "tree" (another answer for a training row).
    row : Table, optional
        A table of one row. Then the trees with another answer for it count, whatever `scope` is.
    change : str
        Whether rows are removed or relabelled: "remove" or "relabel".
    stop : callable
        Returns True to end the search with the bounds so far.

    Returns
    -------
    Stability
        Its rows are positions among the training rows, its labels codes of classes.

    Raises
    ------
    ParameterError
        If a setting is not supported, or not one of those above.
    DataError
        If the tree is not optimal, or no other tree exists.
    """
    _check(method, problem, settings)
    binary = replace(binary_problem(problem, settings), weights=None)
    if row is not None:
        label = int(tree.predict(row.matrix())[0])
        return answer_stability(binary, problem.binary.bits(row)[0], label, change=change, stop=stop)
    if scope == "tree":
        answers = tree.predict(problem.matrix).astype(np.int32)
        return tree_stability(binary, answers, tree.n_leaves, change=change, stop=stop)
    if scope != "root":
        raise ParameterError({"scope": f"must be one of {', '.join(SCOPES)}. It is '{scope}'."})
    split = tree.nodes[0].split
    is_high = None if split is None else ~goes_left(split, problem.matrix)
    return root_stability(binary, is_high, change=change, stop=stop)


def _check(method: Method, problem: Problem, settings: Settings) -> None:
    if method.id != method_for(Role.ONE_PROVED).id:
        only = method_for(Role.ONE_PROVED).id
        raise ParameterError({"method": f"'{method.id}' has no certificate of stability. Train with '{only}'."})
    set_ = [name for name in UNSUPPORTED if settings[name] != method.parameter(name).default]  # type: ignore[union-attr]
    set_ += active_rules(settings)
    if goal := count_goal(settings):
        raise ParameterError({"goal": f"stability counts errors, not {GOAL_NAMES[goal]}. Train for accuracy."})
    if set_:
        raise ParameterError({set_[0]: "stability does not support it. Train without it."})
    if settings["depth"] is None:
        raise ParameterError({"depth": "stability needs a number of questions, not 'none'."})
    if problem.costs is not None:
        raise ParameterError({"costs": "stability counts rows, so answers must not have costs. Train without costs."})
    if problem.weights is not None and (problem.weights != 1).any():
        raise ParameterError(
            {"weights": "stability counts rows, so they must not have weights. Train without weights."}
        )


def stability_sentence(stability: Stability, n: int, what: str) -> str:
    """Return the certificate in words. `what` names the other trees, such as "another first question"."""
    verb = "removed" if stability.change == "remove" else "given another class"
    if stability.upper == 0:
        return f"No row must be {verb}: a tree with {what} is already as good."
    if stability.lower > n:
        return f"No change helps: whatever rows are {verb}, no tree with {what} is as good."
    if not stability.lower:
        return f"The search ended before it knew how many rows must be {verb}. Give it more time."
    rows = f"{stability.lower:,} of {n:,} training rows must be {verb} before a tree with {what} is as good"
    if stability.exact:
        return f"Exactly {rows}."
    enough = "no number is known to be enough" if stability.upper is None else f"{stability.upper:,} are enough"
    return f"At least {rows}. So far, {enough}."
