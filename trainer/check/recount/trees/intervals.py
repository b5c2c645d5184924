"""Recompute the intervals of accuracy and cost, and count the folds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trainer.check.recount.findings import Finding, recount_finding, unjudged_finding
from trainer.check.recount.table.rows import TableRows, take_rows
from trainer.check.recount.trees.costs import answer_costs, answers_of
from trainer.check.recount.trees.counts import route

RESAMPLES = 2000
MAX_GROUPS = 1000
NORMAL = 1.959963984540054
LEVEL = 0.95
COST_INTERVALS = ("cost_interval", "saved_interval")
INTEGRAL_STEPS = 200_000  # number of steps of a numerical integral
# tolerance as a share of an interval's width, because another version of NumPy draws slightly different samples
NEAR = 0.1


def check_intervals(model: dict[str, Any], data: TableRows) -> list[Finding]:
    """Check each interval over groups, and the counts of the folds, if the file has them."""
    metrics = model.get("metrics") or {}
    findings = []
    for name in ("test", "cross_validation"):
        stated = metrics.get(name) or {}
        if "groups" in stated or "interval" in stated:
            findings.append(_interval_finding(model, data, name, stated))
        if any(kind in stated for kind in COST_INTERVALS):
            findings += [_cost_finding(model, data, name, stated, kind) for kind in COST_INTERVALS if kind in stated]
        if "by_fold" in stated:
            findings.append(_by_fold_finding(model, data, stated["by_fold"]))
    return findings


def _interval_finding(model: dict[str, Any], data: TableRows, name: str, record: dict[str, Any]) -> Finding:
    claim = f"metrics {name} interval"
    folds = 0 if name == "test" else int(record["folds"])
    units = [] if data.dependence.groups is None else [data.dependence.groups]
    if data.dependence.times is not None and folds:
        units.append(data.fold)
    weighted = data.dependence.weights is not None
    if not units and not weighted:
        return recount_finding(
            claim, False, "The file names no column of groups or weights, and no folds that follow time."
        )
    judged = data.held_out if name == "test" else data.fold >= 0
    if weighted and record.get("rows") != int(judged.sum()):
        return recount_finding(claim, False, f"{int(judged.sum())} rows were judged, not {record.get('rows')}.")
    correct = _correct(model, data, name)
    if correct is None:
        return unjudged_finding(claim, "The file does not hold the trees of the folds.")
    weights = data.rows.plain[judged]
    intervals = []
    for unit in units:
        _, first, place = np.unique(unit[judged], return_index=True, return_inverse=True)
        place = np.argsort(np.argsort(first if unit is not data.fold else unit[judged][first]))[place]
        right = np.bincount(place, weights=weights * correct[judged])
        intervals.append(_interval(right, np.bincount(place, weights=weights), folds))
    if weighted and data.dependence.groups is None:
        intervals.append(_weighted_interval(correct[judged], weights.astype(np.float64), folds))
    wide = [expected for expected in intervals if expected is not None]
    expected = max(wide, key=lambda pair: pair[1] - pair[0]) if len(wide) == len(intervals) else None
    stated = record.get("interval")
    groups = None if data.dependence.groups is None else len(np.unique(data.dependence.groups[judged]))
    words = "The interval over groups or weights, and over folds that follow time, was counted again."
    if record.get("groups") != groups or (stated is None) != (expected is None):
        return recount_finding(claim, False, words)
    if expected is None or stated is None:
        return recount_finding(claim, True, words)
    width = expected[1] - expected[0]
    holds = len(stated) == 2 and all(abs(a - b) <= NEAR * width + 1e-9 for a, b in zip(stated, expected, strict=True))
    return recount_finding(claim, holds and stated[0] >= 0 and stated[1] <= 1, words)


def _cost_finding(model: dict[str, Any], data: TableRows, name: str, record: dict[str, Any], kind: str) -> Finding:
    """Check the interval of the cost per held-out row, or of the savings against the best constant answer."""
    claim = f"metrics {name} {kind.replace('_', ' ')}"
    stated = record[kind]
    rows = take_rows(data.rows, data.held_out)
    costs = answer_costs(model, rows)
    if costs is None or name != "test":
        return recount_finding(claim, False, "The file names no costs, or no rows that were held out.")
    answers = answers_of(model, model["nodes"], route(model["nodes"], model["columns"], rows))
    each = costs.values[np.arange(len(rows)), answers] * float(costs.step)
    if kind == "saved_interval":
        constant = model["classes"].index(model["certificate"]["costs"]["best_constant"]["answer"])
        each = costs.values[:, constant] * float(costs.step) - each
    place = np.arange(len(rows))
    if data.dependence.groups is not None:
        _, first, place = np.unique(data.dependence.groups[data.held_out], return_index=True, return_inverse=True)
        place = np.argsort(np.argsort(first))[place]
    least = 0.0 if kind == "cost_interval" else -math.inf
    expected = _cost_interval(
        np.bincount(place, weights=each), np.bincount(place, weights=rows.plain * float(costs.unit_weight)), least
    )
    words = "The interval per unseen row was drawn again."
    if expected is None or stated is None:
        return recount_finding(claim, expected is stated, words)
    width = expected[1] - expected[0]
    holds = len(stated) == 2 and all(abs(a - b) <= NEAR * width + 1e-9 for a, b in zip(stated, expected, strict=True))
    holds = holds and stated[0] >= least
    # the tolerance must not decide whether the tree saves anything
    if holds and any(abs(a) > 1e-9 and (a > 0) != (b > 0) for a, b in zip(stated, expected, strict=True)):
        return unjudged_finding(
            claim, f"{words} It is {expected[0]:.6g} to {expected[1]:.6g}, so an end has the other sign."
        )
    return recount_finding(claim, holds, words)


def _cost_interval(total: np.ndarray, n: np.ndarray, least: float) -> tuple[float, float] | None:
    """Return percentiles of the cost per row over resampled groups, widened for few groups."""
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
    """Return the ratios of the sums of both over resampled groups."""
    rng = np.random.default_rng(0)
    if len(n) > MAX_GROUPS:
        batch = rng.permutation(len(n)) % MAX_GROUPS
        total = np.bincount(batch, weights=total)
        n = np.bincount(batch, weights=n)
    counts = rng.multinomial(len(n), np.full(len(n), 1 / len(n)), size=RESAMPLES)
    return np.asarray((counts @ total) / (counts @ n))


def _correct(model: dict[str, Any], data: TableRows, name: str) -> np.ndarray | None:
    """Return which rows their tree predicts correctly: the tree of the file, or that of the fold of each row."""
    if name == "test":
        return _answers(model, model["nodes"], data) == data.rows.labels
    trees = (model.get("rows") or {}).get("fold_trees")
    if trees is None:
        return None
    correct = np.zeros(len(data.fold), bool)
    for f, nodes in enumerate(trees):
        in_fold = data.fold == f
        correct[in_fold] = (_answers(model, nodes, data) == data.rows.labels)[in_fold]
    return correct


def _answers(model: dict[str, Any], nodes: list[dict[str, Any]], data: TableRows) -> np.ndarray:
    return answers_of(model, nodes, route(nodes, model["columns"], data.rows))


def _interval(correct: np.ndarray, n: np.ndarray, folds: int) -> tuple[float, float] | None:
    """Return Wilson's interval for the effective number of rows: the one with the variance over resampled groups."""
    correct = correct[n > 0]
    n = n[n > 0]
    groups = len(n)
    if groups < 2 or folds == 1:
        return None
    units = min(groups, MAX_GROUPS)
    variance = float(np.var(_ratios(correct, n))) * units / (units - 1)
    share = float(correct.sum() / n.sum())
    rows = share * (1 - share) / variance if variance > 0 and 0 < share < 1 else float(groups)
    rows = min(rows, float(n.sum())) * (NORMAL / _student(groups - 1)) ** 2
    return _wilson(share, rows / (1 + folds / (folds - 1)) if folds else rows)


