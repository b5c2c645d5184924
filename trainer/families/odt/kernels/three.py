"""Kernel of three levels of subset branching for two classes: a test whose sides have one or two more levels.

The categories of the upper group are sent left or right one after the other; what both sides are worth is found by the kernel of two
levels (`trainer.families.odt.kernels.signed`), from the tables of both sides, which add up. What keeps that cheap:
   V(D + c) <= V(D) + V(c), also for the trees with one root group: groups that cannot exceed what is needed are left out;
   a side that reaches this bound needs no further search.

Legend as in `subset_signed`, values in its units: V(D) = 2 (correct weight) - (weight of D). Side 1 has two levels, side 0 too where
`deep`, else one. A slot holds a set of rows: tables T, weights by column, value, and `known[k]`, a bound of the trees with root group k.
"""

from __future__ import annotations

import numpy as np

from trainer.families.odt.kernels.signed import nominal_group, ordered_group, pair_bound, scores, suffix_bounds
from trainer.kernels.compiled import kernel

CALL = 16  # nodes that the tables of a call count as


@kernel
def by_size(size, first, stop):
    """Columns of a group that occur, the largest first."""
    order = np.argsort(-size[first:stop], kind="mergesort")
    m = len(order)
    while m > 0 and size[first + order[m - 1]] == 0:
        m -= 1
    return first + order[:m]


@kernel
def one_level(T, start, ordered, card, own):
    """V of one test, from the diagonal of T; own[h] is filled for each group."""
    F = T.shape[0]
    d = np.empty(F, np.int32)
    for f in range(F):
        d[f] = T[f, f]
    return scores(d, start, ordered, card, own)


@kernel
def bounded(T, size, start, ordered, card, lower, upper, known, limit, flag):
    """V of two levels if it exceeds `lower`, else `lower`; `upper` is a bound of it: (value, nodes or -1 if stopped).

    known int32 (groups,), bounds of the trees by root group, is tightened.
    """
    G = len(ordered)
    own = np.empty(G, np.int32)
    best = max(np.int32(lower), one_level(T, start, ordered, card, own))
    nodes = CALL
    most = 0
    for g in range(G):
        most = max(most, start[g + 1] - start[g])
    M, U, zero = np.empty((most + 1, G, G), np.int32), np.empty(most + 1, np.int32), np.zeros(G, np.int32)
    for g in np.argsort(-known, kind="mergesort"):
        if best >= upper or known[g] <= best:
            break
        if ordered[g]:
            best, _ = ordered_group(T, g, start, ordered, card, best)
            known[g] = min(known[g], best)
            continue
        cats = by_size(size, start[g], start[g + 1])
        if len(cats) >= 2:
            suffix_bounds(T, cats, start, ordered, card, M, U)
            bound = min(U[0], pair_bound(zero, zero, M[0], best))
            if bound <= best:
                known[g] = min(known[g], bound)
                continue
            best, _, used = nominal_group(T, cats, M, U, g, start, ordered, card, best, limit - nodes, flag)
            if used < 0:
                return best, -1
            nodes += used + 1
        known[g] = min(known[g], best)
    for g in range(G):
        known[g] = min(known[g], best)
    return best, nodes


@kernel
def by_category(cat, s, w, rows, start, g):
    """Tables int32 (categories of g, columns, columns) and weights int64 (categories of g, columns)."""
    m, F, G = start[g + 1] - start[g], start[-1], cat.shape[1]
    T, size = np.zeros((m, F, F), np.int32), np.zeros((m, F), np.int64)
    for r in rows:
        a = cat[r, g]
        for h in range(G):
            f = start[h] + cat[r, h]
            size[a, f] += w[r]
            for k in range(G):
                T[a, f, start[k] + cat[r, k]] += s[r]
    return T, size


