"""Run the steps of a count for one subproblem in one call.

A call for each step takes longer than the steps. Rows are counted by kind; keys and costs as in
`trainer.families.exact.kernels.count`.
"""

from __future__ import annotations

import numpy as np

from trainer.families.exact.kernels.bounds import SideBounds, bound_children_by_node, child_bounds, count_bounds
from trainer.families.exact.kernels.child_counts import count_child, split_node
from trainer.families.exact.kernels.count import (
    Trees,
    add_count,
    combine,
    count_depth2,
    evaluate_leaf,
    new_bag,
    options_depth2,
    raise_child_bounds,
    sorted_entries,
)
from trainer.families.exact.kernels.depth2 import cheapest_cost, node_errors_by_leaves
from trainer.families.exact.kernels.depth2_signed import class_differences
from trainer.families.exact.kernels.node import pair_counts, prepare, split_rows
from trainer.kernels.compiled import kernel

i32 = np.int32


@kernel
def weigh_kinds(codes, weights, rows, kinds):
    """Return the weight of each kind among some rows, int64 (kinds,); codes, weights: kind and weight of all rows."""
    out = np.zeros(kinds, np.int64)
    for i in range(len(rows)):
        out[codes[rows[i]]] += weights[rows[i]]
    return out


@kernel
def build_node(subproblem, height):
    """Return the node of a subproblem and its pair counts, int32 (kinds, m, m), empty for a height below two.

    subproblem: the arguments data, rows, allowed, min_leaf and reduce of `prepare`.
    """
    data, rows, allowed, min_leaf, reduce = subproblem
    node = prepare(data, rows, allowed, min_leaf, reduce, False)
    kinds, m = node.ones.shape
    wide = m if height >= 2 else 0
    P = np.empty((kinds, wide, wide), i32)
    if height >= 2:
        pair_counts(node, P)
    return node, P


@kernel
def count_rows(subproblem, height, layout, budget):
    """Build the node of a subproblem and return its `count_depth2`."""
    node, P = build_node(subproblem, height)
    return count_depth2(node, P, height, subproblem[3], layout, budget)


@kernel
def options_of_rows(subproblem, height, layout, budget):
    """Build the node of a subproblem; return its `options_depth2` and the features at its positions."""
    node, P = build_node(subproblem, height)
    return options_depth2(node, P, height, subproblem[3], layout, budget), node.features


@kernel
def viable_splits(subproblem, height, costs, cache, budget, flag):
    """Return the features whose split may be within the budget, int64 (.,), and lower bounds of their children, int64 (2, .).

    costs: int64 (unit, leaf, min_leaf, use_similarity, scale). cache: `PairCache` of the search for the path to the rows. At height
    three the bounds are the optima.
    """
    node, P = build_node(subproblem, 2 if height == 3 else 0)
    if height == 3:
        lower = _least_child_costs(
            node, P, class_differences(node, P, costs[2]), costs, cache, np.zeros(0, np.int64), budget, flag
        )
    else:
        lower = _child_bounds(node, costs, height).lower
    near = np.flatnonzero(lower[0] + lower[1] <= budget)
    return node.features[near].astype(np.int64), lower[:, near]


@kernel
def _child_bounds(node, costs, height):
    """Return bounds of both children of each split from class counts."""
    m = len(node.features)
    sides = SideBounds(np.zeros((2, m), np.int64), np.zeros((2, m), np.uint8))
    if m:
        count_bounds(node, costs[0], costs[1], height - 1, np.ones(3, np.uint8), sides)
    return sides


@kernel
def _least_child_costs(node, P, D, costs, cache, floors, budget, flag):
    """Return optima of both children of each split if their sum is within the budget, else bounds, int64 (2, m); height three.

    floors: lower bounds by root split in costs times `scale`, int64 (features,), or empty.
    """
    unit = costs[0]
    leaf = costs[1]
    min_leaf = costs[2]
    similar = costs[3]
    scale = costs[4]
    sides = _child_bounds(node, costs, 3)
    if len(node.features) == 0:
        return sides.lower
    e = np.empty(4, np.int64)
    children = node_errors_by_leaves(node, P, min_leaf, e)
    child_bounds(node, children, costs, np.ones(3, np.uint8), sides)
    if similar:
        bound_children_by_node(node, cheapest_cost(e, unit, leaf, 4), unit, sides.lower)
    for p in range(len(node.features) if len(floors) else 0):
        if floors[node.features[p]] // scale > budget:
            sides.lower[0, p] = budget + 1
    raise_child_bounds(node, P, D, costs, cache, sides, budget, flag)
    return sides.lower


@kernel
def count_depth3(subproblem, costs, cache, floors, layout, budget, most, flag):
    """Return N(D, 3, c) for c ≤ budget: keys, costs, counts as of `count_depth2`, and a float upper bound of the number of trees.

    The kinds must be the classes; idle splits count. floors: see `_least_child_costs`. Stops early if the flag is set or there are
    more than `most` keys. The counts are wrong if the upper bound exceeds 64 bits.
    """
    node, P = build_node(subproblem, 2)
    D = class_differences(node, P, costs[2])
    bag = new_bag(64)
    total = 1.0
    _, cost, key = evaluate_leaf(node.totals.astype(np.int64), layout)
    if cost <= budget:
        bag = add_count(bag, key, cost, 1)
    lower = _least_child_costs(node, P, D, costs, cache, floors, budget, flag)
    for p in np.flatnonzero(lower[0] + lower[1] <= budget):
        below = budget - lower[0, p], budget - lower[1, p]
        a, b = _count_children(subproblem, node, P, D, p, layout, below)
        total += float(a.counts.sum()) * float(b.counts.sum())
        bag = combine(bag, a, b, layout.bits[node.features[p]], layout.low, budget, most, flag)
    keys, costs_of, counts = sorted_entries(bag)
    return keys, costs_of, counts, total


@kernel
def _count_children(subproblem, node, P, D, p, layout, budgets):
    """Return the trees of two levels for both children of a split, that of value 1 first; budgets: in the same order."""
    if len(D.pairs):
        zero, one, split = split_node(node, P, D, p)
        a = count_child(one, split, layout, budgets[0])
        b = count_child(zero, split, layout, budgets[1])
    else:
        data, rows, allowed, min_leaf, reduce = subproblem
        zeros, ones = split_rows(data.R, rows, np.int64(node.features[p]))
        a = count_rows((data, ones, allowed, min_leaf, reduce), 2, layout, budgets[0])
        b = count_rows((data, zeros, allowed, min_leaf, reduce), 2, layout, budgets[1])
    return Trees(a[0], a[1], a[2]), Trees(b[0], b[1], b[2])
