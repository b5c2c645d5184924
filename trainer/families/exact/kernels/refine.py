"""Raise the lower bound of a subproblem of any height, best first.

E(D, h) is the minimum of a leaf and, over all splits of D, of E(D0, h - 1) + E(D1, h - 1). Each visit counts the pairs of features
of a subproblem. The counts give the best tree of depth two, the best stump of each child, and the overlap of children. Trees with
more leaves cost at least their penalty plus the errors of inseparable rows, so the counts alone solve most subproblems. A table
stores all bounds. The search visits nodes best first with the memory of a depth-first search (Korf 1993; Bonet & Geffner 2005).
Bounds: Lin et al. 2020, McTavish et al. 2022, Chaouki et al. 2025 and Demirovic et al. 2022.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.bound_table import BoundTable, find, is_full, store
from trainer.families.exact.kernels.bounds import apply_similarity, bound_children_by_node, sort_descending
from trainer.families.exact.kernels.depth2 import cheapest_cost, node_errors_by_leaves
from trainer.families.exact.kernels.node import DataRows, gather_columns, pair_counts, split_rows, view_node
from trainer.kernels.compiled import kernel

i32 = np.int32
u64 = np.uint64

ANY_HEIGHT = 1 << 20  # a height that no tree reaches
# choices that are no split
LEAF = -1
TWO_LEVELS = -2  # the best tree of depth two

# positions in `RefineContext.work`
VISITS = 0
MOST_VISITS = 1


class RefineContext(NamedTuple):
    """The arguments that all subproblems of a search share."""

    data: DataRows
    allowed: np.ndarray  # uint8 (features,)
    costs: np.ndarray  # int64: unit, leaf, min_leaf, use_similarity
    table: BoundTable
    work: np.ndarray  # int64 (2,): visits so far, and the number at which to stop
    flag: np.ndarray  # int64 (1,): anything but 0 ends the search


class Bounds(NamedTuple):
    """A lower bound of a subproblem, and cost, root split and depth of its best known tree."""

    lower: np.int64
    upper: np.int64
    choice: np.int64
    depth: np.int64


class Sides(NamedTuple):
    """Bounds of both children of each split of a node: int64 (2, splits) each."""

    lower: np.ndarray
    upper: np.ndarray
    depth: np.ndarray  # depth of the tree of cost `upper`
    height: np.ndarray  # largest height of a tree, ANY_HEIGHT where a higher one cannot be better


@kernel
def is_stopped(context):
    """Return whether the search must unwind."""
    return context.flag[0] != 0 or context.work[VISITS] >= context.work[MOST_VISITS] or is_full(context.table)


@kernel
def more_leaves(counts, inseparable, first, most, unit, leaf):
    """Return a lower bound of trees with `first` to `most` leaves; counts int64 (classes,): class weights, descending.

    t leaves predict at most t classes, and inseparable rows share a leaf.
    """
    classes = len(counts)
    least = np.int64(1) << np.int64(62)
    errors = np.int64(0)
    for k in range(classes):
        errors += counts[k]
    for t in range(1, min(most, max(first, classes)) + 1):
        if t <= classes:
            errors -= counts[t - 1]
        if t >= first:
            least = min(least, t * leaf + max(errors, inseparable) * unit)
    return least


@kernel
def _most_leaves(height):
    return np.int64(1) << np.int64(min(height, 40))


@kernel
def side_bounds(context, node, children, height):
    """Bound both children of each split by pair counts; exact where the best stump is optimal."""
    unit = context.costs[0]
    leaf = context.costs[1]
    classes, m = node.ones.shape
    arrays = np.zeros((4, 2, m), np.int64)
    sides = Sides(arrays[0], arrays[1], arrays[2], arrays[3])
    counts = np.empty(classes, np.int64)
    for p in range(m):
        for s in range(2):
            size = np.int64(0)
            for k in range(classes):
                counts[k] = node.ones[k, p] if s else node.totals[k] - node.ones[k, p]
                size += counts[k]
            sort_descending(counts)
            upper = (size - counts[0]) * unit + leaf
            depth = 0
            below = height if height == ANY_HEIGHT else height - 1
            if below > 0 and children[s][p] >= 0:
                cost = (size - children[s][p]) * unit + 2 * leaf
                if cost < upper:
                    upper = cost
                    depth = 1
            wrong = node.equal_ones[p] if s else node.equal - node.equal_ones[p]
            lower = upper
            if below > 1 and size * unit > 2 * leaf:
                lower = min(upper, more_leaves(counts, wrong, 3, _most_leaves(below), unit, leaf))
            if below < ANY_HEIGHT and (below + 2) * leaf + wrong * unit >= upper:
                below = ANY_HEIGHT
            sides.lower[s, p] = lower
            sides.upper[s, p] = upper
            sides.depth[s, p] = depth
            sides.height[s, p] = below
    return sides


@kernel
def _mark_values(columns, valid, f, seen):
    """Mark for both children of a split the features that are 1 (seen[s, 1]) and that are 0 (seen[s, 0]) in any row."""
    seen[:] = u64(0)
    n = columns.shape[1]
    for w in range(len(valid)):
        one = columns[w, f]
        zero = valid[w] ^ one
        row = columns[w]
        zero_zero = seen[0, 0]
        zero_one = seen[0, 1]
        one_zero = seen[1, 0]
        one_one = seen[1, 1]
        for q in range(n):
            x = row[q]
            zero_zero[q] |= zero & ~x
            zero_one[q] |= zero & x
            one_zero[q] |= one & ~x
            one_one[q] |= one & x


@kernel
def _write_key(seen, features, height, key):
    """Write the table key of a child from the values of its features."""
    key[:] = u64(0)
    words = (len(key) - 1) // 2
    for q in range(features):
        bit = u64(1) << u64(q & 63)
        if seen[0, q] == u64(0):
            key[q >> 6] |= bit
        elif seen[1, q] == u64(0):
            key[words + (q >> 6)] |= bit
    key[2 * words] = u64(height)


@kernel
def _read_table(context, key, height, sides, s, p):
    """Merge the table's bounds of a child, including those for any height."""
    at = find(context.table, key)
    if at >= 0:
        _merge(context.table, at, height, sides, s, p)
    if height < ANY_HEIGHT and sides.lower[s, p] < sides.upper[s, p]:
        key[len(key) - 1] = u64(ANY_HEIGHT)
        at = find(context.table, key)
        if at >= 0:
            _merge(context.table, at, height, sides, s, p)
        key[len(key) - 1] = u64(height)


