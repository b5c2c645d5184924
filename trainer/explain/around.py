"""Describe nearest training rows and answers for missing or unknown values."""

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

UNKNOWN = -1.0  # code of a category that the model does not know


def nearest_rows(
    tree: Tree, statistics: Sequence[ColumnStatistics], matrix: FloatArray, row: FloatArray, most: int
) -> tuple[np.ndarray, FloatArray]:
    """Return the positions in `matrix` (n, columns) of the rows nearest to `row` (columns,), and their distances.

    The distance is that of changes: the sum of |difference| / unit over the used columns, 1 for another category.
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
    """Return for each used column the answers for a missing value and for an unknown category.

    `missing` and `unknown` have `leaf` and `label`. `missing` is None if such a row is refused, and `unknown` for numeric columns.
    `missing` also has `seen`: True if training had an empty cell wherever the row meets one.
    """
    records = []
    refused = tree.refused_columns
    for j in tree.used_columns:
        column = tree.schema[j]
        category = column.kind is ColumnKind.CATEGORICAL
        missing = None
        if j not in refused:
            empty = math.nan if column.missing_code is None else float(column.missing_code)
            changed = _with_value(row, j, empty)
            missing = {**_answer(tree, changed), "seen": not bool(tree.unseen_empty(changed)[0, j])}
        unknown = _answer(tree, _with_value(row, j, UNKNOWN)) if category else None
        records.append({"column": column.name, "missing": missing, "unknown": unknown})
    return records


def _with_value(row: FloatArray, j: int, value: float) -> FloatArray:
    changed = row.copy()
    changed[j] = value
    return changed.reshape(1, -1)


def _answer(tree: Tree, rows: FloatArray) -> dict[str, Any]:
    leaf = int(tree.apply(rows)[0])
    return {"leaf": leaf, "label": tree.classes[int(tree.labels[leaf])]}


def both_ways(tree: Tree, row: FloatArray, open_columns: Sequence[int]) -> list[float]:
    """Return the probability of each answer if the values of `open_columns` are unknown, (classes,).

    Both sides of a split on such a column count, weighted by their training rows, or half each without rows.
    If the split learned from empty cells of the column, an unknown value goes to the side of empty cells.
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
    """Return True if `split` learned the side of empty cells of column `f` from training rows; False for categories."""
    column = tree.schema[f]
    if column.kind is ColumnKind.CATEGORICAL or f in split.refused:
        return False
    return not split.unseen_empty(column)
