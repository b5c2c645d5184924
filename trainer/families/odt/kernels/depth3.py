"""Search three levels of subset branching for two classes.

The categories of the upper group go left or right one at a time. The kernel of two levels
(`trainer.families.odt.kernels.signed`) evaluates both sides from their tables, which are additive. Bounds by subadditivity:
   V(D + c) <= V(D) + V(c), also for the trees with a fixed root group: root groups that cannot exceed the incumbent are skipped;
   the search of a side ends when it reaches this bound.

Legend as in `signed`, values in its units: V(D) = 2 (correct weight) - (weight of D). Side 1 has two levels. Side 0 has two levels if
`deep`, else one. A slot holds a set of rows: tables T, weights by column, value, and `known[k]`, a bound of the trees with root group k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.odt.kernels.records import NodeBudget
from trainer.families.odt.kernels.signed import (
    empty_gains,
    fill_suffix_bounds,
    pair_bound,
    scores,
    search_nominal_group,
    search_ordered_group,
)
from trainer.kernels.compiled import kernel
from trainer.kernels.ordering import argsort

NODES_PER_TABLE = 16  # filling the tables of a call counts as so many nodes


class SignedRows(NamedTuple):
    """A set of rows: signed table T int32 (columns, columns), weight int64 (columns,) and its value V."""

    table: np.ndarray
    weight: np.ndarray
    value: int


class SideSlots(NamedTuple):
    """Stack of both sides: a slot for each side and number of decided categories; slot 0 is empty.

    table int32 (2, slots, columns, columns), weight int64 (2, slots, columns), value int32 (2, slots), known int32 (2, slots, groups);
    at int64 (2, slots): the slot of a side after t decisions.
    """

    table: np.ndarray
    weight: np.ndarray
    value: np.ndarray
    known: np.ndarray
    at: np.ndarray


@kernel
def sort_by_size(size, first, stop):
    """Return the columns of a group that occur, the largest first; size int64 (columns,), weights."""
    order = argsort(-size[first:stop])
    m = len(order)
    while m > 0 and size[first + order[m - 1]] == 0:
        m -= 1
    return first + order[:m]


@kernel
def solve_one_level(T, spans, group_scores):
    """Return V of one test from the diagonal of T, and fill group_scores, int32 (groups,)."""
    F = T.shape[0]
    d = np.empty(F, np.int32)
    for f in range(F):
        d[f] = T[f, f]
    return scores(d, spans.start, spans.ordered, spans.card, group_scores)


@kernel
def solve_two_levels(T, size, spans, lower, upper, known, budget):
    """Return V of two levels, or `lower` if V does not exceed it, and the number of nodes (-1 if stopped).

    T int32 (columns, columns); size int64 (columns,), weights. `upper` is an upper bound of V. `known` int32 (groups,) are upper bounds by
    root group; the kernel tightens them.
    """
    start = spans.start
    ordered = spans.ordered
    G = len(ordered)
    group_scores = np.empty(G, np.int32)
    zero = np.zeros(G, np.int32)
    best = np.int64(max(lower, solve_one_level(T, spans, group_scores)))
    nodes = NODES_PER_TABLE
    undecided = empty_gains(start)
    for g in argsort(-known):
        if best >= upper or known[g] <= best:
            break
        if ordered[g]:
            best, _ = search_ordered_group(T, g, spans, best)
            known[g] = min(known[g], best)
            continue
        cats = sort_by_size(size, start[g], start[g + 1])
        if len(cats) >= 2:
            fill_suffix_bounds(T, cats, spans, undecided)
            bound = min(undecided.most[0], pair_bound(zero, zero, undecided.pairs[0], best))
            if bound <= best:
                known[g] = min(known[g], bound)
                continue
            remaining = NodeBudget(budget.nodes - nodes, budget.flag)
            best, _, visited = search_nominal_group(T, cats, undecided, g, spans, best, remaining)
            if visited < 0:
                return best, -1
            nodes += visited + 1
        known[g] = min(known[g], best)
    for g in range(G):
        known[g] = min(known[g], best)
    return best, nodes


@kernel
def fill_category_tables(cat, s, w, rows, start, g):
    """Return a table for each category of group g, int32 (categories, columns, columns), and its weights, int64 (categories, columns)."""
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
    """Allocate the slots of both sides for m decisions."""
    table = np.zeros((2, m + 1, columns, columns), np.int32)
    weight = np.zeros((2, m + 1, columns), np.int64)
    value = np.zeros((2, m + 1), np.int32)
    known = np.zeros((2, m + 1, groups), np.int32)
    return SideSlots(table, weight, value, known, np.zeros((2, m + 1), np.int64))


@kernel
def _add_category(sides, side, t, part, need, deep, spans, budget):
    """Fill slot t + 1 of a side with one more category; return the value of the side and the nodes (-1 if stopped).

    The value is exact only if it exceeds `need`.
    """
    old = sides.at[side, t]
    to = t + 1
    table = sides.table[side]
    weight = sides.weight[side]
    known = sides.known[side]
    np.add(table[old], part.table, table[to])
    if side == 0 and not deep:
        return solve_one_level(table[to], spans, known[to]), 1
    np.add(weight[old], part.weight, weight[to])
    for h in range(known.shape[1]):
        known[to, h] = known[old, h] + part.value
    upper = np.int64(sides.value[side, old] + part.value)
    return solve_two_levels(table[to], weight[to], spans, np.int64(need), upper, known[to], budget)


@kernel
def search_nominal(T, size, cats, single_values, deep, spans, lower, budget):
    """Search all subsets of a group over its categories `cats`, largest first.

    T, size: the result of `fill_category_tables`. single_values int32: V of each of `cats` by itself. Returns the best value, the mask of
    the categories on side 0, and the nodes. No tree exceeds `lower` if the mask is -1. The search was stopped if the nodes are -1.
    """
    m = len(cats)
    sides = _empty_sides(m, spans.start[-1], len(spans.ordered))
    V = sides.value
    at = sides.at
    tried = np.zeros(m, np.int64)
    masks = np.zeros(m + 1, np.int64)
    count = np.zeros(m + 1, np.int64)
    ways = np.zeros((2, m), np.bool_)
    rest_value = np.zeros(m + 1, np.int32)
    for t in range(m - 1, -1, -1):
        rest_value[t] = rest_value[t + 1] + single_values[t]
    best = np.int32(lower)
    mask = np.int64(-1)
    nodes = 0
    t = len(cats) - m  # 0, but not a literal, for which numba would compile the callees again
    while t >= 0:
        if tried[t] == 0:
            part = SignedRows(T[cats[t]], size[cats[t]], single_values[t])
            for side in range(2):
                need = best - V[1 - side, at[1 - side, t]] - rest_value[t + 1]
                ways[side, t] = False
                # if both sides are equal, the mirror image is the same tree
                if V[side, at[side, t]] + single_values[t] <= need or (t == 0 and deep and side == 1):
                    continue
                remaining = NodeBudget(budget.nodes - nodes, budget.flag)
                value, visited = _add_category(sides, side, t, part, need, deep, spans, remaining)
                nodes += max(0, visited)
                if visited < 0 or nodes >= budget.nodes:
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
        if not ways[side, t] or (reach0 if side == 0 else reach1) + rest_value[t + 1] <= best:
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
        at[side, t + 1] = t + 1
        at[1 - side, t + 1] = at[1 - side, t]
        t += 1
        tried[t] = 0
    return best, mask, nodes


@kernel
def search_ordered(T, size, deep, flip, spans, lower, budget):
    """Search all thresholds of a group, the middle first. With `flip`, the lower bins go to side 1.

    Returns the best value, the number of bins below the cut, and the nodes. No tree exceeds `lower` if the cut is -1. The search was
    stopped if the nodes are -1.
    """
    start = spans.start
    F = start[-1]
    G = len(start) - 1
    m = len(T)
    P = np.zeros((m + 1, F, F), np.int32)
    size_P = np.zeros((m + 1, F), np.int64)
    for a in range(m):
        np.add(P[a], T[a], P[a + 1])
        np.add(size_P[a], size[a], size_P[a + 1])
    scratch = np.empty(G, np.int32)
    known = np.empty(G, np.int32)
    # open intervals of cuts, with twice the known errors of the bins below and above
    stack = [(0, m, np.int32(0), np.int32(0))]
    best = np.int32(lower)
    best_cut = -1
    nodes = 0
    total = np.int32(size_P[m, start[0] : start[1]].sum())
    while len(stack):
        low, high, errors_below, errors_above = stack.pop()
        if high - low < 2 or errors_below + errors_above >= total - best:
            continue
        cut = (low + high) // 2
        errors = np.array([errors_below, errors_above], np.int32)
        value = np.zeros(2, np.int32)
        reached = True
        for part in range(2):
            table, weight = (P[cut], size_P[cut]) if part == 0 else (P[m] - P[cut], size_P[m] - size_P[cut])
            w = np.int32(weight[start[0] : start[1]].sum())
            other = value[0] if part == 1 else total - w - errors[1]
            need = best - other
            side = part if not flip else 1 - part
            if w - errors[part] <= need:
                value[part] = w - errors[part]
            elif side == 1 or deep:
                known[:] = w - errors[part]
                remaining = NodeBudget(budget.nodes - nodes, budget.flag)
                value[part], visited = solve_two_levels(
                    table, weight, spans, np.int64(need), np.int64(w - errors[part]), known, remaining
                )
                if visited < 0:
                    return best, best_cut, -1
                nodes += visited
            else:
                value[part] = solve_one_level(table, spans, scratch)
                nodes += 1
            errors[part] = max(errors[part], w - max(value[part], need))
            if value[part] <= need:
                reached = False
                break
        if reached:
            best = value[0] + value[1]
            best_cut = cut
        stack.append((low, cut, errors_below, errors[1]))
        stack.append((cut, high, errors[0], errors_above))
    return best, best_cut, nodes
