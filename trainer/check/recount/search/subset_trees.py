"""Search all trees of `odt` without listing subsets."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.check.proof.model import ModelTable, active_parameter, read_fraction
from trainer.check.proof.space.questions import bin_codes
from trainer.check.proof.space.space import topology_of
from trainer.check.proof.space.subsets import chosen_columns
from trainer.check.proof.subject import NoProof, Shape
from trainer.check.recount.findings import TOLERANCE
from trainer.check.recount.restrictions import RESTRICTIONS
from trainer.check.recount.search.exhaustive_search import SearchTooLarge
from trainer.check.recount.search.fronts import TopologyFronts
from trainer.check.recount.search.subsets import Subsets
from trainer.check.recount.trees.counts import goal_value, penalty

NUMBERS = 3e9  # limit on work, in array elements: about ten seconds
MAX_WEIGHT_SUM = 1 << 53
KEPT = {"max_card", "sensitivity", "specificity"}  # these searches support the restrictions listed here and no others
Columns = list[tuple[np.ndarray, bool]]
Pairs = tuple[int, int, list[tuple[int, int]]]


def top(model: dict[str, Any], rows: ModelTable) -> Fraction | None:
    """Return the best objective, or the bound of the file if no tree exceeds it; None if the space is too large."""
    goal = model["certificate"].get("goal") or {}
    bound = model["certificate"].get("bound")
    high = None if bound is None else read_fraction(bound) + TOLERANCE
    if goal.get("sensitivity") is not None or goal.get("specificity") is not None:
        return _top_within(model, rows, goal, high)
    sizes = _sizes(model, rows, goal)
    total = int(sizes.sum())
    if not total:
        return None
    limit = total + 1 if high is None else math.ceil((1 - high) * total)
    least = _search(
        model, rows, lambda columns, card, shape: Subsets(columns, sizes, card, NUMBERS).least(shape, limit)
    )
    return None if least is None else 1 - Fraction(least, total)


def _top_within(
    model: dict[str, Any], rows: ModelTable, goal: dict[str, Any], high: Fraction | None
) -> Fraction | None:
    """Return the same as `top` for trees that meet required shares; -1 if no tree does."""
    sizes = _by_class(model, rows, goal["positive"])
    mirrored = goal.get("sensitivity") is None
    ordered_sizes = sizes[:, ::-1] if mirrored else sizes
    free, limited = ordered_sizes.sum(axis=0).tolist()
    cap = _most_wrong(goal.get("specificity" if mirrored else "sensitivity"), limited)
    target = None if high is None else _target(goal, high, free, limited, cap)
    front = _search(
        model,
        rows,
        lambda columns, card, shape: TopologyFronts(columns, ordered_sizes, card, NUMBERS, cap).front(shape, target),
    )
    if front is None:
        return None
    # if one share is maximised, only the last entry counts: it has the fewest errors of the other class
    single = goal["maximise"] != "accuracy"
    right = [(limited - t, free - int(front[t])) for t in range(cap if single else 0, cap + 1)]
    values = [
        goal_value(goal, b, free, a, limited) if mirrored else goal_value(goal, a, limited, b, free) for a, b in right
    ]
    return max((value for value, meets_shares in values if meets_shares), default=Fraction(-1))


def _target(goal: dict[str, Any], high: Fraction, free: int, limited: int, cap: int) -> np.ndarray:
    """Return for t = 0 … cap errors in the limited class the least errors in the other that keep a tree's value at most `high`."""
    if goal["maximise"] != "accuracy":
        return np.append(np.zeros(cap, np.int64), max(0, math.ceil((1 - high) * free)))
    weight = read_fraction(goal.get("weight") or 1)
    # this many errors of the free class would violate its required share
    most = _most_wrong(goal.get("specificity"), free) + 1
    left = [(1 - high) * (limited + weight * free) - t for t in range(cap + 1)]
    target = [most if not weight else min(most, math.ceil(r / weight)) for r in left]
    return np.array([0 if r <= 0 else t for r, t in zip(left, target, strict=True)], np.int64)