@kernel
def _merge(table, at, height, sides, s, p):
    sides.lower[s, p] = max(sides.lower[s, p], table.lower[at])
    if table.upper[at] < sides.upper[s, p] and table.depth[at] <= height:
        sides.upper[s, p] = table.upper[at]
        sides.depth[s, p] = table.depth[at]


@kernel
def _look_up_sides(context, node, gathered, most, sides, keys):
    """Read the children of splits that may cost less than `most` from the table; write keys, uint64 (2, splits, words)."""
    columns, valid, _, _ = gathered
    features = len(context.allowed)
    seen = np.empty((2, 2, columns.shape[1]), np.uint64)
    for p in range(len(node.features)):
        if sides.lower[0, p] + sides.lower[1, p] >= most:
            continue
        if sides.lower[0, p] == sides.upper[0, p] and sides.lower[1, p] == sides.upper[1, p]:
            continue
        _mark_values(columns, valid, node.features[p], seen)
        for s in range(2):
            key = keys[s, p]
            _write_key(seen[s], features, sides.height[s, p], key)
            if sides.lower[s, p] < sides.upper[s, p]:
                _read_table(context, key, sides.height[s, p], sides, s, p)


@kernel
def two_level_bounds(context, node, as_leaf, height, e):
    """Return the best tree of depth two and a bound of trees with more leaves."""
    unit = context.costs[0]
    leaf = context.costs[1]
    two = cheapest_cost(e, unit, leaf, 2 if height == 1 else 4)
    choice = np.int64(LEAF)
    depth = np.int64(0)
    upper = as_leaf
    if two < as_leaf:
        upper = two
        choice = np.int64(TWO_LEVELS)
        depth = np.int64(1 if height == 1 else 2)
    lower = upper
    if height > 2:
        counts = node.totals.astype(np.int64)
        sort_descending(counts)
        lower = min(upper, more_leaves(counts, node.equal, 4, _most_leaves(height), unit, leaf))
    return Bounds(lower, upper, choice, depth)