def _wilson(share: float, rows: float) -> tuple[float, float]:
    """Return Wilson's interval for a share of `rows` rows."""
    z = NORMAL
    middle = (share + z * z / (2 * rows)) / (1 + z * z / rows)
    half = z / (1 + z * z / rows) * math.sqrt(share * (1 - share) / rows + z * z / (4 * rows * rows))
    low = 0.0 if share == 0 else max(0.0, middle - half)
    high = 1.0 if share == 1 else min(1.0, middle + half)
    return low, high


def _weighted_interval(correct: np.ndarray, weights: np.ndarray, folds: int) -> tuple[float, float] | None:
    """Return Wilson's interval for the effective number of equal rows, from the linearised variance of the share."""
    if folds == 1 or not len(weights):
        return None
    shares = weights / weights.sum()
    share = float(shares[correct].sum())
    spread = share * (1 - share)
    inside = 0 < share < 1
    rows = spread / float(((shares * (correct - share)) ** 2).sum()) if inside else 1 / float((shares**2).sum())
    return _wilson(share, rows / (1 + folds / (folds - 1)) if folds else rows)


def _student(freedom: int) -> float:
    """Return the two-sided critical value of Student's t at LEVEL, by an integral over angles."""
    angle = np.linspace(0, math.pi / 2, INTEGRAL_STEPS + 1)
    density = np.cos((angle[1:] + angle[:-1]) / 2) ** (freedom - 1)
    inside = np.concatenate([[0.0], np.cumsum(density)])
    return math.sqrt(freedom) * math.tan(float(np.interp(LEVEL * inside[-1], inside, angle)))


def _by_fold_finding(model: dict[str, Any], data: TableRows, folds: list[dict[str, Any]]) -> Finding:
    """Check the numbers of rows, groups and rows of each class in each fold."""
    claim = "folds counted"
    number = int(data.fold.max()) + 1
    if len(folds) != number:
        return recount_finding(claim, False, f"The rows have {number} folds, and {len(folds)} are listed.")
    for f, record in enumerate(folds):
        rows = take_rows(data.rows, data.fold == f)
        counted: dict[str, Any] = {"rows": len(rows), "training_rows": int(data.trains_for(f).sum())}
        if data.dependence.groups is not None:
            counted["groups"] = len(np.unique(data.dependence.groups[data.fold == f]))
        counted["classes"] = np.bincount(rows.labels, minlength=len(model["classes"])).tolist()
        if record != counted:
            return recount_finding(claim, False, f"Fold {f + 1} has {counted}.")
    return recount_finding(claim, True, f"Rows, groups and classes of {len(folds)} folds are as listed.")
