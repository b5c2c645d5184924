"""Merge the rows of a node to distinct points of two features."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trainer.kernels.compiled import kernel
from trainer.kernels.impurity import phi
from trainer.kernels.ordering import order_rows


class Points(NamedTuple):
    """Distinct points of a pair: coordinates float64 (N,), compressed class counts int64, and the total of each class.

    Point i holds the counts `weight[h]` of class `klass[h]`, first[i] <= h < first[i + 1]. `fixed`, int64 (2, classes), are counts of
    rows with an empty cell, which every rule sends left (0) or right (1); the total includes them.
    """

    u: np.ndarray
    v: np.ndarray
    first: np.ndarray
    klass: np.ndarray
    weight: np.ndarray
    total: np.ndarray
    fixed: np.ndarray


class BivariateRows(NamedTuple):
    """The rows of a node: values float64 and ranks int64 of the features (p, n), levels int64 (p,), classes y, weights, total of each class.

    Ranks number the distinct values of a feature from 0; `levels` counts them. `empty`, bool (p, n), marks empty cells; it has no rows if
    there are none.
    """

    values: np.ndarray
    ranks: np.ndarray
    levels: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    total: np.ndarray
    empty: np.ndarray


class ColumnPair(NamedTuple):
    """Two columns of a node: values float64 (n,), their ranks int64 (n,), and numbers of distinct values."""

    u: np.ndarray
    v: np.ndarray
    rank_u: np.ndarray
    rank_v: np.ndarray
    levels_u: int
    levels_v: int


@kernel
def exchange(points):
    """Return the points with u and v exchanged."""
    return Points(points.v, points.u, points.first, points.klass, points.weight, points.total, points.fixed)


@kernel
def scaled_points(whole, codes, code_levels, rows, normalise, values, ranks, levels):
    """Fill scaled values, ranks and levels of each feature; the scale is the inter-quartile range, rounded to a power of two.

    whole float64 (all rows, p), its codes and their levels as in `ordering`; values float64, ranks int64 (p, n); levels int64 (p,).
    If the inter-quartile range is 0, the whole range replaces it.
    """
    n = rows.shape[0]
    order = np.empty(n, np.int64)
    spare = np.empty(n, np.int64)
    for j in range(whole.shape[1]):
        code = codes[j]
        column = whole[:, j]
        order_rows(code, rows, code_levels[j], order, spare)
        rank = 0
        before = code[rows[order[0]]]
        for r in order:
            if code[rows[r]] != before:
                rank = rank + 1
                before = code[rows[r]]
            ranks[j, r] = rank
        levels[j] = rank + 1
        middle = 0.0
        factor = 1.0
        if normalise and rank > 0:
            spread = column[rows[order[(3 * n) // 4]]] - column[rows[order[n // 4]]]
            if spread <= 0:
                spread = column[rows[order[n - 1]]] - column[rows[order[0]]]
            middle = column[rows[order[n // 2]]]
            factor = 2.0 ** -np.round(np.log2(spread))
        for r in range(n):
            values[j, r] = (column[rows[r]] - middle) * factor


@kernel
def _sort_by_code(code, levels, order):
    """Sort the positions `order` by code; the sort is stable."""
    begin = np.zeros(levels + 1, np.int64)
    for i in range(code.shape[0]):
        begin[code[i] + 1] += 1
    for c in range(levels):
        begin[c + 1] += begin[c]
    out = np.empty(order.shape[0], np.int64)
    for i in order:
        c = code[i]
        out[begin[c]] = i
        begin[c] += 1
    return out


@kernel
def _merge_dense(columns, y, weight, out):
    """Merge by a table of all pairs of ranks, if these are fewer than the rows; return the number of points."""
    u, v, code_u, code_v, levels_u, levels_v = columns
    pu, pv, first, klass, count, total, _ = out
    cells = levels_u * levels_v
    classes = total.shape[0]
    tally = np.zeros((cells, classes), np.int64)
    row = np.full(cells, -1, np.int64)
    for i in range(u.shape[0]):
        c = code_u[i] * levels_v + code_v[i]
        tally[c, y[i]] += weight[i]
        row[c] = i
    N = 0
    h = 0
    for c in range(cells):
        if row[c] < 0:
            continue
        first[N] = h
        pu[N] = u[row[c]] + 0.0
        pv[N] = v[row[c]] + 0.0
        for k in range(classes):
            if tally[c, k] > 0:
                klass[h] = k
                count[h] = tally[c, k]
                h += 1
        N += 1
    first[N] = h
    return N


@kernel
def merge(columns, y, weight, room):
    """Return the distinct points, ordered by u and then v, with their class counts, in the arrays of `room`.

    These have at least n entries (first: n + 1), except `total` and `fixed`, which are inputs.
    """
    u, v, code_u, code_v, levels_u, levels_v = columns
    pu, pv, first, klass, count, total, fixed = room
    n = u.shape[0]
    classes = total.shape[0]
    N = 0
    h = 0
    r = 0
    if levels_u * levels_v * classes <= n:
        N = _merge_dense(columns, y, weight, room)
    else:
        order = np.arange(n) if levels_u == n else _sort_by_code(code_v, levels_v, np.arange(n))
        order = _sort_by_code(code_u, levels_u, order)
        tally = np.zeros(classes, np.int64)
        first[0] = 0
        while r < n:
            i = order[r]
            s = r
            while s < n and code_u[order[s]] == code_u[i] and code_v[order[s]] == code_v[i]:
                tally[y[order[s]]] += weight[order[s]]
                s += 1
            for x in range(r, s):
                c = y[order[x]]
                if tally[c] > 0:
                    klass[h] = c
                    count[h] = tally[c]
                    tally[c] = 0
                    h += 1
            # not -0.0: the sweep divides by differences, and -0.0 - 0.0 is negative
            pu[N] = u[i] + 0.0
            pv[N] = v[i] + 0.0
            N += 1
            first[N] = h
            r = s
    h = first[N]
    return Points(pu[:N], pv[:N], first[: N + 1], klass[:h], count[:h], total, fixed)


@kernel
def allocate_points(n, total):
    """Allocate arrays for the distinct points of `n` rows with these class totals and no fixed rows."""
    classes = total.shape[0]
    return Points(
        np.empty(n),
        np.empty(n),
        np.empty(n + 1, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        total,
        np.zeros((2, classes), np.int64),
    )


@kernel
def pair_points(pair, rows, room):
    """Return the distinct points of a pair, in the arrays of `room`, as `merge` does.

    pair int64 (3,): two features, and the side of rows with an empty cell: 1 left, 2 right, 0 if there are none.
    """
    i, j, side = pair
    u = rows.values[i]
    v = rows.values[j]
    code_u = rows.ranks[i]
    code_v = rows.ranks[j]
    levels = rows.levels
    room.fixed[:] = 0
    if side == 0:
        return merge(ColumnPair(u, v, code_u, code_v, levels[i], levels[j]), rows.y, rows.weight, room)
    hollow = rows.empty[i] | rows.empty[j]
    for r in range(hollow.shape[0]):
        if hollow[r]:
            room.fixed[side - 1, rows.y[r]] += rows.weight[r]
    complete_rows = np.flatnonzero(~hollow)
    columns = ColumnPair(
        u[complete_rows], v[complete_rows], code_u[complete_rows], code_v[complete_rows], levels[i], levels[j]
    )
    return merge(columns, rows.y[complete_rows], rows.weight[complete_rows], room)


@kernel
def points_floor(measure, points):
    """Return the sum of Phi over the points, a lower bound: no rule separates equal points, and Phi is superadditive."""
    first = points.first
    weight = points.weight
    floor = phi(measure, points.fixed[0]) + phi(measure, points.fixed[1])
    for i in range(first.shape[0] - 1):
        if first[i + 1] - first[i] < 2:
            continue
        total = 0.0
        part = 0.0
        most = 0.0
        for h in range(first[i], first[i + 1]):
            x = float(weight[h])
            total += x
            most = max(most, x)
            part += x * x if measure == 0 else x * math.log(x)
        if measure == 0:
            floor += total - part / total
        elif measure == 1:
            floor += total * math.log(total) - part
        else:
            floor += total - most
    return floor * (1.0 - 1e-9)  # its own rounding must not put it above the best rule
