"""Search two levels of subset branching for two classes.

Legend: rows i with category cat[i, g] of group g and signed weight s[i] = w[i] for one class, -w[i] for the other; group g owns the
columns start[g]..start[g+1]-1.  T[a, f] int32: the sum of s over the rows in the columns a and f.  For a set D of rows
   s_h(D) = the largest sum of +s or -s, by category of group h (nominal) or by the two sides of a threshold (ordered),
so that one test of h classifies (w(D) + s_h(D)) / 2 correctly.  s_h is a maximum of linear functions, hence subadditive:
s_h(D + c) <= s_h(D) + s_h(c), which bounds what undecided categories can add.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.kernels.compiled import kernel
from trainer.kernels.ordering import argsort, ascending
from trainer.kernels.rows import copy_row

INFINITE_SCORE = np.int32(1 << 30)  # larger than any score


class RemainingGain(NamedTuple):
    """Upper bounds of the gain of the categories from the t-th on, int32.

    pairs (categories + 1, groups, groups): with groups h and k on the two sides; most (categories + 1,): with any groups.
    """

    pairs: np.ndarray
    most: np.ndarray


@kernel
def add_to_tables(cat, s, w, rows, start, T, size):
    """Add `rows` to T int32 (columns, columns) and to their weights, size int64 (columns,)."""
    G = cat.shape[1]
    for r in rows:
        for g in range(G):
            a = start[g] + cat[r, g]
            size[a] += w[r]
            for h in range(G):
                T[a, start[h] + cat[r, h]] += s[r]


@kernel
def limited_score(d, first, stop, card):
    """Return s_h for subsets of limited size: at most `card` categories have another label than all others.

    d int32 (columns,): sums of s by category.
    """
    total = np.int32(0)
    for f in range(first, stop):
        total += d[f]
    order = ascending(d[first:stop])
    m = stop - first
    up = -total
    down = total
    for k in range(card):
        up += 2 * max(order[m - 1 - k], 0)
        down -= 2 * min(order[k], 0)
    return max(up, down)


@kernel
def scores(d, start, ordered, card, out):
    """Fill out[h] = s_h, int32 (groups,), from sums of s by column, d int32 (columns,); return the largest.

    `card` > 0 limits nominal subsets.
    """
    top = np.int32(0)
    for h in range(len(ordered)):
        value = np.int32(0)
        if ordered[h]:
            total = np.int32(0)
            for f in range(start[h], start[h + 1]):
                total += d[f]
            value = abs(total)
            below = np.int32(0)
            for f in range(start[h], start[h + 1]):
                below += d[f]
                value = max(value, abs(below) + abs(total - below))
        elif card > 0 and 2 * card < start[h + 1] - start[h]:
            value = limited_score(d, start[h], start[h + 1], card)
        else:
            for f in range(start[h], start[h + 1]):
                value += abs(d[f])
        out[h] = value
        top = max(top, value)
    return top


@kernel
def pair_bound(a, b, M, enough):
    """Return the maximum of a[h] + b[k] + M[h, k] over pairs of groups, or any value above `enough`."""
    top = np.int32(-1)
    for h in range(len(a)):
        row = M[h]
        base = a[h]
        best = np.int32(-1)
        for k in range(len(b)):
            best = max(best, b[k] + row[k])
        if best + base > top:
            top = best + base
            if top > enough:
                return top
    return top


@kernel
def empty_gains(start):
    """Allocate a `RemainingGain` that is large enough for any group."""
    G = len(start) - 1
    largest = 0
    for g in range(G):
        largest = max(largest, start[g + 1] - start[g])
    return RemainingGain(np.empty((largest + 1, G, G), np.int32), np.empty(largest + 1, np.int32))


@kernel
def fill_suffix_bounds(T, cats, spans, undecided):
    """Fill pairs[t, h, k] = sum over cats[t:] of max(s_h, s_k), and most[t], the same with the best group of each."""
    start, ordered, card = spans
    M, U = undecided
    G = len(ordered)
    m = len(cats)
    group_scores = np.empty(G, np.int32)
    M[m] = 0
    U[m] = 0
    for t in range(m - 1, -1, -1):
        U[t] = U[t + 1] + scores(T[cats[t]], start, ordered, card, group_scores)
        for h in range(G):
            for k in range(G):
                M[t, h, k] = M[t + 1, h, k] + max(group_scores[h], group_scores[k])


@kernel
def search_ordered_group(T, g, spans, lower):
    """Search all thresholds of group g with any group on each side.

    Returns the best value and the mask of the bins that go left; `lower` and -1 if no value exceeds `lower`.
    """
    start, ordered, card = spans
    F = T.shape[0]
    G = len(ordered)
    left = np.zeros(F, np.int32)
    right = np.zeros(F, np.int32)
    group_scores = np.empty(G, np.int32)
    for a in range(start[g], start[g + 1]):
        right += T[a]
    best = lower
    mask = np.int64(-1)
    sent = np.int64(0)
    for a in range(start[g], start[g + 1] - 1):
        left += T[a]
        right -= T[a]
        sent |= np.int64(1) << (a - start[g])
        value = scores(left, start, ordered, card, group_scores) + scores(right, start, ordered, card, group_scores)
        if value > best:
            best = value
            mask = sent
    return best, mask


@kernel
def search_nominal_group(T, cats, undecided, g, spans, lower, budget):
    """Search all subsets of group g over its categories `cats`, largest first, with any group on each side.

    Returns the best value, the mask of the categories that go left (-1 if no value exceeds `lower`), and the nodes (-1 if stopped).
    """
    start, ordered, card = spans
    M, U = undecided
    F = T.shape[0]
    G = len(ordered)
    m = len(cats)
    D = np.zeros((2, m + 1, F), np.int32)  # sums of both sides after t decisions
    S = np.zeros((2, m + 1, G), np.int32)
    C = np.zeros((2, m, F), np.int32)  # sums of the side that takes cats[t]
    CS = np.zeros((2, m, G), np.int32)
    bound = np.zeros((2, m), np.int32)
    tried = np.zeros(m, np.int64)
    # the categories sent left, and how many
    masks = np.zeros(m + 1, np.int64)
    count = np.zeros(m + 1, np.int64)
    best = lower
    mask = np.int64(-1)
    nodes = 0
    # the largest category goes left: the mirror image is the same tree
    copy_row(T[cats[0]], D[0, 1])
    scores(D[0, 1], start, ordered, card, S[0, 1])
    masks[1] = np.int64(1) << (cats[0] - start[g])
    count[1] = 1
    if m == 1:
        return best, mask, nodes
    t = 1
    while t >= 1:
        if tried[t] == 0:
            nodes += 1
            if nodes >= budget.nodes or (nodes & 1023 == 0 and budget.flag[0] != 0):
                return best, mask, -1
            for side in range(2):
                np.add(D[side, t], T[cats[t]], C[side, t])
                one = scores(C[side, t], start, ordered, card, CS[side, t])
                other = np.int32(0)
                for h in range(G):
                    other = max(other, S[1 - side, t, h])
                value = one + other + U[t + 1]
                if value > best and t + 1 < m:
                    value = min(value, pair_bound(CS[side, t], S[1 - side, t], M[t + 1], INFINITE_SCORE))
                bound[side, t] = value
        if tried[t] == 2:
            tried[t] = 0
            t -= 1
            continue
        first = 0 if bound[0, t] >= bound[1, t] else 1
        side = first if tried[t] == 0 else 1 - first
        tried[t] += 1
        if bound[side, t] <= best:
            continue
        if card > 0 and min(count[t] + 1 - side, t + 1 - (count[t] + 1 - side)) > card:
            continue
        sent = masks[t] | (np.int64(1) << (cats[t] - start[g])) if side == 0 else masks[t]
        if t + 1 == m:
            best = bound[side, t]
            mask = sent
            continue
        copy_row(C[side, t], D[side, t + 1])
        copy_row(CS[side, t], S[side, t + 1])
        copy_row(D[1 - side, t], D[1 - side, t + 1])
        copy_row(S[1 - side, t], S[1 - side, t + 1])
        masks[t + 1] = sent
        count[t + 1] = count[t] + 1 - side
        tried[t + 1] = 0
        t += 1
    return best, mask, nodes


@kernel
def search_two_levels(T, size, spans, lower, closed_groups, budget):
    """Find the best test of any group with any test on each side, in signed units, above `lower`.

    closed_groups int64 (groups,): 1 for groups that are finished; the kernel sets it. Returns the value, the group (-1 if no value exceeds
    `lower`), the mask of the categories that go left, and whether all groups are finished.
    """
    start = spans.start
    ordered = spans.ordered
    G = len(ordered)
    best = lower
    best_group = -1
    mask = np.int64(0)
    undecided = empty_gains(start)
    zero = np.zeros(G, np.int32)
    for g in range(G):
        if closed_groups[g]:
            continue
        if budget.flag[0] != 0:  # checked per group, since thousands of groups take seconds
            return best, best_group, mask, False
        if ordered[g]:
            value, group_mask = search_ordered_group(T, g, spans, best)
            if group_mask >= 0:
                best = value
                best_group = g
                mask = group_mask
            closed_groups[g] = 1
            continue
        first = start[g]
        order = argsort(-size[first : start[g + 1]])
        m = len(order)
        while m > 0 and size[first + order[m - 1]] == 0:
            m -= 1
        cats = first + order[:m]
        if m >= 2:
            fill_suffix_bounds(T, cats, spans, undecided)
            if min(undecided.most[0], pair_bound(zero, zero, undecided.pairs[0], best)) > best:
                value, group_mask, nodes = search_nominal_group(T, cats, undecided, g, spans, best, budget)
                if group_mask >= 0:
                    best = value
                    best_group = g
                    mask = group_mask
                if nodes < 0:
                    return best, best_group, mask, False
        closed_groups[g] = 1
    return best, best_group, mask, True