@kernel
def smallest_side(costs):
    """Return the least useful weight of a child: for fewer rows a leaf costs more than it saves."""
    return max(costs[2], costs[1] // costs[0] + 1)


class SplitScan(NamedTuple):
    """The split of the least bound, this bound, the next one, and the split with the cheapest known trees and their cost."""

    split: np.int64
    bound: np.int64
    second: np.int64
    cheapest: np.int64
    cost: np.int64


@kernel
def _scan(sides, as_leaf):
    """Find the least bounds and the least cost over all splits and the leaf."""
    split = np.int64(-1)
    cheapest = np.int64(-1)
    bound = np.int64(as_leaf)
    second = np.int64(as_leaf)
    cost = np.int64(as_leaf)
    for p in range(sides.lower.shape[1]):
        for s in range(2):
            sides.lower[s, p] = min(sides.lower[s, p], sides.upper[s, p])
        cost_of_split = sides.upper[0, p] + sides.upper[1, p]
        if cost_of_split < cost:
            cost = cost_of_split
            cheapest = np.int64(p)
        least = sides.lower[0, p] + sides.lower[1, p]
        if least < bound:
            second = bound
            bound = least
            split = np.int64(p)
        elif least < second:
            second = least
    return SplitScan(split, bound, second, cheapest, cost)


@kernel
def _update_best(best, scan, node, sides):
    """Return the bounds of a node, improved by the scan of its splits."""
    lower, upper, choice, depth = best
    if scan.cost < upper:
        p = scan.cheapest
        upper = scan.cost
        choice = np.int64(node.features[p])
        depth = 1 + max(sides.depth[0, p], sides.depth[1, p])
    return Bounds(max(lower, min(upper, scan.bound)), upper, choice, depth)


@kernel
def _initial_bounds(table, key, from_counts, lower_known):
    """Return the best of the bounds from counts, the lower bound `lower_known` and the bounds in the table."""
    lower, upper, choice, depth = from_counts
    lower = max(lower, lower_known)
    at = find(table, key)
    if at >= 0:
        lower = max(lower, table.lower[at])
        if table.upper[at] < upper:
            upper = table.upper[at]
            choice = np.int64(table.choice[at])
            depth = np.int64(table.depth[at])
    return Bounds(lower, upper, choice, depth)


@kernel
def _apply_similarity(context, node, P, sides):
    """Bound each child by its similarity to all others."""
    if context.costs[3]:
        for p in range(len(node.features)):
            for s in range(2):
                apply_similarity(node, P, p, s, sides.lower[s, p], context.costs[0], sides.lower)


@kernel
def _store_child(context, node, P, sides, p, s, child):
    """Store the bounds of a child and apply them to similar children."""
    sides.lower[s, p] = max(sides.lower[s, p], child.lower)
    if child.upper < sides.upper[s, p]:
        sides.upper[s, p] = child.upper
        sides.depth[s, p] = child.depth
    if context.costs[3]:
        apply_similarity(node, P, p, s, sides.lower[s, p], context.costs[0], sides.lower)


@kernel
def refine(context, rows, key, height, target, lower):
    """Raise the lower bound of the rows to `target`, or to their optimum if that is less; stop below both if the search is stopped.

    key: that of the rows in the table. lower: a valid lower bound. The kernel stores the bounds in the table and returns them.
    """
    unit = context.costs[0]
    leaf = context.costs[1]
    context.work[VISITS] += 1
    gathered = gather_columns(context.data, rows)
    node = view_node(context.data, rows, gathered, context.allowed, smallest_side(context.costs), True, True)
    m = len(node.features)
    total = np.int64(node.totals.sum())
    as_leaf = (total - node.totals.max()) * unit + leaf
    if m == 0 or height == 0 or total * unit <= 2 * leaf:
        store(context.table, key, as_leaf, as_leaf, LEAF, 0)
        return Bounds(as_leaf, as_leaf, np.int64(LEAF), np.int64(0))
    P = np.empty((context.data.classes, m, m), i32)
    pair_counts(node, P)
    e = np.empty(4, np.int64)
    children = node_errors_by_leaves(node, P, context.costs[2], e)
    best = _initial_bounds(context.table, key, two_level_bounds(context, node, as_leaf, height, e), lower)
    if best.lower < min(target, best.upper):
        sides = side_bounds(context, node, children, height)
        bound_children_by_node(node, best.lower, unit, sides.lower)
        keys = np.empty((2, m, len(key)), np.uint64)
        _look_up_sides(context, node, gathered, best.upper, sides, keys)
        _apply_similarity(context, node, P, sides)
        while True:
            scan = _scan(sides, as_leaf)
            best = _update_best(best, scan, node, sides)
            most = min(target, best.upper)
            if best.lower >= most or is_stopped(context):
                break
            p = scan.split
            s = _side_to_raise(sides, p)
            goal = min(most, max(scan.second + 1, scan.bound + max(leaf, (most - scan.bound) // 2)))
            part = split_rows(context.data.R, rows, node.features[p])[s]
            child_target = goal - sides.lower[1 - s, p]
            child = refine(context, part, keys[s, p], sides.height[s, p], child_target, sides.lower[s, p])
            _store_child(context, node, P, sides, p, s, child)
    store(context.table, key, best.lower, best.upper, best.choice, best.depth)
    return best


@kernel
def _side_to_raise(sides, p):
    """Return the child whose bounds are further apart."""
    gap0 = sides.upper[0, p] - sides.lower[0, p]
    gap1 = sides.upper[1, p] - sides.lower[1, p]
    return 0 if gap0 >= gap1 else 1
