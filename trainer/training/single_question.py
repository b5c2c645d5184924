"""Train and judge the best tree of one question, for comparison."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from trainer.certificate import Limits
from trainer.data.problem import Problem
from trainer.dtypes import CountArray
from trainer.methods.base import Settings
from trainer.methods.capabilities import Role
from trainer.methods.cost import ProblemSize, upper_seconds
from trainer.methods.monitor import Monitor
from trainer.registry import method_for
from trainer.solver_common.problem_setup import pose
from trainer.table import Labels, Table
from trainer.tree.nodes import Tree, training_counts

LONGEST_SECONDS = 10.0  # if the cost model expects more, no best question is searched


def best_question(problem: Problem) -> Tree | None:
    """Return the tree of one question with the fewest errors on the rows.

    All thresholds of all numeric columns are compared. Categories are grouped as CART groups them.

    Parameters
    ----------
    problem : Problem
        Its table, labels and weights are read.

    Returns
    -------
    Tree or None
        None if the search would take long.
    """
    greedy = method_for(Role.ONE_QUICK)
    size = ProblemSize(
        n=len(problem.table), p=max(1, len(problem.table.columns)), F=1, K=max(2, problem.n_classes), d=1
    )
    if upper_seconds(greedy.cost, size) > LONGEST_SECONDS:
        return None
    solution = greedy.solve(replace(problem, warm_start=None), _settings(), Monitor(Limits()))
    return problem.finish(problem.tree(solution.draft))


def _settings() -> Settings:
    return method_for(Role.ONE_QUICK).settings({"depth": 1, "impurity": "error", "pruning": "0"})


def judge_best_question(
    table: Table,
    labels: Labels,
    weights: CountArray | None,
    parts: Iterable[tuple[np.ndarray, np.ndarray]],
) -> dict[str, Any]:
    """Count how many unseen rows the best question gets right.

    Parameters
    ----------
    table : Table
    labels : Labels
    weights : int64 array of shape (n,), optional
    parts : pairs of int64 arrays
        Training rows and judged rows of each fold.

    Returns
    -------
    dict
        The member `single_question` with the correct weight and the whole weight of the judged rows. Empty if the search would
        take long, or a part has no judged row.
    """
    correct = 0
    n = 0
    for trained, judged in parts:
        row_weights = None if weights is None else weights[trained]
        tree = best_question(pose(table.take(trained), labels.take(trained), _settings(), weights=row_weights))
        if tree is None or not len(judged):
            return {}
        other = None if weights is None else weights[judged]
        right, confusion = training_counts(tree, table.take(judged).matrix(), labels.codes[judged], other)
        correct += right
        n += int(confusion.sum())
    return {"single_question": {"correct": correct, "n": n}} if n else {}
