"""Search the splits of a node of height four.

The search keeps to a budget, or solves a small node in one call. E(D, h) is the least cost of a tree of height ≤ h for the rows D.
depth3[j] is twice the lower bound of E(D, 3), plus 1 if exact, for the rows D of a path. Paths of one length are contiguous.
(Demirovic et al. 2022; the order and the bounds are those of `trainer.families.exact.search.search`.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.bounds import SideBounds, apply_similarity, bound_children_by_node
from trainer.families.exact.kernels.depth3 import (
    BEST,
    CHOICE,
    DEPTH_TWO_SOLVES,
    NEXT,
    STOPPED,
    PairBudget,
    PairCache,
    path_index,
)
from trainer.families.exact.kernels.first_split_bounds import (
    FirstSplitBounds,
    first_bounds_of_child,
    new_first_bounds,
    store_first_bounds,
)
from trainer.families.exact.kernels.node import NodeView, pair_counts, split_rows
from trainer.families.exact.kernels.solve_subtree import (
    ANSWERS,
    COST,
    EXACT,
    LESS_DEEP,
    NO_SPLIT,
    NODES,
    ROOT,
    SOLVED,
    NodeQuery,
    bound_children,
    open_node,
    solve_node3,
    solve_subtree3,
    write_result,
)
from trainer.kernels.compiled import kernel
from trainer.kernels.rows import copy_row

i32 = np.int32

# positions in a state behind those of height three
MOST = 5  # splits are pruned from this cost on
DEPTH_THREE_SOLVES = 6
STATES = 7


class Caches(NamedTuple):
    """The caches of depth-two subtrees (`table`) and of subtrees of height three (`depth3`, int64, empty for none).

    starts[s] is the first index of `depth3` for paths of s literals.
    """

    table: np.ndarray
    depth3: np.ndarray
    starts: np.ndarray


class Depth4Frame(NamedTuple):
    """A node of height four with bounds of both children of each split."""

    node: NodeView
    P: np.ndarray
    sides: SideBounds
    firsts: FirstSplitBounds
    roots: np.ndarray  # int64 (2, p), ROOT of the answers of searched children


@kernel
def _extend_path(path, literal):
    """Return the ascending path with one more literal."""
    out = np.empty(len(path) + 1, np.int64)
    at = 0
    while at < len(path) and path[at] < literal:
        out[at] = path[at]
        at += 1
    out[at] = literal
    copy_row(path[at:], out[at + 1 :])
    return out


@kernel
def _solve_child(context, rows, path, literal, caches, query, answer):
    """Write E(rows, 3) of a child, from the cache if that has it."""
    at = np.int64(-1)
    entry = np.int64(0)
    depth3_table = caches.depth3
    if len(depth3_table):
        at = caches.starts[len(path) + 1] + path_index(path, literal, context.binomials)
        entry = depth3_table[at]
    answer[SOLVED] = 0
    answer[NODES] = 0
    answer[ROOT] = NO_SPLIT
    if not (entry & 1) and (entry >> 1) < query.ub:
        solve_subtree3(context, rows, _extend_path(path, literal), caches.table, query, answer)
        answer[NODES] = 1
        entry = max(entry, 2 * answer[COST] + answer[EXACT])
        if at >= 0:
            depth3_table[at] = entry
    answer[COST] = entry >> 1
    answer[EXACT] = entry & 1


@kernel
def _solve_children(context, rows, path, frame, p, caches, state, flag):
    """Search both children of a split, the larger first, while they may cost less than state[MOST] together."""
    node, P, sides, firsts, roots = frame
    lb, exact = sides
    unit = context.costs[0]
    feature = np.int64(node.features[p])
    parts = split_rows(context.data.R, rows, feature)
    first = 0 if len(parts[0]) >= len(parts[1]) else 1
    answer = np.empty(ANSWERS, np.int64)
    for s in (first, 1 - first):
        if not exact[s, p]:
            floors = first_bounds_of_child(node, P, p, s, unit, firsts)
            query = NodeQuery(state[MOST] - lb[1 - s, p], floors, flag)
            _solve_child(context, parts[s], path, 2 * feature + s, caches, query, answer)
            state[DEPTH_TWO_SOLVES] += answer[SOLVED]
            state[DEPTH_THREE_SOLVES] += answer[NODES]
            store_first_bounds(firsts, 2 * p + s, floors)
            if answer[EXACT] or answer[COST] > lb[s, p]:
                lb[s, p] = max(lb[s, p], answer[COST])
                exact[s, p] = answer[EXACT]
                roots[s, p] = answer[ROOT]
        if context.costs[3]:
            apply_similarity(node, P, p, s, lb[s, p], unit, lb)
        if lb[0, p] + lb[1, p] >= state[MOST]:
            return


@kernel
def solve_depth4(context, rows, path, frame, caches, state, budget):
    """Search splits from state[NEXT] on until one is better than state[BEST], the budget is spent, or all are done.

    state int64 (STATES,): that of `NodeState`, MOST and DEPTH_THREE_SOLVES. The next call resumes unless the flag ended this one.
    """
    lb, exact = frame.sides
    m = lb.shape[1]
    begin = state[DEPTH_TWO_SOLVES] + 2 * state[DEPTH_THREE_SOLVES]
    while state[NEXT] < m:
        # a subtree of height three has an overhead of one depth-two pair
        if budget.flag[0] or state[DEPTH_TWO_SOLVES] + 2 * state[DEPTH_THREE_SOLVES] - begin >= 2 * budget.pairs:
            state[STOPPED] = 1
            return
        p = state[NEXT]
        state[NEXT] += 1
        if lb[0, p] + lb[1, p] >= state[MOST]:
            continue
        _solve_children(context, rows, path, frame, p, caches, state, budget.flag)
        if exact[0, p] and exact[1, p] and lb[0, p] + lb[1, p] < state[BEST]:
            state[BEST] = lb[0, p] + lb[1, p]
            state[CHOICE] = p
            break
    state[STOPPED] = 0


@kernel
def _build_frame(context, node):
    """Return the frame of a node with bounds from class counts."""
    m = len(node.features)
    P = np.empty((context.data.classes, m, m), i32)
    pair_counts(node, P)
    firsts = new_first_bounds(m, len(context.allowed), context.costs[3] != 0)
    return Depth4Frame(node, P, bound_children(context, node, 4), firsts, np.full((2, m), NO_SPLIT, np.int64))


@kernel
def _solve_shallower(context, frame, as_leaf, path, caches, query, answer):
    """Solve height three for the node itself, which bounds its children."""
    firsts = frame.firsts
    floors = query.floors
    solve_node3(
        context, frame.node, frame.P, as_leaf, PairCache(path, context.binomials, caches.table[:0]), query, answer
    )
    store_first_bounds(firsts, len(firsts.highest) - 1, floors)
    if context.costs[3]:
        bound_children_by_node(frame.node, answer[COST], context.costs[0], frame.sides.lower)


@kernel
def solve_subtree4(context, rows, path, caches, ub, flag, answer):
    """Write E(rows, 4) into answer, int64 (ANSWERS,), if it is below `ub`, else a lower bound."""
    node, settled = open_node(context, rows, 4, ub, answer)
    if settled:
        return
    as_leaf = answer[COST]
    frame = _build_frame(context, node)
    state = np.zeros(STATES, np.int64)
    state[BEST] = min(ub, as_leaf)
    root = NO_SPLIT
    if context.deepen:
        sub = np.empty(ANSWERS, np.int64)
        floors = np.zeros(len(context.allowed), np.int64)
        _solve_shallower(context, frame, as_leaf, path, caches, NodeQuery(state[BEST], floors, flag), sub)
        state[DEPTH_TWO_SOLVES] = sub[SOLVED]
        state[DEPTH_THREE_SOLVES] = 1
        if sub[EXACT] and sub[COST] < state[BEST]:
            state[BEST] = sub[COST]
            root = LESS_DEEP
    state[CHOICE] = -1
    while not flag[0] and state[NEXT] < len(node.features):
        state[MOST] = state[BEST]
        solve_depth4(context, rows, path, frame, caches, state, PairBudget(1 << 40, flag))
    if state[CHOICE] >= 0:
        root = node.features[state[CHOICE]]
    answer[SOLVED] = state[DEPTH_TWO_SOLVES]
    answer[NODES] = state[DEPTH_THREE_SOLVES]
    write_result(state[BEST], root, ub, flag[0] != 0, as_leaf, frame.sides.lower, answer)
