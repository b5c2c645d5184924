"""Count trees by cost.

N(D, h, c) is the number of trees of height ≤ h for the rows D with cost c. A tree has a key, the sum of the keys of its leaves: its
cost, or the amounts that a filter needs (errors of each class, leaves), which imply the cost. The bits of a key above `low` mark the
columns of a filter that a tree tests; they are joined by "or", not added.

Rows are counted by kind (`rashomon.kinds`), in the order of the classes. Without groups and predictions to agree with, the kinds are
the classes. A bag is a sparse list: keys, costs, counts, and slots of an open hash table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.bounds import apply_similarity
from trainer.families.exact.kernels.child_bounds import solve_children
from trainer.families.exact.kernels.depth2 import best_children, cheapest_cost, child_as_leaf
from trainer.families.exact.kernels.depth3 import read_cache
from trainer.kernels.compiled import kernel
from trainer.kernels.ordering import argsort
from trainer.kernels.rows import copy_row

INFINITE_COST = np.int64(1) << np.int64(61)
EMPTY = np.int64(-1)


class KeyLayout(NamedTuple):
    """Rules for the keys and costs of trees."""

    unit: int  # cost of one error
    leaf: int  # cost of one leaf
    ends: np.ndarray  # int64 (K,), end of the kinds of each class
    row_keys: np.ndarray  # int64 (K, kinds), key of one row of the kind in a leaf that predicts the class
    barred: np.ndarray  # uint8 (K, kinds), 1 if a leaf with a row of the kind must not predict the class
    leaf_key: int
    low: int  # mask of the part of a key that is added
    bits: np.ndarray  # int64 (features,), bits that a split adds to the key
    idle: bool  # whether splits with two leaves of one class below them are counted


class Trees(NamedTuple):
    """Trees by key, ascending by cost: keys, costs and numbers of trees, int64 each."""

    keys: np.ndarray
    costs: np.ndarray
    counts: np.ndarray


class Shares(NamedTuple):
    """By key, ascending, the least and largest weight of rows whose path tests each column, int64 (keys, columns)."""

    keys: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


class ChildOptions(NamedTuple):
    """Subtrees for both children of a split: costs and keys int64 (2, m + 1), tops int64 (2,), the majority of each child.

    Position m is a leaf, position g the split g with two leaves; INFINITE_COST where the filter allows none.
    """

    costs: np.ndarray
    keys: np.ndarray
    tops: np.ndarray


@kernel
def _slot(slots, keys, key):
    """Return the slot of a key, or the free slot for it."""
    mask = np.int64(len(slots) - 1)
    at = (key * np.int64(-7046029254386353131) >> np.int64(20)) & mask
    while slots[at] != EMPTY and keys[slots[at]] != key:
        at = (at + 1) & mask
    return at


@kernel
def new_bag(size):
    """Return an empty bag with room for `size` keys: keys, costs, counts and slots, int64, and the number of entries."""
    return (
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.full(4 * size, EMPTY, np.int64),
        0,
    )


@kernel
def _grow_bag(bag):
    keys, costs, counts, _slots, used = bag
    size = 2 * len(keys)
    k = np.empty(size, np.int64)
    c = np.empty(size, np.int64)
    n = np.empty(size, np.int64)
    copy_row(keys[:used], k)
    copy_row(costs[:used], c)
    copy_row(counts[:used], n)
    table = np.full(4 * size, EMPTY, np.int64)
    for i in range(used):
        table[_slot(table, k, k[i])] = i
    return k, c, n, table, used


@kernel
def _insert(bag, key, cost, count):
    keys, costs, counts, slots, used = bag
    at = _slot(slots, keys, key)
    if slots[at] != EMPTY:
        counts[slots[at]] += count
        return bag
    slots[at] = used
    keys[used] = key
    costs[used] = cost
    counts[used] = count
    bag = (keys, costs, counts, slots, used + 1)
    return _grow_bag(bag) if used + 1 == len(keys) else bag


@kernel
def add_count(bag, key, cost, count):
    """Return the bag with `count` more trees of a key."""
    return _insert(bag, key, cost, count)


@kernel
def combine(bag, a, b, bit, low, budget, most, flag):
    """Return the bag with all pairs of a tree of `a` and a tree of `b` below a split, of cost ≤ `budget`.

    a, b: keys, costs and counts, ascending by cost. bit: that of the split's column. Stops early if the flag is set or the bag has more
    than `most` entries.
    """
    ka, ca, na = a
    kb, cb, nb = b
    for i in range(len(ka)):
        if flag[0] or bag[4] > most:
            return bag
        for j in range(len(kb)):
            cost = ca[i] + cb[j]
            if cost > budget:
                break
            key = ((ka[i] & low) + (kb[j] & low)) | ((ka[i] | kb[j]) & ~low) | bit
            bag = _insert(bag, key, cost, na[i] * nb[j])
    return bag


@kernel
def sorted_entries(bag):
    """Return keys, costs and counts of a bag, ascending by cost, without entries of no tree."""
    keys, costs, counts, _, used = bag
    some = counts[:used] != 0
    k = keys[:used][some]
    c = costs[:used][some]
    n = counts[:used][some]
    order = argsort(c)
    return k[order], c[order], n[order]


@kernel
def evaluate_leaf(counts, layout):
    """Return majority (ties: first class), cost and key of a leaf; counts int64 (kinds,): the weight of each kind.

    The cost is INFINITE_COST if the filter bars this prediction.
    """
    top = 0
    most = np.int64(-1)
    total = np.int64(0)
    v = 0
    for k in range(len(layout.ends)):
        weight = np.int64(0)
        while v < layout.ends[k]:
            weight += counts[v]
            v += 1
        total += weight
        if weight > most:
            top = k
            most = weight
    key = np.int64(layout.leaf_key)
    cost = (total - most) * layout.unit + layout.leaf
    for v in range(len(counts)):
        key += counts[v] * layout.row_keys[top, v]
        if layout.barred[top, v] and counts[v]:
            cost = INFINITE_COST
    return top, cost, key


@kernel
def _new_options(m):
    """Allocate the options of m features."""
    return ChildOptions(np.empty((2, m + 1), np.int64), np.empty((2, m + 1), np.int64), np.empty(2, np.int64))


@kernel
def _write_options(node, P, f, s, height, min_leaf, layout, options):
    """Write the subtrees for child s of position f and return the least cost."""
    costs = options.costs[s]
    keys = options.keys[s]
    tops = options.tops
    kinds, m = node.ones.shape
    side = np.empty(kinds, np.int64)
    one = np.empty(kinds, np.int64)
    zero = np.empty(kinds, np.int64)
    for k in range(kinds):
        side[k] = node.ones[k, f] if s else node.totals[k] - node.ones[k, f]
    tops[s], costs[m], keys[m] = evaluate_leaf(side, layout)
    least = costs[m]
    for g in range(m):
        costs[g] = INFINITE_COST
        if g == f or height < 2:
            continue
        inside = np.int64(0)
        outside = np.int64(0)
        for k in range(kinds):
            both = np.int64(P[k, min(f, g), max(f, g)])
            one[k] = both if s else node.ones[k, g] - both
            zero[k] = side[k] - one[k]
            inside += one[k]
            outside += zero[k]
        if inside == 0 or outside == 0 or inside < min_leaf or outside < min_leaf:
            continue
        top1, cost1, key1 = evaluate_leaf(one, layout)
        top0, cost0, key0 = evaluate_leaf(zero, layout)
        if top0 == top1 and not layout.idle:
            continue
        costs[g] = cost0 + cost1
        keys[g] = (key0 + key1) | layout.bits[node.features[g]]
        least = min(least, costs[g])
    return least


@kernel
def _group_by_key(costs, keys, most, out_keys, out_costs, out_counts):
    """Group the options of cost ≤ `most` by key; return the number of keys."""
    used = 0
    for g in range(len(costs)):
        if costs[g] > most:
            continue
        at = 0
        while at < used and out_keys[at] != keys[g]:
            at += 1
        if at == used:
            out_keys[at] = keys[g]
            out_costs[at] = costs[g]
            out_counts[at] = 0
            used += 1
        out_counts[at] += 1
    return used


@kernel
def _kinds_are_classes(layout, kinds):
    """Return whether the kinds are the classes, so that counts by kind give the errors of a leaf."""
    return len(layout.ends) == kinds and (layout.ends == np.arange(1, kinds + 1)).all()


@kernel
def _child_floors(node, P, height, min_leaf, layout):
    """Return lower bounds of both children of each split without filters, int64 (2, m); 0 if the kinds are not the classes."""
    kinds, m = node.ones.shape
    out = np.zeros((2, m), np.int64)
    if height < 2 or not _kinds_are_classes(layout, kinds):
        return out
    left, right = best_children(node, P, min_leaf)
    for f in range(m):
        for s in range(2):
            size, wrong = child_as_leaf(node, f, s)
            out[s, f] = wrong * layout.unit + layout.leaf
            correct = right[f] if s else left[f]
            if correct >= 0:
                out[s, f] = min(out[s, f], (size - correct) * layout.unit + 2 * layout.leaf)
    return out


@kernel
def count_depth2(node, P, height, min_leaf, layout, budget):
    """Return N(D, height, c) for c ≤ budget and a height of at most two: keys, costs, counts, ascending by cost."""
    m = len(node.features)
    bag = new_bag(16)
    _, cost, key = evaluate_leaf(node.totals.astype(np.int64), layout)
    if cost <= budget:
        bag = _insert(bag, key, cost, 1)
    if height == 0:
        return sorted_entries(bag)
    options = _new_options(m)
    costs, keys, tops = options
    k = np.empty((2, m + 1), np.int64)
    c = np.empty((2, m + 1), np.int64)
    n = np.empty((2, m + 1), np.int64)
    used = np.empty(2, np.int64)
    floors = _child_floors(node, P, height, min_leaf, layout)
    for f in range(m):
        if floors[0, f] + floors[1, f] > budget:
            continue
        least0 = _write_options(node, P, f, 0, height, min_leaf, layout, options)
        least1 = _write_options(node, P, f, 1, height, min_leaf, layout, options)
        if least0 + least1 > budget:
            continue
        used[0] = _group_by_key(costs[0], keys[0], budget - least1, k[0], c[0], n[0])
        used[1] = _group_by_key(costs[1], keys[1], budget - least0, k[1], c[1], n[1])
        bit = layout.bits[node.features[f]]
        for i in range(used[0]):
            for j in range(used[1]):
                if c[0, i] + c[1, j] <= budget:
                    key = ((k[0, i] & layout.low) + (k[1, j] & layout.low)) | ((k[0, i] | k[1, j]) & ~layout.low) | bit
                    bag = _insert(bag, key, c[0, i] + c[1, j], n[0, i] * n[1, j])
        if tops[0] == tops[1] and not layout.idle and costs[0, m] + costs[1, m] <= budget:
            bag = _insert(bag, (keys[0, m] + keys[1, m]) | bit, costs[0, m] + costs[1, m], -1)
    return sorted_entries(bag)


@kernel
def options_depth2(node, P, height, min_leaf, layout, budget):
    """Return all subtrees below a split that `count_depth2` counts, int64 (subtrees, 5).

    Columns: position of the split, child, position of the split below (m: a leaf), key, cost.
    """
    m = len(node.features)
    out = np.empty((64, 5), np.int64)
    used = 0
    options = _new_options(m)
    costs = options.costs
    keys = options.keys
    floors = _child_floors(node, P, height, min_leaf, layout)
    for f in range(m):
        if floors[0, f] + floors[1, f] > budget:
            continue
        least0 = _write_options(node, P, f, 0, height, min_leaf, layout, options)
        least1 = _write_options(node, P, f, 1, height, min_leaf, layout, options)
        if least0 + least1 > budget:
            continue
        for s in range(2):
            most = budget - (least0 if s else least1)
            for g in range(m + 1):
                if costs[s, g] > most:
                    continue
                if used == len(out):
                    wider = np.empty((2 * used, 5), np.int64)
                    for x in range(used):
                        copy_row(out[x], wider[x])
                    out = wider
                out[used, 0] = f
                out[used, 1] = s
                out[used, 2] = g
                out[used, 3] = keys[s, g]
                out[used, 4] = costs[s, g]
                used += 1
    return out[:used].copy()


@kernel
def raise_child_bounds(node, P, D, costs, cache, sides, budget, flag):
    """Raise the bounds of both children of each split to the optima of height two if their sum may be ≤ budget.

    costs: int64 (unit, leaf, min_leaf, use_similarity, scale). cache: that of the search by path, in costs times `scale`.
    """
    unit = costs[0]
    leaf = costs[1]
    min_leaf = costs[2]
    similar = costs[3]
    lb, exact = sides
    e0 = np.empty(4, np.int64)
    e1 = np.empty(4, np.int64)
    for p in range(len(node.features)):
        if flag[0]:
            return
        if lb[0, p] + lb[1, p] > budget:
            continue
        read_cache(cache, node.features[p], p, costs[4], sides)
        if not (exact[0, p] and exact[1, p]) and lb[0, p] + lb[1, p] <= budget:
            solve_children(node, P, D, p, min_leaf, e0, e1)
            lb[0, p] = cheapest_cost(e0, unit, leaf, 4)
            lb[1, p] = cheapest_cost(e1, unit, leaf, 4)
            exact[0, p] = exact[1, p] = 1
        if similar:
            for s in range(2):
                if exact[s, p]:
                    apply_similarity(node, P, p, s, lb[s, p], unit, lb)


@kernel
def _find_pair(a, b, bits, keys):
    """Return the position of the key of a pair of trees among ascending keys, or -1; bits: that of the split's column, and `low`."""
    bit, low = bits
    key = ((a & low) + (b & low)) | ((a | b) & ~low) | bit
    t = np.searchsorted(keys, key)
    return t if t < len(keys) and keys[t] == key else -1


@kernel
def _widen_range(out, t, c, least, most, first):
    """Widen the range of a key and column to include `least` and `most`."""
    if first[t] or least < out.lo[t, c]:
        out.lo[t, c] = least
    if first[t] or most > out.hi[t, c]:
        out.hi[t, c] = most


@kernel
def join_ranges(a, b, bits, out, first, flag):
    """Widen the ranges of `out` by the sums of all pairs of trees below a split, until the flag is set.

    bits: that of the split's column in a key, and `low` of the layout.
    first uint8 (keys,): 1 until a key of `out` has a range.
    """
    columns = a.lo.shape[1]
    for i in range(len(a.keys)):
        if flag[0]:
            return
        for j in range(len(b.keys)):
            t = _find_pair(a.keys[i], b.keys[j], bits, out.keys)
            if t < 0:
                continue
            for c in range(columns):
                _widen_range(out, t, c, a.lo[i, c] + b.lo[j, c], a.hi[i, c] + b.hi[j, c], first)
            first[t] = 0
