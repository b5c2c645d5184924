"""How many thresholds numeric columns get where the settings leave it open.

As many as can be proved in some ten seconds by the model of cost, and the thresholds of a CART tree of the same depth.
The choice depends on the rows and settings alone, so that it is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from trainer.certificate import Limits
from trainer.data.encoding import Scheme, Test, encode_binary
from trainer.data.problem import Problem, extra_thresholds_text
from trainer.errors import TrainerError
from trainer.methods.base import MAX_TEXT, Method, Settings
from trainer.methods.capabilities import Role
from trainer.methods.cost import ProblemSize, upper_seconds
from trainer.methods.monitor import Monitor
from trainer.solver_common import cross_family
from trainer.table import ColumnKind, Table
from trainer.tree.nodes import Draft, DraftBranch

LADDER = (33, 17, 9, 5)  # quantiles; each gives one threshold less
PROOF_SECONDS = 10.0  # within which a proof is to be expected
MOST_QUESTIONS = 1000  # up to which all thresholds are searched: a proof with more is too long to check
COUNTED_CELLS = 2_000_000  # beyond, questions are estimated from the distinct values

CountQuestions = Callable[[Scheme, int], int]


class ThresholdChoice(NamedTuple):
    """How columns become questions, and whether the model of cost expects a proof in time."""

    scheme: Scheme
    bins: int
    provable: bool


def choose_bins(
    method: Method, values: Mapping[str, Any], count: CountQuestions, size: ProblemSize, longest: float = PROOF_SECONDS
) -> ThresholdChoice:
    """Choose the most thresholds whose proof should take less than `longest` seconds.

    Parameters
    ----------
    method : Method
        Its model of cost gives the time.
    values : mapping
        Values of the parameters, by name.
    count : callable
        Number of questions by scheme and number of quantiles.
    size : ProblemSize
        Rows, columns, classes and depth. Its number of questions is not read.
    longest : float
        Seconds.

    Returns
    -------
    ThresholdChoice
        The fewest quantiles if a limit makes the search longer than the model of cost knows.
    """
    scheme = Scheme(values.get("binarise") or Scheme.QUANTILE_THRESHOLDS)
    if scheme in (Scheme.ALL_THRESHOLDS, Scheme.NONE):  # quantiles play no part
        return ThresholdChoice(scheme, LADDER[-1], provable=True)
    if lengthened(method, values):
        return ThresholdChoice(scheme, LADDER[-1], provable=False)

    def fits(questions: int) -> bool:
        return upper_seconds(method.cost, replace(size, F=max(1, questions))) < longest

    if scheme is Scheme.QUANTILE_THRESHOLDS:
        every = count(Scheme.ALL_THRESHOLDS, LADDER[-1])
        if every <= MOST_QUESTIONS and fits(every):
            return ThresholdChoice(Scheme.ALL_THRESHOLDS, LADDER[-1], provable=True)
    for bins in LADDER:
        if fits(count(scheme, bins)):
            return ThresholdChoice(scheme, bins, provable=True)
    return ThresholdChoice(scheme, LADDER[-1], provable=False)


def lengthened(method: Method, values: Mapping[str, Any]) -> bool:
    """Return whether a setting makes the search longer than the model of cost knows."""
    return any(values.get(name) not in (None, "", "none", False, 0) for name in method.cost.unmodelled)


def count_questions(table: Table, scheme: Scheme, bins: int) -> int:
    """Return the number of yes/no questions, counted where the table is not large, else from the distinct values."""
    distinct = [len(np.unique(column.values[~column.missing])) for column in table.columns]
    most = sum(
        n for n, column in zip(distinct, table.columns, strict=True) if column.kind is not ColumnKind.CATEGORICAL
    )
    if scheme is not Scheme.ALL_THRESHOLDS and len(table) * len(table.columns) <= COUNTED_CELLS:
        try:
            return len(encode_binary(table, scheme, bins).features)
        except TrainerError:
            pass  # the encoding is refused later, with its reason
    if scheme is Scheme.ALL_THRESHOLDS and most > 2 * MOST_QUESTIONS:
        return most
    columns = zip(table.columns, distinct, strict=True)
    found = (estimate_questions(str(c.kind), n, scheme, bins) * (2 if c.missing.any() else 1) for c, n in columns)
    return sum(found)


def estimate_questions(kind: str, distinct: int, scheme: Scheme, bins: int) -> int:
    """Return the most questions that a column with so many distinct values can have."""
    if distinct < 2:
        return 0
    if kind == "categorical" or distinct == 2:
        return distinct if distinct > 2 else 1
    if scheme is Scheme.ALL_THRESHOLDS:
        return distinct - 1
    return min(distinct, bins) - (scheme is Scheme.QUANTILE_THRESHOLDS)


def with_chosen_thresholds(problem: Problem, settings: Settings) -> Problem:
    """Return the problem with as many thresholds as can be proved soon, and those of a CART tree of the same depth."""
    searched = problem.searched
    method = cross_family.method_for(Role.ONE_PROVED)
    depth = settings["depth"]
    size = ProblemSize(
        n=len(searched.table), p=max(1, len(problem.table.columns)), F=1, K=max(2, problem.n_classes), d=depth
    )
    choice = choose_bins(method, settings, lambda scheme, bins: count_questions(problem.table, scheme, bins), size)
    chosen = replace(problem, scheme=choice.scheme, bins=choice.bins)
    if choice.scheme is not Scheme.QUANTILE_THRESHOLDS or depth == 0 or problem.n_classes < 2:
        return chosen
    return replace(chosen, extra_thresholds=_joined(chosen, _cart_thresholds(chosen.searched, settings, size)))


def _cart_thresholds(problem: Problem, settings: Settings, size: ProblemSize) -> list[tuple[int, float]]:
    """Return column and threshold of each numeric split of a CART tree, from the root down; none if CART takes long."""
    cart = cross_family.method_for(Role.ONE_QUICK)
    if upper_seconds(cart.cost, size) > PROOF_SECONDS:
        return []
    own = cart.settings({"depth": settings["depth"], "min_leaf": settings["min_leaf"], "pruning": "0"})
    level: list[Draft] = [cart.solve(replace(problem, warm_start=None), own, Monitor(Limits())).draft]
    found = []
    while level:
        branches = [draft for draft in level if isinstance(draft, DraftBranch)]
        cuts = [branch.split.cut for branch in branches]
        found += [cut for cut in cuts if cut is not None]
        level = [side for branch in branches for side in (branch.left, branch.right)]
    return found


def _joined(problem: Problem, cuts: list[tuple[int, float]]) -> dict[int, tuple[float, ...]]:
    """Return the thresholds that separate rows in another way than the questions of the problem, by column.

    The text of a parameter has a limit. Thresholds deep in the tree are left out where it is reached.
    """
    columns = problem.table.columns
    known = {
        (f.column, _rows_below(columns[f.column].values, f.low))
        for f in problem.binary.features
        if f.test is Test.ABOVE
    }
    found: dict[int, tuple[float, ...]] = {}
    for column, cut in cuts:
        key = (column, _rows_below(columns[column].values, cut))
        if key in known:
            continue
        longer = found | {column: (*found.get(column, ()), cut)}
        if len(extra_thresholds_text(problem.table.names, longer)) > MAX_TEXT:
            break
        known.add(key)
        found = longer
    return found


def _rows_below(values: np.ndarray, cut: float) -> int:
    return int((values <= cut).sum())
