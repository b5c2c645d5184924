"""Kernels: what a count needs of one place, in one call from its rows; a call for each step takes longer than the steps.

Counts of rows are by kind; keys and costs as in `trainer.families.exact.kernels.count`.
"""

from __future__ import annotations

import numpy as np

from trainer.families.exact.kernels.bounds import SideBounds, child_bounds, count_bounds, inherit
from trainer.families.exact.kernels.child_counts import both_halves, count_half
from trainer.families.exact.kernels.count import (
    Trees,
    add_count,
    combine,
    count_two,
    emptied,
    leaf_of,
    new_bag,
    options_two,
    three_sums,
)
from trainer.families.exact.kernels.depth2 import own_values, price
from trainer.families.exact.kernels.depth2_signed import differences
from trainer.families.exact.kernels.node import pair_counts, prepare, split_rows
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
    if height == 3:
        lower = _least_child_costs(
            node, P, differences(node, P, costs[2]), costs, kept, np.zeros(0, np.int64), budget, flag
        )
    else:
        lower = _bounds(node, costs, height).lower
    near = np.flatnonzero(lower[0] + lower[1] <= budget)
    return node.features[near].astype(np.int64), lower[:, near]


@kernel
def _bounds(node, costs, height):
    """What the counts of a node tell of both sides of each split."""
    m = len(node.features)
    sides = SideBounds(np.zeros((2, m), np.int64), np.zeros((2, m), np.uint8))
    if m:
        count_bounds(node, costs[0], costs[1], height - 1, np.ones(3, np.uint8), sides)
    return sides


@kernel
def _least_child_costs(node, P, D, costs, kept, floors, budget, flag):
    """Least costs of both sides of each split of a place of height three where their sum is within the budget, else bounds, int64 (2, m).

    floors: what is known of each first question, times `scale`, int64 (questions,); of length 0 where nothing is.
    """
    unit = costs[0]
    leaf = costs[1]
    min_leaf = costs[2]
    similar = costs[3]
    scale = costs[4]
    sides = _bounds(node, costs, 3)
    if len(node.features) == 0:
        return sides.lower
    e = np.empty(4, np.int64)
    children = own_values(node, P, min_leaf, e)
    child_bounds(node, children, costs, np.ones(3, np.uint8), sides)
    if similar:
        inherit(node, price(e, unit, leaf, 4), unit, sides.lower)
    for p in range(len(node.features) if len(floors) else 0):
        if floors[node.features[p]] // scale > budget:
            sides.lower[0, p] = budget + 1
    three_sums(node, P, D, costs, kept, sides, budget, flag)
    return sides.lower


@kernel
def count_three(given, costs, kept, floors, layout, budget, most, flag):
    """N(D, 3, c) for c ≤ budget, from the rows: keys, costs, counts as of `count_two`, and a bound of all counts together, as a float.

    The kinds of rows are the classes, and idle questions count; floors: of `_least`. Ends early where the flag is up, or with more than
    `most` keys; what the counts are is not known where the bound is too large for 64 bits.
    """
    node, P = place_of(given, 2)
    D = differences(node, P, costs[2])
    bag = new_bag(64)
    total = 1.0
    _, cost, key = leaf_of(node.totals.astype(np.int64), layout)
    if cost <= budget:
        bag = add_count(bag, key, cost, 1)
    lower = _least_child_costs(node, P, D, costs, kept, floors, budget, flag)
    for p in np.flatnonzero(lower[0] + lower[1] <= budget):
        below = budget - lower[0, p], budget - lower[1, p]
        a, b = _count_sides(given, node, P, D, p, layout, below)
        total += float(a.counts.sum()) * float(b.counts.sum())
        bag = combine(bag, a, b, layout.bits[node.features[p]], layout.low, budget, most, flag)
    keys, costs_of, counts = emptied(bag)
    return keys, costs_of, counts, total


@kernel
def _count_sides(given, node, P, D, p, layout, budgets):
    """The trees of two levels at both sides of a split, those with the answer 1 first; budgets: for the side of 1, and of 0."""
    if len(D.whole):
        zero, one, split = both_halves(node, P, D, p)
        a = count_half(one, split, layout, budgets[0])
        b = count_half(zero, split, layout, budgets[1])
    else:
        data, rows, allowed, min_leaf, reduce = given
        no, yes = split_rows(data.R, rows, np.int64(node.features[p]))
        a = count_place((data, yes, allowed, min_leaf, reduce), 2, layout, budgets[0])
        b = count_place((data, no, allowed, min_leaf, reduce), 2, layout, budgets[1])
    return Trees(a[0], a[1], a[2]), Trees(b[0], b[1], b[2])
