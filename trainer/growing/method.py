"""What the greedy methods share: parameters of growth and pruning, and the way from a split function to a pruned draft."""

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
from trainer.growing.split_units import split_data, uploaded
from trainer.methods.base import DEPTH, LEAF_PENALTY, MIN_LEAF, Parameter, Settings, Solution, exact_fraction, having
from trainer.methods.monitor import Monitor
from trainer.tree.nodes import Draft, DraftLeaf
from trainer.tree.numbers import percent_text
from trainer.tree.prune import alphas, alphas_between, collapses, prune, pruned_errors
from trainer.worker_pool import WorkerPool

MIN_NODE = Parameter(
    name="min_node", counts_rows=True, type="integer", default=2, minimum=2, maximum=10**9, label="Rows to split",
    help="A node with fewer training rows than this becomes a leaf.", unit="rows", advanced=True,
    restricts=lambda s: [f"no question to fewer than {s['min_node']} rows"] if s["min_node"] > 2 else [],
)  # fmt: skip
MIN_GAIN = Parameter(
    name="min_gain", counts_rows=True, type="number", default=0.0, minimum=0, maximum=1, label="Least gain",
    help="A split must reduce the impurity by at least this share of the training rows; 0 allows splits without gain.",
    advanced=True,
    restricts=lambda s: [f"each question lowering the impurity by at least {s['min_gain']} of the rows"] if s["min_gain"] else [],
)  # fmt: skip


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
    """What is done to the grown tree, for somebody who is about to start it; nothing for a text that is not a number yet."""
    try:
        alpha = _alpha(text)
    except ParameterError:
        return []
    if alpha is None:
        return ["Cross-validation chooses how many rows a leaf must win."]
    return [f"Leaves that win fewer than {percent_text(float(alpha))} of the rows are removed."] if alpha else []


PRUNING = Parameter(
    name="pruning", type="text", default="0", label="Pruning",
    help="Cost-complexity α: the training error rate that each leaf must save. 0 keeps the whole tree, 'cross-validation' chooses α.",
    check=_check_pruning, sentences=lambda values: _pruning_words(str(values.get("pruning") or "0")),
)  # fmt: skip
PRUNING_FOLDS = Parameter(
    name="pruning_folds", type="integer", default=5, minimum=2, maximum=50, label="Pruning folds",
    help="Number of folds of the cross-validation that chooses α.", advanced=True,
)  # fmt: skip
IMPURITY = Parameter(
    name="impurity", type="choice", default="gini", choices=("gini", "entropy", "error"), label="Impurity",
    help="The measure that a split reduces: Gini, entropy, or classification error.", advanced=True,
)  # fmt: skip
# growing looks at one question at a time and pruning has its own price, so that this one is only subtracted from what is reported
REPORTED_PENALTY = having(
    LEAF_PENALTY, advanced=True, label="Leaf penalty in the report",
    help="Subtracted from the reported objective for every leaf, to compare it with other methods. The tree does not depend on it; "
    "set the pruning to remove leaves that do not pay.",
    sentences=lambda values: [_reported_words(float(values.get("leaf_penalty") or 0))] if values.get("leaf_penalty") else [],
)  # fmt: skip


def _reported_words(penalty: float) -> str:
    return f"The tree does not depend on the leaf penalty; the reported objective is less {percent_text(penalty)} for each leaf."


