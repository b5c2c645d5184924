"""Count the trees of two levels for both children of a split.

Valid for two classes without a minimum leaf size. The pairs of a child are not stored. Class differences give a lower bound by root
split (`depth2_signed`), and few features are below a budget. Only their pairs are counted by class; those of the larger child are the
pairs of the node less those of the smaller child. A separate call that collects the rows of each child takes five times as long.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.count import add_count, evaluate_leaf, new_bag, sorted_entries
from trainer.families.exact.kernels.depth2_signed import (
    child_differences,
    count_pairs,
    count_weighted,
    max_differences,
    unpack_counts,
)
from trainer.families.exact.kernels.packed_bits import PackedRows, pack_child
from trainer.kernels.bits import ctpop
from trainer.kernels.compiled import kernel

i32 = np.int32
u64 = np.uint64


class ChildRows(NamedTuple):
    """A child of a split; features are positions of the parent."""

    ones: np.ndarray  # int64 (2, m), weight of each class in the rows with value 1
    totals: np.ndarray  # int64 (2,)
    largest: np.ndarray  # int32 (m, 2), results of `max_differences` where a feature is 1, and where it is 0
    smaller: bool  # whether it is the smaller child, whose rows are packed


class PairSplit(NamedTuple):
    """The arrays to count pairs of both children."""

    features: np.ndarray  # of the node
    pairs: np.ndarray  # P of the node
    packed: PackedRows  # rows of the smaller child, classes mixed


class ChildTrees(NamedTuple):
    """Subtrees where a feature is 0 and where it is 1: keys, costs and counts, int64 (2, m + 1); used: number of keys, int64 (2,)."""

    keys: np.ndarray
    costs: np.ndarray
    counts: np.ndarray
    used: np.ndarray


@kernel
def split_node(node, P, differ, p):
    """Return the children x_p = 0 and x_p = 1, and the arrays to count their pairs; differ: see `class_differences`."""
    m = len(node.features)
    ones = np.empty((2, 2, m), np.int64)
    totals = np.empty((2, 2), np.int64)
    for k in range(2):
        totals[1, k] = node.ones[k, p]
        totals[0, k] = node.totals[k] - totals[1, k]
        for q in range(m):
            ones[1, k, q] = P[k, min(p, q), max(p, q)] if q != p else node.ones[k, p]
            ones[0, k, q] = node.ones[k, q] - ones[1, k, q]
    s = 1 if 2 * totals[1].sum() <= totals.sum() else 0
    packed = pack_child(node, differ.columns, p, s, True)
    near_values, far_values = _max_differences(differ.pairs, packed, p, s, totals)
    zero = ChildRows(ones[0], totals[0], far_values if s else near_values, s == 0)
    return (
        zero,
        ChildRows(ones[1], totals[1], near_values if s else far_values, s == 1),
        PairSplit(node.features, P, packed),
    )


@kernel
def _max_differences(D, packed, p, s, totals):
    """Return `max_differences` of each feature in the packed child s and in the other, int32 (m, 2): where it is 1, and where it is 0."""
    m, wide = D.shape
    base = i32(totals[s, 1])
    small = np.empty(wide, i32)
    large = np.empty(wide, i32)
    row = np.empty(wide, i32)
    child_differences(D, p, s, base, small, large)
    d = totals[s, 0] - totals[s, 1]
    e = totals[1 - s, 0] - totals[1 - s, 1]
    near_values = np.empty((m, 2), i32)
    far_values = np.empty((m, 2), i32)
    C = np.empty((m if len(packed.weights) else 0, wide), i32)
    if len(C):
        unpack_counts(packed, base, C)
    for f in range(m):
        if len(C):
            row = C[f]
        elif packed.plain:
            count_pairs(packed.columns, packed.second, f, 0, row)
        else:
            count_weighted(packed, f, 0, row)
        one_of_near = np.int64(small[f]) - base
        one_of_far = np.int64(large[f]) + base
        child_totals = (
            i32(one_of_near + 2 * base),
            i32(d - one_of_near),
            i32(one_of_far - 2 * base),
            i32(e - one_of_far),
        )
        near_values[f, 0], near_values[f, 1], far_values[f, 0], far_values[f, 1] = max_differences(
            row, D, f, small, large, child_totals
        )
    return near_values, far_values


@kernel
def _count_pairs(packed, f, row):
    """Write the weight of each class with x_f = x_q = 1 in a packed child, int64 (2, m)."""
    A = packed.columns
    row[:] = 0
    if len(packed.weights):
        _add_listed(A, packed.weights, f, row)
        return
    for w in range(len(A)):
        u = A[w, f]
        second = packed.second[w]
        shift = packed.segment[w, 1]
        for q in range(row.shape[1]):
            both = A[w, q] & u
            ones = np.int64(ctpop(both & second))
            row[0, q] += (np.int64(ctpop(both)) - ones) << shift
            row[1, q] += ones << shift


@kernel
def _add_listed(A, weights, f, row):
    """Add the counts of `_count_pairs` from weights by row, int32 (64 * words,), negative for class 1."""
    for w in range(len(A)):
        for r in range(64):
            weight = np.int64(weights[64 * w + r])
            if weight == 0 or not (A[w, f] >> u64(r)) & u64(1):
                continue
            target = row[1 if weight < 0 else 0]
            for q in range(len(target)):
                target[q] += abs(weight) * np.int64((A[w, q] >> u64(r)) & u64(1))


@kernel
def _least_child_costs(child, f, layout):
    """Return the least costs of a leaf or one split where feature f is 0, and where it is 1."""
    a = child.ones[0, f]
    b = child.ones[1, f]
    return (
        _least_cost(child.totals[0] - a, child.totals[1] - b, child.largest[f, 1], layout),
        _least_cost(a, b, child.largest[f, 0], layout),
    )


@kernel
def _least_cost(a, b, largest, layout):
    size = a + b
    difference = abs(a - b)
    as_leaf = ((size - difference) >> 1) * layout.unit + layout.leaf
    return min(as_leaf, ((size - max(difference, np.int64(largest))) >> 1) * layout.unit + 2 * layout.leaf)


@kernel
def _add_option(options, r, key, cost):
    """Add a subtree of a key where a feature is r."""
    keys = options.keys[r]
    used = options.used[r]
    at = 0
    while at < used and keys[at] != key:
        at += 1
    if at == used:
        keys[at] = key
        options.costs[r, at] = cost
        options.counts[r, at] = 0
        options.used[r] = used + 1
    options.counts[r, at] += 1


@kernel
def _collect_options(rows_of_child, row, f, r, most, layout, features, options):
    """Collect the subtrees of cost ≤ `most` where feature f is r; row: pairs of f in the child, by class."""
    child = np.empty(2, np.int64)
    one = np.empty(2, np.int64)
    for k in range(2):
        child[k] = rows_of_child.ones[k, f] if r else rows_of_child.totals[k] - rows_of_child.ones[k, f]
    size = child[0] + child[1]
    unit = layout.unit
    options.used[r] = 0
    _, cost, key = evaluate_leaf(child, layout)
    if cost <= most:
        _add_option(options, r, key, cost)
    for g in range(len(features)):
        a = row[0, g]
        b = row[1, g]
        if not r:
            a = rows_of_child.ones[0, g] - a
            b = rows_of_child.ones[1, g] - b
        c = child[0] - a
        d = child[1] - b
        if g == f or a + b == 0 or a + b == size or (min(a, b) + min(c, d)) * unit + 2 * layout.leaf > most:
            continue
        one[0] = a
        one[1] = b
        _, cost1, key1 = evaluate_leaf(one, layout)
        one[0] = c
        one[1] = d
        _, cost0, key0 = evaluate_leaf(one, layout)
        if cost0 + cost1 <= most:
            _add_option(options, r, (key0 + key1) | layout.bits[features[g]], cost0 + cost1)


@kernel
def _join_children(bag, options, bit, low, budget):
    """Return the bag with all pairs of subtrees below a split."""
    keys, costs, counts, used = options
    for i in range(used[0]):
        for j in range(used[1]):
            if costs[0, i] + costs[1, j] <= budget:
                key = ((keys[0, i] & low) + (keys[1, j] & low)) | ((keys[0, i] | keys[1, j]) & ~low) | bit
                bag = add_count(bag, key, costs[0, i] + costs[1, j], counts[0, i] * counts[1, j])
    return bag


@kernel
def count_child(child, split, layout, budget):
    """Return N(D, 2, c) for c ≤ budget and the rows D of a child: keys, costs, counts as of `count_depth2`; idle splits count."""
    features, P, packed = split
    m = len(features)
    bag = new_bag(16)
    _, cost, key = evaluate_leaf(child.totals, layout)
    if cost <= budget:
        bag = add_count(bag, key, cost, 1)
    size = child.totals[0] + child.totals[1]
    row = np.empty((2, m), np.int64)
    options = ChildTrees(
        np.empty((2, m + 1), np.int64),
        np.empty((2, m + 1), np.int64),
        np.empty((2, m + 1), np.int64),
        np.zeros(2, np.int64),
    )
    for f in range(m):
        inside = child.ones[0, f] + child.ones[1, f]
        least0, least1 = _least_child_costs(child, f, layout)
        if inside == 0 or inside == size or least0 + least1 > budget:
            continue
        _count_pairs(packed, f, row)
        if not child.smaller:
            for k in range(2):
                for q in range(m):
                    row[k, q] = (P[k, min(f, q), max(f, q)] if q != f else 0) - row[k, q]
        _collect_options(child, row, f, 0, budget - least1, layout, features, options)
        _collect_options(child, row, f, 1, budget - least0, layout, features, options)
        bag = _join_children(bag, options, layout.bits[features[f]], layout.low, budget)
    return sorted_entries(bag)
