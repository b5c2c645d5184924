"""Measure the accuracy of a tree by rows, class, group and leaf."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from trainer.data.folds import fold_of_signs
from trainer.data.profile import row_groups
from trainer.dossier.rows import DossierRows
from trainer.dtypes import CountArray
from trainer.errors import DataError
from trainer.evaluate.curves import brier, curve
from trainer.evaluate.groups import MIN_GROUP_ROWS
from trainer.evaluate.intervals import of_rows
from trainer.training.metrics import unseen_accuracy
from trainer.tree.file import ModelFile
from trainer.tree.nodes import Tree, tree_from_json

CLASS_SHARES = 3  # a table of groups gives class shares only for at most this many classes


def share(rows: DossierRows, at: np.ndarray, right: np.ndarray) -> dict[str, Any]:
    """Return the share of the rows at positions `at` that are `right`, bool, with its 95 % interval.

    If rows have weights, the members `right` and `rows` are sums of weights. If rows have groups, the interval is over groups.
    """
    weights, groups = (None if values is None else values[at] for values in (rows.weights, rows.group_codes))
    n = int(rows.weights_of(at).sum())
    hits = int(rows.weights_of(at)[right].sum())
    interval = of_rows(right, weights, groups) if n else None
    return {
        "right": hits,
        "rows": n,
        "share": hits / n if n else None,
        "interval": None if interval is None else list(interval),
    }


def performance(rows: DossierRows, at: np.ndarray) -> dict[str, Any] | None:
    """Measure the tree on the rows at positions `at`; None if there are none."""
    if not len(at):
        return None
    tree = rows.model.tree
    classes = len(tree.classes)
    actual = rows.codes[at]
    predicted = rows.predicted[at]
    counts = np.zeros((classes, classes), np.int64)
    np.add.at(counts, (actual, predicted), rows.weights_of(at))
    trained = np.bincount(rows.codes[rows.training], rows.weights_of(rows.training), classes)
    most = int(trained.argmax())
    accuracy = share(rows, at, actual == predicted)
    stated_interval = (rows.model.metrics.get("test") or {}).get("interval")
    if stated_interval is not None and np.array_equal(at, rows.unseen):
        accuracy["interval"] = list(stated_interval)
    return {
        "accuracy": accuracy,
        "confusion": counts.tolist(),
        "found": [share(rows, at[actual == k], predicted[actual == k] == k) for k in range(classes)],
        "precision": [share(rows, at[predicted == k], actual[predicted == k] == k) for k in range(classes)],
        "baseline": {"class": tree.classes[most], **share(rows, at, actual == most)},
        "scores": scores(tree, _by_leaf(rows, at), trained),
    }


def _by_leaf(rows: DossierRows, at: np.ndarray) -> CountArray:
    """Return the weight of the rows at positions `at` by leaf and actual class, int64 (nodes, classes)."""
    counts = np.zeros((len(rows.model.tree.nodes), len(rows.model.tree.classes)), np.int64)
    np.add.at(counts, (rows.leaf_of[at], rows.codes[at]), rows.weights_of(at))
    return counts


def scores(tree: Tree, counts: CountArray, trained: np.ndarray) -> dict[str, Any] | None:
    """Return the area under the ROC curve and the Brier score of the rarer class; None unless there are two classes.

    `counts`, int64 (nodes, classes), are the judged rows of each leaf; `trained` the training rows of each class.
    """
    if len(tree.classes) != 2:
        return None
    positive = int(np.argmin(trained))
    leaves = [leaf.id for leaf in tree.leaves]
    positives = counts[leaves, positive]
    negatives = counts[leaves, 1 - positive]
    stated = tree.probabilities[leaves, positive]
    base = np.full(len(leaves), tree.probabilities[0, positive])
    return {
        "positive": tree.classes[positive],
        "area_under_roc": curve(stated, positives, negatives).area,
        "brier": brier(stated, positives, negatives),
        "brier_of_baseline": brier(base, positives, negatives),
    }


def error_floor(rows: DossierRows) -> dict[str, Any]:
    """Count the rows that every tree misclassifies, because rows with equal cells have different classes."""
    group = row_groups(rows.table)
    classes = len(rows.model.tree.classes)
    counts = np.zeros((int(group.max(initial=-1)) + 1, classes), np.int64)
    np.add.at(counts, (group, rows.codes), rows.weights_of(np.arange(len(group))))
    total = int(counts.sum())
    least = total - int(counts.max(axis=1, initial=0).sum())
    return {"errors": least, "rows": total, "share": least / total if total else None}


def cross_validation(file: ModelFile) -> dict[str, Any] | None:
    """Return the fold results of the model file, which the checker counts again; None without folds."""
    stated = file.metrics.get("cross_validation") or {}
    if stated.get("accuracy") is None:
        return None
    unseen = unseen_accuracy({"cross_validation": stated})
    return {
        "folds": stated.get("folds"),
        "rows": stated.get("n"),
        "right": stated.get("correct"),
        "accuracy": stated["accuracy"],
        "deviation": stated.get("deviation"),
        "groups": stated.get("groups"),
        "interval": None if unseen is None else unseen["interval"],
        "confusion": stated.get("confusion"),
    }


def subgroups(rows: DossierRows, at: np.ndarray, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Measure the tree on each group of at least 30 rows, for each column: accuracy, recalls, and shares of answers."""
    return [_by_column(rows, at, column) for column in columns] if len(at) else []


