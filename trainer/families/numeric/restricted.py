"""Solve and prove `exact-numeric` under restrictions, with thresholds as questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from trainer.certificate import Status
from trainer.constraints import required_recalls
from trainer.data.encoding import Scheme
from trainer.data.problem import Problem
from trainer.editing.bench import Bench
from trainer.errors import DataError, ParameterError, SolverError
from trainer.methods.base import Method, NotProved, ProofSteps, Settings, Solution
from trainer.methods.capabilities import Role
from trainer.methods.monitor import Monitor
from trainer.solver_common.cross_family import method_for
from trainer.tree.nodes import Draft

SHARED = (
    "depth",
    "max_columns",
    "recall",
    "forbidden_pairs",
    "optimal_trees",
    "memory_limit",
    "threads",
)  # parameters of both searches
MOST_QUESTIONS = 1000  # thresholds that the checkers read
MOST_SEARCHED = 3000  # thresholds; 14,000 of them took 2 GB and more than nine minutes at depth two


class _StoppedMonitor(Monitor):
    """A monitor that only a given function stops."""

    def __init__(self, stop: Callable[[], bool]) -> None:
        super().__init__()
        self._stop = stop

    def stopped(self) -> bool:
        if self._stop():
            self.stop(Status.TIME_LIMIT)
        return super().stopped()


def is_within(problem: Problem, settings: Settings, draft: Draft) -> bool:
    """Return whether a tree has the minimum recalls of the settings, and no more columns than they allow.

    Raises ParameterError for a recall of a class without rows.
    """
    required = required_recalls(problem, settings)
    most = settings["max_columns"]
    if not required and most is None:
        return True
    tree = problem.tree(draft)
    if most is not None and len(tree.used_columns) > most:
        return False
    is_correct = tree.predict(problem.matrix) == problem.y
    weights = problem.row_weights
    return all(
        int(weights[is_correct & (problem.y == k)].sum()) >= share * int(weights[problem.y == k].sum())
        for k, share in required
    )


def solve_questions(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Find the best tree under all restrictions and prove it.

    Raises ParameterError if the rows have too many thresholds, and InfeasibleError if no tree satisfies the restrictions.
    """
    method, questions, search_settings = _exact_search(problem, settings)
    try:
        if (number := len(questions.binary.features)) > MOST_SEARCHED:
            raise DataError(f"These rows have {number:,} thresholds, and at most {MOST_SEARCHED:,} are searched.")
        solution = method.solve(questions, search_settings, monitor)
    except DataError as error:
        name = next(n for n in ("recall", "optimal_trees", "max_columns") if settings[n] not in ("", 0, None))
        words = f"with it, every threshold becomes a yes/no question. {error} Or use the method '{method.id}' with few 'bins'."
        raise ParameterError({name: words}) from error
    return replace(solution, encoded_features=len(problem.numeric.features))


def prove_questions(problem: Problem, settings: Settings, stop: Callable[[], bool]) -> ProofSteps | None:
    """Return the steps that prove the optimum under the restrictions; None if stopped or too large.

    Raises NotProved for more than MOST_QUESTIONS thresholds.
    """
    method, questions, search_settings = _exact_search(problem, settings)
    number = sum(max(0, len(np.unique(column.values)) - 1) for column in problem.table.columns)
    if number > 2 * MOST_QUESTIONS or len(questions.binary.features) > MOST_QUESTIONS:
        raise NotProved(
            f"Restrictions are proved with at most {MOST_QUESTIONS:,} thresholds of all columns together, and there are more."
        )
    try:
        solution = method.solve(questions, search_settings, _StoppedMonitor(stop))
    except SolverError:  # stopped before it had a tree
        return None
    return None if solution.proof is None else solution.proof(stop)


def questions_bench(problem: Problem, settings: Settings) -> Bench:
    """Build the workbench of trees under the restrictions. Raises ParameterError for limits that the rows cannot meet."""
    method, questions, search_settings = _exact_search(problem, settings)
    assert method.workbench is not None
    bench: Bench = method.workbench.build(questions, search_settings)
    return bench


def as_questions(problem: Problem) -> Problem:
    """Return the problem with each threshold as a binary feature, in the same order; no value is special."""
    columns = tuple(replace(c, schema=replace(c.schema, special=())) for c in problem.table.columns)
    source = None if problem.source is None else as_questions(problem.source)  # it encodes the copies of its rows
    return replace(problem, table=replace(problem.table, columns=columns), scheme=Scheme.ALL_THRESHOLDS, source=source)


def _exact_search(problem: Problem, settings: Settings) -> tuple[Method, Problem, Settings]:
    """Return the exact method over yes/no questions, with the problem and the settings of its search."""
    method = method_for(Role.ONE_PROVED)
    shared = {name: settings[name] for name in SHARED}
    return method, as_questions(problem), method.settings(shared | {"leaf_penalty": 0, "binarise": "all-thresholds"})
