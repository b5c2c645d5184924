"""What is near an answer: the training rows most like it, and what missing or unknown values would lead to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from trainer.data.column_statistics import ColumnStatistics
from trainer.dtypes import FloatArray
from trainer.table import ColumnKind
from trainer.tree.nodes import Tree
from trainer.tree.splits import goes_left
from trainer.tree.splits.base import Split

UNKNOWN = -1.0  # the code of a category that the model never saw


def nearest_rows(
    tree: Tree, statistics: Sequence[ColumnStatistics], matrix: FloatArray, row: FloatArray, most: int
) -> tuple[np.ndarray, FloatArray]:
    """Positions in `matrix` (n, columns) of the rows most like `row` (columns,), nearest first, and their distances.

    The distance is measured as for changes: the sum of |difference| / unit over the columns that the tree asks, 1 for another category.
    """
    distance = np.zeros(len(matrix))
    for j in tree.used_columns:
        values = matrix[:, j]
        if tree.schema[j].kind is ColumnKind.CATEGORICAL:
            distance += values != row[j]
        else:
            distance += np.where(np.isnan(values), math.inf, np.abs(values - row[j]) / statistics[j].scale)
    order = np.argsort(distance, kind="stable")[:most]
    return order, distance[order]


def gaps(tree: Tree, row: FloatArray) -> list[dict[str, Any]]:
    """For each column that the tree asks, what a missing value and, of categories, an unknown one would lead to.

    `missing` and `unknown` have `leaf` and `label`; `missing` is None if such a row is not predicted, and `unknown` for numbers.
    `missing` also has `seen`: whether training had an empty cell wherever the row meets one.
    """
    found = []
    refused = tree.refused_columns
    for j in tree.used_columns:
        column = tree.schema[j]
        category = column.kind is ColumnKind.CATEGORICAL
        missing = None
        if j not in refused:
            empty = math.nan if column.missing_code is None else float(column.missing_code)
            changed = _changed(row, j, empty)
            missing = {**_answer(tree, changed), "seen": not bool(tree.unseen_empty(changed)[0, j])}
        unknown = _answer(tree, _changed(row, j, UNKNOWN)) if category else None
        found.append({"column": column.name, "missing": missing, "unknown": unknown})
    return found


def _changed(row: FloatArray, j: int, value: float) -> FloatArray:
    changed = row.copy()
    changed[j] = value
    return changed.reshape(1, -1)


def _answer(tree: Tree, rows: FloatArray) -> dict[str, Any]:
    leaf = int(tree.apply(rows)[0])
    return {"leaf": leaf, "label": tree.classes[int(tree.labels[leaf])]}


def both_ways(tree: Tree, row: FloatArray, open_columns: Sequence[int]) -> list[float]:
    """The share of each class as an answer if the values of `open_columns` are not known, (classes,).

    A question that reads such a column is followed both ways, with the shares of its training rows; a node without rows gives each
    side half. Where training had empty cells in the column, an unknown value goes the way of an empty cell instead.
    """
    shares = [0.0] * len(tree.classes)
    hidden = frozenset(open_columns)
    emptied = row.copy()
    emptied[[j for j in hidden if tree.schema[j].kind is not ColumnKind.CATEGORICAL]] = math.nan
    waiting = [(0, 1.0)]
    while waiting:
        at, weight = waiting.pop()
        v = tree.nodes[at]
        if v.split is None:
            shares[v.label] += weight
        elif all(learned_empty(tree, v.split, f) for f in hidden.intersection(v.split.used)):
            left = bool(goes_left(v.split, emptied.reshape(1, -1))[0])
            waiting.append((v.left if left else v.right, weight))
        else:
            share = tree.nodes[v.left].rows / v.rows if v.rows else 0.5
            waiting += [(v.right, weight * (1 - share)), (v.left, weight * share)]
    return shares


def learned_empty(tree: Tree, split: Split, f: int) -> bool:
    """Whether training rows taught `split` where the empty cells of column `f` go; never in columns of categories."""
    column = tree.schema[f]
    if column.kind is ColumnKind.CATEGORICAL or f in split.refused:
        return False
    return not split.unseen_empty(column)
