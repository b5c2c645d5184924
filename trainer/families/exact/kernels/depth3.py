"""Kernel: the best split of a node whose subtrees have depth two, by bounds and a cache of paths.

(Demirovic et al. 2022, MurTree; Keegan et al. 2025, equations 27-40.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.dtypes import CountArray
from trainer.families.exact.kernels.bounds import share
from trainer.families.exact.kernels.child_bounds import both_sides
from trainer.families.exact.kernels.depth2 import price
from trainer.kernels.compiled import kernel


class PairCache(NamedTuple):
    """The cache of depth-two subtrees: cost + 1 of the rows of a path, by `place`; table int64, 0 unknown, empty for no cache.

    path int64: the ascending literals of the node; binomials as `binomial_table` gives them.
    """

    path: np.ndarray
    binomials: np.ndarray
    table: np.ndarray


class PairBudget(NamedTuple):
    """How many depth-two pairs a call may solve; flag int64 (1,): anything but 0 ends the call."""

    pairs: int
    flag: np.ndarray


@kernel
def place(path, literal, binomials):
    """Index of the set path + literal in the table of all sets of that size (combinatorial number system); -1: too large."""
    index = np.int64(0)
    at = 0
    placed = False
    for j in range(len(path) + 1):
        if not placed and (at == len(path) or literal < path[at]):
            value = literal
            placed = True
        else:
            value = path[at]
            at += 1
        index += binomials[j + 1, value]
    return index


@kernel
def look_up(kept, feature, p, scale, sides):
    """Take over what the cache knows of both sides of split p, which asks `feature`; a cost of `scale` there is 1 here."""
    path, binomials, table = kept
    if len(table) == 0:
        return
    for s in range(2):
        held = table[place(path, 2 * feature + s, binomials)]
        if held:
            sides.lower[s, p] = (held - 1) // scale
            sides.exact[s, p] = 1


class NodeState(NamedTuple):
    """What is found of a node; a call goes on from there.

    state int64 (5,): best cost so far (an upper bound to beat), chosen position, next position, depth-two solves, whether the budget ended it.
    floors int64 (features,): least cost of a tree that asks a question first, as far as it is known.
    """

    state: np.ndarray
    floors: np.ndarray


# positions in a state
BEST = 0
CHOICE = 1
NEXT = 2
DEPTH_TWO_SOLVES = 3
STOPPED = 4


@kernel
def three(node, P, D, costs, kept, sides, found, budget):
    """Best split of a node whose subtrees have depth two; resumes at state[NEXT] and ends when the budget is spent.

    D: of `differences`. costs: int64 (unit, leaf, min_leaf, use_similarity).  What `sides` hold stays valid.
    """
    path, binomials, table = kept
    lb, exact = sides
    state, floors = found
    unit = costs[0]
    leaf = costs[1]
    min_leaf = costs[2]
    similar = costs[3]
    m = len(node.features)
    e0 = np.empty(4, np.int64)
    e1 = np.empty(4, np.int64)
    cached = len(table) > 0
    done = 0
    while state[NEXT] < m:
        if budget.flag[0] or done >= budget.pairs:
            state[STOPPED] = 1
            return
        p = state[NEXT]
        first = node.features[p]
        if lb[0, p] + lb[1, p] < state[BEST] and floors[first] < state[BEST]:
            at0 = np.int64(-1)
            at1 = np.int64(-1)
            if cached:
                at0 = place(path, 2 * first, binomials)
                at1 = place(path, 2 * first + 1, binomials)
                if table[at0]:
                    lb[0, p] = table[at0] - 1
                    exact[0, p] = 1
                if table[at1]:
                    lb[1, p] = table[at1] - 1
                    exact[1, p] = 1
            if not (exact[0, p] and exact[1, p]) and lb[0, p] + lb[1, p] < state[BEST]:
                both_sides(node, P, D, p, min_leaf, e0, e1)
                lb[0, p], lb[1, p] = price(e0, unit, leaf, 4), price(e1, unit, leaf, 4)
                exact[0, p] = exact[1, p] = 1
                done += 1
                state[DEPTH_TWO_SOLVES] += 2
                if cached:
                    table[at0], table[at1] = lb[0, p] + 1, lb[1, p] + 1
            if similar:
                for s in range(2):
                    if exact[s, p]:
                        share(node, P, p, s, lb[s, p], unit, lb)
            if exact[0, p] and exact[1, p] and lb[0, p] + lb[1, p] < state[BEST]:
                state[BEST] = lb[0, p] + lb[1, p]
                state[CHOICE] = p
        floors[first] = max(floors[first], lb[0, p] + lb[1, p])
        state[NEXT] += 1
    state[STOPPED] = 0


def binomial_table(literals: int, size: int) -> CountArray:
    """binomials[j, v] = v choose j, int64 (size + 1, literals + 1)."""
    out = np.zeros((size + 1, literals + 1), np.int64)
    out[0] = 1
    for j in range(1, size + 1):
        for v in range(1, literals + 1):
            out[j, v] = out[j, v - 1] + out[j - 1, v - 1]
    return out
