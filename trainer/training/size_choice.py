"""Choose the number of leaves if the leaf penalty is 'auto'.

Folds inside the training rows evaluate the best tree of each number of leaves. The choice becomes an explicit leaf penalty.
It depends only on rows and settings, so that it is the same on every machine that ends it within its share of the time limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from trainer.data.folds import Folds, inner_folds
from trainer.data.problem import Problem
from trainer.dtypes import CountArray, FloatArray
from trainer.errors import TrainerError
from trainer.goal import GOAL_NAMES, count_goal
from trainer.methods.base import AUTO, Method, Settings, SizedDraft
from trainer.methods.cost import ProblemSize
from trainer.methods.monitor import Monitor
from trainer.solver_common.problem_setup import pose, searched_settings
from trainer.training.supervised_thread import supervise
from trainer.tree.nodes import Draft, DraftLeaf, Tree

FOLDS = 5
FEWEST_FOLDS = 2  # folds that must end before the time of the choice is over
REPEATS = (4, 1)  # repetitions of the cross-validation; the first affordable number is used
QUANTILES = 9  # quantiles per numeric column in a fold if the thresholds are 'auto'
FEWEST_ROWS = 50  # with at least this many rows, a fold validates ten rows or more
TIME_SHARE = 0.5  # share of the time limit for the choice; the search of the tree itself needs the rest
# time for the trees of all sizes, relative to one search of depth 2; each further level multiplies it by this
LEVEL_FACTOR = 4.0
MOST_PENALTY = 0.999
DIGITS = 9  # decimal digits of a chosen penalty
ROUNDING = 1e-12


class SizedProblem(NamedTuple):
    """The problem and settings with an explicit leaf penalty, and the record of the choice for the model file."""

    problem: Problem
    settings: Settings
    record: dict[str, Any]


class _Size(NamedTuple):
    """A number of leaves, and the open interval of leaf penalties whose best tree has this number."""

    leaves: int
    low: Fraction
    high: Fraction


def settle_size(method: Method, problem: Problem, settings: Settings, monitor: Monitor) -> SizedProblem:
    """Choose the leaf penalty if it is 'auto'.

    Parameters
    ----------
    method : Method
    problem : Problem
        The training rows, on which alone the choice depends.
    settings : Settings
    monitor : Monitor
        If it stops, or half of the time limit is over, the choice ends early. The folds that ended then choose; with fewer than
        FEWEST_FOLDS of them the penalty is 0.

    Returns
    -------
    SizedProblem
        Unchanged, with an empty record, if the settings state a penalty.
    """
    if settings.get("leaf_penalty") != AUTO:
        return SizedProblem(problem, settings, {})
    record = _choose(method, problem, settings, monitor)
    penalty = next((one["leaf_penalty"] for one in record["tried"] if one["chosen"]), 0.0)
    share = Fraction(str(penalty))
    settings_with_penalty = Settings(settings.to_json() | {"leaf_penalty": penalty})
    leaf_share = share if problem.costs is None else problem.costs.leaf_share(share)
    return SizedProblem(replace(problem, leaf_penalty=leaf_share), settings_with_penalty, record)


def _choose(method: Method, problem: Problem, settings: Settings, monitor: Monitor) -> dict[str, Any]:
    """Return the record of the choice: the tried sizes, or the reason why there are none."""
    reason = _obstacle(method, problem, settings)
    if reason:
        return _not_chosen(reason)
    try:
        with monitor.stage(TIME_SHARE * monitor.remaining()):
            return _measure(method, problem, settings, monitor)
    except TrainerError as error:
        return _not_chosen(f"A fold inside the training rows cannot be trained. {error}")


def _not_chosen(reason: str) -> dict[str, Any]:
    return {"reason": reason, "tried": []}


def _obstacle(method: Method, problem: Problem, settings: Settings) -> str:
    """Return the reason why no size can be chosen, or ""."""
    assert method.sizes is not None
    limits = [name for name in method.sizes.without if settings[name] != method.parameter(name).default]  # type: ignore[union-attr]
    if limits:
        return f"The best tree of each size is not searched with {' and '.join(limits)}."
    if goal := count_goal(settings):
        return f"Sizes are judged by accuracy or costs, not by {GOAL_NAMES[goal]}."
    if np.unique(problem.y[problem.row_weights > 0]).size < 2:
        return "All training rows have one class."
    if len(problem.table) < FEWEST_ROWS:
        return f"There are {len(problem.table)} training rows; folds inside them need at least {FEWEST_ROWS}."
    if settings["depth"] is None or not 1 <= settings["depth"] <= method.sizes.deepest:
        return f"Sizes are chosen for depths from 1 to {method.sizes.deepest}."
    return ""


def _measure(method: Method, problem: Problem, settings: Settings, monitor: Monitor) -> dict[str, Any]:
    coarse = _pose_part(problem, settings, None)
    seconds = _seconds(method, coarse, settings)
    assert method.sizes is not None
    most = method.sizes.most_seconds
    longest = most if monitor.limits.time is None else min(most, TIME_SHARE * monitor.limits.time)
    repeats = next((times for times in REPEATS if times * FOLDS * seconds <= longest), 0)
    if not repeats:
        limit = "" if longest == most else f" within half of the time limit of {monitor.limits.time:g} s"
        return _not_chosen(f"The table is too large to search trees of all sizes in each fold{limit}.")
    deals = _deal_folds(problem, settings, repeats)
    if not deals:
        return _not_chosen("The groups or times of the rows allow no two folds inside the training rows.")
    parts = [(folds, fold) for folds in deals for fold in range(folds.count)]
    monitor.report(phase="choosing the size: all rows")
    measured = problem if _seconds(method, problem, settings) <= longest else coarse
    drafts = _best(method, measured, settings, monitor)
    if monitor.stopped():
        return _unfinished(monitor)
    losses = np.zeros((len(parts), min(2 ** settings["depth"], len(problem.table))))
    weights = np.zeros(len(parts))
    ended = 0
    for k, (folds, fold) in enumerate(parts):
        monitor.report(phase=f"choosing the size: part {k + 1} of {len(parts)}")
        judged = folds.validation(fold)
        part = _pose_part(problem, settings, folds.training(fold))
        fold_drafts = _best(method, part, settings, monitor)
        if monitor.stopped():
            break
        losses[k] = _judge(problem, part, fold_drafts, judged, losses.shape[1])
        weights[k] = _weight(problem, judged)
        ended += 1
    if monitor.reason is not None or ended < FEWEST_FOLDS:
        return _unfinished(monitor)
    # judge each row equally often: use whole repetitions, or only the folds of the first one
    each = min(ended, deals[0].count)
    used = ended // each * each
    return _record(problem, _sizes(measured, drafts), losses[:used], weights[:used], each)


def _unfinished(monitor: Monitor) -> dict[str, Any]:
    end = "Half of the time limit was over" if monitor.reason is None else "The training ended"
    return _not_chosen(f"{end} before the trees of all sizes were judged.")


def _deal_folds(problem: Problem, settings: Settings, repeats: int) -> list[Folds]:
    """Return the folds inside the training rows for each repetition; a single one if folds follow time."""
    seed = settings.get("seed", 0)
    dealt = [inner_folds(problem.y, FOLDS, seed + again, problem.table) for again in range(repeats)]
    possible = [folds for folds in dealt if folds is not None]
    if possible and possible[0].forward:
        return possible[:1]
    return [folds for folds in possible if folds.count == possible[0].count]


def _seconds(method: Method, problem: Problem, settings: Settings) -> float:
    """Return the expected seconds of the trees of all sizes."""
    assert method.sizes is not None
    size = ProblemSize(
        n=len(problem.searched.table),
        p=len(problem.table.columns),
        F=len(problem.binary.features),
        K=problem.n_classes,
        d=settings["depth"],
    )
    if method.sizes.seconds is not None:
        return method.sizes.seconds(size)
    return float(method.cost.seconds(size) * LEVEL_FACTOR ** max(1, size.d - 2))


def _pose_part(problem: Problem, settings: Settings, rows: CountArray | None) -> Problem:
    """Return the problem of some of the rows, None for all, with few thresholds if they are 'auto'."""
    weights = problem.quantile_weights
    row_costs = None if problem.costs is None else problem.costs.given
    few = settings.to_json() | ({"bins": QUANTILES} if settings.get("bins") == AUTO else {})
    if rows is None:
        return pose(problem.table, problem.labels, Settings(few), weights=weights, given_costs=row_costs)
    return pose(
        problem.table.take(rows),
        problem.labels.take(rows),
        Settings(few),
        weights=None if weights is None else weights[rows],
        given_costs=None if row_costs is None else row_costs[rows],
    )


def _best(method: Method, problem: Problem, settings: Settings, monitor: Monitor) -> list[SizedDraft]:
    """Return the best tree of each number of leaves; a single leaf if the rows have one class."""
    assert method.sizes is not None
    if np.unique(problem.searched.y).size < 2:
        return [SizedDraft(1, 0, DraftLeaf())]
    search = method.sizes.best
    return supervise(
        lambda: search(problem.searched, searched_settings(problem, settings), monitor), monitor, otherwise=[]
    )


def _judge(problem: Problem, part: Problem, drafts: Sequence[SizedDraft], judged: CountArray, most: int) -> FloatArray:
    """Return the loss of the trees of at most 1, 2, … `most` leaves on the judged rows, float64: misclassified weight, or cost."""
    matrix = problem.matrix[judged]
    accuracy_of: dict[Draft, float] = {}
    for one in drafts:
        if one.draft not in accuracy_of:
            accuracy_of[one.draft] = _loss(problem, part.settle(part.tree(one.draft)), matrix, judged)
    accuracies = [accuracy_of[one.draft] for one in drafts[:most]]
    return np.array(accuracies + accuracies[-1:] * (most - len(accuracies)))


def _loss(problem: Problem, tree: Tree, matrix: FloatArray, judged: CountArray) -> float:
    answers = tree.predict(matrix)
    if problem.costs is None:
        return float(problem.row_weights[judged][answers != problem.y[judged]].sum())
    costs = problem.costs.weighted[judged]
    each = np.where(answers >= 0, costs[np.arange(len(judged)), answers], costs.max(axis=1))
    return float(each.sum() * float(problem.costs.step))


def _weight(problem: Problem, judged: CountArray) -> float:
    weights = problem.row_weights if problem.costs is None else problem.costs.true_weights
    return float(weights[judged].sum())


def _sizes(problem: Problem, drafts: Sequence[SizedDraft]) -> list[_Size]:
    """Return the sizes that are optimal for some leaf penalty, from one leaf up: the lower convex hull of errors over leaves."""
    one = Fraction(1, 10**6)  # convert a small penalty, since costs may not allow a penalty of 1
    share = one if problem.costs is None else problem.costs.leaf_share(one)
    unit = share / one * problem.searched.n
    errors: dict[int, int] = {}
    for draft in drafts:
        errors.setdefault(draft.leaves, draft.errors)
    sizes: list[_Size] = []
    fewest_errors = min(errors)
    high = Fraction(1)
    while True:
        slopes = {
            n: Fraction(errors[fewest_errors] - errors[n], n - fewest_errors) / unit
            for n in errors
            if n > fewest_errors
        }
        low = max((slope for slope in slopes.values() if slope > 0), default=Fraction(0))
        sizes.append(_Size(fewest_errors, low, high))
        if not low:
            return sizes
        fewest_errors = max(n for n, slope in slopes.items() if slope == low)
        high = low


def _record(
    problem: Problem, sizes: Sequence[_Size], losses: FloatArray, weights: FloatArray, folds: int
) -> dict[str, Any]:
    """Return the record of the choice: unseen accuracy, or cost per row, of each size that a penalty gives."""
    listed = [(size, penalty) for size in sizes if (penalty := _penalty(size)) is not None]
    means = np.array([losses[:, s.leaves - 1].sum() for s, _ in listed]) / weights.sum()
    each = losses[:, [s.leaves - 1 for s, _ in listed]] / weights[:, None]
    # repetitions validate the same rows again, so they do not count as further folds
    errors = each.std(axis=0, ddof=1) / math.sqrt(folds)
    chosen_index = simplest_within_error(means, errors)
    accuracy = problem.costs is None
    return {
        "reason": "",
        "measure": "accuracy" if accuracy else "cost_per_row",
        "folds": folds,
        "repeats": len(weights) // folds,
        "tried": [
            {
                "leaves": size.leaves,
                "leaf_penalty": penalty,
                "unseen": float(1 - mean if accuracy else mean),
                "error": float(error),
                "chosen": k == chosen_index,
            }
            for k, ((size, penalty), mean, error) in enumerate(zip(listed, means, errors, strict=True))
        ],
    }


def simplest_within_error(losses: FloatArray, errors: FloatArray) -> int:
    """Return the first size whose loss is within half a standard error of the least loss."""
    best = int(losses.argmin())
    return int(np.flatnonzero(losses <= losses[best] + errors[best] / 2 + ROUNDING)[0])


def _penalty(size: _Size) -> float | None:
    """Return a short decimal within the interval of a size, 0 if possible; None if no short one fits."""
    if not size.low:
        return 0.0
    high = min(size.high, 4 * size.low, Fraction(str(MOST_PENALTY)))
    middle = math.sqrt(size.low * high)
    for digits in range(1, DIGITS + 1):
        candidate = float(f"{middle:.{digits}g}")
        if size.low < Fraction(str(candidate)) < high:
            return candidate
    return None
