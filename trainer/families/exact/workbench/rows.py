"""The rows of the workbench as an instance of the exact search, each with a row of the table that it represents.

The exact search merges rows that answer all questions of the encoding alike. A held question may tell such rows apart, so here only
rows with the same values in all columns are merged.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trainer.data.problem import Problem
from trainer.dtypes import BIT, BitArray
from trainer.families.exact.instance import ExactInstance, build
from trainer.kernels.bits import pack_bits


def instance_of(problem: Problem, bits: BitArray, depth: int) -> tuple[ExactInstance, np.ndarray]:
    """The instance over `bits` (rows, questions), and for each of its rows one row of the table with the same values."""
    _, first, same = np.unique(problem.matrix, axis=0, return_index=True, return_inverse=True)
    same = same.reshape(-1)
    digits = max(1, int(len(first) - 1).bit_length())
    marks = ((same[:, None] >> np.arange(digits)) & 1).astype(BIT)
    marked = build(
        np.column_stack((bits, marks)),
        problem.y,
        n_classes=problem.n_classes,
        weights=problem.weights,
        leaf_cost=problem.kappa,
        depth=depth,
    )
    places = bits.shape[1] + np.arange(digits)
    read = (marked.rows[:, places >> 6] >> (places & 63).astype(np.uint64)) & np.uint64(1)
    origin = first[(read.astype(np.int64) << np.arange(digits)).sum(axis=1)]
    packed = pack_bits(bits[origin])
    weights = np.int64(1) << marked.shifts.astype(np.int64)
    equal = _unavoidable(packed, marked.classes, weights, marked.n_classes)
    return replace(marked, rows=np.ascontiguousarray(packed), equal=equal, features=bits.shape[1]), origin


def rows_with_values(problem: Problem, origin: np.ndarray) -> np.ndarray:
    """For each row of the table a row of the instance with the same values, -1 where none has a weight; int64.

    origin: for each row of the instance a row of the table with the same values.
    """
    _, same = np.unique(problem.matrix, axis=0, return_inverse=True)
    same = same.reshape(-1)
    place = np.full(int(same.max()) + 1, -1, np.int64)
    place[same[origin]] = np.arange(len(origin))
    return place[same]


def _unavoidable(packed: np.ndarray, classes: np.ndarray, weights: np.ndarray, n_classes: int) -> np.ndarray:
    """1 for rows that answer all questions like rows of a more frequent class, ties to the smaller class; uint8."""
    _, group = np.unique(packed, axis=0, return_inverse=True)
    group = group.reshape(-1)
    counts = np.zeros((int(group.max()) + 1, n_classes), np.int64)
    np.add.at(counts, (group, classes), weights)
    return (classes != counts.argmax(axis=1)[group]).astype(np.uint8)
