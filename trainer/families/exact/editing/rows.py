"""Build the instance of the workbench, with the origin of its rows.

The exact search merges rows that are equal in all features of the encoding. A held question may separate such rows, so the workbench
merges only rows with equal values in all columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from trainer.data.problem import Problem
from trainer.dtypes import BIT, BitArray
from trainer.families.exact.instance import ExactInstance, build_packed
from trainer.families.exact.kernels.equal_rows import group_rows
from trainer.kernels.bits import pack_bits


def same_rows(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first row of each group of equal rows of 64-bit numbers or bytes, and the group of each row, int64; NaN equals NaN."""
    if matrix.dtype == BIT:
        matrix = matrix.astype(np.float64)
    # use a view, since copying a large matrix takes longer than the comparison
    first, same = group_rows(np.ascontiguousarray(matrix).view(np.uint64), matrix.dtype.kind == "f")
    return first, same


class WorkbenchRows(NamedTuple):
    """The rows of the workbench: the instance, a row of the table for each of its rows, and marks of unavoidable errors."""

    instance: ExactInstance
    origin: np.ndarray
    # uint8 marks as in `ExactInstance.equal`, but comparing rows only by the features of the encoding
    encoded_errors: np.ndarray


def rows_of(problem: Problem, bits: BitArray, depth: int) -> WorkbenchRows:
    """Build the instance over `bits` (rows, features).

    Its marks of unavoidable errors compare rows with equal values, which no question separates. `encoded_errors` compares rows with
    equal features. Held questions may separate these, so those marks are valid only where no held question was asked.
    """
    first, same = same_rows(problem.matrix)
    packed = pack_bits(bits[first])
    # sort similar rows together, so that many words of a child are 0 and can be skipped
    order = np.lexsort(packed.T)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    same = place[same]
    rows, weights = _merge_rows(problem, same, len(order))
    g = build_packed(
        same[rows, None].astype(np.uint64),
        problem.y[rows],
        features=bits.shape[1],
        n_classes=problem.n_classes,
        weights=weights,
        leaf_cost=problem.kappa,
        depth=depth,
    )
    groups_of = order[g.rows[:, 0].astype(np.int64)]
    encoded_rows = np.ascontiguousarray(packed[groups_of])
    errors = _unavoidable(encoded_rows, g.classes, g.weights, g.n_classes)
    return WorkbenchRows(replace(g, rows=encoded_rows), first[groups_of], errors)


def _merge_rows(problem: Problem, same: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of the table with their weights: one for each group and class if that saves half of them, else all."""
    if 2 * number > len(same) or problem.row_weights.min() < 0:
        return np.arange(len(same)), problem.row_weights
    codes = same * problem.n_classes + problem.y
    row = np.full(number * problem.n_classes, -1, np.int64)
    # assign in reverse order, so that the first row of each group and class remains
    row[codes[::-1]] = np.arange(len(codes))[::-1]
    present = np.flatnonzero(row >= 0)
    return row[present], np.bincount(codes, problem.row_weights, len(row))[present].astype(np.int64)


def rows_with_values(problem: Problem, origin: np.ndarray) -> np.ndarray:
    """Return for each row of the table a row of the instance with equal values, -1 if none has a weight; int64.

    origin: for each row of the instance a row of the table with equal values.
    """
    _, same = same_rows(problem.matrix)
    place = np.full(int(same.max()) + 1, -1, np.int64)
    place[same[origin]] = np.arange(len(origin))
    return place[same]


def _unavoidable(packed: np.ndarray, classes: np.ndarray, weights: np.ndarray, n_classes: int) -> np.ndarray:
    """Mark rows that are equal to rows of a more frequent class, ties to the smaller class; uint8."""
    first, group = same_rows(packed)
    size = len(first), n_classes
    counts = np.bincount(group * n_classes + classes, weights, len(first) * n_classes).reshape(size)
    return (classes != counts.argmax(axis=1)[group]).astype(np.uint8)
