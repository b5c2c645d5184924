"""Digests of the training rows, with which a model file can distinguish rows that it was trained on from others.

A digest is 32 bits over the columns that the tree asks and the class. It tells that a row is new, and with near certainty that it
equals one of the training in those columns; the row cannot be had back from it.
"""

from __future__ import annotations

import base64
import binascii

import numpy as np

from trainer.dtypes import CodeArray, FloatArray
from trainer.errors import ModelFileError
from trainer.tree.nodes import Tree

MOST_ROWS = 200_000  # larger trainings keep no digests
MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # the finaliser of splitmix64


def digests(tree: Tree, matrix: FloatArray, codes: CodeArray) -> np.ndarray:
    """uint32 (n,) of the rows `matrix` (n, columns) with classes `codes` (n,)."""
    state = _mixed(codes.astype(np.int64).astype(np.uint64) + np.uint64(1))
    for j in tree.used_columns:
        values = matrix[:, j] + 0.0  # -0.0 and 0.0 are the same number
        bits = np.where(np.isnan(values), np.nan, values).astype("<f8").view("<u8").astype(np.uint64)
        state = _mixed(state ^ (bits + np.uint64(j + 1)))
    return (state >> np.uint64(32)).astype(np.uint32)


def _mixed(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * MIX[0]
    x = (x ^ (x >> np.uint64(27))) * MIX[1]
    return x ^ (x >> np.uint64(31))


def packed(tree: Tree, matrix: FloatArray, codes: CodeArray) -> str:
    """The distinct digests of the training rows as text for the model file; empty if there are too many rows."""
    if len(matrix) > MOST_ROWS:
        return ""
    return base64.b64encode(np.unique(digests(tree, matrix, codes)).astype("<u4").tobytes()).decode()


def unpacked(text: str) -> np.ndarray | None:
    """The digests of a model file, rising uint32; None if it keeps none. Raises ModelFileError for a damaged text."""
    if not text:
        return None
    try:
        return np.sort(np.frombuffer(base64.b64decode(text, validate=True), "<u4"))
    except (binascii.Error, ValueError) as error:
        raise ModelFileError(f"The digests of the training rows are damaged: {error}.") from error


def known(found: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """bool (n,): which digests are among those that are kept, rising and not empty."""
    place = np.minimum(np.searchsorted(kept, found), len(kept) - 1)
    return kept[place] == found
