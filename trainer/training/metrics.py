"""Compute metrics for model files, on training rows, held-out rows and folds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from trainer.data.costs import RowCosts
from trainer.data.folds import group_sums
from trainer.data.share_interval import WeightSums, of_costs, of_folds, of_groups, of_weights, widest, wilson
from trainer.table import Table
from trainer.tree.nodes import Tree, training_counts


def metrics_of(
    tree: Tree,
    matrix: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray | None,
    costs: RowCosts | None = None,
    constant: int = 0,
) -> dict[str, Any]:
    """Return rows, correct rows, accuracy and confusion matrix of a tree on some rows.

    `weights`, int64 (rows,), are row weights; None: 1. With `costs`, the record also has the cost in total, per row, by true
    class and answer, and of the answer `constant` for all rows.
    """
    correct, confusion = training_counts(tree, matrix, codes, weights)
    n = int(confusion.sum())
    record = {"n": n, "correct": correct, "accuracy": correct / n, "confusion": confusion.tolist()}
    if costs is None:
        return record
    by_class = costs.by_class(codes, tree.predict(matrix))
    cost = int(by_class.sum())
    return record | {
        "cost": costs.in_unit(cost),
        "cost_per_row": costs.per_row(cost),
        "constant_cost": costs.in_unit(costs.constants[constant]),
        "cost_confusion": [[costs.in_unit(int(cell)) for cell in row] for row in by_class],
    }


def held_out_groups(tree: Tree, table: Table, codes: np.ndarray, weights: np.ndarray | None) -> dict[str, Any]:
    """Return rows, groups and interval of the accuracy on held-out rows; empty without groups and weights."""
    if table.groups is None and table.weights is None:
        return {}
    judged = JudgedRows()
    judged.add(tree, table, codes, weights)
    return judged.to_json(table, 0)


def held_out_costs(tree: Tree, table: Table, costs: RowCosts | None, constant: int) -> dict[str, Any]:
    """Return the intervals of the cost per held-out row, and of its saving against the answer `constant` for all rows.

    They are over rows, or over groups of rows; empty without costs.
    """
    if costs is None:
        return {}
    groups = np.arange(len(table)) if table.groups is None else table.groups.codes
    each = costs.weighted[np.arange(len(table)), tree.predict(table.matrix())].astype(np.float64)
    saved = costs.weighted[:, constant].astype(np.float64) - each
    n = group_sums(costs.true_weights, groups)
    intervals = {
        "cost_interval": of_costs(group_sums(each * float(costs.step), groups), n),
        "saved_interval": of_costs(group_sums(saved * float(costs.step), groups), n, least=-math.inf),
    }
    return {name: None if interval is None else list(interval) for name, interval in intervals.items()}


class JudgedRows:
    """Collector of the groups, correct weights and weights of validation rows, fold by fold."""

    def __init__(self) -> None:
        self._groups: list[np.ndarray] = []
        self._correct: list[np.ndarray] = []
        self._weights: list[np.ndarray] = []

    def add(self, tree: Tree, table: Table, codes: np.ndarray, weights: np.ndarray | None) -> None:
        """Add the rows of a fold; `codes` (n,) are their classes."""
        row_weights = np.ones(len(codes)) if weights is None else weights.astype(np.float64)
        self._groups.append(np.arange(len(codes)) if table.groups is None else table.groups.codes)
        self._correct.append(row_weights * (tree.predict(table.matrix()) == codes))
        self._weights.append(row_weights)

    def _weight_sums(self) -> WeightSums:
        return WeightSums.of(np.concatenate(self._correct), np.concatenate(self._weights))

    def to_json(self, table: Table, folds: int) -> dict[str, Any]:
        """Return the interval of the accuracy over groups, weights, and folds that follow time; `folds`: 0 for held-out rows."""
        record: dict[str, Any] = {}
        if table.weights is not None:
            record["rows"] = sum(map(len, self._weights))
        intervals = []
        if table.groups is not None:
            groups = np.concatenate(self._groups)
            correct = group_sums(np.concatenate(self._correct), groups)
            rows = group_sums(np.concatenate(self._weights), groups)
            record["groups"] = len(rows)
            intervals.append(of_groups(correct, rows, folds))
        elif table.weights is not None:
            intervals.append(of_weights(self._weight_sums(), folds))
        if table.times is not None and folds:
            sums = [np.array([column.sum() for column in part]) for part in (self._correct, self._weights)]
            intervals.append(of_groups(sums[0], sums[1], folds))
        interval = widest(intervals)
        return record | {"interval": None if interval is None else list(interval)}


def crossed_metrics(
    folds: int, accuracies: list[float], leaves: list[int], confusion: np.ndarray | None, counts: tuple[int, int]
) -> dict[str, Any]:
    """Return the record of a complete cross-validation for the model file; `counts` are correct rows and all rows."""
    return {
        "folds": folds,
        "accuracies": accuracies,
        "accuracy": float(np.mean(accuracies)),
        "deviation": float(np.std(accuracies, ddof=1)),
        "leaves": leaves,
        "n": counts[1],
        "correct": counts[0],
    } | ({} if confusion is None else {"confusion": confusion.tolist()})


def unseen_accuracy(metrics: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the accuracy on unseen rows with its 95 % interval and its counts; None without unseen rows.

    A cross-validation is preferred to held-out rows. The interval is over `groups` if rows have groups, and over folds that
    follow time. For weighted rows, `correct` and `n` are weights, and the interval uses the effective number of `rows`.
    """
    crossed = metrics.get("cross_validation") or {}
    test = metrics.get("test") or {}
    source = crossed if crossed.get("accuracy") is not None else test
    if not source.get("n"):
        return None
    correct = int(source["correct"])
    n = int(source["n"])
    record: dict[str, Any] = {"accuracy": correct / n, "correct": correct, "n": n}
    if "interval" in source:
        return record | {name: source[name] for name in ("groups", "rows", "interval") if name in source}
    interval = of_folds(correct, n, len(crossed["accuracies"])) if source is crossed else wilson(correct, n)
    return record | {"interval": None if interval is None else list(interval)}
