"""Kernels: which columns the counted trees of each key ask: how many trees do not ask a column, and the weight of rows that meet it.

Keys, costs and parts of trees as in `trainer.families.exact.kernels.count`. Numbers of trees are exact while all trees of a place are
fewer than 2^62.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.count import INFINITE_COST, _floors, _no_options, _options, _place_of, _widen
from trainer.families.exact.kernels.count_node import place_of
from trainer.kernels.compiled import kernel


class KeyUsage(NamedTuple):
    """With each key, ascending: least and largest weight of rows that meet each column, and the trees that do not ask it.

    int64 (keys,), and three times (keys, columns).
    """

    keys: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    free: np.ndarray


class Side(NamedTuple):
    """What may hang at a side by key: keys, costs, how many parts, int64 (m + 1,), and how many ask each column (m + 1, columns)."""

    keys: np.ndarray
    costs: np.ndarray
    parts: np.ndarray
    asking: np.ndarray


@kernel
def asked_pairs(a, b, bits, column, weight, out, first, flag):
    """Join all pairs of trees below a question about `column`, which `weight` of rows meet, to `out`, unless the flag is up.

    bits: that of the question's column in a key, and `low` of the layout. first uint8 (keys,): 1 until a key of `out` has been met.
    """
    columns = a.lo.shape[1]
    for i in range(len(a.keys)):
        if flag[0]:
            return
        for j in range(len(b.keys)):
            t = _place_of(a.keys[i], b.keys[j], bits, out.keys)
            if t < 0:
                continue
            for c in range(columns):
                if c == column:
                    _widen(out, t, c, weight, weight, first)
                    continue
                _widen(out, t, c, a.lo[i, c] + b.lo[j, c], a.hi[i, c] + b.hi[j, c], first)
                out.free[t, c] += a.free[i, c] * b.free[j, c]
            first[t] = 0


@kernel
def _side(costs, keys, most, own, side):
    """Sort the options of cost ≤ `most` by key into `side`; own: the column of each question. How many keys there are."""
    used = 0
    for g in range(len(costs)):
        if costs[g] > most:
            continue
        at = 0
        while at < used and side.keys[at] != keys[g]:
            at += 1
        if at == used:
            side.keys[at], side.costs[at], side.parts[at] = keys[g], costs[g], 0
            side.asking[at] = 0
            used += 1
        side.parts[at] += 1
        if g < len(own):
            side.asking[at, own[g]] += 1
    return used


@kernel
def _no_side(m, columns):
    return Side(
        np.empty(m + 1, np.int64),
        np.empty(m + 1, np.int64),
        np.empty(m + 1, np.int64),
        np.empty((m + 1, columns), np.int64),
    )


@kernel
def _pair(a, b, at, weights, column, out, first):
    """Join the pairs of a part of one key and one of another, at sides with these weights of rows, below a question about `column`.

    at: the places of both keys and of the key of the pair.
    """
    i, j, t = at
    for c in range(a.asking.shape[1]):
        if c == column:
            _widen(out, t, c, weights[0] + weights[1], weights[0] + weights[1], first)
            continue
        least = np.int64(0)
        most = np.int64(0)
        if a.asking[i, c]:
            most += weights[0]
            least += weights[0] if a.asking[i, c] == a.parts[i] else 0
        if b.asking[j, c]:
            most += weights[1]
            least += weights[1] if b.asking[j, c] == b.parts[j] else 0
        _widen(out, t, c, least, most, first)
        out.free[t, c] += (a.parts[i] - a.asking[i, c]) * (b.parts[j] - b.asking[j, c])
    first[t] = 0


@kernel
def asked_place(given, height, layout, budget, column_of, out, first):
    """The trees with a question at the top that `count_two` counts for some rows, joined to `out`.

    given: as `count_place` takes it; column_of int64 (questions,), the column of each.
    """
    node, P = place_of(given, height)
    m = len(node.features)
    columns = out.lo.shape[1]
    min_leaf = given[3]
    own = np.empty(m, np.int64)
    for f in range(m):
        own[f] = column_of[node.features[f]]
    options = _no_options(m)
    floors = _floors(node, P, height, min_leaf, layout)
    no = _no_side(m, columns)
    yes = _no_side(m, columns)
    weights = np.zeros(2, np.int64)
    for f in range(m):
        if floors[0, f] + floors[1, f] > budget:
            continue
        least0 = _options(node, P, f, 0, height, min_leaf, layout, options)
        least1 = _options(node, P, f, 1, height, min_leaf, layout, options)
        if least0 >= INFINITE_COST or least1 >= INFINITE_COST or least0 + least1 > budget:
            continue
        zeros = _side(options.costs[0], options.keys[0], budget - least1, own, no)
        ones = _side(options.costs[1], options.keys[1], budget - least0, own, yes)
        weights[1] = node.ones[:, f].sum()
        weights[0] = node.totals.sum() - weights[1]
        bits = (layout.bits[node.features[f]], layout.low)
        for i in range(zeros):
            for j in range(ones):
                t = _place_of(no.keys[i], yes.keys[j], bits, out.keys)
                if t >= 0 and no.costs[i] + yes.costs[j] <= budget:
                    _pair(no, yes, (i, j, t), weights, own[f], out, first)
