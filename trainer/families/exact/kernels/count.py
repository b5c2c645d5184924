"""Kernels that count trees by cost: N(D, h, c), the number of trees of height ≤ h for the rows D with cost c.

A tree has a key, the sum of the keys of its leaves: its cost, or whatever a filter needs to know (errors of each class, leaves), from
which the cost follows. The bits of a key above `low` say which wanted columns a tree asks; they are joined, not added.
Counts of rows are by kind (`workbench.kinds`), in the order of the classes: without groups and answers to agree with, the kinds are
the classes.
A bag holds a sparse list: keys, costs, counts, and slots of an open hash table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.bounds import share
from trainer.families.exact.kernels.child_bounds import both_sides
from trainer.families.exact.kernels.depth2 import best_children, price, side_as_leaf
from trainer.families.exact.kernels.depth3 import look_up
from trainer.kernels.compiled import kernel

INFINITE_COST = np.int64(1) << np.int64(61)
EMPTY = np.int64(-1)


class KeyLayout(NamedTuple):
    """What the key of a tree is made of."""

    unit: int  # cost of one error
    leaf: int  # cost of one leaf
    ends: np.ndarray  # int64 (K,), where the kinds of each class end
    row_keys: np.ndarray  # int64 (K, kinds), key of one row of the kind in a leaf that answers the class
    barred: np.ndarray  # uint8 (K, kinds), 1 where a leaf with a row of the kind must not answer the class
    leaf_key: int
    low: int  # mask of the part of a key that is added
    bits: np.ndarray  # int64 (questions,), what a question joins to the key
    idle: bool  # whether questions with two leaves of one class below them are counted


class Trees(NamedTuple):
    """Trees by key, ascending by cost: keys, costs and how many there are, int64 each."""

    keys: np.ndarray
    costs: np.ndarray
    counts: np.ndarray


class Shares(NamedTuple):
    """With each key, ascending, the least and the largest weight of rows that meet each column, int64 (keys, columns)."""

    keys: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


class ChildOptions(NamedTuple):
    """What may hang at both sides of a question: costs and keys int64 (2, m + 1), tops int64 (2,), the majority of each side.

    At position m the leaf of the side, at g the question g with two leaves; a cost of FAR where nothing may.
    """

    costs: np.ndarray
    keys: np.ndarray
    tops: np.ndarray


@kernel
def _slot(slots, keys, key):
    """Where the key is in the table, or the free place where it belongs."""
    mask = np.int64(len(slots) - 1)
    at = (key * np.int64(-7046029254386353131) >> np.int64(20)) & mask
    while slots[at] != EMPTY and keys[slots[at]] != key:
        at = (at + 1) & mask
    return at


@kernel
def new_bag(size):
    """An empty bag: keys, costs, counts, slots, and how many entries there are."""
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
    k[:used], c[:used], n[:used] = keys[:used], costs[:used], counts[:used]
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
    """The bag with `count` more trees of a key."""
    return _insert(bag, key, cost, count)


@kernel
def combine(bag, a, b, bit, low, budget, most, flag):
    """The bag with all pairs of one of the trees `a` and one of the trees `b` below a question.

    Ends early where the flag is up, or where it has more than `most` entries.
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
def emptied(bag):
    """Keys, costs and counts of a bag, ascending by cost, without those of no tree."""
    keys, costs, counts, _, used = bag
    some = counts[:used] != 0
    k = keys[:used][some]
    c = costs[:used][some]
    n = counts[:used][some]
    order = np.argsort(c, kind="mergesort")
    return k[order], c[order], n[order]


@kernel
def leaf_of(counts, layout):
    """Majority (the first of equals), cost and key of a leaf with these weights of kinds; FAR if it must not answer so."""
    top = 0
    most = np.int64(-1)
    total = np.int64(0)
    v = 0
    for k in range(len(layout.ends)):
        own = np.int64(0)
        while v < layout.ends[k]:
            own += counts[v]
            v += 1
        total += own
        if own > most:
            top = k
            most = own
    key = np.int64(layout.leaf_key)
    cost = (total - most) * layout.unit + layout.leaf
    for v in range(len(counts)):
        key += counts[v] * layout.row_keys[top, v]
        if layout.barred[top, v] and counts[v]:
            cost = INFINITE_COST
    return top, cost, key