# what every method takes that grows a tree question by question
GROWN = (
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
SHOW_EVERY = 0.3  # least seconds between two pictures of the growing tree
SHOW_SHARE = 0.05  # of the time that they may take, which grows with the tree


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
    """Grow with the splits that `make` finds, then prune as the settings ask; the pruned tree keeps what was proved.

    `rounded` is what the scope says where the columns are not exact. `sums` are the features that sums weigh, if some cells are empty.
    """
    encoding = problem.numeric
    X = encoding.matrix(problem.table)
    if X.shape[1] == 0 or len(np.unique(problem.y)) < 2:
        return Solution(draft=DraftLeaf())
    sums = encoding if sums is None else sums
    data = split_data(problem, encoding, sums)
    stopping = _stopping(settings, problem.n)
    alpha = _alpha(settings["pruning"])

    def grown(rows: CountArray, phase: str) -> Growth:
        monitor.report(phase=phase)
        whole = len(rows) == len(X)
        next_show = 0.0

        def news(leaves: int, draft: Callable[[], Draft]) -> None:
            nonlocal next_show
            # the trees that choose the pruning, one for each fold, are not kept; at the end the whole tree is drawn anyway
            if whole and monitor.elapsed() >= next_show and not monitor.stopped():
                begun = monitor.elapsed()
                monitor.report(leaves=leaves, nodes=2 * leaves - 1, draft=draft())
                took = monitor.elapsed() - begun
                next_show = begun + max(SHOW_EVERY, took / SHOW_SHARE)
            else:
                monitor.report(leaves=leaves, nodes=2 * leaves - 1)

        crew: WorkerPool[Any] = WorkerPool(threads=threads)
        return grow_tree(
            data, make(data, monitor, crew), lambda found: uploaded(found, encoding, sums), stopping,
            measure=settings["impurity"], stopped=monitor.stopped, report=news, rows=rows, crew=crew,
        )  # fmt: skip

    growth = grown(np.arange(len(X)), "grow")
    draft = growth.draft
    finished = growth.finished
    evidence = {"kind": Evidence.GREEDY, "boxes": growth.boxes, "points_classified": growth.classified}
    if alpha is None and finished:
        alpha, used, finished = _choose_alpha(problem, growth.draft, settings, grown)
        evidence |= {"pruning_folds": used}
    if alpha:
        draft = _keep_proofs(prune(problem.tree(draft, np.arange(len(X))), alpha))
        evidence |= {"pruning_alpha": float(alpha)}
    return Solution(
        draft=draft,
        finished=finished,
        scope=rounded if rounded and not data.sums.exact else "",
        nodes=growth.boxes or 2 * growth.branches + 1,
        encoded_features=X.shape[1],
        evidence=(evidence,),
    )


def _stopping(settings: Settings, n: int) -> Stopping:
    return Stopping(
        depth=settings["depth"],
        min_node=settings["min_node"],
        min_leaf=settings["min_leaf"],
        min_gain=settings["min_gain"] * n if settings["min_gain"] > 0 else -1.0,
    )


def _keep_proofs(draft: Draft) -> Draft:
    """Leaves take the majority of their rows, as everywhere; the branches keep impurity and bound."""
    if isinstance(draft, DraftLeaf):
        return DraftLeaf()
    return replace(draft, left=_keep_proofs(draft.left), right=_keep_proofs(draft.right))


def _choose_alpha(
    problem: Problem, draft: Draft, settings: Settings, grown: Callable[[CountArray, str], Growth]
) -> tuple[Fraction, int, bool]:
    """α inside the intervals of the pruning path of least cross-validated error, ties to the smaller tree.

    Also how many folds speak for it, and whether that is all of them: a limit that strikes leaves those that had ended,
    and without any the tree stays as it was grown.
    """
    grid = alphas_between(alphas(collapses(problem.tree(draft, np.arange(len(problem.y))))))
    folds = min(settings["pruning_folds"], int(np.bincount(problem.y)[np.bincount(problem.y) > 0].min()))
    if folds < 2 or len(grid) < 2:
        return Fraction(0), 0, True
    made = inner_folds(problem.y, folds, settings["seed"], problem.table)
    if made is None:
        return Fraction(0), 0, True
    folds = made.count
    wrong = np.zeros(len(grid), np.int64)
    used = 0
    for f in range(folds):
        rows = made.training(f)
        test = made.validation(f)
        growth = grown(rows, f"choose pruning, fold {f + 1} of {folds}")
        if not growth.finished:
            break
        used = f + 1
        tree = problem.settle(problem.tree(growth.draft, rows), rows)
        wrong += pruned_errors(tree, problem.matrix[test], problem.y[test], problem.row_weights[test], grid)
    alpha = grid[int(np.flatnonzero(wrong == wrong.min())[-1])] if used else Fraction(0)
    return alpha, used, used == folds
