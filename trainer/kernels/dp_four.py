"""A node of height four in one call, for searches so small that the calls of its subtrees would take longer than their work.

known[j]  twice the lower bound of E(D, 3), plus 1 where it is exact, for the rows D of a path; one run of paths for each length.
(Demirovic et al. 2022; the order and the bounds are those of `trainer.search.exact`.)
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trainer.kernels.dp import (
    COST,
    EXACT,
    LESS_DEEP,
    NO_SPLIT,
    ROOT,
    SOLVED,
    count_bounds,
    node_bounds,
    place,
    share,
    three_of,
    whole_three,
)
from trainer.kernels.dp_node import pair_counts, prepare, split_rows

i32 = np.int32

NODES = 4  # position in the answer of `whole_four` behind those of `whole_three`: subtrees of height three


@njit(cache=True, nogil=True)
def _extended(path, literal):
    """The ascending path with one more literal."""
    out = np.empty(len(path) + 1, np.int64)
    at = 0
    while at < len(path) and path[at] < literal:
        out[at] = path[at]
        at += 1
    out[at] = literal
    out[at + 1 :] = path[at:]
    return out


@njit(cache=True, nogil=True)
def whole_four(
    R,
    rows,
    segment_of,
    segments,
    equal_row,
    classes,
    allowed,
    reduce,
    bounds,
    deepen,
    costs,
    path,
    binomials,
    table,
    known,
    starts,
    ub,
    flag,
    answer,
):
    """E(rows, 4) if below `ub`, else a lower bound of at least `ub` (less where flag[0] ended the search).

    bounds: uint8 (equivalent points, leaf count, support); costs: (unit, leaf, min_leaf, use_similarity); deepen: the best tree of
    height three first.  known: the cache of subtrees of height three, empty for none; starts[s] its first place for paths of s
    literals; table: the cache of depth-two subtrees two literals below this node.  answer: as of `whole_three`, and NODES.
    """
    unit, leaf, min_leaf, similar = costs[0], costs[1], costs[2], costs[3]
    node = prepare(R, rows, segment_of, segments, equal_row, classes, allowed, min_leaf, reduce, True)
    as_leaf, floor = node_bounds(node, unit, leaf, 4, bounds[0], bounds[1], bounds[2])
    m = len(node.features)
    answer[EXACT], answer[ROOT], answer[SOLVED], answer[NODES] = 1, NO_SPLIT, 0, 0
    answer[COST] = as_leaf
    if m == 0 or floor >= as_leaf:
        return
    if floor >= ub:
        answer[COST], answer[EXACT] = floor, 0
        return
    P = np.empty((classes, m, m), i32)
    pair_counts(node, P)
    lb, exact = np.zeros((2, m), np.int64), np.zeros((2, m), np.uint8)
    count_bounds(node, unit, leaf, 3, bounds[0], bounds[1], bounds[2], lb, exact)
    best, root = min(ub, as_leaf), NO_SPLIT
    sub = np.empty(4, np.int64)
    if deepen:
        three_of(node, P, bounds, costs, path, binomials, table[:0], best, flag, sub)
        answer[SOLVED] += sub[SOLVED]
        answer[NODES] += 1
        if sub[EXACT] and sub[COST] < best:
            best, root = sub[COST], LESS_DEEP
    stopped = flag[0] != 0
    for p in range(m):
        if stopped:
            break
        if lb[0, p] + lb[1, p] >= best:
            continue
        feature = np.int64(node.features[p])
        parts = split_rows(R, rows, feature)
        first = 0 if len(parts[0]) >= len(parts[1]) else 1
        for turn in range(2):
            s = first if turn == 0 else 1 - first
            if not exact[s, p]:
                target = best - lb[1 - s, p]
                at, held = np.int64(-1), np.int64(0)
                if len(known):
                    at = starts[len(path) + 1] + place(path, 2 * feature + s, binomials)
                    held = known[at]
                if not (held & 1) and (held >> 1) < target:
                    whole_three(
                        R, parts[s], segment_of, segments, equal_row, classes, allowed, reduce, bounds, costs,
                        _extended(path, 2 * feature + s), binomials, table, target, flag, sub,
                    )  # fmt: skip
                    answer[SOLVED] += sub[SOLVED]
                    answer[NODES] += 1
                    held = max(held, 2 * sub[COST] + sub[EXACT])
                    if at >= 0:
                        known[at] = held
                if (held & 1) or (held >> 1) > lb[s, p]:
                    lb[s, p] = max(lb[s, p], held >> 1)
                    exact[s, p] = held & 1
            if similar:
                share(node, P, p, s, lb[s, p], unit, lb)
            if lb[0, p] + lb[1, p] >= best:
                break
        if exact[0, p] and exact[1, p] and lb[0, p] + lb[1, p] < best:
            best, root = lb[0, p] + lb[1, p], node.features[p]
        stopped = flag[0] != 0
    if best < ub and not stopped:
        answer[COST], answer[ROOT] = best, root
        return
    floor = as_leaf
    for p in range(m):
        floor = min(floor, lb[0, p] + lb[1, p])
    answer[COST], answer[EXACT] = floor if stopped else max(ub, floor), 0
