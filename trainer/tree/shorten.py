"""Shorten a tree's numbers without moving a training row.

A threshold becomes the shortest decimal in the gap between the two neighbouring values of its column: 3.35 between 3.34
and 3.36, 4.5 between 4 and 5, 0.03 between 0 and 0.06. All training rows define the gap, not only those that reach the
node. So equal questions get equal thresholds and different ones different thresholds. A sum is divided by its first
coefficient, and its coefficients are rounded; the sides are exchanged if the first was negative. The stored numbers are
the shown ones.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from trainer.dtypes import FloatArray
from trainer.tree.nodes import Draft, DraftLeaf, Tree, to_draft_branch
from trainer.tree.splits import rows_go_left


def shorten(tree: Tree, matrix: FloatArray) -> Draft:
    """Return the draft of `tree` with the shortest decimals; `matrix` (n, columns) are its training rows."""

    @cache
    def values(feature: int) -> FloatArray:
        column = matrix[:, feature]
        return np.unique(column[~np.isnan(column)]).astype(np.float64)  # of bytes, differences would overflow

    rows: dict[int, np.ndarray] = {0: np.arange(len(matrix))}
    splits = {}
    for v in tree.branches:  # parents precede their children in the list
        if v.split is None:
            continue
        node_rows = rows.pop(v.id)
        left = rows_go_left(v.split, matrix, node_rows)
        rows[v.left] = node_rows[left]
        rows[v.right] = node_rows[~left]
        split, exchanged = v.split.shorten(values, matrix, node_rows)
        same = np.array_equal(rows_go_left(split, matrix, node_rows) != exchanged, left)
        splits[v.id] = (split, exchanged) if same else (v.split, False)
    drafts: dict[int, Draft] = {}
    for v in reversed(tree.nodes):
        if v.split is None:
            drafts[v.id] = DraftLeaf(label=v.label)
            continue
        split, exchanged = splits[v.id]
        low = drafts.pop(v.left)
        high = drafts.pop(v.right)
        left_side, right_side = (high, low) if exchanged else (low, high)
        drafts[v.id] = replace(to_draft_branch(v), split=split, left=left_side, right=right_side)
    return drafts[0]
