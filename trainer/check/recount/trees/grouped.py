"""The intervals of accuracy and cost on unseen rows over groups and weights of rows, and what each fold counts, again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trainer.check.recount.findings import Finding, recounted, unjudged
from trainer.check.recount.table.rows import TableRows, take_rows
from trainer.check.recount.trees.costs import answer_costs, answers_of
from trainer.check.recount.trees.counts import route

RESAMPLES = 2000
MAX_GROUPS = 1000
NORMAL = 1.959963984540054
LEVEL = 0.95
COST_INTERVALS = ("cost_interval", "saved_interval")
STEPS = 200_000  # of an integral
NEAR = 0.1  # of the width of an interval: draws of another NumPy differ by less


def grouped(model: dict[str, Any], data: TableRows) -> list[Finding]:
    """Return a line on each interval over groups, and one on the counts of the folds, where the file has them."""
    metrics = model.get("metrics") or {}
    found = []
    for name in ("test", "cross_validation"):
        given = metrics.get(name) or {}
        if "groups" in given or "interval" in given:
            found.append(_interval_finding(model, data, name, given))
        if any(kind in given for kind in COST_INTERVALS):
            found += [_cost_finding(model, data, name, given, kind) for kind in COST_INTERVALS if kind in given]
        if "by_fold" in given:
            found.append(_by_fold_finding(model, data, given["by_fold"]))
    return found


def _interval_finding(model: dict[str, Any], data: TableRows, name: str, given: dict[str, Any]) -> Finding:
    claim = f"metrics {name} interval"
    folds = 0 if name == "test" else int(given["folds"])
    units = [] if data.bound.groups is None else [data.bound.groups]
    if data.bound.times is not None and folds:
        units.append(data.fold)
    weighted = data.bound.weights is not None
    if not units and not weighted:
        return recounted(claim, False, "The file names no column of groups or weights, and no folds that follow time.")
    judged = data.held_out if name == "test" else data.fold >= 0
    if weighted and given.get("rows") != int(judged.sum()):
        return recounted(claim, False, f"{int(judged.sum())} rows were judged, not {given.get('rows')}.")
    correct = _correct(model, data, name)
    if correct is None:
        return unjudged(claim, "The file does not hold the trees of the folds.")
    weights = data.rows.plain[judged]
    intervals = []
    for unit in units:
        _, first, place = np.unique(unit[judged], return_index=True, return_inverse=True)
        place = np.argsort(np.argsort(first if unit is not data.fold else unit[judged][first]))[place]
        right = np.bincount(place, weights=weights * correct[judged])
        intervals.append(_interval(right, np.bincount(place, weights=weights), folds))
    if weighted and data.bound.groups is None:
        intervals.append(_weighted_interval(correct[judged], weights.astype(np.float64), folds))
    known = [own for own in intervals if own is not None]
    own = max(known, key=lambda pair: pair[1] - pair[0]) if len(known) == len(intervals) else None
    stated = given.get("interval")
    groups = None if data.bound.groups is None else len(np.unique(data.bound.groups[judged]))
    words = "The interval over groups or weights, and over folds that follow time, was counted again."
    if given.get("groups") != groups or (stated is None) != (own is None):
        return recounted(claim, False, words)
    if own is None or stated is None:
        return recounted(claim, True, words)
    width = own[1] - own[0]
    holds = len(stated) == 2 and all(abs(a - b) <= NEAR * width + 1e-9 for a, b in zip(stated, own, strict=True))
    return recounted(claim, holds, words)


def _cost_finding(model: dict[str, Any], data: TableRows, name: str, given: dict[str, Any], kind: str) -> Finding:
    """Return the line on the interval of the cost per held-out row, or of what the tree saves against the best constant answer."""
    claim = f"metrics {name} {kind.replace('_', ' ')}"
    stated = given[kind]
    rows = take_rows(data.rows, data.held_out)
    costs = answer_costs(model, rows)
    if costs is None or name != "test":
        return recounted(claim, False, "The file names no costs, or no rows that were held out.")
    answers = answers_of(model, model["nodes"], route(model["nodes"], model["columns"], rows))
    each = costs.values[np.arange(len(rows)), answers] * float(costs.step)
    if kind == "saved_interval":
        constant = model["classes"].index(model["certificate"]["costs"]["best_constant"]["answer"])
        each = costs.values[:, constant] * float(costs.step) - each
    place = np.arange(len(rows))
    if data.bound.groups is not None:
        _, first, place = np.unique(data.bound.groups[data.held_out], return_index=True, return_inverse=True)
        place = np.argsort(np.argsort(first))[place]
    least = 0.0 if kind == "cost_interval" else -math.inf
    own = _cost_interval(np.bincount(place, weights=each), np.bincount(place, weights=rows.plain), least)
    words = "The interval per unseen row was drawn again."
    if own is None or stated is None:
        return recounted(claim, own is stated, words)
    width = own[1] - own[0]
    holds = len(stated) == 2 and all(abs(a - b) <= NEAR * width + 1e-9 for a, b in zip(stated, own, strict=True))
    return recounted(claim, holds, words)


def _cost_interval(total: np.ndarray, n: np.ndarray, least: float) -> tuple[float, float] | None:
    """Percentiles of the cost per row over resampled groups, their distances widened for few groups."""
    total = total[n > 0]
    n = n[n > 0]
    groups = len(n)
    if groups < 2 or np.ptp(total / n) == 0:
        return None
    mean = float(total.sum() / n.sum())
    low, high = np.quantile(_ratios(total, n), ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    factor = _student(groups - 1) / NORMAL * math.sqrt(groups / (groups - 1))
    return max(least, mean - factor * (mean - float(low))), mean + factor * (float(high) - mean)


def _ratios(total: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The ratio of the sums of both over resampled groups."""
    rng = np.random.default_rng(0)
    if len(n) > MAX_GROUPS:
        batch = rng.permutation(len(n)) % MAX_GROUPS
        total = np.bincount(batch, weights=total)
        n = np.bincount(batch, weights=n)
    drawn = rng.multinomial(len(n), np.full(len(n), 1 / len(n)), size=RESAMPLES)
    return np.asarray((drawn @ total) / (drawn @ n))


