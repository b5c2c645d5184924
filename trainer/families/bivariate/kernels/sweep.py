"""Angular sweep: the best line on a pair of features by enumeration, O(N^2) with a radix sort, independent of the branch and bound.

Each point in turn is the pivot; the others are sorted by the direction of the line through it. Every partition of the plane by a
line has a line through a point of either side that bounds both, so it is met where such a line turns past the other point, with
the pivot on the left; where more than two points lie on that line, all ways to cut it are tried from the first of them.
Points as in `bivariate`: merged, ordered by u and then v, with class counts.

State      where[0] next pivot; found: pivot, other point, and k: the first k points on the line go left (k < 0: the last -k)
Left       the pivot, and what lies above the line (before the first direction: every later point)
Order      positions of the other points by growing slope, ties by position, which is the order along the line
Exactness  slopes of equal fractions of 26-bit integers are equal in double precision, so groups of equal angle are exact there
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trainer.kernels.compiled import kernel

BITS = 11  # of one digit of the radix sort; two digits place a point, slopes themselves settle the rest
FEW = 200  # points below which a comparison sort is faster
MOVES = 8  # moves a point that the repair of the order may take before a comparison sort does it
TABLE = 1 << 22  # total weight up to which x log x is looked up
PER_POINT = 16  # cost of one turn of the line, in units of about a nanosecond


class Turn(NamedTuple):
    """Where a sweep stands: `where` int64 (1,), `found` int64 (3,) as above, best float64 (1,): the value to beat, then the best one."""

    where: np.ndarray
    found: np.ndarray
    best: np.ndarray


class SplitGoal(NamedTuple):
    """What is sought: the measure, rows of the smallest leaf, comparisons in rows, rows, drift of the sums, x log x (or empty)."""

    measure: int
    min_leaf: int
    tol: float
    rows: int
    slack: float
    table: np.ndarray


class Angles(NamedTuple):
    """Slope and place (N,) of the line from the pivot to each point; keys and digits of the sort; the order (N - 1,)."""

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
    """The terms of both sides, added up over the classes."""
    up = 0.0
    down = 0.0
    for c in range(total.shape[0]):
        up += _term(measure, left[c])
        down += _term(measure, total[c] - left[c])
    return up, down


@kernel
def _value(measure, min_leaf, left, total, rows):
    """Phi(left) + Phi(total - left), or infinity where a side is smaller than `min_leaf`."""
    n = left.sum()
    m = rows - n
    if min(n, m) < max(1, min_leaf):
        return math.inf
    if measure == 2:
        most = 0
        rest = 0
        for c in range(total.shape[0]):
            most = max(most, left[c])
            rest = max(rest, total[c] - left[c])
        return float(rows - most - rest)
    up, down = _sums(measure, left, total)
    if measure == 0:
        return (n - up / n) + (m - down / m)
    return max(0.0, n * math.log(n) - up) + max(0.0, m * math.log(m) - down)


@kernel(error_model="numpy")
def _by_angle(p, u, v, angles):
    """Write slopes and order."""
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
        order[:] = np.argsort(slope, kind="mergesort")[1:]


@kernel
def _radix(p, angles):
    """Sort the positions other than p by `place`, up to equal digits; True (a place outside the digits is clipped)."""
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
    """Put point i on the left (sign 1) or take it off (-1)."""
    for h in range(first[i], first[i + 1]):
        left[klass[h]] += sign * weight[h]


@kernel
def _line(goal, p, group, left, points, turn):
    """All cuts of the line through pivot p and the later points of `group`; `left` holds all of them and is left as it was."""
    measure, min_leaf, tol, rows, _, _ = goal
    _, _, first, klass, weight, total, _ = points
    _, found, best = turn
    k = group.shape[0] + 1
    part = left.copy()
    for x in range(k - 1, 0, -1):  # the last points leave one by one: prefixes stay
        _add(-1, group[x - 1], part, first, klass, weight)
        value = _value(measure, min_leaf, part, total, rows)
        if value < best[0] - tol:
            best[0] = value
            found[0], found[1], found[2] = p, group[0], x
    part[:] = left
    for x in range(1, k):  # the first points leave one by one: suffixes stay
        _add(-1, p if x == 1 else group[x - 2], part, first, klass, weight)
        value = _value(measure, min_leaf, part, total, rows)
        if value < best[0] - tol:
            best[0] = value
            found[0], found[1], found[2] = p, group[0], x - k


@kernel
def _pivot(goal, p, angles, left, points, turn):
    """All partitions by lines through pivot p; `left` holds the pivot and every later point, and is used up."""
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
                rest = total[c] - old
                left[c] = old + w
                nl += w
                if measure == 0:
                    up += w * (2 * old + w)
                    down -= w * (2 * rest - w)
                elif measure == 1:
                    if table.shape[0] > 0:
                        up += table[old + w] - table[old]
                        down += table[rest - w] - table[rest]
                    else:
                        up += _term(1, old + w) - _term(1, old)
                        down += _term(1, rest - w) - _term(1, rest)
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
                turn.found[0], turn.found[1], turn.found[2] = p, order[g], before
        g = stop


@kernel
def sweep(measure, min_leaf, work, tol, points, turn):
    """Go on from pivot where[0] until `work` units are spent; True once all pivots are done."""
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
    done = 0
    while N > 1 and where[0] < N:
        if done >= work:
            return False
        done += PER_POINT * N + 500
        p = where[0]
        _by_angle(p, points.u, points.v, angles)
        left[:] = base  # the pivot and every later point
        _pivot(goal, p, angles, left, points, turn)
        _add(-1, p, base, points.first, points.klass, points.weight)
        where[0] += 1
    return True
