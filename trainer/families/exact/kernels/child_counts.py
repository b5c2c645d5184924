"""Kernels: counts of the trees of two levels at both sides of a split, from the node above; for two classes and leaves of any size.

The pairs of a side are not written down. The differences between the classes tell what a tree that asks a question first costs at least
(`signed`), and few questions of a side are below a budget; only their pairs are counted by class, those of the larger side as what the
node has more than the smaller one. A call for each side that collects its rows takes five times as long.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.count import add_count, emptied, leaf_of, new_bag
from trainer.families.exact.kernels.depth2_signed import (
    child_differences,
    count_pairs,
    count_weighted,
    furthest,
    unpack_counts,
)
from trainer.families.exact.kernels.packed_bits import PackedRows, packed_side
from trainer.kernels.bits import ctpop
from trainer.kernels.compiled import kernel

i32 = np.int32
u64 = np.uint64


class Half(NamedTuple):
    """One side of a split; questions are positions of the node above."""

    ones: np.ndarray  # int64 (2, m), weight of each class in the rows that answer 1
    totals: np.ndarray  # int64 (2,)
    far: np.ndarray  # int32 (m, 2), of `signed.furthest`: where a question is 1, and where it is 0
    smaller: bool  # whether it is the side whose rows are packed


class PairSplit(NamedTuple):
    """What is needed to count pairs at both sides."""

    features: np.ndarray  # of the node
    pairs: np.ndarray  # P of the node
    packed: PackedRows  # rows of the smaller side, classes mixed


class ChildTrees(NamedTuple):
    """What may hang where a question is 0, and where it is 1: keys, costs and numbers, int64 (2, m + 1), and how many there are, int64 (2,)."""

    keys: np.ndarray
    costs: np.ndarray
    counts: np.ndarray
    used: np.ndarray


@kernel
def both_halves(node, P, differ, p):
    """The sides x_p = 0 and x_p = 1, and what counts their pairs. differ: of `differences`."""
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
    packed = packed_side(node, differ.columns, p, s, True)
    near, far = _reach(differ.whole, packed, p, s, totals)
    zero = Half(ones[0], totals[0], far if s else near, s == 0)
    return zero, Half(ones[1], totals[1], near if s else far, s == 1), PairSplit(node.features, P, packed)


@kernel
def _reach(D, packed, p, s, totals):
    """What `furthest` gives of each question, in the packed side s and in the other one, int32 (m, 2) each: where it is 1, and where it is 0."""
    m, wide = D.shape
    base = i32(totals[s, 1])
    small = np.empty(wide, i32)
    large = np.empty(wide, i32)
    row = np.empty(wide, i32)
    child_differences(D, p, s, base, small, large)
    d = totals[s, 0] - totals[s, 1]
    e = totals[1 - s, 0] - totals[1 - s, 1]
    near = np.empty((m, 2), i32)
    far = np.empty((m, 2), i32)
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
        one = np.int64(small[f]) - base
        rest = np.int64(large[f]) + base
        own = i32(one + 2 * base), i32(d - one), i32(rest - 2 * base), i32(e - rest)
        near[f, 0], near[f, 1], far[f, 0], far[f, 1] = furthest(row, D, f, small, large, own)
    return near, far


@kernel
def _pairs(packed, f, row):
    """Write the weight of each class with x_f = x_q = 1 in a packed side, int64 (2, m)."""
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
    """As `_pairs`, from weights by row, those of class 1 negative."""
    for w in range(len(A)):
        for r in range(64):
            weight = np.int64(weights[64 * w + r])
            if weight == 0 or not (A[w, f] >> u64(r)) & u64(1):
                continue
            target = row[1 if weight < 0 else 0]
            for q in range(len(target)):
                target[q] += abs(weight) * np.int64((A[w, q] >> u64(r)) & u64(1))


@kernel
def _least_child_costs(half, f, layout):
    """Least costs of a leaf or one split where question f is 0, and where it is 1."""
    a = half.ones[0, f]
    b = half.ones[1, f]
    return (
        _least_of(half.totals[0] - a, half.totals[1] - b, half.far[f, 1], layout),
        _least_of(a, b, half.far[f, 0], layout),
    )


@kernel
def _least_of(a, b, far, layout):
    size = a + b
    own = abs(a - b)
    as_leaf = ((size - own) >> 1) * layout.unit + layout.leaf
    return min(as_leaf, ((size - max(own, np.int64(far))) >> 1) * layout.unit + 2 * layout.leaf)


@kernel
def _hang(hanging, r, key, cost):
    """One more tree of a key at side r of a question."""
    keys = hanging.keys[r]
    used = hanging.used[r]
    at = 0
    while at < used and keys[at] != key:
        at += 1
    if at == used:
        keys[at] = key
        hanging.costs[r, at] = cost
        hanging.counts[r, at] = 0
        hanging.used[r] = used + 1
    hanging.counts[r, at] += 1


@kernel
def _fill(half, row, f, r, most, layout, features, hanging):
    """Collect what may hang where question f is r for a cost of at most `most`; row: pairs of f of the side, by class."""
    own = np.empty(2, np.int64)
    one = np.empty(2, np.int64)
    for k in range(2):
        own[k] = half.ones[k, f] if r else half.totals[k] - half.ones[k, f]
    size = own[0] + own[1]
    unit = layout.unit
    hanging.used[r] = 0
    _, cost, key = leaf_of(own, layout)
    if cost <= most:
        _hang(hanging, r, key, cost)
    for g in range(len(features)):
        a = row[0, g]
        b = row[1, g]
        if not r:
            a = half.ones[0, g] - a
            b = half.ones[1, g] - b
        c = own[0] - a
        d = own[1] - b
        if g == f or a + b == 0 or a + b == size or (min(a, b) + min(c, d)) * unit + 2 * layout.leaf > most:
            continue
        one[0] = a
        one[1] = b
        _, cost1, key1 = leaf_of(one, layout)
        one[0] = c
        one[1] = d
        _, cost0, key0 = leaf_of(one, layout)
        if cost0 + cost1 <= most:
            _hang(hanging, r, (key0 + key1) | layout.bits[features[g]], cost0 + cost1)


@kernel
def _join_children(bag, hanging, bit, low, budget):
    """The bag with all pairs of what may hang at both sides of a question."""
    keys, costs, counts, used = hanging
    for i in range(used[0]):
        for j in range(used[1]):
            if costs[0, i] + costs[1, j] <= budget:
                key = ((keys[0, i] & low) + (keys[1, j] & low)) | ((keys[0, i] | keys[1, j]) & ~low) | bit
                bag = add_count(bag, key, costs[0, i] + costs[1, j], counts[0, i] * counts[1, j])
    return bag


@kernel
def count_half(half, split, layout, budget):
    """N(D, 2, c) for c ≤ budget and the rows D of a side: keys, costs, counts as `count_two` gives them; idle questions count."""
    features, P, packed = split
    m = len(features)
    bag = new_bag(16)
    _, cost, key = leaf_of(half.totals, layout)
    if cost <= budget:
        bag = add_count(bag, key, cost, 1)
    size = half.totals[0] + half.totals[1]
    row = np.empty((2, m), np.int64)
    hanging = ChildTrees(
        np.empty((2, m + 1), np.int64),
        np.empty((2, m + 1), np.int64),
        np.empty((2, m + 1), np.int64),
        np.zeros(2, np.int64),
    )
    for f in range(m):
        inside = half.ones[0, f] + half.ones[1, f]
        least0, least1 = _least_child_costs(half, f, layout)
        if inside == 0 or inside == size or least0 + least1 > budget:
            continue
        _pairs(packed, f, row)
        if not half.smaller:
            for k in range(2):
                for q in range(m):
                    row[k, q] = (P[k, min(f, q), max(f, q)] if q != f else 0) - row[k, q]
        _fill(half, row, f, 0, budget - least1, layout, features, hanging)
        _fill(half, row, f, 1, budget - least0, layout, features, hanging)
        bag = _join_children(bag, hanging, layout.bits[features[f]], layout.low, budget)
    return emptied(bag)
