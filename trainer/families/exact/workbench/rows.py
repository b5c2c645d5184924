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

MIXER = np.uint64(0xD6E8FEB86659FD93)


def same_rows(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each group of equal rows of numbers of 64 bits the first one, and the group of each row, int64; NaN equals NaN.

    As `np.unique(matrix, axis=0)` does in ten times the time: rows are sorted by one number that is mixed from theirs, and compared.
    """
    words = np.ascontiguousarray(matrix + matrix.dtype.type(0)).view(np.uint64)  # + 0: -0.0 equals 0.0
    mixed = np.zeros(len(words), np.uint64)
    for column in words.T:
        mixed = (mixed ^ column) * MIXER
        mixed ^= mixed >> np.uint64(32)
    _, first, same = np.unique(mixed, return_index=True, return_inverse=True)
    if not (words == words[first[same]]).all():  # different rows have the same number
        _, first, same = np.unique(words, axis=0, return_index=True, return_inverse=True)
    return first.astype(np.int64), same.reshape(-1).astype(np.int64)


def instance_of(problem: Problem, bits: BitArray, depth: int) -> tuple[ExactInstance, np.ndarray]:
    """The instance over `bits` (rows, questions), and for each of its rows one row of the table with the same values."""
    first, same = same_rows(problem.matrix)
    digits = max(1, int(len(first) - 1).bit_length())
    rows, weights = _merged(problem, first, same)
    marks = ((same[rows, None] >> np.arange(digits)) & 1).astype(BIT)
    marked = build(
        np.column_stack((bits[rows], marks)),
        problem.y[rows],
        n_classes=problem.n_classes,
        weights=weights,
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


def _merged(problem: Problem, first: np.ndarray, same: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the table with their weights: one for each group and class where that saves half of them, else all."""
    if 2 * len(first) > len(same) or problem.row_weights.min() < 0:
        return np.arange(len(same)), problem.row_weights
    codes = same * problem.n_classes + problem.y
    held, row = np.unique(codes, return_index=True)
    weights = np.bincount(codes, problem.row_weights)[held].astype(np.int64)
    return row, weights


def rows_with_values(problem: Problem, origin: np.ndarray) -> np.ndarray:
    """For each row of the table a row of the instance with the same values, -1 where none has a weight; int64.

    origin: for each row of the instance a row of the table with the same values.
    """
    _, same = same_rows(problem.matrix)
    place = np.full(int(same.max()) + 1, -1, np.int64)
    place[same[origin]] = np.arange(len(origin))
    return place[same]


def _unavoidable(packed: np.ndarray, classes: np.ndarray, weights: np.ndarray, n_classes: int) -> np.ndarray:
    """1 for rows that answer all questions like rows of a more frequent class, ties to the smaller class; uint8."""
    _, group = same_rows(packed)
    counts = np.zeros((int(group.max()) + 1, n_classes), np.int64)
    np.add.at(counts, (group, classes), weights)
    return (classes != counts.argmax(axis=1)[group]).astype(np.uint8)
