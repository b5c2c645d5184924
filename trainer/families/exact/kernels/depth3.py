"""Find the best split of a node whose subtrees have depth two.

Bounds and a cache by path prune the search. (Demirovic et al. 2022, MurTree; Keegan et al. 2025, equations 27-40.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.dtypes import CountArray
from trainer.families.exact.kernels.bounds import apply_similarity
from trainer.families.exact.kernels.child_bounds import solve_children
from trainer.families.exact.kernels.depth2 import cheapest_cost
from trainer.kernels.compiled import kernel


class PairCache(NamedTuple):
    """The cache of depth-two subtrees by path.

    path int64: the ascending literals of the node. binomials: see `binomial_table`. table int64: cost + 1 at `path_index`, 0 if
    unknown; empty for no cache.
    """

    path: np.ndarray
    binomials: np.ndarray
    table: np.ndarray


class PairBudget(NamedTuple):
    """The depth-two pairs that a call may solve; flag int64 (1,): anything but 0 ends the call."""

    pairs: int
    flag: np.ndarray


@kernel
def path_index(path, literal, binomials):
    """Return the index of `path` with `literal` among all sets of that size (combinatorial number system).

    path int64, ascending; a literal is 2 * feature + value.
    """
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
def read_cache(cache, feature, p, scale, sides):
    """Read both children of split p on `feature` from the cache, whose costs are `scale` times as large."""
    path, binomials, table = cache
    if len(table) == 0:
        return
    for s in range(2):
        entry = table[path_index(path, 2 * feature + s, binomials)]
        if entry:
            sides.lower[s, p] = (entry - 1) // scale
            sides.exact[s, p] = 1


class NodeState(NamedTuple):
    """The progress of a node, from which the next call resumes.

    state int64 (5,): BEST (cost to beat), CHOICE (its split), NEXT (next split), DEPTH_TWO_SOLVES, STOPPED (by the budget).
    floors int64 (features,): lower bounds by root split.
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
def _read_entry(entry, sides, s, p):
    """Take the cost of child s of split p from an entry of the cache, unless it is empty."""
    if entry:
        sides.lower[s, p] = entry - 1
        sides.exact[s, p] = 1


@kernel
def _share_costs(node, P, p, unit, sides):
    """Bound the children of similar splits by the exact costs of those of p."""
    for s in range(2):
        if sides.exact[s, p]:
            apply_similarity(node, P, p, s, sides.lower[s, p], unit, sides.lower)


@kernel
def solve_depth3(node, P, D, costs, cache, sides, node_state, budget):
    """Find the best split of a node whose subtrees have depth two; resume at state[NEXT], end when the budget is spent.

    D: see `class_differences`. costs: int64 (unit, leaf, min_leaf, use_similarity). The bounds in `sides` stay valid.
    """
    path, binomials, table = cache
    lb, exact = sides
    state, floors = node_state
    unit = costs[0]
    leaf = costs[1]
    min_leaf = costs[2]
    similar = costs[3]
    m = len(node.features)
    e0 = np.empty(4, np.int64)
    e1 = np.empty(4, np.int64)
    cached = len(table) > 0
    solved_pairs = 0
    while state[NEXT] < m:
        if budget.flag[0] or solved_pairs >= budget.pairs:
            state[STOPPED] = 1
            return
        p = state[NEXT]
        first = node.features[p]
        if lb[0, p] + lb[1, p] < state[BEST] and floors[first] < state[BEST]:
            at0 = np.int64(-1)
            at1 = np.int64(-1)
            if cached:
                at0 = path_index(path, 2 * first, binomials)
                at1 = path_index(path, 2 * first + 1, binomials)
                _read_entry(table[at0], sides, 0, p)
                _read_entry(table[at1], sides, 1, p)
            if not (exact[0, p] and exact[1, p]) and lb[0, p] + lb[1, p] < state[BEST]:
                solve_children(node, P, D, p, min_leaf, e0, e1)
                lb[0, p] = cheapest_cost(e0, unit, leaf, 4)
                lb[1, p] = cheapest_cost(e1, unit, leaf, 4)
                exact[0, p] = exact[1, p] = 1
                solved_pairs += 1
                state[DEPTH_TWO_SOLVES] += 2
                if cached:
                    table[at0] = lb[0, p] + 1
                    table[at1] = lb[1, p] + 1
            if similar:
                _share_costs(node, P, p, unit, sides)
            if exact[0, p] and exact[1, p] and lb[0, p] + lb[1, p] < state[BEST]:
                state[BEST] = lb[0, p] + lb[1, p]
                state[CHOICE] = p
        floors[first] = max(floors[first], lb[0, p] + lb[1, p])
        state[NEXT] += 1
    state[STOPPED] = 0


def binomial_table(literals: int, size: int) -> CountArray:
    """Return binomials[j, v] = v choose j, int64 (size + 1, literals + 1)."""
    out = np.zeros((size + 1, literals + 1), np.int64)
    out[0] = 1
    for j in range(1, size + 1):
        for v in range(1, literals + 1):
            out[j, v] = out[j, v - 1] + out[j - 1, v - 1]
    return out