def _correct(model: dict[str, Any], data: TableRows, name: str) -> np.ndarray | None:
    """Return which rows their tree predicts correctly: the tree of the file, or that of the fold of each row."""
    if name == "test":
        return _answers(model, model["nodes"], data) == data.rows.labels
    trees = (model.get("rows") or {}).get("fold_trees")
    if trees is None:
        return None
    correct = np.zeros(len(data.fold), bool)
    for f, nodes in enumerate(trees):
        own = data.fold == f
        correct[own] = (_answers(model, nodes, data) == data.rows.labels)[own]
    return correct


def _answers(model: dict[str, Any], nodes: list[dict[str, Any]], data: TableRows) -> np.ndarray:
    return answers_of(model, nodes, route(nodes, model["columns"], data.rows))


def _interval(correct: np.ndarray, n: np.ndarray, folds: int) -> tuple[float, float] | None:
    """Wilson's interval over as many rows as have the variance of the share over resampled groups."""
    correct = correct[n > 0]
    n = n[n > 0]
    groups = len(n)
    if groups < 2 or folds == 1:
        return None
    drawn = min(groups, MAX_GROUPS)
    variance = float(np.var(_ratios(correct, n))) * drawn / (drawn - 1)
    share = float(correct.sum() / n.sum())
    rows = share * (1 - share) / variance if variance > 0 and 0 < share < 1 else float(groups)
    rows = min(rows, float(n.sum())) * (NORMAL / _student(groups - 1)) ** 2
    return _wilson(share, rows / (1 + folds / (folds - 1)) if folds else rows)


def _wilson(share: float, rows: float) -> tuple[float, float]:
    """Wilson's interval for a share of so many rows."""
    z = NORMAL
    middle = (share + z * z / (2 * rows)) / (1 + z * z / rows)
    half = z / (1 + z * z / rows) * math.sqrt(share * (1 - share) / rows + z * z / (4 * rows * rows))
    return (0.0 if share == 0 else max(0.0, middle - half)), (1.0 if share == 1 else min(1.0, middle + half))


def _weighted_interval(correct: np.ndarray, weights: np.ndarray, folds: int) -> tuple[float, float] | None:
    """Wilson's interval over as many equal rows as give the weighted share its variance, by linearisation."""
    if folds == 1 or not len(weights):
        return None
    shares = weights / weights.sum()
    share = float(shares[correct].sum())
    spread = share * (1 - share)
    inside = 0 < share < 1
    rows = spread / float(((shares * (correct - share)) ** 2).sum()) if inside else 1 / float((shares**2).sum())
    return _wilson(share, rows / (1 + folds / (folds - 1)) if folds else rows)


def _student(freedom: int) -> float:
    """Return the value that Student's t exceeds in absolute value with probability 1 − LEVEL, by an integral over angles."""
    angle = np.linspace(0, math.pi / 2, STEPS + 1)
    density = np.cos((angle[1:] + angle[:-1]) / 2) ** (freedom - 1)
    inside = np.concatenate([[0.0], np.cumsum(density)])
    return math.sqrt(freedom) * math.tan(float(np.interp(LEVEL * inside[-1], inside, angle)))


def _by_fold_finding(model: dict[str, Any], data: TableRows, given: list[dict[str, Any]]) -> Finding:
    """Judge how many rows, groups and rows of each class the file counts in each fold."""
    claim = "folds counted"
    for f, stated in enumerate(given):
        rows = take_rows(data.rows, data.fold == f)
        own: dict[str, Any] = {"rows": len(rows), "training_rows": int(data.trains_for(f).sum())}
        if data.bound.groups is not None:
            own["groups"] = len(np.unique(data.bound.groups[data.fold == f]))
        own["classes"] = np.bincount(rows.labels, minlength=len(model["classes"])).tolist()
        if stated != own:
            return recounted(claim, False, f"Fold {f + 1} has {own}.")
    return recounted(claim, True, f"Rows, groups and classes of {len(given)} folds are as listed.")