def _by_column(rows: DossierRows, at: np.ndarray, column: str) -> dict[str, Any]:
    labels, codes = rows.groups(column, at)
    groups = []
    small = 0
    for k, label in enumerate(labels):
        group_rows = at[codes == k]
        if len(group_rows) < MIN_GROUP_ROWS:
            small += len(group_rows) > 0
            continue
        groups.append({"group": label, **_group(rows, group_rows)})
    return {"column": column, "groups": groups, "small_groups": small, "fewest_rows": MIN_GROUP_ROWS}


def _group(rows: DossierRows, group_rows: np.ndarray) -> dict[str, Any]:
    actual = rows.codes[group_rows]
    predicted = rows.predicted[group_rows]
    classes = len(rows.model.tree.classes)
    each = range(classes if classes <= CLASS_SHARES else 0)
    return {
        "accuracy": share(rows, group_rows, actual == predicted),
        "found": [share(rows, group_rows[actual == k], predicted[actual == k] == k) for k in each],
        "answered": [share(rows, group_rows, predicted == k) for k in each],
    }


def calibration(rows: DossierRows) -> list[dict[str, Any]]:
    """Compare for each leaf the share of its class among training rows (`promised`) and among unseen rows.

    `kept` is True if the promised share lies in the interval of the unseen rows; None if no unseen row reaches the leaf.
    """
    tree = rows.model.tree
    unseen_rows = rows.unseen
    records = []
    for leaf in tree.leaves:
        leaf_rows = unseen_rows[rows.leaf_of[unseen_rows] == leaf.id]
        promised = leaf.counts[leaf.label] / leaf.rows if leaf.rows else None
        unseen = share(rows, leaf_rows, rows.codes[leaf_rows] == leaf.label)
        interval = unseen["interval"]
        holds = None if interval is None or promised is None else bool(interval[0] <= promised <= interval[1])
        records.append(
            {
                "leaf": leaf.id,
                "class": tree.classes[leaf.label],
                "training_rows": leaf.rows,
                "promised": promised,
                "unseen": unseen,
                "kept": holds,
            }
        )
    return records


def stability(rows: DossierRows) -> dict[str, Any] | None:
    """Compare the trees of the folds with the model: agreement on rows unseen by each, and used columns.

    Returns None if the model file has no trees of folds.
    """
    rows_record = rows.model.rows or {}
    trees = rows_record.get("fold_trees")
    signs = rows_record.get("folds")
    if not trees or not signs or len(signs) != len(rows.codes) or any(t is None for t in trees):
        return None
    tree = rows.model.tree
    fold = fold_of_signs(signs)
    grown = [tree_from_json(nodes, schema=tree.schema, classes=tree.classes) for nodes in trees]
    agreement = []
    for k, other in enumerate(grown):
        at = np.flatnonzero(fold == k)
        same = other.predict(rows.matrix[at]) == rows.predicted[at]
        agreement.append(share(rows, at, same))
    return {
        "trees": len(grown),
        "agreement": agreement,
        "leaves": [other.n_leaves for other in grown],
        "asked": trees_by_column(tree, grown),
    }


def trees_by_column(tree: Tree, grown: Sequence[Tree]) -> dict[str, int]:
    """Return how many of the trees of folds ask each column, the most asked first."""
    asked = Counter(j for other in grown for j in other.used_columns)
    names = {column.name: asked[j] for j, column in enumerate(tree.schema)}
    return {name: count for name, count in sorted(names.items(), key=lambda one: -one[1]) if count}


def group_columns(rows: DossierRows, requested: Sequence[str], most: int) -> list[str]:
    """Return the columns to group by: the requested ones, that of the fairness constraint, and up to `most` used ones.

    Raises DataError if the target is requested.
    """
    tree = rows.model.tree
    fair = str(rows.model.parameters.get("fairness_column") or "")
    used = list(dict.fromkeys(tree.schema[j].name for v in tree.branches if v.split is not None for j in v.split.used))
    for name in requested:
        if name == rows.model.target:
            raise DataError(f"Rows cannot be grouped by the target '{name}'. Choose another column.")
    return list(dict.fromkeys([*requested, *([fair] if fair in rows.raw.names else []), *used[:most]]))
