"""Bound a child by root split, by similarity to other children.

Applied to other rows E, a tree for the rows D makes additional errors at most on the rows of E outside D. Its root split stays the
same. So a bound of E for each root split, less the weight of E outside D, is a bound of D. Most root splits cost far more than the
best one, so one bound for each prunes more than a single bound (similarity: Demirovic et al. 2022, MurTree). Not valid with a
minimum leaf size above one row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.bounds import apply_similarity, pair_weights_of_child
from trainer.kernels.compiled import kernel

MOST_NUMBERS = 1 << 23  # array elements of a node; a larger node has no bounds of this kind


class FirstSplitBounds(NamedTuple):
    """Lower bounds by root split, for both children of each split of a node and for the node itself.

    Several threads may write to it: an entry that a thread does not see yet is 0, a valid bound.
    """

    # int64 (2 p + 1, features): child s of split p in line 2 p + s, the node in the last line; for trees of the height of the children
    least: np.ndarray
    highest: np.ndarray  # int64 (2 p + 1,), largest entry of each line; 0: no bounds


@kernel
def new_first_bounds(splits, features, is_used):
    """Return bounds of 0; without lines if they are not used or too large."""
    lines = 2 * splits + 1
    if not is_used or lines * features > MOST_NUMBERS:
        lines = 0
    return FirstSplitBounds(np.zeros((lines, features), np.int64), np.zeros(lines, np.int64))


@kernel
def store_first_bounds(firsts, line, floors):
    """Store the bounds of a child, or of the node itself (the last line)."""
    if len(firsts.highest):
        for f in range(len(floors)):
            firsts.least[line, f] = floors[f]
        firsts.highest[line] = floors.max()


@kernel
def update_similar_bounds(node, P, line, value, costs, firsts, floors, lower):
    """Propagate a child's bound to similar children and store its bounds by root split; empty `floors` store nothing."""
    apply_similarity(node, P, line >> 1, line & 1, value, costs[0], lower)
    if len(floors):
        store_first_bounds(firsts, line, floors)


@kernel
def first_bounds_of_child(node, P, p, s, unit, firsts):
    """Return lower bounds by root split for the rows with x_p = s, int64 (features,)."""
    lines, features = firsts.least.shape
    floors = np.zeros(features, np.int64)
    if lines == 0:
        return floors
    size, inside = pair_weights_of_child(node, P, p, s)
    total = np.int64(0)
    for k in range(len(node.totals)):
        total += node.totals[k]
    _raise_floors(floors, firsts, lines - 1, (total - size) * unit)
    for q in range(len(inside)):
        ones = np.int64(0)
        for k in range(len(node.totals)):
            ones += node.ones[k, q]
        _raise_floors(floors, firsts, 2 * q, (total - ones - size + inside[q]) * unit)
        _raise_floors(floors, firsts, 2 * q + 1, (ones - inside[q]) * unit)
    return floors


@kernel
def _raise_floors(floors, firsts, line, outside):
    """Raise `floors` to the bounds of a line less the cost of the rows outside."""
    if firsts.highest[line] > outside:
        row = firsts.least[line]
        for f in range(len(floors)):
            floors[f] = max(floors[f], row[f] - outside)
