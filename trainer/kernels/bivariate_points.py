"""Rows of a node to the distinct points of a pair of features, with class counts in compressed rows."""

from __future__ import annotations

import math

import numpy as np

from trainer.kernels.compiled import kernel


@kernel
def merge(u, v, code_u, code_v, levels_u, levels_v, y, weight, classes, pu, pv, first, klass, count):
    """Write the distinct points (pu, pv), ordered by u and v, and their class counts; returns how many there are.

    code_u, code_v int64 are the ranks of the values among the distinct ones; the output arrays hold at least n entries
    (first: n + 1).
    """
    n = u.shape[0]
    cells = levels_u * levels_v
    if cells <= 4 * n:  # a counting sort pays
        begin = np.zeros(cells + 1, np.int64)
        for i in range(n):
            begin[code_u[i] * levels_v + code_v[i] + 1] += 1
        for c in range(cells):
            begin[c + 1] += begin[c]
        order = np.empty(n, np.int64)
        for i in range(n):
            c = code_u[i] * levels_v + code_v[i]
            order[begin[c]] = i
            begin[c] += 1
    else:
        order = np.argsort(code_u * levels_v + code_v)
    tally = np.zeros(classes, np.int64)
    N, h, r = 0, 0, 0
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
                klass[h], count[h] = c, tally[c]
                tally[c] = 0
                h += 1
        pu[N], pv[N] = u[i], v[i]
        N += 1
        first[N] = h
        r = s
    return N


@kernel
def points_floor(measure, first, klass, weight, classes):
    """The sum of Phi over the points, in rows: no rule can part equal points, and Phi is superadditive."""
    floor = 0.0
    for i in range(first.shape[0] - 1):
        if first[i + 1] - first[i] < 2:
            continue
        total, part, most = 0.0, 0.0, 0.0
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
