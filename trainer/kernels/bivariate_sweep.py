"""Angular sweep: the best line on a pair of features by enumeration, O(N^2 log N), independent of the branch and bound.

Each point in turn is the pivot; the others are sorted by the direction of the line through it, and at each direction the line is
turned by an infinitesimal angle, which sends a prefix of the points on it to one side and the rest to the other. Every partition
of the plane by a line is met in this way. Points as in `bivariate`: merged, with class counts.

State      where[0] next pivot; found: pivot, other point, and k: the first k points on the line go left (k < 0: the last -k)
Exactness  slopes of equal fractions of 26-bit integers are equal in double precision, so groups of equal angle are exact there
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _phi(measure, n):
    total, part, most = 0.0, 0.0, 0.0
    for c in range(n.shape[0]):
        x = float(n[c])
        if x > 0.0:
            total += x
            if measure == 0:
                part += x * x
            elif measure == 1:
                part += x * math.log(x)
            elif x > most:
                most = x
    if total == 0.0:
        return 0.0
    if measure == 0:
        return total - part / total
    if measure == 1:
        return max(0.0, total * math.log(total) - part)
    return total - most


@njit(cache=True, nogil=True)
def _value(measure, min_leaf, left, total, rows):
    """Phi(left) + Phi(total - left), or infinity where a side is smaller than `min_leaf`."""
    K = total.shape[0]
    n = 0
    for c in range(K):
        n += left[c]
    if min(n, rows - n) < max(1, min_leaf):
        return math.inf
    if measure == 0:
        up, down = 0, 0
        for c in range(K):
            x = left[c]
            y = total[c] - x
            up += x * x
            down += y * y
        return (n - up / n) + ((rows - n) - down / (rows - n))
    return _phi(measure, left) + _phi(measure, total - left)


@njit(cache=True, nogil=True)
def sweep(measure, min_leaf, work, tol, u, v, first, klass, weight, total, where, found, best):
    """Go on from pivot where[0] until `work` comparisons are done; True once all pivots are done.

    best float64 (1,) holds the value to beat and then the best value; found int64 (3,) as in the legend.
    """
    N, K = u.shape[0], total.shape[0]
    rows = total.sum()
    slope = np.empty(N)
    side = np.empty(N, np.int64)
    left = np.zeros(K, np.int64)
    strict = np.zeros(K, np.int64)
    inner = np.zeros(K, np.int64)
    two = np.empty(2, np.int64)
    cost = max(1, int(N * math.log2(N + 2)))
    done = 0
    while where[0] < N:
        if done >= work:
            return False
        done += cost
        p = where[0]
        left[:] = 0
        for j in range(N):
            du, dv = u[j] - u[p], v[j] - v[p]
            if j == p:
                slope[j], side[j] = -math.inf, 0
            elif du > 0.0 or (du == 0.0 and dv > 0.0):
                slope[j], side[j] = (dv / du if du != 0.0 else math.inf), 1
                for h in range(first[j], first[j + 1]):
                    left[klass[h]] += weight[h]
            else:
                slope[j], side[j] = (dv / du if du != 0.0 else math.inf), -1
        order = np.argsort(slope)
        g = 1  # the pivot itself comes first
        while g < N:
            stop = g + 1
            while stop < N and slope[order[stop]] == slope[order[g]]:
                stop += 1
            strict[:] = left
            for x in range(g, stop):
                j = order[x]
                if side[j] == 1:
                    for h in range(first[j], first[j + 1]):
                        strict[klass[h]] -= weight[h]
            k = stop - g + 1
            if k == 2:
                line = two  # an allocation for each group costs more than the evaluation
                j = order[g]
                line[0], line[1] = (p, j) if side[j] == 1 else (j, p)
            else:
                line = _along(order[g:stop], p, u, v)
            inner[:] = strict
            for r in range(k + 1):
                if r > 0:
                    i = line[r - 1]
                    for h in range(first[i], first[i + 1]):
                        inner[klass[h]] += weight[h]
                value = _value(measure, min_leaf, inner, total, rows)
                if value < best[0] - tol:
                    best[0] = value
                    found[0], found[1], found[2] = p, order[g], r
            inner[:] = strict
            for r in range(1, k):
                i = line[k - r]
                for h in range(first[i], first[i + 1]):
                    inner[klass[h]] += weight[h]
                value = _value(measure, min_leaf, inner, total, rows)
                if value < best[0] - tol:
                    best[0] = value
                    found[0], found[1], found[2] = p, order[g], -r
            left[:] = strict
            for x in range(g, stop):
                j = order[x]
                if side[j] == -1:
                    for h in range(first[j], first[j + 1]):
                        left[klass[h]] += weight[h]
            g = stop
        where[0] += 1
    return True


@njit(cache=True, nogil=True)
def _along(others, p, u, v):
    """The points on the line through p, p among them, in the direction of growing u (of growing v where it is vertical)."""
    k = others.shape[0] + 1
    line = np.empty(k, np.int64)
    key = np.empty(k)
    upright = u[others[0]] == u[p]
    for x in range(k):
        i = p if x == 0 else others[x - 1]
        line[x] = i
        key[x] = v[i] if upright else u[i]
    return line[np.argsort(key, kind="mergesort")]
