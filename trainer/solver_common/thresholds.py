"""Choose the number of thresholds of numeric columns for `bins='auto'`.

Columns get as many thresholds as the cost model expects to be proved within ten seconds. The thresholds of a CART tree
of the same depth are added. The choice depends on rows and settings only, so it is the same on every machine.
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
from trainer.methods.cost import ASSUMED_DEPTH, ProblemSize, upper_seconds
from trainer.methods.monitor import Monitor
from trainer.solver_common import cross_family
from trainer.table import ColumnKind, Table
from trainer.tree.nodes import Draft, DraftBranch

LADDER = (33, 17, 9, 5)  # numbers of quantiles to try; each gives one threshold fewer
PROOF_SECONDS = 10.0  # a proof should take at most this time by the cost model
MOST_QUESTIONS = 1000  # with more questions, a proof is too long to check
COUNTED_CELLS = 2_000_000  # for tables with more cells, questions are estimated from the distinct values

CountQuestions = Callable[[Scheme, int], int]


class ThresholdChoice(NamedTuple):
    """An encoding of columns, and whether the cost model expects a proof in time."""

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
        Its cost model gives the time.
    values : mapping
        Values of the parameters, by name.
    count : callable
        Number of questions by scheme and number of quantiles.
    size : ProblemSize
        Rows, columns, classes and depth; its number of features is not read.
    longest : float
        Limit of the expected seconds.

    Returns
    -------
    ThresholdChoice
        The fewest quantiles if a setting makes the search longer than the cost model assumes.
    """
    scheme = Scheme(values.get("binarise") or Scheme.QUANTILE_THRESHOLDS)
    if scheme in (Scheme.ALL_THRESHOLDS, Scheme.NONE):  # these schemes have no quantiles to choose
        return ThresholdChoice(scheme, LADDER[-1], provable=True)
    if takes_longer(method, values):
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


def takes_longer(method: Method, values: Mapping[str, Any]) -> bool:
    """Return whether a setting makes the search longer than the cost model assumes."""
    return any(values.get(name) not in (None, "", "none", False, 0) for name in method.cost.unmodelled)


def count_questions(table: Table, scheme: Scheme, bins: int) -> int:
    """Return the number of yes/no questions; for large tables, estimate it from the distinct values."""
    distinct = [len(column.distinct) for column in table.columns]
    most = sum(
        n for n, column in zip(distinct, table.columns, strict=True) if column.kind is not ColumnKind.CATEGORICAL
    )
    if scheme is not Scheme.ALL_THRESHOLDS and len(table) * len(table.columns) <= COUNTED_CELLS:
        try:
            return len(encode_binary(table, scheme, bins).features)
        except TrainerError:
            pass  # the same encoding fails again later, where its reason is reported
    if scheme is Scheme.ALL_THRESHOLDS and most > 2 * MOST_QUESTIONS:
        return most
    columns = zip(table.columns, distinct, strict=True)
    estimates = (estimate_questions(str(c.kind), n, scheme, bins) * (2 if c.has_missing else 1) for c, n in columns)
    return sum(estimates)


def estimate_questions(kind: str, distinct: int, scheme: Scheme, bins: int) -> int:
    """Return an upper bound on the questions of a column with this number of distinct values."""
    if distinct < 2:
        return 0
    if kind == "categorical" or distinct == 2:
        return distinct if distinct > 2 else 1
    if scheme is Scheme.ALL_THRESHOLDS:
        return distinct - 1
    return min(distinct, bins) - (scheme is Scheme.QUANTILE_THRESHOLDS)


def with_chosen_thresholds(problem: Problem, settings: Settings) -> Problem:
    """Return the problem with the chosen thresholds and those of a CART tree of the same depth."""
    searched = problem.searched
    method = cross_family.method_for(Role.ONE_PROVED)
    depth = ASSUMED_DEPTH if settings["depth"] is None else settings["depth"]
    size = ProblemSize(
        n=len(searched.table), p=max(1, len(problem.table.columns)), F=1, K=max(2, problem.n_classes), d=depth
    )
    choice = choose_bins(method, settings, lambda scheme, bins: count_questions(problem.table, scheme, bins), size)
    with_bins = replace(problem, scheme=choice.scheme, bins=choice.bins)
    if choice.scheme is not Scheme.QUANTILE_THRESHOLDS or depth == 0 or problem.n_classes < 2:
        return with_bins
    return replace(
        with_bins, extra_thresholds=_new_thresholds(with_bins, _cart_thresholds(with_bins.searched, settings, size))
    )


def _cart_thresholds(problem: Problem, settings: Settings, size: ProblemSize) -> list[tuple[int, float]]:
    """Return column and threshold of each numeric split of a CART tree, from the root down; empty if CART takes long."""
    cart = cross_family.method_for(Role.ONE_QUICK)
    if upper_seconds(cart.cost, size) > PROOF_SECONDS:
        return []
    cart_settings = cart.settings({"depth": size.d, "min_leaf": settings["min_leaf"], "pruning": "0"})
    level: list[Draft] = [cart.solve(replace(problem, warm_start=None), cart_settings, Monitor(Limits())).draft]
    thresholds = []
    while level:
        branches = [draft for draft in level if isinstance(draft, DraftBranch)]
        cuts = [branch.split.cut for branch in branches]
        thresholds += [cut for cut in cuts if cut is not None]
        level = [side for branch in branches for side in (branch.left, branch.right)]
    return thresholds


def _new_thresholds(problem: Problem, cuts: list[tuple[int, float]]) -> dict[int, tuple[float, ...]]:
    """Return the thresholds, by column, that split the rows differently from the questions of the problem.

    Thresholds deep in the tree are omitted if the text of the parameter would exceed its limit.
    """
    columns = problem.table.columns
    partitions = {
        (f.column, _rows_below(columns[f.column].cells, f.low)) for f in problem.binary.features if f.test is Test.ABOVE
    }
    thresholds: dict[int, tuple[float, ...]] = {}
    for column, cut in cuts:
        key = (column, _rows_below(columns[column].cells, cut))
        if key in partitions:
            continue
        longer = thresholds | {column: (*thresholds.get(column, ()), cut)}
        if len(extra_thresholds_text(problem.table.names, longer)) > MAX_TEXT:
            break
        partitions.add(key)
        thresholds = longer
    return thresholds


def _rows_below(values: np.ndarray, cut: float) -> int:
    return int((values <= cut).sum())
