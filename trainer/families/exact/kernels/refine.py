"""Kernel: raise the lower bound of a subproblem of any height, always at the split that holds it down.

E(D, h) = min of a leaf and, over the splits of D, of E(D0, h - 1) + E(D1, h - 1). Each visit of a subproblem counts its pairs of
features, which gives the best tree of depth two, the best tree of depth one of each side of each split, and how much of one side
lies in another. More leaves than these trees have cost at least their penalty and the errors of inseparable rows, so most
subproblems are settled by the counts. What is learned stays in a table. The order is that of a best-first search with the memory
of a depth-first one (Korf 1993; Bonet & Geffner 2005); bounds after Lin et al. 2020, McTavish et al. 2022, Chaouki et al. 2025 and
Demirovic et al. 2022.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.bound_table import BoundTable, find, is_full, store
from trainer.families.exact.kernels.bounds import inherit, share
from trainer.families.exact.kernels.depth2 import own_values, price
from trainer.families.exact.kernels.node import DataRows, gather, pair_counts, split_rows, view
from trainer.kernels.compiled import kernel

i32 = np.int32
u64 = np.uint64

ANY_HEIGHT = 1 << 20  # a height that no tree of a data set reaches
LEAF = -1  # choices of a tree that are no split: a leaf, and the best tree of depth two
TWO_LEVELS = -2

# positions in a record of work
VISITS = 0
MOST_VISITS = 1


class RefineContext(NamedTuple):
    """What all subproblems of a search share."""

    data: DataRows
    allowed: np.ndarray  # uint8 (features,)
    costs: np.ndarray  # int64: unit, leaf, min_leaf, use_similarity
    table: BoundTable
    work: np.ndarray  # int64 (2,): visits so far, and at how many to stop
    flag: np.ndarray  # int64 (1,): anything but 0 ends the search


class Bounds(NamedTuple):
    """A lower bound of a subproblem, and the cost, first split and depth of its best known tree."""

    lower: np.int64
    upper: np.int64
    choice: np.int64
    depth: np.int64


class Sides(NamedTuple):
    """What is known of both sides of each split of a node: int64 (2, splits) each."""

    lower: np.ndarray
    upper: np.ndarray
    depth: np.ndarray  # of the tree of `upper`
    height: np.ndarray  # that a tree may have, ANY_HEIGHT where more than that cannot be better


@kernel
def is_stopped(given):
    """Whether the search must unwind."""
    return given.flag[0] != 0 or given.work[VISITS] >= given.work[MOST_VISITS] or is_full(given.table)


@kernel
def more_leaves(counts, inseparable, first, most, unit, leaf):
    """Least cost of a tree with `first` to `most` leaves for rows with these class weights, which are descending.

    t leaves predict at most t classes, and inseparable rows share a leaf.
    """
    classes = len(counts)
    least = np.int64(1) << np.int64(62)
    rest = np.int64(0)
    for k in range(classes):
        rest += counts[k]
    for t in range(1, min(most, max(first, classes)) + 1):
        if t <= classes:
            rest -= counts[t - 1]
        if t >= first:
            least = min(least, t * leaf + max(rest, inseparable) * unit)
    return least


@kernel
def _most_leaves(height):
    return np.int64(1) << np.int64(min(height, 40))


@kernel
def _sort(counts):
    """Descending, in place."""
    for k in range(1, len(counts)):
        value = counts[k]
        at = k
        while at > 0 and counts[at - 1] < value:
            counts[at] = counts[at - 1]
            at -= 1
        counts[at] = value


@kernel
def _counted_sides(given, node, children, height):
    """Both sides of each split as far as the counts of pairs tell: exact where the best tree of depth one is the best tree."""
    unit = given.costs[0]
    leaf = given.costs[1]
    classes, m = node.ones.shape
    known = np.zeros((4, 2, m), np.int64)
    sides = Sides(known[0], known[1], known[2], known[3])
    counts = np.empty(classes, np.int64)
    for p in range(m):
        for s in range(2):
            size = np.int64(0)
            for k in range(classes):
                counts[k] = node.ones[k, p] if s else node.totals[k] - node.ones[k, p]
                size += counts[k]
            _sort(counts)
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
def _seen(columns, valid, f, seen):
    """For both sides of a split, which features are 1 (seen[s, 1]) and which are 0 (seen[s, 0]) in any row."""
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
    """The name of a side, from what is seen in its rows."""
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
def _take_over(given, key, height, sides, s, p):
    """Take over what the table knows of a side, also of trees of any height."""
    at = find(given.table, key)
    if at >= 0:
        _merge(given.table, at, height, sides, s, p)
    if height < ANY_HEIGHT and sides.lower[s, p] < sides.upper[s, p]:
        key[len(key) - 1] = u64(ANY_HEIGHT)
        at = find(given.table, key)
        if at >= 0:
            _merge(given.table, at, height, sides, s, p)
        key[len(key) - 1] = u64(height)


@kernel
def _merge(table, at, height, sides, s, p):
    sides.lower[s, p] = max(sides.lower[s, p], table.lower[at])
    if table.upper[at] < sides.upper[s, p] and table.depth[at] <= height:
        sides.upper[s, p] = table.upper[at]
        sides.depth[s, p] = table.depth[at]


@kernel
def _look_up_sides(given, node, gathered, most, sides, keys):
    """What the table knows of the sides of splits that may cost less than `most`; keys: their names, uint64 (2, splits, words)."""
    columns, valid, _, _ = gathered
    features = len(given.allowed)
    seen = np.empty((2, 2, columns.shape[1]), np.uint64)
    for p in range(len(node.features)):
        if sides.lower[0, p] + sides.lower[1, p] >= most:
            continue
        if sides.lower[0, p] == sides.upper[0, p] and sides.lower[1, p] == sides.upper[1, p]:
            continue
        _seen(columns, valid, node.features[p], seen)
        for s in range(2):
            key = keys[s, p]
            _write_key(seen[s], features, sides.height[s, p], key)
            if sides.lower[s, p] < sides.upper[s, p]:
                _take_over(given, key, sides.height[s, p], sides, s, p)


@kernel
def _start(given, node, as_leaf, height, e):
    """The best tree of depth two, and a bound of trees with more leaves."""
    unit = given.costs[0]
    leaf = given.costs[1]
    two = price(e, unit, leaf, 2 if height == 1 else 4)
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
        _sort(counts)
        lower = min(upper, more_leaves(counts, node.equal, 4, _most_leaves(height), unit, leaf))
    return Bounds(lower, upper, choice, depth)


@kernel
def smallest_side(costs):
    """The least weight of a side: a leaf costs more than to let fewer rows follow the other side."""
    return max(costs[2], costs[1] // costs[0] + 1)


class SplitScan(NamedTuple):
    """The split of the least bound, this bound, the one after it, and the split of the cheapest known trees with their cost."""

    split: np.int64
    bound: np.int64
    second: np.int64
    cheapest: np.int64
    cost: np.int64


@kernel
def _scan(sides, as_leaf):
    """Look at the bounds and costs of all splits; a leaf is one of the bounds."""
    split = np.int64(-1)
    cheapest = np.int64(-1)
    bound = np.int64(as_leaf)
    second = np.int64(as_leaf)
    cost = np.int64(as_leaf)
    for p in range(sides.lower.shape[1]):
        for s in range(2):
            sides.lower[s, p] = min(sides.lower[s, p], sides.upper[s, p])
        known = sides.upper[0, p] + sides.upper[1, p]
        if known < cost:
            cost = known
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
def _improved(best, scan, node, sides):
    """The bounds of a node after a look at its splits."""
    lower, upper, choice, depth = best
    if scan.cost < upper:
        p = scan.cheapest
        upper = scan.cost
        choice = np.int64(node.features[p])
        depth = 1 + max(sides.depth[0, p], sides.depth[1, p])
    return Bounds(max(lower, min(upper, scan.bound)), upper, choice, depth)


@kernel
def _known_bounds(table, key, counted, known):
    """The bounds that the counts give, or better ones that were found before."""
    lower, upper, choice, depth = counted
    lower = max(lower, known)
    at = find(table, key)
    if at >= 0:
        lower = max(lower, table.lower[at])
        if table.upper[at] < upper:
            upper = table.upper[at]
            choice = np.int64(table.choice[at])
            depth = np.int64(table.depth[at])
    return Bounds(lower, upper, choice, depth)


@kernel
def _share_all(given, node, P, sides):
    """Similarity of each side to all others."""
    if given.costs[3]:
        for p in range(len(node.features)):
            for s in range(2):
                share(node, P, p, s, sides.lower[s, p], given.costs[0], sides.lower)


@kernel
def _learn(given, node, P, sides, p, s, found):
    """Write down what was found of a side, and what that tells of similar ones."""
    sides.lower[s, p] = max(sides.lower[s, p], found.lower)
    if found.upper < sides.upper[s, p]:
        sides.upper[s, p] = found.upper
        sides.depth[s, p] = found.depth
    if given.costs[3]:
        share(node, P, p, s, sides.lower[s, p], given.costs[0], sides.lower)


@kernel
def refine(given, rows, key, height, target, known):
    """Raise the lower bound of the rows to `target`, or to their optimum if that is less; less only if the search is stopped.

    known: a lower bound. Returns Bounds, which are in the table, too.
    """
    unit = given.costs[0]
    leaf = given.costs[1]
    given.work[VISITS] += 1
    gathered = gather(given.data, rows)
    node = view(given.data, rows, gathered, given.allowed, smallest_side(given.costs), True, True)
    m = len(node.features)
    total = np.int64(node.totals.sum())
    as_leaf = (total - node.totals.max()) * unit + leaf
    if m == 0 or height == 0 or total * unit <= 2 * leaf:
        store(given.table, key, as_leaf, as_leaf, LEAF, 0)
        return Bounds(as_leaf, as_leaf, np.int64(LEAF), np.int64(0))
    P = np.empty((given.data.classes, m, m), i32)
    pair_counts(node, P)
    e = np.empty(4, np.int64)
    children = own_values(node, P, given.costs[2], e)
    best = _known_bounds(given.table, key, _start(given, node, as_leaf, height, e), known)
    if best.lower < min(target, best.upper):
        sides = _counted_sides(given, node, children, height)
        inherit(node, best.lower, unit, sides.lower)
        keys = np.empty((2, m, len(key)), np.uint64)
        _look_up_sides(given, node, gathered, best.upper, sides, keys)
        _share_all(given, node, P, sides)
        while True:
            scan = _scan(sides, as_leaf)
            best = _improved(best, scan, node, sides)
            most = min(target, best.upper)
            if best.lower >= most or is_stopped(given):
                break
            p = scan.split
            s = _side_to_raise(sides, p)
            goal = min(most, max(scan.second + 1, scan.bound + max(leaf, (most - scan.bound) // 2)))
            part = split_rows(given.data.R, rows, node.features[p])[s]
            needed = goal - sides.lower[1 - s, p]
            found = refine(given, part, keys[s, p], sides.height[s, p], needed, sides.lower[s, p])
            _learn(given, node, P, sides, p, s, found)
    store(given.table, key, best.lower, best.upper, best.choice, best.depth)
    return best


@kernel
def _side_to_raise(sides, p):
    """The side that is open; of two, the one whose bounds are further apart."""
    gap0 = sides.upper[0, p] - sides.lower[0, p]
    gap1 = sides.upper[1, p] - sides.lower[1, p]
    return 0 if gap0 >= gap1 else 1
