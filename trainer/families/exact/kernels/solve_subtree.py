"""A whole node of height three in one call, for nodes that take less than a look at the clock.

(Demirovic et al. 2022; the order and the bounds are those of `trainer.families.exact.search.search`.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.bounds import SideBounds, child_bounds, count_bounds, inherit, node_bounds
from trainer.families.exact.kernels.depth2 import own_values, price
from trainer.families.exact.kernels.depth2_signed import differences
from trainer.families.exact.kernels.depth3 import (
    BEST,
    CHOICE,
    DEPTH_TWO_SOLVES,
    STOPPED,
    NodeState,
    PairBudget,
    PairCache,
    three,
)
from trainer.families.exact.kernels.node import DataRows, pair_counts, prepare
from trainer.kernels.compiled import kernel

i32 = np.int32

# positions in an answer: cost if exact, else a lower bound of at least `ub` (less where flag[0] ended the search); whether exact; the
# feature of the root, or one of the two below; depth-two solves; subtrees of height three
COST = 0
EXACT = 1
ROOT = 2
SOLVED = 3
NODES = 4
ANSWERS = 5
NO_SPLIT = -1
LESS_DEEP = -2


class SearchContext(NamedTuple):
    """What all nodes of a search share."""

    data: DataRows
    allowed: np.ndarray  # uint8 (features,)
    reduce: bool
    deepen: bool  # the best tree of height three first
    bounds: np.ndarray  # uint8: equivalent points, leaf count, support
    costs: np.ndarray  # int64: unit, leaf, min_leaf, use_similarity
    binomials: np.ndarray


class NodeQuery(NamedTuple):
    """What is asked of a node of height three."""

    ub: int  # what a tree has to cost less than
    floors: np.ndarray  # of `NodeState`
    flag: np.ndarray  # of `PairBudget`


@kernel
def open_node(given, rows, height, ub, answer):
    """The node of the rows, and True with the answer where its bounds settle it."""
    unit = given.costs[0]
    leaf = given.costs[1]
    min_leaf = given.costs[2]
    node = prepare(given.data, rows, given.allowed, min_leaf, given.reduce, True)
    as_leaf, floor = node_bounds(node, unit, leaf, height, given.bounds)
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
def bound_children(given, node, height):
    """What the bounds tell of both sides of each split of a node."""
    m = len(node.features)
    sides = SideBounds(np.zeros((2, m), np.int64), np.zeros((2, m), np.uint8))
    count_bounds(node, given.costs[0], given.costs[1], height - 1, given.bounds, sides)
    return sides


@kernel
def write_result(best, root, ub, stopped, as_leaf, lb, answer):
    """Write what a search of all splits has found, or proved."""
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
def three_of(given, node, P, as_leaf, kept, asked, answer):
    """The best tree of height three of a node that may have splits."""
    unit = given.costs[0]
    leaf = given.costs[1]
    min_leaf = given.costs[2]
    ub, floors, flag = asked
    sides = bound_children(given, node, 3)
    e = np.empty(4, np.int64)
    state = np.zeros(5, np.int64)
    children = own_values(node, P, min_leaf, e)
    child_bounds(node, children, given.costs, given.bounds, sides)
    own = price(e, unit, leaf, 4)
    if given.costs[3]:
        inherit(node, own, unit, sides.lower)
    best = ub
    root = NO_SPLIT
    if own < ub:
        best = own
        root = LESS_DEEP
    if as_leaf <= best and as_leaf < ub:
        best = as_leaf
        root = NO_SPLIT
    state[BEST] = best
    state[CHOICE] = -1
    D = differences(node, P, min_leaf)
    found = NodeState(state, floors)
    budget = PairBudget(1 << 40, flag)
    three(node, P, D, given.costs, kept, sides, found, budget)
    answer[SOLVED] = state[DEPTH_TWO_SOLVES]
    if state[CHOICE] >= 0:
        root = node.features[state[CHOICE]]
    write_result(state[BEST], root, ub, state[STOPPED] != 0, as_leaf, sides.lower, answer)


@kernel
def whole_three(given, rows, path, table, asked, answer):
    """E(rows, 3) if below `ub`, else a bound; table: the cache of depth-two subtrees one literal below `path`, empty for none."""
    node, settled = open_node(given, rows, 3, asked.ub, answer)
    if settled:
        return
    m = len(node.features)
    P = np.empty((given.data.classes, m, m), i32)
    pair_counts(node, P)
    three_of(given, node, P, answer[COST], PairCache(path, given.binomials, table), asked, answer)
