"""Find the best line on two features by an angular sweep.

The sweep enumerates all lines in O(N^2) with a radix sort. Each point in turn is the pivot, and the others are sorted by the slope of
the line through it. Every linear partition has a bounding line through a point of either side. The sweep meets it when the line turns
past the other point, with the pivot on the left. If more than two points lie on that line, all cuts of it are tried from the first of
them. Points are merged, ordered by u and then v.

State      where[0] next pivot; found: pivot, other point, and k: the first k points on the line go left (k < 0: the last -k)
Left       the pivot, and the points above the line (before the first direction: every later point)
Order      positions of the other points by increasing slope, ties by position, which is the order along the line
Exactness  slopes of equal fractions of 26-bit integers are equal in double precision, so groups of equal angle are exact there
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trainer.kernels.compiled import kernel
from trainer.kernels.rows import copy_row

BITS = 11  # of one of the two digits of the radix sort
FEW = 200  # points below which a comparison sort is faster
MOVES = 8  # moves per point in the repair of the order, before a comparison sort replaces it
TABLE = 1 << 22  # largest total weight for a lookup table of x log x
PER_POINT = 16  # cost of one turn of the line, in units of about a nanosecond


class Turn(NamedTuple):
    """Progress of a sweep: `where` int64 (1,), `found` int64 (3,) as above; best float64 (1,), first the value to beat."""

    where: np.ndarray
    found: np.ndarray
    best: np.ndarray


class SplitGoal(NamedTuple):
    """Goal: measure, minimum leaf size, tolerance in rows, number of rows, table of x log x (or empty).

    `slack` bounds the rounding errors of running sums.
    """

    measure: int
    min_leaf: int
    tol: float
    rows: int
    slack: float
    table: np.ndarray


class Angles(NamedTuple):
    """Lines from the pivot to each point, and scratch of the sort.

    slope = dv / du and place = dv / (du + |dv|), which increases with it, within [-1, 1]: float64 (N,). keys and spare int64 (N,), digits
    int32 (2, 2^BITS + 1): scratch. order int32 (N - 1,).
    """

    slope: np.ndarray
    place: np.ndarray
    keys: np.ndarray
    spare: np.ndarray
    digits: np.ndarray
    order: np.ndarray


@kernel
def _term(measure, x):
    if measure == 0:
        return float(x) * x
    return x * math.log(x) if x > 0 else 0.0


@kernel
def _sums(measure, left, total):
    """Return for both sides the sum over the classes of x^2 (Gini) or x log x (entropy)."""
    up = 0.0
    down = 0.0
    for c in range(total.shape[0]):
        up += _term(measure, left[c])
        down += _term(measure, total[c] - left[c])
    return up, down


@kernel
def _value(measure, min_leaf, left, total, rows):
    """Return Phi(left) + Phi(total - left), or infinity if a side is smaller than `min_leaf`; rows: the sum of `total`."""
    n = left.sum()
    m = rows - n
    if min(n, m) < max(1, min_leaf):
        return math.inf
    if measure == 2:
        most = 0
        right = 0
        for c in range(total.shape[0]):
            most = max(most, left[c])
            right = max(right, total[c] - left[c])
        return float(rows - most - right)
    up, down = _sums(measure, left, total)
    if measure == 0:
        return (n - up / n) + (m - down / m)
    return max(0.0, n * math.log(n) - up) + max(0.0, m * math.log(m) - down)


@kernel(error_model="numpy")
def _by_angle(p, u, v, angles):
    """Fill slope and place of the lines from pivot p to all points, and the order of the other points by slope."""
    slope = angles.slope
    place = angles.place
    order = angles.order
    N = u.shape[0]
    for j in range(p):
        du = u[p] - u[j]
        dv = v[p] - v[j]
        slope[j] = dv / du
        place[j] = dv / (du + abs(dv))
    for j in range(p + 1, N):
        du = u[j] - u[p]
        dv = v[j] - v[p]
        slope[j] = dv / du
        place[j] = dv / (du + abs(dv))
    slope[p] = place[p] = 0.0
    sorted_ = N >= FEW and _radix(p, angles)
    if sorted_:
        moves = 0
        for x in range(1, N - 1):
            j = order[x]
            s = slope[j]
            if slope[order[x - 1]] > s:
                y = x - 1
                while y >= 0 and slope[order[y]] > s:
                    order[y + 1] = order[y]
                    y -= 1
                order[y + 1] = j
                moves += x - y
                if moves > MOVES * N:
                    sorted_ = False
                    break
    if not sorted_:
        slope[p] = -math.inf
        by_slope = np.argsort(slope, kind="mergesort")
        for x in range(1, N):
            order[x - 1] = by_slope[x]


@kernel
def _radix(p, angles):
    """Sort the positions other than p by the leading 2 * BITS bits of `place` into `order`; return True.

    `_by_angle` then repairs the order of points with equal bits. A place beyond the last digit is clipped.
    """
    _, place, keys, spare, count, order = angles
    N = place.shape[0]
    size = 1 << BITS
    low = math.inf
    high = -math.inf
    for j in range(N):
        if j != p:
            low = min(low, place[j])
            high = max(high, place[j])
    scale = (size * size - 1) / (high - low) if high > low else 0.0
    count[:] = 0
    x = 0
    for j in range(N):
        if j != p:
            k = min(size * size - 1, int((place[j] - low) * scale))
            count[0, (k & (size - 1)) + 1] += 1
            count[1, (k >> BITS) + 1] += 1
            keys[x] = (k << 32) | j
            x += 1
    for d in range(size):
        count[0, d + 1] += count[0, d]
        count[1, d + 1] += count[1, d]
    for x in range(N - 1):
        key = keys[x]
        d = (key >> 32) & (size - 1)
        spare[count[0, d]] = key
        count[0, d] += 1
    for x in range(N - 1):
        key = spare[x]
        d = key >> (32 + BITS)
        order[count[1, d]] = key & 0xFFFFFFFF
        count[1, d] += 1
    return True


@kernel
def _add(sign, i, left, first, klass, weight):
    """Add point i to the class counts of the left side (sign 1), or remove it (-1)."""
    for h in range(first[i], first[i + 1]):
        left[klass[h]] += sign * weight[h]


@kernel
def _line(goal, p, group, left, points, turn):
    """Try all cuts of the line through pivot p and the later points of `group`; `left` includes them and is not changed."""
    measure, min_leaf, tol, rows, _, _ = goal
    _, _, first, klass, weight, total, _ = points
    _, rule_numbers, best = turn
    k = group.shape[0] + 1
    part = left.copy()
    for x in range(k - 1, 0, -1):  # the last points leave one by one: prefixes stay
        _add(-1, group[x - 1], part, first, klass, weight)
        value = _value(measure, min_leaf, part, total, rows)
        if value < best[0] - tol:
            best[0] = value
            rule_numbers[0] = p
            rule_numbers[1] = group[0]
            rule_numbers[2] = x
    copy_row(left, part)
    for x in range(1, k):  # the first points leave one by one: suffixes stay
        _add(-1, p if x == 1 else group[x - 2], part, first, klass, weight)
        value = _value(measure, min_leaf, part, total, rows)
        if value < best[0] - tol:
            best[0] = value
            rule_numbers[0] = p
            rule_numbers[1] = group[0]
            rule_numbers[2] = x - k


@kernel
def _pivot(goal, p, angles, left, points, turn):
    """Try all partitions by lines through pivot p.

    left int64 (classes,): the class counts of the pivot and every later point; overwritten.
    """
    measure, min_leaf, tol, rows, slack, table = goal
    _, _, first, klass, weight, total, _ = points
    last = angles.order.shape[0]
    best = turn.best
    order = angles.order
    slope = angles.slope
    up, down = _sums(measure, left, total)
    nl = left.sum()
    g = 0
    while g < last:
        s = slope[order[g]]
        stop = g + 1
        while stop < last and slope[order[stop]] == s:
            stop += 1
        if stop - g > 1 and order[g] > p:
            _line(goal, p, order[g:stop], left, points, turn)
        before = 1
        for x in range(g, stop):
            j = order[x]
            sign = 1
            if j > p:
                sign = -1
            else:
                before += 1
            for h in range(first[j], first[j + 1]):
                c = klass[h]
                w = sign * weight[h]
                old = left[c]
                right_count = total[c] - old
                left[c] = old + w
                nl += w
                if measure == 0:
                    up += w * (2 * old + w)
                    down -= w * (2 * right_count - w)
                elif measure == 1:
                    if table.shape[0] > 0:
                        up += table[old + w] - table[old]
                        down += table[right_count - w] - table[right_count]
                    else:
                        up += _term(1, old + w) - _term(1, old)
                        down += _term(1, right_count - w) - _term(1, right_count)
        nr = rows - nl
        if measure == 0:
            good = up * nr + down * nl > (rows - best[0] + tol - slack) * nl * nr
        elif measure == 1:
            good = _term(1, nl) + _term(1, nr) - up - down < best[0] - tol + slack
        else:
            good = True
        if good:
            value = _value(measure, min_leaf, left, total, rows)
            if value < best[0] - tol:
                best[0] = value
                turn.found[0] = p
                turn.found[1] = order[g]
                turn.found[2] = before
        g = stop


@kernel
def sweep(measure, min_leaf, work, tol, points, turn):
    """Continue at pivot where[0] until about `work` units are spent; return whether all pivots are done."""
    N = points.u.shape[0]
    K = points.total.shape[0]
    where = turn.where
    rows = points.total.sum()
    table = np.empty(rows + 1 if measure == 1 and rows <= TABLE else 0)
    for x in range(table.shape[0]):
        table[x] = _term(1, x)
    # running sums drift by less than this
    slack = 1e-15 * (N + K) * rows * (math.log(rows + 1.0) if measure == 1 else 1.0)
    goal = SplitGoal(measure, min_leaf, tol, rows, slack, table)
    keys = np.empty(N, np.int64)
    spare = np.empty(N, np.int64)
    count = np.empty((2, (1 << BITS) + 1), np.int32)
    angles = Angles(np.empty(N), np.empty(N), keys, spare, count, np.empty(max(0, N - 1), np.int32))
    left = np.zeros(K, np.int64)
    base = points.fixed[0].copy()
    for j in range(where[0], N):
        _add(1, j, base, points.first, points.klass, points.weight)
    work_done = 0
    while N > 1 and where[0] < N:
        if work_done >= work:
            return False
        work_done += PER_POINT * N + 500
        p = where[0]
        _by_angle(p, points.u, points.v, angles)
        copy_row(base, left)  # the pivot and every later point
        _pivot(goal, p, angles, left, points, turn)
        _add(-1, p, base, points.first, points.klass, points.weight)
        where[0] += 1
    return True
