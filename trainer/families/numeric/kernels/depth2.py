"""Find depth-two optima of a node over all thresholds, by interval pruning.

L, R     costs of the rows on either side of a threshold             cost       unit * errors + leaf * leaves

The other symbols are those of `trainer.families.numeric.kernels.records`.
For thresholds s < t of one feature L(s) <= L(t) and R(s) >= R(t), and each changes by at most the weight of the rows between. So the
bounds of two thresholds bound all thresholds between them (Brita, van der Linden & Demirovic 2025, ConTree).

With a least weight of leaves, a tree of more rows need not suit fewer. So L(s) <= L(t) holds for the costs without the least weight,
which are stored as well. A tree of fewer rows suits more, so the other bound holds for both.
"""

from __future__ import annotations

import numpy as np

from trainer.families.numeric.kernels.orders import (
    change_positions,
    class_change_positions,
    class_weights,
    copy_ends,
    maximum,
    minimum,
    prefix_sums,
    signed_prefixes,
    weight_and_errors,
)
from trainer.families.numeric.kernels.records import INFINITE_COST, CostTask, NodeRows, Tables
from trainer.families.numeric.kernels.scan import best_single_splits, scan_many, scan_sized, scan_two
from trainer.kernels.compiled import kernel
from trainer.kernels.ordering import argsort


@kernel
def _move_rows(order, before, now, y, weight, inc, left, side_weights):
    """Move rows until the first `now` of the order, instead of the first `before`, are left; side_weights: see `Tables`."""
    for j in range(min(before, now), max(before, now)):
        i = np.uint32(order[j])
        joins = now > before
        left[i] = inc[i] if joins else 0
        side_weights[0, np.uint32(y[i])] += weight[i] if joins else -weight[i]
    for k in range(side_weights.shape[1]):
        side_weights[1, k] = side_weights[2, k] - side_weights[0, k]


@kernel
def _floors(line, unit, a, b, c):
    """Return lower bounds of both children of threshold c between the thresholds a and b."""
    low = max(line[5, a], line[0, b] - unit * (line[2, b] - line[2, c]))
    high = max(line[6, b], line[1, a] - unit * (line[2, c] - line[2, a]))
    return low, high


@kernel
def _free_floors(line, unit, a, b, c):
    """Return the same bounds without a least weight of leaves."""
    low = max(line[5, a], line[5, b] - unit * (line[2, b] - line[2, c]))
    high = max(line[6, b], line[6, a] - unit * (line[2, c] - line[2, a]))
    return low, high


@kernel
def _usable_thresholds(line, task):
    """Return the first and the last threshold whose children both have the least weight of a leaf."""
    first = 1
    final = task.thresholds
    while first <= final and line[2, first] < task.least:
        first += 1
    while first <= final and task.total - line[2, final] < task.least:
        final -= 1
    return first, final


@kernel
def _trim_interval(line, unit, usable, a, b, best, least):
    """Return first and last usable threshold between a and b that may cost less than `best`, and the least bound of all pruned ones."""
    lo = max(a + 1, usable[0])
    hi = min(b - 1, usable[1])
    if lo <= hi and line[5, a] + line[6, b] >= best:
        return b, a, min(least, line[5, a] + line[6, b])
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
def _fill_tables(order, marks, weight, line, G, good, errors, task):
    """Initialise the tables of a feature, with all rows on one side at both ends."""
    at = 0
    behind = np.int64(0)
    last = task.thresholds + 1
    for e in range(task.thresholds):
        while at <= marks[e]:
            behind += weight[order[at]]
            at += 1
        line[2, e + 1] = behind
    line[2, 0] = 0
    line[2, last] = task.total
    for low, high in ((0, 1), (5, 6)):
        line[low, 0] = task.leaf
        line[high, 0] = task.one_split
        line[low, last] = task.one_split
        line[high, last] = task.leaf
    line[3, 0] = 0
    line[4, 0] = last
    for g in range(len(errors)):
        G[0, 0, g] = 0
        G[1, 0, g] = errors[g]
        G[0, last, g] = errors[g]
        G[1, last, g] = 0
    good[0, 0] = -1
    good[0, 1] = -1
    good[last, 0] = -1
    good[last, 1] = -1