def pairs(model: dict[str, Any], rows: ModelTable, positive: str) -> Pairs | None:
    """Return the weights of positives and negatives, and the Pareto front of correct weights of both classes.

    Returns None if the space is too large to be searched.
    """
    sizes = _by_class(model, rows, positive)
    n, p = sizes.sum(axis=0).tolist()
    front = _search(
        model, rows, lambda columns, card, shape: TopologyFronts(columns, sizes, card, NUMBERS, p).front(shape)
    )
    if front is None or len(model["classes"]) != 2:
        return None
    falls = np.flatnonzero(np.append(True, front[1:] < front[:-1])).tolist()
    return p, n, [(p - t, n - int(front[t])) for t in falls]


def _by_class(model: dict[str, Any], rows: ModelTable, positive: str) -> np.ndarray:
    """Return the weight of each row as a negative and as a positive one, int64 of shape (n, 2)."""
    yes = rows.labels == model["classes"].index(positive)
    return np.stack([np.where(of_class, rows.weights, 0) for of_class in (~yes, yes)], axis=1).astype(np.int64)


def _most_wrong(share: str | None, size: int) -> int:
    """Return the most errors of a class within a required share, with a tolerance for its rounding."""
    return size if share is None else min(size, max(0, math.floor(size * (1 - read_fraction(share) + TOLERANCE))))


def _sizes(model: dict[str, Any], rows: ModelTable, goal: dict[str, Any]) -> np.ndarray:
    """Return the weight of each row in its class, int64 of shape (n, K), as the goal counts it; no rows if it is too large."""
    factor = np.ones(len(model["classes"]), object)
    if goal:
        weight = read_fraction(goal.get("weight") or 1)
        factor[:] = weight.numerator
        factor[model["classes"].index(goal["positive"])] = weight.denominator
    if int(max(factor)) * int(rows.weights.sum()) >= MAX_WEIGHT_SUM:
        return np.zeros((0, len(factor)), np.int64)
    is_class = rows.labels[:, None] == np.arange(len(factor))
    return np.where(is_class, rows.weights[:, None] * factor.astype(np.int64), 0)


def _search(model: dict[str, Any], rows: ModelTable, search: Callable[[Columns, int, Shape], Any]) -> Any:
    """Run a search over the columns, the largest subset and the topology; None if it is too large, or not supported."""
    if model["method"] != "odt" or any(active_parameter(model, r.name) for r in RESTRICTIONS if r.name not in KEPT):
        return None
    if model["certificate"].get("wishes") or penalty(model):
        return None
    try:
        columns = _columns(model, rows)
        shape = topology_of(model)
        if shape is None and not active_parameter(model, "topology"):
            shape = _complete(int(model["parameters"]["depth"]))
        return search(columns, int(active_parameter(model, "max_card") or 0), shape)
    except (NoProof, SearchTooLarge):
        return None


def _columns(model: dict[str, Any], rows: ModelTable) -> Columns:
    """Return for each column the category or the bin of each row, and whether it has bins.

    Raises NoProof if the scope does not say which columns the trees may use.
    """
    if (usable := chosen_columns(model)) is None:
        raise NoProof("the scope does not say unambiguously which columns the trees may ask")
    columns = []
    for column, values, is_usable in zip(model["columns"], rows.columns, usable, strict=True):
        if not is_usable:
            continue
        if column["kind"] == "categorical":
            columns.append((np.searchsorted(np.unique(values), values).reshape(-1), False))
        else:
            columns += [(codes, True) for codes in bin_codes(values, int(model["parameters"]["bins"]))]
    return columns


def _complete(depth: int) -> Shape:
    return None if depth <= 0 else (_complete(depth - 1), _complete(depth - 1))
