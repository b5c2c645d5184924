"""Kernels: what a count needs of one place, in one call from its rows; a call for each step takes longer than the steps.

Counts of rows are by kind; keys and costs as in `trainer.families.exact.kernels.count`.
"""

from __future__ import annotations

import numpy as np

from trainer.families.exact.kernels.bounds import Sides, count_bounds
from trainer.families.exact.kernels.count import count_two, options_two, three_sums
from trainer.families.exact.kernels.node import pair_counts, prepare
from trainer.families.exact.kernels.sides import row_major
from trainer.kernels.compiled import kernel

i32 = np.int32


@kernel
def weigh(codes, weights, rows, kinds):
    """The weight of each kind among some rows, int64; codes, weights: of all rows."""
    out = np.zeros(kinds, np.int64)
    for i in range(len(rows)):
        out[codes[rows[i]]] += weights[rows[i]]
    return out


@kernel
def place_of(given, height):
    """The node of some rows, and its pair counts where the height needs them, int32 (kinds, m, m), else nothing.

    given: data, rows, allowed uint8 (questions,), min_leaf, reduce, as `prepare` takes them.
    """
    data, rows, allowed, min_leaf, reduce = given
    node = prepare(data, rows, allowed, min_leaf, reduce, False)
    kinds, m = node.ones.shape
    wide = m if height >= 2 else 0
    P = np.empty((kinds, wide, wide), i32)
    if height >= 2:
        pair_counts(node, P)
    return node, P


@kernel
def count_place(given, height, layout, budget):
    """`count_two` of some rows."""
    node, P = place_of(given, height)
    return count_two(node, P, height, given[3], layout, budget)


@kernel
def options_place(given, height, layout, budget):
    """`options_two` of some rows, and the questions at its positions."""
    node, P = place_of(given, height)
    return options_two(node, P, height, given[3], layout, budget), node.features


@kernel
def viable(given, height, costs, kept, budget, flag):
    """Questions below which a tree may be within the budget, int64 (.,), and lower bounds of no and yes, int64 (2, .).

    costs: int64 (unit, leaf, min_leaf, use_similarity, scale); kept: `Kept` of the search, for the path to the rows. At height three the bounds are the least costs.
    """
    node, P = place_of(given, 2 if height == 3 else 0)
    m = len(node.features)
    sides = Sides(np.zeros((2, m), np.int64), np.zeros((2, m), np.uint8))
    if m:
        count_bounds(node, costs[0], costs[1], height - 1, np.ones(3, np.uint8), sides)
    if m and height == 3:
        three_sums(node, P, row_major(node), costs, kept, sides, budget, flag)
    near = np.flatnonzero(sides.lower[0] + sides.lower[1] <= budget)
    return node.features[near].astype(np.int64), sides.lower[:, near]
