"""Kernel of three levels of subset branching for two classes: a test whose sides have one or two more levels.

The categories of the upper group are sent left or right one after the other; what both sides are worth is found by the kernel of two
levels (`trainer.families.odt.kernels.signed`), from the tables of both sides, which add up. What keeps that cheap:
   V(D + c) <= V(D) + V(c), also for the trees with one root group: groups that cannot exceed what is needed are left out;
   a side that reaches this bound needs no further search.

Legend as in `subset_signed`, values in its units: V(D) = 2 (correct weight) - (weight of D). Side 1 has two levels, side 0 too where
`deep`, else one. A slot holds a set of rows: tables T, weights by column, value, and `known[k]`, a bound of the trees with root group k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.odt.kernels.records import NodeBudget
from trainer.families.odt.kernels.signed import nominal_group, ordered_group, pair_bound, room, scores, suffix_bounds
from trainer.kernels.compiled import kernel

CALL = 16  # nodes that the tables of a call count as


class SignedRows(NamedTuple):
    """Some rows by themselves: signed table int32 (columns, columns), weight int64 (columns,), and their value."""

    table: np.ndarray
    weight: np.ndarray
    value: int


class SideSlots(NamedTuple):
    """Both sides while categories are decided: a slot for each side and number of decided categories, and slot 0, which is empty.

    table int32 (2, slots, columns, columns), weight int64 (2, slots, columns), value int32 (2, slots), known int32 (2, slots, groups);
    at int64 (2, slots): the slot of a side after t decisions.
    """

    table: np.ndarray
    weight: np.ndarray
    value: np.ndarray
    known: np.ndarray
    at: np.ndarray


@kernel
def by_size(size, first, stop):
    """Columns of a group that occur, the largest first."""
    order = np.argsort(-size[first:stop], kind="mergesort")
    m = len(order)
    while m > 0 and size[first + order[m - 1]] == 0:
        m -= 1
    return first + order[:m]


@kernel
def one_level(T, spans, own):
    """V of one test, from the diagonal of T; own[h] is filled for each group."""
    F = T.shape[0]
    d = np.empty(F, np.int32)
    for f in range(F):
        d[f] = T[f, f]
    return scores(d, spans.start, spans.ordered, spans.card, own)


@kernel
def bounded(T, size, spans, lower, upper, known, budget):
    """V of two levels if it exceeds `lower`, else `lower`; `upper` is a bound of it: (value, nodes or -1 if stopped).

    known int32 (groups,), bounds of the trees by root group, is tightened.
    """
    start = spans.start
    ordered = spans.ordered
    G = len(ordered)
    own = np.empty(G, np.int32)
    zero = np.zeros(G, np.int32)
    best = np.int64(max(lower, one_level(T, spans, own)))
    nodes = CALL
    undecided = room(start)
    for g in np.argsort(-known, kind="mergesort"):
        if best >= upper or known[g] <= best:
            break
        if ordered[g]:
            best, _ = ordered_group(T, g, spans, best)
            known[g] = min(known[g], best)
            continue
        cats = by_size(size, start[g], start[g + 1])
        if len(cats) >= 2:
            suffix_bounds(T, cats, spans, undecided)
            bound = min(undecided.most[0], pair_bound(zero, zero, undecided.pairs[0], best))
            if bound <= best:
                known[g] = min(known[g], bound)
                continue
            remaining = NodeBudget(budget.nodes - nodes, budget.flag)
            best, _, used = nominal_group(T, cats, undecided, g, spans, best, remaining)
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
    m = start[g + 1] - start[g]
    F = start[-1]
    G = cat.shape[1]
    T = np.zeros((m, F, F), np.int32)
    size = np.zeros((m, F), np.int64)
    for r in rows:
        a = cat[r, g]
        for h in range(G):
            f = start[h] + cat[r, h]
            size[a, f] += w[r]
            for k in range(G):
                T[a, f, start[k] + cat[r, k]] += s[r]
    return T, size


@kernel
def _empty_sides(m, columns, groups):
    """Room for m decisions."""
    table = np.zeros((2, m + 1, columns, columns), np.int32)
    weight = np.zeros((2, m + 1, columns), np.int64)
    value = np.zeros((2, m + 1), np.int32)
    known = np.zeros((2, m + 1, groups), np.int32)
    return SideSlots(table, weight, value, known, np.zeros((2, m + 1), np.int64))


@kernel
def _add_category(sides, side, t, part, need, deep, spans, budget):
    """The value of a side with one more category, in slot t + 1: (value, if above `need`, and nodes or -1 if stopped)."""
    old = sides.at[side, t]
    to = t + 1
    table = sides.table[side]
    weight = sides.weight[side]
    known = sides.known[side]
    table[to] = table[old] + part.table
    if side == 0 and not deep:
        return one_level(table[to], spans, known[to]), 1
    weight[to] = weight[old] + part.weight
    known[to] = known[old] + part.value
    upper = np.int64(sides.value[side, old] + part.value)
    return bounded(table[to], weight[to], spans, np.int64(need), upper, known[to], budget)


@kernel
def nominal_three(T, size, cats, own, deep, spans, lower, budget):
    """All subsets of a group over its categories `cats`, worth `own` each by itself: (value, mask or -1, nodes or -1 if stopped)."""
    m = len(cats)
    sides = _empty_sides(m, spans.start[-1], len(spans.ordered))
    V = sides.value
    at = sides.at
    tried = np.zeros(m, np.int64)
    masks = np.zeros(m + 1, np.int64)
    count = np.zeros(m + 1, np.int64)
    ways = np.zeros((2, m), np.bool_)
    rest = np.zeros(m + 1, np.int32)
    for t in range(m - 1, -1, -1):
        rest[t] = rest[t + 1] + own[t]
    best = np.int32(lower)
    mask = np.int64(-1)
    nodes = 0
    t = len(cats) - m  # 0, but no literal, for which callees would be compiled once more
    while t >= 0:
        if tried[t] == 0:
            part = SignedRows(T[cats[t]], size[cats[t]], own[t])
            for side in range(2):
                need = best - V[1 - side, at[1 - side, t]] - rest[t + 1]
                ways[side, t] = False
                # where both sides are alike the mirror image is the same tree
                if V[side, at[side, t]] + own[t] <= need or (t == 0 and deep and side == 1):
                    continue
                remaining = NodeBudget(budget.nodes - nodes, budget.flag)
                value, used = _add_category(sides, side, t, part, need, deep, spans, remaining)
                nodes += max(0, used)
                if used < 0 or nodes >= budget.nodes:
                    return best, mask, -1
                V[side, t + 1] = value
                ways[side, t] = value > need
        if tried[t] == 2:
            tried[t] = 0
            t -= 1
            continue
        reach0 = V[0, t + 1] + V[1, at[1, t]]
        reach1 = V[1, t + 1] + V[0, at[0, t]]
        first = 0 if not ways[1, t] or (ways[0, t] and reach0 >= reach1) else 1
        side = first if tried[t] == 0 else 1 - first
        tried[t] += 1
        if not ways[side, t] or (reach0 if side == 0 else reach1) + rest[t + 1] <= best:
            continue
        left = count[t] + 1 - side
        if spans.card > 0 and min(left, t + 1 - left) > spans.card:
            continue
        masks[t + 1] = masks[t] | (np.int64(1) << cats[t]) if side == 0 else masks[t]
        if t + 1 == m:
            best = reach0 if side == 0 else reach1
            mask = masks[t + 1]
            continue
        count[t + 1] = left
        at[side, t + 1], at[1 - side, t + 1] = t + 1, at[1 - side, t]
        t += 1
        tried[t] = 0
    return best, mask, nodes


@kernel
def ordered_three(T, size, deep, flip, spans, lower, budget):
    """All thresholds of a group, the middle first: (value, cut or -1, nodes or -1 if stopped); `flip`: the lower bins go to side 1."""
    start = spans.start
    F = start[-1]
    G = len(start) - 1
    m = len(T)
    P = np.zeros((m + 1, F, F), np.int32)
    size_P = np.zeros((m + 1, F), np.int64)
    for a in range(m):
        P[a + 1], size_P[a + 1] = P[a] + T[a], size_P[a] + size[a]
    scratch = np.empty(G, np.int32)
    known = np.empty(G, np.int32)
    # open intervals of cuts, with twice the errors known of all below and of all above
    stack = [(0, m, np.int32(0), np.int32(0))]
    best = np.int32(lower)
    found = -1
    nodes = 0
    total = np.int32(size_P[m, start[0] : start[1]].sum())
    while len(stack):
        low, high, lost_below, lost_above = stack.pop()
        if high - low < 2 or lost_below + lost_above >= total - best:
            continue
        cut = (low + high) // 2
        lost = np.array([lost_below, lost_above], np.int32)
        value = np.zeros(2, np.int32)
        reached = True
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
                remaining = NodeBudget(budget.nodes - nodes, budget.flag)
                value[part], used = bounded(
                    here, weight, spans, np.int64(need), np.int64(w - lost[part]), known, remaining
                )
                if used < 0:
                    return best, found, -1
                nodes += used
            else:
                value[part] = one_level(here, spans, scratch)
                nodes += 1
            lost[part] = max(lost[part], w - max(value[part], need))
            if value[part] <= need:
                reached = False
                break
        if reached:
            best = value[0] + value[1]
            found = cut
        stack.append((low, cut, lost_below, lost[1]))
        stack.append((cut, high, lost[0], lost_above))
    return best, found, nodes
