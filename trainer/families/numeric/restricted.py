"""Solve and prove `exact-numeric` under restrictions, with thresholds as questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from trainer.data.encoding import Scheme
from trainer.data.problem import Problem
from trainer.editing.bench import Bench
from trainer.errors import DataError, InfeasibleError, ParameterError, SolverError
from trainer.families.numeric.limits import LIMITS, OFF, LimitedIncumbent
from trainer.methods.base import Method, NotProved, ProofSteps, Settings, Solution
from trainer.methods.capabilities import Role
from trainer.methods.monitor import Monitor, StoppedMonitor
from trainer.solver_common.cross_family import method_for

RATES = ("fairness_column", "fairness_class", "fairness_delta")
# parameters of both searches
SHARED = ("depth", *LIMITS, *RATES, "forbidden", "forbidden_pairs", "optimal_trees", "memory_limit", "threads")
MOST_QUESTIONS = 1000  # thresholds that the checkers read
PAIRED_DEPTH = 2  # up to this depth they count one table of pairs, and read MOST_PAIRED thresholds
MOST_PAIRED = 2400
MOST_SEARCHED = 3000  # thresholds; 14,000 of them took 2 GB and more than nine minutes at depth two
FEW_QUESTIONS = 600  # thresholds of a search for a better tree, if all of them are too many


class _TreesMonitor(StoppedMonitor):
    """Monitor of a search over some of the trees: it ignores bounds, and stops when `outer` stops."""

    def __init__(self, outer: Monitor) -> None:
        super().__init__(outer.stopped)
        self.flag = outer.flag

    def report(self, **progress: Any) -> None:
        super().report(**{name: value for name, value in progress.items() if name != "bound"})


def solve_within(problem: Problem, settings: Settings, relaxed: Solution, incumbent: LimitedIncumbent) -> Solution:
    """Find and prove the best tree within the limits, if the best tree without them violates one.

    Parameters
    ----------
    relaxed : Solution
        The solution without the limits. Its bound holds within them, too.
    incumbent : LimitedIncumbent
        The best tree known so far.

    Returns
    -------
    Solution
        If stopped, or if the rows have too many thresholds, the incumbent and the best known bound.

    Raises
    ------
    InfeasibleError
        No tree is within the limits.
    SolverError
        The search was stopped before it had a tree, or found none over some of too many thresholds.
    """
    solution = None
    number = 0
    note = ""
    monitor = incumbent.monitor
    if not monitor.stopped():
        method, questions, search_settings = _exact_search(problem, settings)
        number = _count_thresholds(problem, questions)
        if number <= MOST_SEARCHED:
            solution = _solve_unless_stopped(method, questions, search_settings, monitor)
        else:
            few, few_settings = _with_few_thresholds(problem, search_settings)
            try:
                found = _solve_unless_stopped(method, few, method.settings(few_settings), _TreesMonitor(monitor))
            except InfeasibleError:  # trees over the other thresholds may be within the limits
                found = None
            if found is not None:
                incumbent.offer(found.draft)
            note = (
                f"Within the limits, all trees over at most {MOST_SEARCHED:,} thresholds are searched, and these rows have {number:,}. "
                "The tree is the best that was found, and the bound is that of trees without the limits."
            )
    if solution is not None and solution.finished:
        return replace(solution, encoded_features=relaxed.encoded_features)
    if solution is not None:
        incumbent.offer(solution.draft)
    if incumbent.draft is None and note and not monitor.stopped():
        raise SolverError(
            f"No tree within the limits was found, but one may exist: these rows have {number:,} thresholds, and all trees over at most "
            f"{MOST_SEARCHED:,} are searched. Relax a limit, or allow a deeper tree."
        )
    if incumbent.draft is None:
        raise SolverError("The search was stopped before it found a tree within the limits. Give it more time.")
    bounds = [s.bound for s in (relaxed, solution) if s is not None and s.bound is not None]
    return replace(relaxed, draft=incumbent.draft, bound=min(bounds), finished=False, evidence=(), note=note)


def _solve_unless_stopped(method: Method, problem: Problem, settings: Settings, monitor: Monitor) -> Solution | None:
    """Return the solution of a method; None if it was stopped before it had a tree, or if these rows are too large for it."""
    try:
        return method.solve(problem, settings, monitor)
    except (SolverError, DataError):
        return None


def _count_thresholds(problem: Problem, questions: Problem) -> int:
    """Return the number of thresholds. Far above MOST_SEARCHED, the two orders of empty cells count twice, to save the encoding."""
    X = problem.numeric.matrix(problem.table)
    number = sum(max(0, len(np.unique(column)) - 1) for column in X.T)
    return number if number > 2 * MOST_SEARCHED else len(questions.binary.features)


def _with_few_thresholds(problem: Problem, settings: Settings) -> tuple[Problem, dict[str, Any]]:
    """Return the problem with quantiles as thresholds, about FEW_QUESTIONS in all, and the settings of its search."""
    bins = max(2, FEW_QUESTIONS // max(1, len(problem.table.columns)))
    source = None if problem.source is None else _with_few_thresholds(problem.source, settings)[0]
    few = replace(problem, scheme=Scheme.QUANTILE_THRESHOLDS, bins=bins, source=source)
    return few, settings.to_json() | {"binarise": str(Scheme.QUANTILE_THRESHOLDS), "bins": bins}


def solve_questions(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Count the optimal trees with thresholds as questions. Raises ParameterError if the rows have too many thresholds."""
    method, questions, search_settings = _exact_search(problem, settings)
    try:
        if (number := _count_thresholds(problem, questions)) > MOST_SEARCHED:
            raise DataError(
                f"These rows have {number:,} thresholds, and at most {MOST_SEARCHED:,} are searched. Leave columns out."
            )
        solution = method.solve(questions, search_settings, monitor)
    except DataError as error:
        name = next(n for n in ("optimal_trees", *LIMITS) if settings[n] != OFF.get(n, 0))
        words = f"with it, every threshold becomes a yes/no question. {error} Or use the method '{method.id}' with few 'bins'."
        raise ParameterError({name: words}) from error
    return replace(solution, encoded_features=len(problem.numeric.features))


def prove_questions(problem: Problem, settings: Settings, stop: Callable[[], bool]) -> ProofSteps | None:
    """Return the steps that prove the optimum under the restrictions; None if stopped or too large.

    Raises NotProved for more thresholds than the checkers read.
    """
    method, questions, search_settings = _exact_search(problem, settings)
    most = MOST_PAIRED if settings["depth"] <= PAIRED_DEPTH else MOST_QUESTIONS
    if (number := _count_thresholds(problem, questions)) > most:
        raise NotProved(
            f"Restrictions are proved with at most {most:,} thresholds of all columns together, and there are {number:,}."
        )
    solution = _solve_unless_stopped(method, questions, search_settings, StoppedMonitor(stop))
    return None if solution is None or solution.proof is None else solution.proof(stop)


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