@kernel
def _inherit_bounds(line, G, good, first, a, b, c):
    """Bound the errors at threshold c by those at a and b, and order the features: those best at a and b first."""
    first[0] = good[a, 0]
    first[1] = good[a, 1]
    first[2] = good[b, 0]
    first[3] = good[b, 1]
    for g in range(G.shape[2]):
        G[0, c, g] = max(G[0, a, g], G[0, b, g] - (line[2, b] - line[2, c]))
        G[1, c, g] = max(G[1, b, g], G[1, a, g] - (line[2, c] - line[2, a]))
        first[4 + g] = g


@kernel(inline="always")
def _search_thresholds(node, tables, task, best, flag, answer):
    """Return the least cost below `best` with a root split on this feature (negative: stopped) and a bound of the others; write positions."""
    Z, E, C, S, D, y, weight, inc, errors = node
    line, G, good, first, left, side_weights, buffer, out = tables
    unit, leaf, two, _, _, f, count, place, least = task
    _fill_tables(Z[f], E[f], weight, line, G, good, errors, task)
    usable = _usable_thresholds(line, task)
    # rows before `seated` in the order of f are on the left
    depth = 1
    floor = INFINITE_COST
    seated = 0
    while depth:
        depth -= 1
        a = line[3, depth]
        b = line[4, depth]
        lo, hi, floor = _trim_interval(line, unit, usable, a, b, best, floor)
        if lo > hi:
            continue
        if flag[0]:
            return np.int64(-1), floor
        # the best single split first
        c = place + 1 if a == 0 and b == count + 1 and lo <= place + 1 <= hi else (lo + hi) // 2
        before = seated
        seated = E[f, c - 1] + 1
        _move_rows(Z[f], before, seated, y, weight, inc, left, side_weights)
        leaf_l = weight_and_errors(side_weights[0])[1]
        leaf_r = weight_and_errors(side_weights[1])[1]
        floor_l, floor_r = _floors(line, unit, a, b, c)
        # a child with so many errors cannot improve the best cost
        useless_l = (best - floor_r - 2 * leaf + unit - 1) // unit
        useless_r = (best - floor_l - 2 * leaf + unit - 1) // unit
        found_l = leaf_l
        found_r = leaf_r
        low_l = leaf_l
        low_r = leaf_r
        free_l = leaf_l
        free_r = leaf_r
        gl = -1
        gr = -1
        at_l = -1
        at_r = -1
        _inherit_bounds(line, G, good, first, a, b, c)
        for k in range(len(first)):
            g = first[k]
            if g < 0:
                continue
            cut_l = min(found_l, useless_l)
            cut_r = min(found_r, useless_r)
            done_l = G[0, c, g] >= cut_l
            done_r = G[1, c, g] >= cut_r
            if not (done_l and done_r):
                out[4] = 0 if done_l else cut_l
                out[5] = 0 if done_r else cut_r
                if least > 1:
                    out[6] = least
                    scan_sized(Z[g], C[g], y, weight, left, side_weights, buffer, out)
                elif two:
                    scan_two(Z[g], C[g], S[g], D[g], left, side_weights, buffer, out)
                else:
                    scan_many(Z[g], C[g], y, weight, left, side_weights, buffer, out)
                G[0, c, g] = max(G[0, c, g], out[4])
                G[1, c, g] = max(G[1, c, g], out[5])
                if out[0] < found_l:
                    found_l = out[0]
                    gl = g
                    at_l = out[1]
                if out[2] < found_r:
                    found_r = out[2]
                    gr = g
                    at_r = out[3]
            free_l = min(free_l, G[0, c, g])
            free_r = min(free_r, G[1, c, g])
            is_tighter = least > 1 and not (done_l and done_r)
            low_l = min(low_l, max(G[0, c, g], out[6]) if is_tighter else G[0, c, g])
            low_r = min(low_r, max(G[1, c, g], out[7]) if is_tighter else G[1, c, g])
        good[c, 0] = gl
        good[c, 1] = gr
        as_l = leaf_l * unit + leaf
        as_r = leaf_r * unit + leaf
        line[0, c] = max(floor_l, min(as_l, low_l * unit + 2 * leaf))
        line[1, c] = max(floor_r, min(as_r, low_r * unit + 2 * leaf))
        floor_l, floor_r = _free_floors(line, unit, a, b, c)
        line[5, c] = max(floor_l, min(as_l, free_l * unit + 2 * leaf))
        line[6, c] = max(floor_r, min(as_r, free_r * unit + 2 * leaf))
        floor = min(floor, line[0, c] + line[1, c])
        of_l = found_l * unit + 2 * leaf
        of_r = found_r * unit + 2 * leaf
        if min(of_l, as_l) + min(of_r, as_r) < best:
            best = min(of_l, as_l) + min(of_r, as_r)
            answer[0] = f
            answer[1] = seated - 1
            answer[2] = gl if of_l < as_l else -1
            answer[3] = at_l
            answer[4] = gr if of_r < as_r else -1
            answer[5] = at_r
        line[3, depth] = a
        line[4, depth] = c
        line[3, depth + 1] = c
        line[4, depth + 1] = b
        depth += 2
    _move_rows(Z[f], seated, 0, y, weight, inc, left, side_weights)
    return best, floor


