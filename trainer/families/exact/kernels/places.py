"""Kernels: what a count needs of one place, in one call from its rows; a call for each step takes longer than the steps.

Counts of rows are by kind; keys and costs as in `trainer.families.exact.kernels.count`.
"""

from __future__ import annotations

import numpy as np

from trainer.families.exact.kernels.bounds import Sides, count_bounds
from trainer.families.exact.kernels.count import (
    Trees,
    combine,
    count_two,
    emptied,
    leaf_of,
    new_bag,
    options_two,
    put,
    three_sums,
)
from trainer.families.exact.kernels.node import pair_counts, prepare, split_rows
from trainer.families.exact.kernels.signed import differences
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
    return _viable(place_of(given, 2 if height == 3 else 0), height, costs, kept, budget, flag)


@kernel
def _viable(place, height, costs, kept, budget, flag):
    node, P = place
    m = len(node.features)
    sides = Sides(np.zeros((2, m), np.int64), np.zeros((2, m), np.uint8))
    if m:
        count_bounds(node, costs[0], costs[1], height - 1, np.ones(3, np.uint8), sides)
    if m and height == 3:
        three_sums(node, P, differences(node, P, costs[2]), costs, kept, sides, budget, flag)
    near = np.flatnonzero(sides.lower[0] + sides.lower[1] <= budget)
    return node.features[near].astype(np.int64), sides.lower[:, near]


@kernel
def count_three(given, costs, kept, layout, budget, most, flag):
    """N(D, 3, c) for c ≤ budget, from the rows: keys, costs, counts as of `count_two`, and a bound of all counts together, as a float.

    The kinds of rows are the classes, and idle questions count. Ends early where the flag is up, or with more than `most` keys; what the
    counts are is not known where the bound is too large for 64 bits.
    """
    data, rows, allowed, min_leaf, reduce = given
    place = place_of(given, 2)
    bag, total = new_bag(64), 1.0
    _, cost, key = leaf_of(place[0].totals.astype(np.int64), layout)
    if cost <= budget:
        bag = put(bag, key, cost, 1)
    questions, lower = _viable(place, 3, costs, kept, budget, flag)
    for i in range(len(questions)):
        no, yes = split_rows(data.R, rows, questions[i])
        a = count_place((data, yes, allowed, min_leaf, reduce), 2, layout, budget - lower[0, i])
        b = count_place((data, no, allowed, min_leaf, reduce), 2, layout, budget - lower[1, i])
        total += float(a[2].sum()) * float(b[2].sum())
        one, other = Trees(a[0], a[1], a[2]), Trees(b[0], b[1], b[2])
        bag = combine(bag, one, other, layout.bits[questions[i]], layout.low, budget, most, flag)
    keys, costs_of, counts = emptied(bag)
    return keys, costs_of, counts, total