@kernel
def _no_options(m):
    """Room for the options of m questions."""
    return ChildOptions(np.empty((2, m + 1), np.int64), np.empty((2, m + 1), np.int64), np.empty(2, np.int64))


@kernel
def _options(node, P, f, s, height, min_leaf, layout, options):
    """Write what may hang at side s of position f; returns the least cost."""
    costs = options.costs[s]
    keys = options.keys[s]
    tops = options.tops
    kinds, m = node.ones.shape
    side = np.empty(kinds, np.int64)
    one = np.empty(kinds, np.int64)
    zero = np.empty(kinds, np.int64)
    for k in range(kinds):
        side[k] = node.ones[k, f] if s else node.totals[k] - node.ones[k, f]
    tops[s], costs[m], keys[m] = leaf_of(side, layout)
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
        top1, cost1, key1 = leaf_of(one, layout)
        top0, cost0, key0 = leaf_of(zero, layout)
        if top0 == top1 and not layout.idle:
            continue
        costs[g], keys[g] = cost0 + cost1, (key0 + key1) | layout.bits[node.features[g]]
        least = min(least, costs[g])
    return least


@kernel
def _gathered(costs, keys, most, out_keys, out_costs, out_counts):
    """The options of cost ≤ `most` by key; how many keys there are."""
    used = 0
    for g in range(len(costs)):
        if costs[g] > most:
            continue
        at = 0
        while at < used and out_keys[at] != keys[g]:
            at += 1
        if at == used:
            out_keys[at], out_costs[at], out_counts[at] = keys[g], costs[g], 0
            used += 1
        out_counts[at] += 1
    return used


@kernel
def _one_kind_each(layout, kinds):
    """Whether the kinds of rows are the classes, so that counts by kind tell the errors of a leaf."""
    return len(layout.ends) == kinds and (layout.ends == np.arange(1, kinds + 1)).all()


@kernel
def _floors(node, P, height, min_leaf, layout):
    """Least costs of what may hang at both sides of each question whatever the filters are, int64 (2, m); 0 where kinds are not classes."""
    kinds, m = node.ones.shape
    out = np.zeros((2, m), np.int64)
    if height < 2 or not _one_kind_each(layout, kinds):
        return out
    left, right = best_children(node, P, min_leaf)
    for f in range(m):
        for s in range(2):
            size, wrong = side_as_leaf(node, f, s)
            out[s, f] = wrong * layout.unit + layout.leaf
            correct = right[f] if s else left[f]
            if correct >= 0:
                out[s, f] = min(out[s, f], (size - correct) * layout.unit + 2 * layout.leaf)
    return out


@kernel
def count_two(node, P, height, min_leaf, layout, budget):
    """N(D, height, c) for c ≤ budget and a height of two at most: keys, costs, counts, ascending by cost."""
    m = len(node.features)
    bag = new_bag(16)
    _, cost, key = leaf_of(node.totals.astype(np.int64), layout)
    if cost <= budget:
        bag = _insert(bag, key, cost, 1)
    if height == 0:
        return emptied(bag)
    options = _no_options(m)
    costs, keys, tops = options
    k = np.empty((2, m + 1), np.int64)
    c = np.empty((2, m + 1), np.int64)
    n = np.empty((2, m + 1), np.int64)
    used = np.empty(2, np.int64)
    floors = _floors(node, P, height, min_leaf, layout)
    for f in range(m):
        if floors[0, f] + floors[1, f] > budget:
            continue
        least0 = _options(node, P, f, 0, height, min_leaf, layout, options)
        least1 = _options(node, P, f, 1, height, min_leaf, layout, options)
        if least0 + least1 > budget:
            continue
        used[0] = _gathered(costs[0], keys[0], budget - least1, k[0], c[0], n[0])
        used[1] = _gathered(costs[1], keys[1], budget - least0, k[1], c[1], n[1])
        bit = layout.bits[node.features[f]]
        for i in range(used[0]):
            for j in range(used[1]):
                if c[0, i] + c[1, j] <= budget:
                    key = ((k[0, i] & layout.low) + (k[1, j] & layout.low)) | ((k[0, i] | k[1, j]) & ~layout.low) | bit
                    bag = _insert(bag, key, c[0, i] + c[1, j], n[0, i] * n[1, j])
        if tops[0] == tops[1] and not layout.idle and costs[0, m] + costs[1, m] <= budget:
            bag = _insert(bag, (keys[0, m] + keys[1, m]) | bit, costs[0, m] + costs[1, m], -1)
    return emptied(bag)