@kernel
def solve_depth2(Z, rows, classes, costs, ub, flag, answer, LB):
    """Return the smallest cost below `ub` of a tree of at most depth two, or `ub`; negative if flag[0] ended the search.

    rows: rank, y, weight, inc. costs: unit, leaf, and the least weight of a leaf in a tree of several. answer int64 (6,): feature and rank of the threshold, of the root and both children
    (feature -1: a leaf). LB[f] int64: lower bounds of trees with a root split on f, read and raised.
    """
    rank, y, weight, inc = rows
    F, m = Z.shape
    unit = costs[0]
    leaf = costs[1]
    least = costs[2]
    two = classes == 2
    totals = class_weights(Z, y, weight, classes)
    answer[:] = -1
    total, wrong = weight_and_errors(totals)
    as_leaf = wrong * unit + leaf
    best = min(ub, as_leaf)
    if m < 2 or as_leaf == leaf or best <= 2 * leaf or total * unit <= 2 * leaf or minimum(LB) >= best:
        return best
    E = np.empty((F, m), np.int32)
    sizes = np.zeros(F, np.int64)
    change_positions(Z, rank, E, sizes)
    errors = np.empty(F, np.int64)
    places = np.empty(F, np.int64)
    best_single_splits(Z, E, sizes, y, weight, classes, errors, places)
    C = np.empty((F, m), np.int32)
    changing = np.zeros(F, np.int64)
    if least > 1:  # the first and the last usable end may be the best, even between rows of one class
        copy_ends(E, sizes, C, changing)
    else:
        class_change_positions(Z, E, sizes, y, C, changing)
    S = prefix_sums(Z, inc) if two else np.empty((F, 1), np.int64)
    D = signed_prefixes(S, C, changing) if two else np.empty((F, 1), np.int64)
    node = NodeRows(Z, E, C, S, D, y, weight, inc, errors)
    most = maximum(sizes) + 2
    tables = Tables(
        np.empty((7, most), np.int64), np.empty((2, most, F), np.int32), np.empty((most, 2), np.int64), np.empty(F + 4, np.int64),
        np.zeros(rank.shape[1], np.int64), np.zeros((3, classes), np.int64), np.empty(max(m, 2 * classes), np.int64),
        np.empty(8, np.int64),
    )  # fmt: skip
    for k in range(classes):
        tables.side_weights[2, k] = totals[k]
    order = argsort(errors)
    one_split = min(as_leaf, errors[order[0]] * unit + 2 * leaf)
    for f in order:
        if sizes[f] == 0:
            LB[f] = max(LB[f], one_split)
        if sizes[f] == 0 or LB[f] >= best:
            continue
        task = CostTask(unit, leaf, two, total, one_split, f, sizes[f], places[f], least)
        best, floor = _search_thresholds(node, tables, task, best, flag, answer)
        if best < 0:
            return best
        # in a superset of these rows a threshold may not separate these rows, which leaves a single split
        LB[f] = max(LB[f], min(floor, one_split))
    for k in (0, 2, 4):
        if answer[k] >= 0:
            answer[k + 1] = rank[answer[k], Z[answer[k], answer[k + 1]]]
    return best