@kernel
def nominal_three(T, size, cats, own, deep, start, ordered, card, lower, limit, flag):
    """All subsets of a group over its categories `cats`, worth `own` each by itself: (value, mask or -1, nodes or -1 if stopped)."""
    F, G, m = start[-1], len(ordered), len(cats)
    # a slot for each side and number of decided categories; slot 0 is empty
    D, weight = np.zeros((2, m + 1, F, F), np.int32), np.zeros((2, m + 1, F), np.int64)
    V, known = np.zeros((2, m + 1), np.int32), np.zeros((2, m + 1, G), np.int32)
    slot = np.zeros((2, m + 1), np.int64)
    tried, masks, count = np.zeros(m, np.int64), np.zeros(m + 1, np.int64), np.zeros(m + 1, np.int64)
    ways = np.zeros((2, m), np.bool_)
    rest = np.zeros(m + 1, np.int32)
    for t in range(m - 1, -1, -1):
        rest[t] = rest[t + 1] + own[t]
    scratch = np.empty(G, np.int32)
    best, mask, nodes, t = np.int32(lower), np.int64(-1), 0, 0
    while t >= 0:
        a = cats[t]
        if tried[t] == 0:
            for side in range(2):
                at, other, to = slot[side, t], V[1 - side, slot[1 - side, t]], t + 1
                need, upper = best - other - rest[t + 1], V[side, at] + own[t]
                ways[side, t] = False
                # where both sides are alike the mirror image is the same tree
                if upper <= need or (t == 0 and deep and side == 1):
                    continue
                D[side, to] = D[side, at] + T[a]
                if side == 1 or deep:
                    weight[side, to] = weight[side, at] + size[a]
                    known[side, to] = known[side, at] + own[t]
                    value, used = bounded(
                        D[side, to],
                        weight[side, to],
                        start,
                        ordered,
                        card,
                        need,
                        upper,
                        known[side, to],
                        limit - nodes,
                        flag,
                    )
                    if used < 0:
                        return best, mask, -1
                    nodes += used
                else:
                    value = one_level(D[side, to], start, ordered, card, scratch)
                    nodes += 1
                if nodes >= limit:
                    return best, mask, -1
                V[side, to] = value
                ways[side, t] = value > need
        if tried[t] == 2:
            tried[t] = 0
            t -= 1
            continue
        reach0, reach1 = V[0, t + 1] + V[1, slot[1, t]], V[1, t + 1] + V[0, slot[0, t]]
        first = 0 if not ways[1, t] or (ways[0, t] and reach0 >= reach1) else 1
        side = first if tried[t] == 0 else 1 - first
        tried[t] += 1
        if not ways[side, t] or (reach0 if side == 0 else reach1) + rest[t + 1] <= best:
            continue
        left = count[t] + 1 - side
        if card > 0 and min(left, t + 1 - left) > card:
            continue
        masks[t + 1] = masks[t] | (np.int64(1) << a) if side == 0 else masks[t]
        if t + 1 == m:
            best, mask = (reach0 if side == 0 else reach1), masks[t + 1]
            continue
        count[t + 1] = left
        slot[side, t + 1], slot[1 - side, t + 1] = t + 1, slot[1 - side, t]
        t += 1
        tried[t] = 0
    return best, mask, nodes


@kernel
def ordered_three(T, size, deep, flip, start, ordered, card, lower, limit, flag):
    """All thresholds of a group, the middle first: (value, cut or -1, nodes or -1 if stopped); `flip`: the lower bins go to side 1."""
    F, G, m = start[-1], len(ordered), len(T)
    P, size_P = np.zeros((m + 1, F, F), np.int32), np.zeros((m + 1, F), np.int64)
    for a in range(m):
        P[a + 1], size_P[a + 1] = P[a] + T[a], size_P[a] + size[a]
    scratch, known = np.empty(G, np.int32), np.empty(G, np.int32)
    # open intervals of cuts, with twice the errors known of all below and of all above
    stack = [(0, m, np.int32(0), np.int32(0))]
    best, found, nodes = np.int32(lower), -1, 0
    total = np.int32(size_P[m, start[0] : start[1]].sum())
    while len(stack):
        low, high, lost_below, lost_above = stack.pop()
        if high - low < 2 or lost_below + lost_above >= total - best:
            continue
        cut = (low + high) // 2
        lost = np.array([lost_below, lost_above], np.int32)
        value, reached = np.zeros(2, np.int32), True
        for part in range(2):
            here, weight = (P[cut], size_P[cut]) if part == 0 else (P[m] - P[cut], size_P[m] - size_P[cut])
            w = np.int32(weight[start[0] : start[1]].sum())
            other = value[0] if part == 1 else total - w - lost[1]
            need = best - other
            side = part if not flip else 1 - part
            if w - lost[part] <= need:
                value[part] = w - lost[part]
            elif side == 1 or deep:
                known[:] = w - lost[part]
                value[part], used = bounded(
                    here, weight, start, ordered, card, need, w - lost[part], known, limit - nodes, flag
                )
                if used < 0:
                    return best, found, -1
                nodes += used
            else:
                value[part] = one_level(here, start, ordered, card, scratch)
                nodes += 1
            lost[part] = max(lost[part], w - max(value[part], need))
            if value[part] <= need:
                reached = False
                break
        if reached:
            best, found = value[0] + value[1], cut
        stack.append((low, cut, lost_below, lost[1]))
        stack.append((cut, high, lost[0], lost_above))
    return best, found, nodes
