"""Solve a node of height three in one call.

It serves nodes that take less than a time slice. E(D, h) is the least cost of a tree of height ≤ h for the rows D. (Demirovic et al.
2022; the order and the bounds are those of `trainer.families.exact.search.search`.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.bounds import (
    SideBounds,
    bound_children_by_node,
    child_bounds,
    count_bounds,
    node_bounds,
)
from trainer.families.exact.kernels.depth2 import cheapest_cost, node_errors_by_leaves
from trainer.families.exact.kernels.depth2_signed import class_differences
from trainer.families.exact.kernels.depth3 import (
    BEST,
    CHOICE,
    DEPTH_TWO_SOLVES,
    STOPPED,
    NodeState,
    PairBudget,
    PairCache,
    solve_depth3,
)
from trainer.families.exact.kernels.node import DataRows, pair_counts, prepare
from trainer.kernels.compiled import kernel

i32 = np.int32

# positions in an answer. COST: the cost if exact, else a lower bound of at least `ub` (less if flag[0] ended the search).
# ROOT: the feature of the root, NO_SPLIT or LESS_DEEP. SOLVED: depth-two solves. NODES: subtrees of height three.
COST = 0
EXACT = 1
ROOT = 2
SOLVED = 3
NODES = 4
ANSWERS = 5
NO_SPLIT = -1
LESS_DEEP = -2


class SearchContext(NamedTuple):
    """The arguments that all nodes of a search share."""

    data: DataRows
    allowed: np.ndarray  # uint8 (features,)
    reduce: bool
    deepen: bool  # whether to solve height three before height four
    bounds: np.ndarray  # uint8: equivalent points, leaf count, support
    costs: np.ndarray  # int64: unit, leaf, min_leaf, use_similarity
    binomials: np.ndarray


class NodeQuery(NamedTuple):
    """The limits of a search of a node of height three."""

    ub: int  # only trees below this cost are searched
    floors: np.ndarray  # see `NodeState`
    flag: np.ndarray  # see `PairBudget`


@kernel
def open_node(context, rows, height, ub, answer):
    """Return the node of the rows, and True if its bounds already give the answer, int64 (ANSWERS,)."""
    unit = context.costs[0]
    leaf = context.costs[1]
    min_leaf = context.costs[2]
    node = prepare(context.data, rows, context.allowed, min_leaf, context.reduce, True)
    as_leaf, floor = node_bounds(node, unit, leaf, height, context.bounds)
    answer[EXACT] = 1
    answer[ROOT] = NO_SPLIT
    answer[SOLVED] = 0
    answer[NODES] = 0
    answer[COST] = as_leaf
    if len(node.features) == 0 or floor >= as_leaf:
        return node, True
    if floor >= ub:
        answer[COST] = floor
        answer[EXACT] = 0
        return node, True
    return node, False


@kernel
def bound_children(context, node, height):
    """Return bounds of both children of each split from class counts."""
    m = len(node.features)
    sides = SideBounds(np.zeros((2, m), np.int64), np.zeros((2, m), np.uint8))
    count_bounds(node, context.costs[0], context.costs[1], height - 1, context.bounds, sides)
    return sides


@kernel
def write_result(best, root, ub, stopped, as_leaf, lb, answer):
    """Write the optimum or the proved bound of a search of all splits."""
    if best < ub and not stopped:
        answer[COST] = best
        answer[EXACT] = 1
        answer[ROOT] = root
        return
    floor = as_leaf
    for p in range(lb.shape[1]):
        floor = min(floor, lb[0, p] + lb[1, p])
    answer[COST] = floor if stopped else max(ub, floor)
    answer[EXACT] = 0
    answer[ROOT] = NO_SPLIT


@kernel
def solve_node3(context, node, P, as_leaf, cache, query, answer):
    """Solve height three for a node that has splits."""
    unit = context.costs[0]
    leaf = context.costs[1]
    min_leaf = context.costs[2]
    ub, floors, flag = query
    sides = bound_children(context, node, 3)
    e = np.empty(4, np.int64)
    state = np.zeros(5, np.int64)
    children = node_errors_by_leaves(node, P, min_leaf, e)
    child_bounds(node, children, context.costs, context.bounds, sides)
    depth2_cost = cheapest_cost(e, unit, leaf, 4)
    if context.costs[3]:
        bound_children_by_node(node, depth2_cost, unit, sides.lower)
    best = ub
    root = NO_SPLIT
    if depth2_cost < ub:
        best = depth2_cost
        root = LESS_DEEP
    if as_leaf <= best and as_leaf < ub:
        best = as_leaf
        root = NO_SPLIT
    state[BEST] = best
    state[CHOICE] = -1
    D = class_differences(node, P, min_leaf)
    node_state = NodeState(state, floors)
    budget = PairBudget(1 << 40, flag)
    solve_depth3(node, P, D, context.costs, cache, sides, node_state, budget)
    answer[SOLVED] = state[DEPTH_TWO_SOLVES]
    if state[CHOICE] >= 0:
        root = node.features[state[CHOICE]]
    write_result(state[BEST], root, ub, state[STOPPED] != 0, as_leaf, sides.lower, answer)


@kernel
def solve_subtree3(context, rows, path, table, query, answer):
    """Write E(rows, 3) into answer, int64 (ANSWERS,), if it is below `ub`, else a lower bound.

    table: the cache of depth-two subtrees below `path`, empty for none.
    """
    node, settled = open_node(context, rows, 3, query.ub, answer)
    if settled:
        return
    m = len(node.features)
    P = np.empty((context.data.classes, m, m), i32)
    pair_counts(node, P)
    solve_node3(context, node, P, answer[COST], PairCache(path, context.binomials, table), query, answer)