@kernel
def options_two(node, P, height, min_leaf, layout, budget):
    """Every part of a tree that `count_two` counts: position of the question, side, position below (m: a leaf), key, cost, int64 (., 5)."""
    m = len(node.features)
    out = np.empty((64, 5), np.int64)
    used = 0
    options = _no_options(m)
    costs = options.costs
    keys = options.keys
    floors = _floors(node, P, height, min_leaf, layout)
    for f in range(m):
        if floors[0, f] + floors[1, f] > budget:
            continue
        least0 = _options(node, P, f, 0, height, min_leaf, layout, options)
        least1 = _options(node, P, f, 1, height, min_leaf, layout, options)
        if least0 + least1 > budget:
            continue
        for s in range(2):
            most = budget - (least0 if s else least1)
            for g in range(m + 1):
                if costs[s, g] > most:
                    continue
                if used == len(out):
                    wider = np.empty((2 * used, 5), np.int64)
                    wider[:used] = out
                    out = wider
                out[used, 0] = f
                out[used, 1] = s
                out[used, 2] = g
                out[used, 3], out[used, 4] = keys[s, g], costs[s, g]
                used += 1
    return out[:used].copy()


@kernel
def three_sums(node, P, D, costs, kept, sides, budget, flag):
    """Raise the lower bounds of both sides of each question to the least costs of height two where their sum may be ≤ budget.

    costs: int64 (unit, leaf, min_leaf, use_similarity, scale). kept: what the search knows by path, times `scale`; an empty table without.
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
        look_up(kept, node.features[p], p, costs[4], sides)
        if not (exact[0, p] and exact[1, p]) and lb[0, p] + lb[1, p] <= budget:
            both_sides(node, P, D, p, min_leaf, e0, e1)
            lb[0, p], lb[1, p] = price(e0, unit, leaf, 4), price(e1, unit, leaf, 4)
            exact[0, p] = exact[1, p] = 1
        if similar:
            for s in range(2):
                if exact[s, p]:
                    share(node, P, p, s, lb[s, p], unit, lb)


@kernel
def _place_of(a, b, bits, keys):
    """Where the key of a pair of trees is among ascending keys, -1 if it is not; bits: that of the question's column, and `low`."""
    bit, low = bits
    key = ((a & low) + (b & low)) | ((a | b) & ~low) | bit
    t = np.searchsorted(keys, key)
    return t if t < len(keys) and keys[t] == key else -1


@kernel
def _widen(out, t, c, least, most, first):
    """Let the range of a key and column reach from `least` to `most` at least."""
    if first[t] or least < out.lo[t, c]:
        out.lo[t, c] = least
    if first[t] or most > out.hi[t, c]:
        out.hi[t, c] = most


@kernel
def range_pairs(a, b, bits, out, first, flag):
    """Join the sums of the shares of all pairs of trees below a question to `out`, unless the flag is up.

    bits: that of the question's column in a key, and `low` of the layout.
    first uint8 (keys,): 1 until a key of `out` has been met.
    """
    columns = a.lo.shape[1]
    for i in range(len(a.keys)):
        if flag[0]:
            return
        for j in range(len(b.keys)):
            t = _place_of(a.keys[i], b.keys[j], bits, out.keys)
            if t < 0:
                continue
            for c in range(columns):
                _widen(out, t, c, a.lo[i, c] + b.lo[j, c], a.hi[i, c] + b.hi[j, c], first)
            first[t] = 0
