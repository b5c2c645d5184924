"""Measure the columns that counted trees use, by key of the trees.

For each key and column: the number of trees without the column, and the weight of the rows on which the others test it. Keys, costs
and subtrees as in `trainer.families.exact.kernels.count`. Numbers are exact for fewer than 2^62 trees of a subproblem.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.count import (
    INFINITE_COST,
    _child_floors,
    _find_pair,
    _new_options,
    _widen_range,
    _write_options,
)
from trainer.families.exact.kernels.count_node import build_node
from trainer.kernels.compiled import kernel


class KeyUsage(NamedTuple):
    """By key, ascending: least and largest weight of rows whose path tests each column, and the number of trees without it.

    keys int64 (keys,); the others int64 (keys, columns).
    """

    keys: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    free: np.ndarray


class UsageOptions(NamedTuple):
    """Subtrees of a child by key: keys, costs and numbers, int64 (m + 1,), and how many test each column (m + 1, columns)."""

    keys: np.ndarray
    costs: np.ndarray
    parts: np.ndarray
    asking: np.ndarray


@kernel
def join_usage_pairs(a, b, bits, column, weight, out, first, flag):
    """Add all pairs of trees below a split on `column`, with `weight` of rows, to `out`, until the flag is set.

    a, b: `KeyUsage` of both children. bits: that of the split's column in a key, and `low` of the layout. first uint8 (keys,): 1 until
    a key of `out` has a range.
    """
    columns = a.lo.shape[1]
    for i in range(len(a.keys)):
        if flag[0]:
            return
        for j in range(len(b.keys)):
            t = _find_pair(a.keys[i], b.keys[j], bits, out.keys)
            if t < 0:
                continue
            for c in range(columns):
                if c == column:
                    _widen_range(out, t, c, weight, weight, first)
                    continue
                _widen_range(out, t, c, a.lo[i, c] + b.lo[j, c], a.hi[i, c] + b.hi[j, c], first)
                out.free[t, c] += a.free[i, c] * b.free[j, c]
            first[t] = 0


@kernel
def _group_options(costs, keys, most, column_of, side):
    """Group the options of cost ≤ `most` by key into `side`; column_of: by feature. Return the number of keys."""
    used = 0
    for g in range(len(costs)):
        if costs[g] > most:
            continue
        at = 0
        while at < used and side.keys[at] != keys[g]:
            at += 1
        if at == used:
            side.keys[at] = keys[g]
            side.costs[at] = costs[g]
            side.parts[at] = 0
            side.asking[at] = 0
            used += 1
        side.parts[at] += 1
        if g < len(column_of):
            side.asking[at, column_of[g]] += 1
    return used


@kernel
def _new_options_of_child(m, columns):
    return UsageOptions(
        np.empty(m + 1, np.int64),
        np.empty(m + 1, np.int64),
        np.empty(m + 1, np.int64),
        np.empty((m + 1, columns), np.int64),
    )


@kernel
def _join_pair(a, b, at, weights, column, out, first):
    """Add the pairs of subtrees of two keys below a split on `column`; weights: of the rows of both children.

    at: the positions of both keys and of the key of the pair.
    """
    i, j, t = at
    for c in range(a.asking.shape[1]):
        if c == column:
            _widen_range(out, t, c, weights[0] + weights[1], weights[0] + weights[1], first)
            continue
        least = np.int64(0)
        most = np.int64(0)
        if a.asking[i, c]:
            most += weights[0]
            least += weights[0] if a.asking[i, c] == a.parts[i] else 0
        if b.asking[j, c]:
            most += weights[1]
            least += weights[1] if b.asking[j, c] == b.parts[j] else 0
        _widen_range(out, t, c, least, most, first)
        out.free[t, c] += (a.parts[i] - a.asking[i, c]) * (b.parts[j] - b.asking[j, c])
    first[t] = 0


@kernel
def join_usage_of_rows(subproblem, height, layout, budget, column_of, out, first):
    """Add the trees of at least one split that `count_depth2` counts to `out`.

    subproblem: see `build_node`. column_of int64 (features,).
    """
    node, P = build_node(subproblem, height)
    m = len(node.features)
    columns = out.lo.shape[1]
    min_leaf = subproblem[3]
    column_at = np.empty(m, np.int64)
    for f in range(m):
        column_at[f] = column_of[node.features[f]]
    options = _new_options(m)
    floors = _child_floors(node, P, height, min_leaf, layout)
    zero_options = _new_options_of_child(m, columns)
    one_options = _new_options_of_child(m, columns)
    weights = np.zeros(2, np.int64)
    for f in range(m):
        if floors[0, f] + floors[1, f] > budget:
            continue
        least0 = _write_options(node, P, f, 0, height, min_leaf, layout, options)
        least1 = _write_options(node, P, f, 1, height, min_leaf, layout, options)
        if least0 >= INFINITE_COST or least1 >= INFINITE_COST or least0 + least1 > budget:
            continue
        zeros = _group_options(options.costs[0], options.keys[0], budget - least1, column_at, zero_options)
        ones = _group_options(options.costs[1], options.keys[1], budget - least0, column_at, one_options)
        weights[1] = node.ones[:, f].sum()
        weights[0] = node.totals.sum() - weights[1]
        bits = (layout.bits[node.features[f]], layout.low)
        for i in range(zeros):
            for j in range(ones):
                t = _find_pair(zero_options.keys[i], one_options.keys[j], bits, out.keys)
                if t >= 0 and zero_options.costs[i] + one_options.costs[j] <= budget:
                    _join_pair(zero_options, one_options, (i, j, t), weights, column_at[f], out, first)
