"""Nodes of height four: their splits one after the other in one call, as far as a budget goes, and a whole node that takes less than that.

known[j]  twice the lower bound of E(D, 3), plus 1 where it is exact, for the rows D of a path; one run of paths for each length.
(Demirovic et al. 2022; the order and the bounds are those of `trainer.families.exact.search.search`.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.bounds import SideBounds, inherit, share
from trainer.families.exact.kernels.depth3 import (
    BEST,
    CHOICE,
    DEPTH_TWO_SOLVES,
    NEXT,
    STOPPED,
    PairBudget,
    PairCache,
    place,
)
from trainer.families.exact.kernels.first_split_bounds import FirstSplitBounds, firsts_of, floors_of, learn
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
    three_of,
    whole_three,
    write_result,
)
from trainer.kernels.compiled import kernel

i32 = np.int32

# positions in a state behind those of height three: up to which cost splits are searched, and subtrees of height three
MOST = 5
THREES = 6
STATES = 7


class Caches(NamedTuple):
    """The cache of depth-two subtrees two literals below a node, and that of height three: `known`, int64, empty for none.

    starts[s] is the first place of `known` for paths of s literals.
    """

    table: np.ndarray
    known: np.ndarray
    starts: np.ndarray


class Depth4Frame(NamedTuple):
    """A node of height four, and what is known of its splits."""

    node: NodeView
    P: np.ndarray
    sides: SideBounds
    firsts: FirstSplitBounds
    roots: np.ndarray  # int64 (2, p), of sides that were searched: ROOT of their answer


@kernel
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


@kernel
def _side(given, rows, path, literal, caches, asked, answer):
    """Write E(rows, 3) of a side, from the cache where that is enough."""
    at = np.int64(-1)
    held = np.int64(0)
    known = caches.known
    if len(known):
        at = caches.starts[len(path) + 1] + place(path, literal, given.binomials)
        held = known[at]
    answer[SOLVED] = 0
    answer[NODES] = 0
    answer[ROOT] = NO_SPLIT
    if not (held & 1) and (held >> 1) < asked.ub:
        whole_three(given, rows, _extended(path, literal), caches.table, asked, answer)
        answer[NODES] = 1
        held = max(held, 2 * answer[COST] + answer[EXACT])
        if at >= 0:
            known[at] = held
    answer[COST], answer[EXACT] = held >> 1, held & 1


@kernel
def _solve_children(given, rows, path, frame, p, caches, state, flag):
    """Search both sides of a split, the larger one first, as long as they may cost less than state[MOST] together."""
    node, P, sides, firsts, roots = frame
    lb, exact = sides
    unit = given.costs[0]
    feature = np.int64(node.features[p])
    parts = split_rows(given.data.R, rows, feature)
    first = 0 if len(parts[0]) >= len(parts[1]) else 1
    answer = np.empty(ANSWERS, np.int64)
    for s in (first, 1 - first):
        if not exact[s, p]:
            floors = floors_of(node, P, p, s, unit, firsts)
            asked = NodeQuery(state[MOST] - lb[1 - s, p], floors, flag)
            _side(given, parts[s], path, 2 * feature + s, caches, asked, answer)
            state[DEPTH_TWO_SOLVES] += answer[SOLVED]
            state[THREES] += answer[NODES]
            learn(firsts, 2 * p + s, floors)
            if answer[EXACT] or answer[COST] > lb[s, p]:
                lb[s, p], exact[s, p] = max(lb[s, p], answer[COST]), answer[EXACT]
                roots[s, p] = answer[ROOT]
        if given.costs[3]:
            share(node, P, p, s, lb[s, p], unit, lb)
        if lb[0, p] + lb[1, p] >= state[MOST]:
            return


@kernel
def four(given, rows, path, frame, caches, state, budget):
    """Search splits from state[NEXT] on, until one is better than state[BEST], the budget is spent, or all are done (NEXT is their number).

    state int64 (STATES,): as of `Found`, and what stands at MOST and THREES. A call goes on from there, unless the flag ended the last one.
    """
    lb, exact = frame.sides
    m = lb.shape[1]
    begin = state[DEPTH_TWO_SOLVES] + 2 * state[THREES]
    while state[NEXT] < m:
        # a subtree of height three takes as long as a pair of depth two before it solves any
        if budget.flag[0] or state[DEPTH_TWO_SOLVES] + 2 * state[THREES] - begin >= 2 * budget.pairs:
            state[STOPPED] = 1
            return
        p = state[NEXT]
        state[NEXT] += 1
        if lb[0, p] + lb[1, p] >= state[MOST]:
            continue
        _solve_children(given, rows, path, frame, p, caches, state, budget.flag)
        if exact[0, p] and exact[1, p] and lb[0, p] + lb[1, p] < state[BEST]:
            state[BEST] = lb[0, p] + lb[1, p]
            state[CHOICE] = p
            break
    state[STOPPED] = 0


@kernel
def _framed(given, node):
    """The frame of a node of which nothing is known yet but its bounds by counts."""
    m = len(node.features)
    P = np.empty((given.data.classes, m, m), i32)
    pair_counts(node, P)
    firsts = firsts_of(m, len(given.allowed), given.costs[3] != 0)
    return Depth4Frame(node, P, bound_children(given, node, 4), firsts, np.full((2, m), NO_SPLIT, np.int64))


@kernel
def _shallower(given, frame, as_leaf, path, caches, asked, answer):
    """The best tree of height three of the node itself, which bounds its sides."""
    firsts = frame.firsts
    floors = asked.floors
    three_of(given, frame.node, frame.P, as_leaf, PairCache(path, given.binomials, caches.table[:0]), asked, answer)
    learn(firsts, len(firsts.highest) - 1, floors)
    if given.costs[3]:
        inherit(frame.node, answer[COST], given.costs[0], frame.sides.lower)


@kernel
def whole_four(given, rows, path, caches, ub, flag, answer):
    """E(rows, 4) if below `ub`, else a bound."""
    node, settled = open_node(given, rows, 4, ub, answer)
    if settled:
        return
    as_leaf = answer[COST]
    frame = _framed(given, node)
    state = np.zeros(STATES, np.int64)
    state[BEST] = min(ub, as_leaf)
    root = NO_SPLIT
    if given.deepen:
        sub = np.empty(ANSWERS, np.int64)
        floors = np.zeros(len(given.allowed), np.int64)
        _shallower(given, frame, as_leaf, path, caches, NodeQuery(state[BEST], floors, flag), sub)
        state[DEPTH_TWO_SOLVES] = sub[SOLVED]
        state[THREES] = 1
        if sub[EXACT] and sub[COST] < state[BEST]:
            state[BEST] = sub[COST]
            root = LESS_DEEP
    state[CHOICE] = -1
    while not flag[0] and state[NEXT] < len(node.features):
        state[MOST] = state[BEST]
        four(given, rows, path, frame, caches, state, PairBudget(1 << 40, flag))
    if state[CHOICE] >= 0:
        root = node.features[state[CHOICE]]
    answer[SOLVED], answer[NODES] = state[DEPTH_TWO_SOLVES], state[THREES]
    write_result(state[BEST], root, ub, flag[0] != 0, as_leaf, frame.sides.lower, answer)
