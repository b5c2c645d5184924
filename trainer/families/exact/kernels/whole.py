"""A whole node of height three or four in one call, for nodes that take less than a look at the clock.

known[j]  twice the lower bound of E(D, 3), plus 1 where it is exact, for the rows D of a path; one run of paths for each length.
(Demirovic et al. 2022; the order and the bounds are those of `trainer.families.exact.search`.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.bounds import Sides, child_bounds, count_bounds, inherit, node_bounds, share
from trainer.families.exact.kernels.firsts import firsts_of, floors_of, learn
from trainer.families.exact.kernels.node import Data, pair_counts, prepare, split_rows
from trainer.families.exact.kernels.signed import differences
from trainer.families.exact.kernels.three import BEST, CHOICE, STOPPED, TWOS, Budget, Found, Kept, place, three
from trainer.families.exact.kernels.two import own_values, price
from trainer.kernels.compiled import kernel

i32 = np.int32

# positions in an answer: cost if exact, else a lower bound of at least `ub` (less where flag[0] ended the search); whether exact; the
# feature of the root, or one of the two below; depth-two solves; subtrees of height three
COST, EXACT, ROOT, SOLVED, NODES = 0, 1, 2, 3, 4
ANSWERS = 5
NO_SPLIT, LESS_DEEP = -1, -2


class Given(NamedTuple):
    """What all nodes of a search share."""

    data: Data
    allowed: np.ndarray  # uint8 (features,)
    reduce: bool
    deepen: bool  # the best tree of height three first
    bounds: np.ndarray  # uint8: equivalent points, leaf count, support
    costs: np.ndarray  # int64: unit, leaf, min_leaf, use_similarity
    binomials: np.ndarray


class Caches(NamedTuple):
    """The cache of depth-two subtrees two literals below a node, and that of height three: `known`, int64, empty for none.

    starts[s] is the first place of `known` for paths of s literals.
    """

    table: np.ndarray
    known: np.ndarray
    starts: np.ndarray


class Asked(NamedTuple):
    """What is asked of a node of height three."""

    ub: int  # what a tree has to cost less than
    floors: np.ndarray  # of `Found`
    flag: np.ndarray  # of `Budget`


@kernel
def _begun(given, rows, height, ub, answer):
    """The node of the rows, and True with the answer where its bounds settle it."""
    unit, leaf, min_leaf = given.costs[0], given.costs[1], given.costs[2]
    node = prepare(given.data, rows, given.allowed, min_leaf, given.reduce, True)
    as_leaf, floor = node_bounds(node, unit, leaf, height, given.bounds)
    answer[EXACT], answer[ROOT], answer[SOLVED], answer[NODES] = 1, NO_SPLIT, 0, 0
    answer[COST] = as_leaf
    if len(node.features) == 0 or floor >= as_leaf:
        return node, True
    if floor >= ub:
        answer[COST], answer[EXACT] = floor, 0
        return node, True
    return node, False


@kernel
def _opened(given, node, height):
    """What the bounds tell of both sides of each split of a node."""
    m = len(node.features)
    sides = Sides(np.zeros((2, m), np.int64), np.zeros((2, m), np.uint8))
    count_bounds(node, given.costs[0], given.costs[1], height - 1, given.bounds, sides)
    return sides


@kernel
def _ended(best, root, ub, stopped, as_leaf, lb, answer):
    """Write what a search of all splits has found, or proved."""
    if best < ub and not stopped:
        answer[COST], answer[EXACT], answer[ROOT] = best, 1, root
        return
    floor = as_leaf
    for p in range(lb.shape[1]):
        floor = min(floor, lb[0, p] + lb[1, p])
    answer[COST], answer[EXACT], answer[ROOT] = floor if stopped else max(ub, floor), 0, NO_SPLIT


@kernel
def _three_of(given, node, P, as_leaf, kept, asked, answer):
    """The best tree of height three of a node that may have splits."""
    unit, leaf, min_leaf = given.costs[0], given.costs[1], given.costs[2]
    ub, floors, flag = asked
    sides = _opened(given, node, 3)
    e, state = np.empty(4, np.int64), np.zeros(5, np.int64)
    children = own_values(node, P, min_leaf, e)
    child_bounds(node, children, given.costs, given.bounds, sides)
    own = price(e, unit, leaf, 4)
    if given.costs[3]:
        inherit(node, own, unit, sides.lower)
    best, root = ub, NO_SPLIT
    if own < ub:
        best, root = own, LESS_DEEP
    if as_leaf <= best and as_leaf < ub:
        best, root = as_leaf, NO_SPLIT
    state[BEST], state[CHOICE] = best, -1
    D, found, budget = differences(node, P, min_leaf), Found(state, floors), Budget(1 << 40, flag)
    three(node, P, D, given.costs, kept, sides, found, budget)
    answer[SOLVED] = state[TWOS]
    if state[CHOICE] >= 0:
        root = node.features[state[CHOICE]]
    _ended(state[BEST], root, ub, state[STOPPED] != 0, as_leaf, sides.lower, answer)


@kernel
def whole_three(given, rows, path, table, asked, answer):
    """E(rows, 3) if below `ub`, else a bound; table: the cache of depth-two subtrees one literal below `path`, empty for none."""
    node, settled = _begun(given, rows, 3, asked.ub, answer)
    if settled:
        return
    m = len(node.features)
    P = np.empty((given.data.classes, m, m), i32)
    pair_counts(node, P)
    _three_of(given, node, P, answer[COST], Kept(path, given.binomials, table), asked, answer)


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
    """E(rows, 3) of a side, from the cache where that is enough: the lower bound, and whether it is exact."""
    at, held, known = np.int64(-1), np.int64(0), caches.known
    if len(known):
        at = caches.starts[len(path) + 1] + place(path, literal, given.binomials)
        held = known[at]
    if not (held & 1) and (held >> 1) < asked.ub:
        sub = np.empty(ANSWERS, np.int64)
        whole_three(given, rows, _extended(path, literal), caches.table, asked, sub)
        answer[SOLVED] += sub[SOLVED]
        answer[NODES] += 1
        held = max(held, 2 * sub[COST] + sub[EXACT])
        if at >= 0:
            known[at] = held
    return held >> 1, held & 1


@kernel
def whole_four(given, rows, path, caches, ub, flag, answer):
    """E(rows, 4) if below `ub`, else a bound."""
    node, settled = _begun(given, rows, 4, ub, answer)
    if settled:
        return
    unit, m, as_leaf = given.costs[0], len(node.features), answer[COST]
    P = np.empty((given.data.classes, m, m), i32)
    pair_counts(node, P)
    lb, exact = _opened(given, node, 4)
    best, root = min(ub, as_leaf), NO_SPLIT
    firsts = firsts_of(m, len(given.allowed), given.costs[3] != 0)
    if given.deepen:
        sub, floors = np.empty(ANSWERS, np.int64), np.zeros(len(given.allowed), np.int64)
        kept = Kept(path, given.binomials, caches.table[:0])
        _three_of(given, node, P, as_leaf, kept, Asked(best, floors, flag), sub)
        learn(firsts, len(firsts.highest) - 1, floors)
        answer[SOLVED] += sub[SOLVED]
        answer[NODES] += 1
        if sub[EXACT] and sub[COST] < best:
            best, root = sub[COST], LESS_DEEP
        if given.costs[3]:
            inherit(node, sub[COST], unit, lb)
    stopped = flag[0] != 0
    for p in range(m):
        if stopped:
            break
        if lb[0, p] + lb[1, p] >= best:
            continue
        feature = np.int64(node.features[p])
        parts = split_rows(given.data.R, rows, feature)
        first = 0 if len(parts[0]) >= len(parts[1]) else 1
        for s in (first, 1 - first):
            if not exact[s, p]:
                rest = best - lb[1 - s, p]
                floors = floors_of(node, P, p, s, unit, firsts)
                asked = Asked(rest, floors, flag)
                value, proved = _side(given, parts[s], path, 2 * feature + s, caches, asked, answer)
                learn(firsts, 2 * p + s, floors)
                if proved or value > lb[s, p]:
                    lb[s, p], exact[s, p] = max(lb[s, p], value), proved
            if given.costs[3]:
                share(node, P, p, s, lb[s, p], unit, lb)
            if lb[0, p] + lb[1, p] >= best:
                break
        if exact[0, p] and exact[1, p] and lb[0, p] + lb[1, p] < best:
            best, root = int(lb[0, p] + lb[1, p]), int(feature)
        stopped = flag[0] != 0
    _ended(best, root, ub, stopped, as_leaf, lb, answer)
