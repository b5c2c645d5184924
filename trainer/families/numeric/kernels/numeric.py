"""Kernels of the exact search over all thresholds: depth-two optima of a node by interval pruning.

Z[f,j]   the j-th row of the node in the order of feature f          rank[f,i]  dense rank of row i's value of feature f
E[f]     ends: positions j of Z[f] after which the value changes     inc[i]     weight of row i, shifted by 32 bits for class 1
C[f]     the ends of E[f] on whose sides not all rows are of one class: a tree of one split needs no others; m ends them
L, R     costs of the rows on either side of a threshold             cost       unit * errors + leaf * leaves

With thresholds s < t of one feature L(s) <= L(t) and R(s) >= R(t), and between them each changes by at most the weight of the rows
between, so that what is known of two thresholds bounds all of those between them (Brita, van der Linden & Demirovic 2025, ConTree).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.kernels.compiled import kernel

LOW = np.int64(0xFFFFFFFF)
FAR = np.int64(1) << np.int64(61)
NONE, ONE, BLOCK = (
    np.uint64(0),
    np.uint64(1),
    np.uint64(32),
)  # unsigned positions: an index that may be negative costs a test for each row


class Node(NamedTuple):
    """The rows of a node: Z, E and C int32 (F, m); S, D of `_prefixes` and `_signed`; y, weight, inc; errors of one split."""

    Z: np.ndarray
    E: np.ndarray
    C: np.ndarray
    S: np.ndarray
    D: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    inc: np.ndarray
    errors: np.ndarray


class Tables(NamedTuple):
    """What is known of the thresholds 1..count of a feature; 0 and count + 1 stand for all rows on one side.

    line    int64 (5, thresholds): bounds of the cost left and right, weight on the left, and a stack of intervals (first, last)
    G       int32 (2, thresholds, F): errors with one split on g on either side: bounds, exact where g was looked at
    good    int64 (thresholds, 2): the feature that was best on either side
    first   int64 (F + 4,): the features in the order of the scans
    left    int64 (rows,): inc of the rows on the left, else 0
    whole   int64 (3, K): class weights on the left, on the right and of the node
    room    int64 (rows of the node or 2 K,): for the scans; found int64 (6,): what they found
    """

    line: np.ndarray
    G: np.ndarray
    good: np.ndarray
    first: np.ndarray
    left: np.ndarray
    whole: np.ndarray
    room: np.ndarray
    found: np.ndarray


class Task(NamedTuple):
    """Costs of an error and of a leaf, two classes or not, all weight, cost of one split; the feature, its thresholds, the best single one (-1: none)."""

    unit: int
    leaf: int
    two: bool
    total: int
    one_split: int
    f: int
    thresholds: int
    place: int


@kernel
def ends(Z, rank, E, sizes):
    """Fill E[f, :sizes[f]] with the positions after which the value of feature f changes."""
    F, m = Z.shape
    for f in range(F):
        at = 0
        for j in range(m - 1):
            if rank[f, Z[f, j]] != rank[f, Z[f, j + 1]]:
                E[f, at] = j
                at += 1
        sizes[f] = at


@kernel
def changes(Z, E, sizes, y, C, counts):
    """Fill C[f, :counts[f]] with the ends between values whose rows are not all of the same class, and C[f, counts[f]] with m.

    Errors of one split, sum of (rows - majority) of both sides, are concave in the rows of one class that change sides, so between
    two such ends the smallest is at an end; that holds for every subset of the rows.
    """
    for f in range(len(Z)):
        kept, first, pending = 0, 0, np.int32(-1)
        before = np.int64(-1)  # class of the value before: -1 none yet, -2 several
        for e in range(sizes[f] + 1):
            last = E[f, e] if e < sizes[f] else Z.shape[1] - 1
            own = np.int64(y[Z[f, first]])
            for j in range(first + 1, last + 1):
                if y[Z[f, j]] != own:
                    own = np.int64(-2)
                    break
            if e > 0 and (own == -2 or own != before):
                C[f, kept] = pending
                kept += 1
            before, pending, first = own, last, last + 1
        counts[f] = kept
        C[f, kept] = Z.shape[1]


@kernel
def divide(Z, rank, f, t):
    """Orders of the rows with rank <= t of feature f, and of the others."""
    F, m = Z.shape
    k = 0
    for j in range(m):
        k += 1 if rank[f, Z[f, j]] <= t else 0
    low, high = np.empty((F, k), np.int32), np.empty((F, m - k), np.int32)
    r = rank[f]
    for g in range(F):
        a, b = 0, 0
        for j in range(m):
            i = Z[g, j]
            if r[i] <= t:
                low[g, a] = i
                a += 1
            else:
                high[g, b] = i
                b += 1
    return low, high


@kernel
def class_weights(Z, y, weight, classes):
    """Weight of each class among the rows of a node."""
    totals = np.zeros(classes, np.int64)
    for j in range(Z.shape[1]):
        totals[y[Z[0, j]]] += weight[Z[0, j]]
    return totals


@kernel
def _as_leaf(totals):
    """Sum of the class weights, and of those that are wrong in a leaf (loops: numba compiles sum and max for a second)."""
    total, most = np.int64(0), np.int64(0)
    for k in range(len(totals)):
        total += totals[k]
        most = max(most, totals[k])
    return total, total - most


@kernel
def _most(values):
    """The largest of numbers that are not negative."""
    most = np.int64(0)
    for k in range(len(values)):
        most = max(most, values[k])
    return most


@kernel
def _least(values):
    """The smallest number."""
    least = values[0]
    for k in range(1, len(values)):
        least = min(least, values[k])
    return least


@kernel
def _prefixes(Z, inc):
    """S[g, j]: sum of inc over the first j + 1 rows in the order of g (two classes)."""
    F, m = Z.shape
    S = np.empty((F, m), np.int64)
    for g in range(F):
        total = np.int64(0)
        for j in range(m):
            total += inc[Z[g, j]]
            S[g, j] = total
    return S


@kernel
def _signed(S, C, counts):
    """D[g, e]: class 0 less class 1 up to the end C[g, e], from the sums of `_prefixes`."""
    D = np.empty((len(S), max(1, _most(counts))), np.int64)
    for g in range(len(S)):
        for e in range(counts[g]):
            D[g, e] = (S[g, C[g, e]] & LOW) - (S[g, C[g, e]] >> 32)
    return D


@kernel
def _scan_two(order, marks, prefix, signed, left, whole, sums, out):
    """Fewest errors of one split of a feature at most, on the side where `left` holds inc (else 0) and on the other; two classes.

    out: errors and position of each side (-1: a leaf; not sought from the cut on), and the bounds of both, which take the place of
    their cuts.  whole: class weights of each side.  With s = class 0 less
    class 1 before a threshold, D = l0 - l1 and L = l0 + l1 a split errs (L - max(|D|, |2 s - D|)) / 2 times, so that the largest
    and the smallest s say how good the best is.  The errors before a threshold never fall from one threshold to the next: the scan
    ends where they have reached the cuts, and they then bound the thresholds that are left.  sums: room for a number per row.
    """
    m = np.uint64(len(order))
    l0, l1, r0, r1, cut_l, cut_r = whole[0, 0], whole[0, 1], whole[1, 0], whole[1, 1], out[4], out[5]
    acc, j, e = np.int64(0), NONE, NONE
    low_l, high_l, low_r, high_r = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    rest_l, rest_r = FAR, FAR
    while np.uint64(marks[e]) < m:
        block = min(j + BLOCK, m)
        while j < block:
            acc += left[np.uint32(order[j])]
            sums[j] = (acc & LOW) - (acc >> 32)
            j += ONE
        while np.uint64(marks[e]) < block:
            s = sums[np.uint64(marks[e])]
            t = signed[e] - s
            low_l, high_l = min(low_l, s), max(high_l, s)
            low_r, high_r = min(low_r, t), max(high_r, t)
            e += ONE
        rest = prefix[block - ONE] - acc
        a, b = min(acc & LOW, acc >> 32), min(rest & LOW, rest >> 32)
        if a >= cut_l and b >= cut_r:
            rest_l, rest_r = a, b
            break
    for side in range(2):
        size, D = (l0 + l1, l0 - l1) if side == 0 else (r0 + r1, r0 - r1)
        low, high = (low_l, high_l) if side == 0 else (low_r, high_r)
        out[2 * side], out[2 * side + 1] = (size - abs(D)) // 2, -1
        wrong = (size - max(2 * high - D, D - 2 * low)) // 2
        if wrong < out[2 * side]:
            out[2 * side] = wrong
            if wrong < (cut_l if side == 0 else cut_r):
                sought = high if 2 * high - D >= D - 2 * low else low
                k = NONE
                while (sums[np.uint64(marks[k])] if side == 0 else signed[k] - sums[np.uint64(marks[k])]) != sought:
                    k += ONE
                out[2 * side + 1] = marks[k]
    out[4], out[5] = min(out[0], rest_l), min(out[2], rest_r)


@kernel
def _scan_many(order, marks, y, weight, left, whole, seen, out):
    """As `_scan_two` for any number of classes; seen: room for two numbers per class."""
    K, cut_l, cut_r = whole.shape[1], out[4], out[5]
    low, high = seen[:K], seen[K : 2 * K]  # views: a sum of indices costs a test for each row
    size_l, leaf_l = _as_leaf(whole[0])
    size_r, leaf_r = _as_leaf(whole[1])
    out[0], out[1], out[2], out[3] = leaf_l, -1, leaf_r, -1
    for k in range(2 * K):
        seen[k] = 0
    top_l, top_r = np.int64(0), np.int64(0)  # of the classes seen so far
    sum_l, sum_r = np.int64(0), np.int64(0)
    rest_l, rest_r = FAR, FAR
    j, e = NONE, NONE
    while np.uint64(marks[e]) < np.uint64(len(order)):
        end = np.uint64(marks[e])
        e += ONE
        changed_l, changed_r = False, False
        while j <= end:
            i = np.uint32(order[j])
            own = np.uint32(y[i])
            here = left[i]
            if here:
                low[own] += here
                top_l = max(top_l, low[own])
                sum_l += here
                changed_l = True
            else:
                high[own] += weight[i]
                top_r = max(top_r, high[own])
                sum_r += weight[i]
                changed_r = True
            j += ONE
        if changed_l:
            rest = np.int64(0)
            for k in range(K):
                rest = max(rest, whole[0, k] - low[k])
            if size_l - top_l - rest < out[0]:
                out[0], out[1] = size_l - top_l - rest, np.int64(end)
        if changed_r:
            rest = np.int64(0)
            for k in range(K):
                rest = max(rest, whole[1, k] - high[k])
            if size_r - top_r - rest < out[2]:
                out[2], out[3] = size_r - top_r - rest, np.int64(end)
        if sum_l - top_l >= cut_l and sum_r - top_r >= cut_r:
            rest_l, rest_r = sum_l - top_l, sum_r - top_r
            break
    out[4], out[5] = min(out[0], rest_l), min(out[2], rest_r)


@kernel
def best_one(Z, E, sizes, y, weight, classes, errors, places):
    """errors[f], places[f]: fewest errors of one split on each feature, and the index of its end (-1: none)."""
    totals = class_weights(Z, y, weight, classes)
    everything, as_leaf = _as_leaf(totals)
    seen = np.empty(classes, np.int64)
    for f in range(len(Z)):
        seen[:] = 0
        errors[f], places[f] = as_leaf, -1
        j = NONE
        for e in range(sizes[f]):
            end = np.uint64(E[f, e])
            while j <= end:
                i = np.uint32(Z[f, j])
                seen[np.uint32(y[i])] += weight[i]
                j += ONE
            low, high = np.int64(0), np.int64(0)
            for k in range(classes):
                low, high = max(low, seen[k]), max(high, totals[k] - seen[k])
            if everything - low - high < errors[f]:
                errors[f], places[f] = everything - low - high, e


@kernel
def _seat(order, before, now, y, weight, inc, left, whole):
    """Put the first `now` rows of the order on the left side, where the first `before` are; whole: class weights as in `Tables`."""
    for j in range(min(before, now), max(before, now)):
        i = np.uint32(order[j])
        joins = now > before
        left[i] = inc[i] if joins else 0
        whole[0, np.uint32(y[i])] += weight[i] if joins else -weight[i]
    for k in range(whole.shape[1]):
        whole[1, k] = whole[2, k] - whole[0, k]


@kernel
def _ranked(values):
    """Positions of the values in ascending order, equal ones as they come (merge sort: numba's takes seconds to compile)."""
    n, width = len(values), 1
    order, other = np.empty(n, np.int64), np.empty(n, np.int64)
    for k in range(n):
        order[k] = k
    while width < n:
        for low in range(0, n, 2 * width):
            middle, end = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for k in range(low, end):
                if i < middle and (j >= end or values[order[i]] <= values[order[j]]):
                    other[k] = order[i]
                    i += 1
                else:
                    other[k] = order[j]
                    j += 1
        order, other = other, order
        width *= 2
    return order


@kernel
def _floors(line, unit, a, b, c):
    """Lower bounds of the costs of both sides of threshold c between the thresholds a and b."""
    low = max(line[0, a], line[0, b] - unit * (line[2, b] - line[2, c]))
    high = max(line[1, b], line[1, a] - unit * (line[2, c] - line[2, a]))
    return low, high


@kernel
def _trim(line, unit, a, b, best, least):
    """First and last threshold between a and b that may cost less than `best`; `least`, or the least bound of those left out."""
    lo, hi = a + 1, b - 1
    if lo <= hi and line[0, a] + line[1, b] >= best:
        return b, a, min(least, line[0, a] + line[1, b])
    while lo <= hi:
        low, high = _floors(line, unit, a, b, lo)
        if low + high < best:
            break
        least = min(least, low + high)
        lo += 1
    while lo <= hi:
        low, high = _floors(line, unit, a, b, hi)
        if low + high < best:
            break
        least = min(least, low + high)
        hi -= 1
    return lo, hi, least


@kernel
def _begin(order, marks, weight, line, G, good, errors, task):
    """Fill the tables for a feature with its order and ends: nothing is known of its thresholds yet."""
    at, behind, last = 0, np.int64(0), task.thresholds + 1
    for e in range(task.thresholds):
        while at <= marks[e]:
            behind += weight[order[at]]
            at += 1
        line[2, e + 1] = behind
    line[2, 0], line[2, last] = 0, task.total
    line[0, 0], line[1, 0], line[0, last], line[1, last] = task.leaf, task.one_split, task.one_split, task.leaf
    line[3, 0], line[4, 0] = 0, last
    for g in range(len(errors)):
        G[0, 0, g], G[1, 0, g] = 0, errors[g]
        G[0, last, g], G[1, last, g] = errors[g], 0
    good[0, 0], good[0, 1], good[last, 0], good[last, 1] = -1, -1, -1, -1


@kernel
def _inherit(line, G, good, first, a, b, c):
    """Bounds of the errors at threshold c from those at a and b, and the order of the features: first those best at a and b."""
    first[0], first[1], first[2], first[3] = good[a, 0], good[a, 1], good[b, 0], good[b, 1]
    for g in range(G.shape[2]):
        G[0, c, g] = max(G[0, a, g], G[0, b, g] - (line[2, b] - line[2, c]))
        G[1, c, g] = max(G[1, b, g], G[1, a, g] - (line[2, c] - line[2, a]))
        first[4 + g] = g


@kernel(inline="always")
def _thresholds(node, tables, task, best, flag, answer):
    """The least cost below `best` with this first question (negative: ended by the flag), a bound of the others; answer: positions."""
    Z, E, C, S, D, y, weight, inc, errors = node
    line, G, good, first, left, whole, room, out = tables
    unit, leaf, two, _, _, f, count, place = task
    _begin(Z[f], E[f], weight, line, G, good, errors, task)
    depth, floor, seated = 1, FAR, 0  # rows before `seated` in the order of f are on the left
    while depth:
        depth -= 1
        a, b = line[3, depth], line[4, depth]
        lo, hi, floor = _trim(line, unit, a, b, best, floor)
        if lo > hi:
            continue
        if flag[0]:
            return np.int64(-1), floor
        # the best single split first
        c = place + 1 if a == 0 and b == count + 1 and lo <= place + 1 <= hi else (lo + hi) // 2
        before, seated = seated, E[f, c - 1] + 1
        _seat(Z[f], before, seated, y, weight, inc, left, whole)
        leaf_l, leaf_r = _as_leaf(whole[0])[1], _as_leaf(whole[1])[1]
        floor_l, floor_r = _floors(line, unit, a, b, c)
        # a side with so many errors is of no use, whatever the other side has
        useless_l = (best - floor_r - 2 * leaf + unit - 1) // unit
        useless_r = (best - floor_l - 2 * leaf + unit - 1) // unit
        found_l, found_r, low_l, low_r = leaf_l, leaf_r, leaf_l, leaf_r
        gl, gr, at_l, at_r = -1, -1, -1, -1
        _inherit(line, G, good, first, a, b, c)
        for k in range(len(first)):
            g = first[k]
            if g < 0:
                continue
            cut_l, cut_r = min(found_l, useless_l), min(found_r, useless_r)
            done_l, done_r = G[0, c, g] >= cut_l, G[1, c, g] >= cut_r
            if not (done_l and done_r):
                out[4], out[5] = 0 if done_l else cut_l, 0 if done_r else cut_r
                if two:
                    _scan_two(Z[g], C[g], S[g], D[g], left, whole, room, out)
                else:
                    _scan_many(Z[g], C[g], y, weight, left, whole, room, out)
                G[0, c, g], G[1, c, g] = max(G[0, c, g], out[4]), max(G[1, c, g], out[5])
                if out[0] < found_l:
                    found_l, gl, at_l = out[0], g, out[1]
                if out[2] < found_r:
                    found_r, gr, at_r = out[2], g, out[3]
            low_l, low_r = min(low_l, G[0, c, g]), min(low_r, G[1, c, g])
        good[c, 0], good[c, 1] = gl, gr
        as_l, as_r = leaf_l * unit + leaf, leaf_r * unit + leaf
        line[0, c] = max(floor_l, min(as_l, low_l * unit + 2 * leaf))
        line[1, c] = max(floor_r, min(as_r, low_r * unit + 2 * leaf))
        floor = min(floor, line[0, c] + line[1, c])
        of_l, of_r = found_l * unit + 2 * leaf, found_r * unit + 2 * leaf
        if min(of_l, as_l) + min(of_r, as_r) < best:
            best = min(of_l, as_l) + min(of_r, as_r)
            answer[0], answer[1], answer[3], answer[5] = f, seated - 1, at_l, at_r
            answer[2], answer[4] = gl if of_l < as_l else -1, gr if of_r < as_r else -1
        line[3, depth], line[4, depth] = a, c
        line[3, depth + 1], line[4, depth + 1] = c, b
        depth += 2
    _seat(Z[f], seated, 0, y, weight, inc, left, whole)
    return best, floor


@kernel
def depth_two(Z, rows, classes, costs, ub, flag, answer, LB):
    """The smallest cost below `ub` of a tree of depth two at most, or `ub`; negative where flag[0] ended the search.

    rows: rank, y, weight, inc.  costs: unit, leaf.  answer: feature, rank of its threshold, then the same for the children (feature
    -1: a leaf).  LB[f]: lower bounds of the trees whose first question is about f, read and raised.
    """
    rank, y, weight, inc = rows
    F, m = Z.shape
    unit, leaf, two = costs[0], costs[1], classes == 2
    totals = class_weights(Z, y, weight, classes)
    answer[:] = -1
    total, wrong = _as_leaf(totals)
    as_leaf = wrong * unit + leaf
    best = min(ub, as_leaf)
    if m < 2 or as_leaf == leaf or best <= 2 * leaf or total * unit <= 2 * leaf or _least(LB) >= best:
        return best
    E, sizes = np.empty((F, m), np.int32), np.zeros(F, np.int64)
    ends(Z, rank, E, sizes)
    errors, places = np.empty(F, np.int64), np.empty(F, np.int64)
    best_one(Z, E, sizes, y, weight, classes, errors, places)
    C, changing = np.empty((F, m), np.int32), np.zeros(F, np.int64)
    changes(Z, E, sizes, y, C, changing)
    S = _prefixes(Z, inc) if two else np.empty((F, 1), np.int64)
    D = _signed(S, C, changing) if two else np.empty((F, 1), np.int64)
    node = Node(Z, E, C, S, D, y, weight, inc, errors)
    most = _most(sizes) + 2
    tables = Tables(
        np.empty((5, most), np.int64), np.empty((2, most, F), np.int32), np.empty((most, 2), np.int64), np.empty(F + 4, np.int64),
        np.zeros(rank.shape[1], np.int64), np.zeros((3, classes), np.int64), np.empty(max(m, 2 * classes), np.int64),
        np.empty(6, np.int64),
    )  # fmt: skip
    for k in range(classes):
        tables.whole[2, k] = totals[k]
    order = _ranked(errors)
    one_split = min(as_leaf, errors[order[0]] * unit + 2 * leaf)
    for f in order:
        if sizes[f] == 0:
            LB[f] = max(LB[f], one_split)
        if sizes[f] == 0 or LB[f] >= best:
            continue
        task = Task(unit, leaf, two, total, one_split, f, sizes[f], places[f])
        best, floor = _thresholds(node, tables, task, best, flag, answer)
        if best < 0:
            return best
        # of more rows than these, a threshold may part none of these: what is left is a single split
        LB[f] = max(LB[f], min(floor, one_split))
    for k in (0, 2, 4):
        if answer[k] >= 0:
            answer[k + 1] = rank[answer[k], Z[answer[k], answer[k + 1]]]
    return best
