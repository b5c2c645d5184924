"""Define what greedy methods share: parameters of growth and pruning, and `grow_and_prune`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.certificate import Evidence
from trainer.data.encoding import Encoding
from trainer.data.folds import inner_folds
from trainer.data.problem import Problem, SettingNames
from trainer.dtypes import CountArray
from trainer.errors import ParameterError
from trainer.growing.growth import Growth, Splitter, Stopping, grow_tree
from trainer.growing.node_split import SplitData
from trainer.growing.split_units import split_data, split_of_columns
from trainer.methods.base import DEPTH, LEAF_PENALTY, MIN_LEAF, Parameter, Settings, Solution, exact_fraction, having
from trainer.methods.monitor import Monitor
from trainer.tree.nodes import Draft, DraftLeaf
from trainer.tree.numbers import percent_text
from trainer.tree.prune import alphas, alphas_between, collapses, prune, pruned_errors
from trainer.worker_pool import WorkerPool

MIN_NODE = Parameter(
    name="min_node",
    counts_rows=True,
    type="integer",
    default=2,
    minimum=2,
    maximum=10**9,
    label="Rows to split",
    help="A node with fewer training rows than this becomes a leaf.",
    unit="rows",
    advanced=True,
    restricts=lambda s: [f"no question to fewer than {s['min_node']} rows"] if s["min_node"] > 2 else [],
)
MIN_GAIN = Parameter(
    name="min_gain",
    counts_rows=True,
    type="number",
    default=0.0,
    minimum=0,
    maximum=1,
    label="Least gain",
    help="A split must reduce the impurity by at least this share of the training rows; 0 allows splits without gain.",
    advanced=True,
    restricts=lambda s: (
        [f"each question lowering the impurity by at least {s['min_gain']} of the rows"] if s["min_gain"] else []
    ),
)


def _alpha(text: str) -> Fraction | None:
    if text == "cross-validation":
        return None
    try:
        alpha = exact_fraction(text)
    except ValueError:
        alpha = Fraction(-1)
    if not 0 <= alpha <= 1:
        raise ParameterError({"pruning": f"'{text[:80]}' is neither 'cross-validation' nor a number from 0 to 1."})
    return alpha


def _check_pruning(settings: Settings, names: SettingNames) -> None:
    _alpha(settings["pruning"])


def _pruning_words(text: str) -> list[str]:
    """Describe the pruning in a sentence for the form; empty for an invalid text."""
    try:
        alpha = _alpha(text)
    except ParameterError:
        return []
    if alpha is None:
        return ["Cross-validation chooses how many rows a leaf must gain."]
    return [f"Leaves that win fewer than {percent_text(float(alpha))} of the rows are removed."] if alpha else []


PRUNING = Parameter(
    name="pruning",
    type="text",
    default="0",
    label="Pruning",
    help="Cost-complexity α: the training error rate that each leaf must save. 0 keeps the whole tree, 'cross-validation' chooses α.",
    check=_check_pruning,
    sentences=lambda values: _pruning_words(str(values.get("pruning") or "0")),
)
PRUNING_FOLDS = Parameter(
    name="pruning_folds",
    type="integer",
    default=5,
    minimum=2,
    maximum=50,
    label="Pruning folds",
    help="Number of folds of the cross-validation that chooses α.",
    advanced=True,
)
IMPURITY = Parameter(
    name="impurity",
    type="choice",
    default="gini",
    choices=("gini", "entropy", "error"),
    label="Impurity",
    help="The measure that a split reduces: Gini, entropy, or classification error.",
    advanced=True,
)
# greedy growth ignores the leaf penalty and pruning has its own, so this one only changes the reported objective
REPORTED_PENALTY = having(
    LEAF_PENALTY,
    advanced=True,
    label="Leaf penalty in the report",
    help="Subtracted from the reported objective for every leaf, to compare it with other methods. The tree does not depend on it; "
    "set the pruning to remove leaves that do not pay.",
    sentences=lambda values: (
        [_reported_words(float(values.get("leaf_penalty") or 0))] if values.get("leaf_penalty") else []
    ),
)


def _reported_words(penalty: float) -> str:
    return f"The tree does not depend on the leaf penalty; the reported objective is less {percent_text(penalty)} for each leaf."


# parameters shared by all greedy methods
GROWTH_PARAMETERS = (
    having(DEPTH, default=4),
    REPORTED_PENALTY,
    MIN_LEAF,
    PRUNING,
    PRUNING_FOLDS,
    IMPURITY,
    MIN_NODE,
    MIN_GAIN,
)

MakeSplitter = Callable[[SplitData, Monitor, WorkerPool[Any]], Splitter]
SHOW_SECONDS = 0.3  # least time in seconds between two reports of the growing tree
SHOW_SHARE = 0.05  # reports take at most this share of the run time, since each takes longer as the tree grows


def grow_and_prune(
    problem: Problem,
    settings: Settings,
    monitor: Monitor,
    make: MakeSplitter,
    *,
    rounded: str = "",
    threads: int = 1,
    sums: Encoding | None = None,
) -> Solution:
    """Grow a tree with the splits of `make`, then prune it; the pruned tree keeps the proofs of its splits.

    Parameters
    ----------
    problem, settings, monitor
        As for `Method.solve`.
    make : callable
        Creates the function that splits a node.
    rounded : str
        The scope of the claim if the columns are not exact.
    threads : int
        Number of threads that split nodes.
    sums : Encoding, optional
        The features of splits on several columns, if some cells are empty.
    """
    encoding = problem.numeric
    n = len(problem.table)
    if not encoding.features or len(np.unique(problem.y)) < 2:
        return Solution(draft=DraftLeaf())
    sums = encoding if sums is None else sums
    data = split_data(problem, encoding, sums)
    stopping = _stopping(settings, problem.n)
    alpha = _alpha(settings["pruning"])

    def grow(rows: CountArray, phase: str) -> Growth:
        monitor.report(phase=phase)
        is_final = len(rows) == n
        next_show = 0.0

        def report_draft(leaves: int, draft: Callable[[], Draft]) -> None:
            nonlocal next_show
            # trees of folds are not shown, and the final tree is reported at the end anyway
            if is_final and monitor.elapsed() >= next_show and not monitor.stopped():
                begun = monitor.elapsed()
                monitor.report(leaves=leaves, nodes=2 * leaves - 1, draft=draft())
                took = monitor.elapsed() - begun
                next_show = begun + max(SHOW_SECONDS, took / SHOW_SHARE)
            else:
                monitor.report(leaves=leaves, nodes=2 * leaves - 1)

        worker_pool: WorkerPool[Any] = WorkerPool(threads=threads)
        return grow_tree(
            data,
            make(data, monitor, worker_pool),
            lambda split: split_of_columns(split, encoding, sums),
            stopping,
            stopped=monitor.stopped,
            report=report_draft,
            rows=rows,
            worker_pool=worker_pool,
        )

    growth = grow(np.arange(n), "grow")
    draft = growth.draft
    finished = growth.finished
    evidence = {"kind": Evidence.GREEDY, "boxes": growth.boxes, "points_classified": growth.classified}
    if alpha is None and finished:
        alpha, used, finished = _choose_alpha(problem, growth.draft, settings, grow)
        evidence |= {"pruning_folds": used}
    if alpha:
        draft = _keep_proofs(prune(problem.tree(draft, np.arange(n)), alpha))
        evidence |= {"pruning_alpha": float(alpha)}
    return Solution(
        draft=draft,
        finished=finished,
        scope=rounded if rounded and not data.sums.exact else "",
        nodes=growth.boxes or 2 * growth.branches + 1,
        encoded_features=len(encoding.features),
        evidence=(evidence,),
    )


def _stopping(settings: Settings, n: int) -> Stopping:
    return Stopping(
        depth=settings["depth"],
        min_node=settings["min_node"],
        min_leaf=settings["min_leaf"],
        min_gain=settings["min_gain"] * n if settings["min_gain"] > 0 else -1.0,
        measure=settings["impurity"],
    )


def _keep_proofs(draft: Draft) -> Draft:
    """Drop the labels of leaves, which take their majority; branches keep impurity and bound."""
    if isinstance(draft, DraftLeaf):
        return DraftLeaf()
    return replace(draft, left=_keep_proofs(draft.left), right=_keep_proofs(draft.right))


def _choose_alpha(
    problem: Problem, draft: Draft, settings: Settings, grow: Callable[[CountArray, str], Growth]
) -> tuple[Fraction, int, bool]:
    """Return α of least cross-validated error on the pruning path (ties: smaller tree), the folds used, and whether these are all.

    If a limit ends the run, only finished folds count; without any, α is 0.
    """
    grid = alphas_between(alphas(collapses(problem.tree(draft, np.arange(len(problem.y))))))
    folds = min(settings["pruning_folds"], int(np.bincount(problem.y)[np.bincount(problem.y) > 0].min()))
    if folds < 2 or len(grid) < 2:
        return Fraction(0), 0, True
    inner = inner_folds(problem.y, folds, settings["seed"], problem.table)
    if inner is None:
        return Fraction(0), 0, True
    folds = inner.count
    wrong = np.zeros(len(grid), np.int64)
    used_folds = 0
    for f in range(folds):
        rows = inner.training(f)
        test = inner.validation(f)
        growth = grow(rows, f"choose pruning, fold {f + 1} of {folds}")
        if not growth.finished:
            break
        used_folds = f + 1
        tree = problem.settle(problem.tree(growth.draft, rows), rows)
        wrong += pruned_errors(tree, problem.matrix[test], problem.y[test], problem.row_weights[test], grid)
    alpha = grid[int(np.flatnonzero(wrong == wrong.min())[-1])] if used_folds else Fraction(0)
    return alpha, used_folds, used_folds == folds
