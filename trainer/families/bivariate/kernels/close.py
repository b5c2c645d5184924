"""Close boxes with few, collinear or one-class uncertain points (C1-C5).

Criteria of Bollwein & Westphal; notation as in `explore`. S int64 (m,) are the positions of a box's uncertain points, `sides` its
ends (a0, a1, b0, b1). A value becomes the incumbent only after the stored rule has been evaluated over all points.
"""

from __future__ import annotations

import numpy as np

from trainer.families.bivariate.kernels.bounds import rule_value, value_of
from trainer.families.bivariate.kernels.tables import (
    CAP,
    CRITERIA,
    EPS,
    FOUND,
    LOCAL,
    MEASURE,
    MIN_LEAF,
    OFFSET,
    SLOPE,
    SWEEPS,
    TAU,
    TOL,
    VALUE,
)
from trainer.kernels.compiled import kernel
from trainer.kernels.ordering import argsort, ascending

STAGNATION = 4  # generations with the same uncertain points after which these are swept
SWEEP_WORK = 400_000  # comparisons that one local sweep may take
FEW_CLASSES = 8  # each class beyond costs a unit of work in loops over all classes


@kernel
def attempt(search, a, b, points):
    """Make the rule (a, b) the incumbent if it is better over all points."""
    how, limits, best, counts = search
    value = rule_value(how[MEASURE], how[MIN_LEAF], a, b, points)
    if value < min(limits[CAP], best[VALUE]) - limits[TOL]:
        best[VALUE] = value
        best[SLOPE] = a
        best[OFFSET] = b
        counts[FOUND] = 1


@kernel
def one_class(search, sides, S, nU, uncertain, points):
    """Apply criterion 3: find a rule of the box that sends all uncertain points, which are of one class, to one side.

    uncertain int64 (classes,): their class counts.
    """
    how, limits, best, _ = search
    u = points.u
    v = points.v
    total = points.total
    a0, a1, b0, b1 = sides
    for side in range(2):
        left = nU + uncertain if side == 0 else nU
        value = value_of(how[MEASURE], how[MIN_LEAF], left, total - left)
        if not value < min(limits[CAP], best[VALUE]) - limits[TOL]:
            continue
        b = b0 if side == 0 else b1
        low = a0
        high = a1
        for i in S:
            if u[i] != 0.0:
                cut = (v[i] - b) / u[i]
                if (u[i] > 0.0) == (side == 0):
                    high = min(high, cut)
                else:
                    low = max(low, cut)
        if low <= high:
            attempt(search, 0.5 * (low + high), b, points)


@kernel
def collinear(S, u, v):
    """Return whether the points S lie on one line; the products are exact for coordinates of up to 26 bits."""
    i = S[0]
    j = S[0]
    largest = 0.0
    for s in S:
        d = abs(u[s] - u[i]) + abs(v[s] - v[i])
        if d > largest:
            largest = d
            j = s
    du = u[j] - u[i]
    dv = v[j] - v[i]
    for s in S:  # noqa: SIM110 - a generator would not compile
        if du * (v[s] - v[i]) != dv * (u[s] - u[i]):
            return False
    return True


@kernel
def events(S, u, v, a0, a1, in_line):
    """Return the ends of the slope intervals in [a0, a1] on which the order of the points S is constant, float64, ascending.

    in_line: whether the points lie on one line, whose slope is then the only end within.
    """
    k = S.shape[0]
    if in_line:
        ends = np.empty(3)
        count = 1
        ends[0] = a0
        i = S[0]
        j = S[0]
        for s in S:
            i = s if u[s] < u[i] else i
            j = s if u[s] > u[j] else j
        if u[j] > u[i]:
            slope = (v[j] - v[i]) / (u[j] - u[i])
            if a0 < slope < a1:
                ends[1] = slope
                count = 2
        ends[count] = a1
        return ends[: count + 1]
    slopes = np.empty(k * (k - 1) // 2 + 2)
    count = 0
    for x in range(k):
        for y in range(x):
            du = u[S[x]] - u[S[y]]
            if du != 0.0:
                slope = (v[S[x]] - v[S[y]]) / du
                if a0 < slope < a1:
                    slopes[count] = slope
                    count += 1
    slopes[count] = a0
    slopes[count + 1] = a1
    ends = ascending(slopes[: count + 2])
    n_ends = 1
    for x in range(1, count + 2):
        if ends[x] != ends[n_ends - 1]:
            ends[n_ends] = ends[x]
            n_ends += 1
    return ends[:n_ends]


@kernel
def _find_rule(span, slopes, tau, i, j, u, v):
    """Find a rule (a, b) of the box that sends point i left and point j right (-1: no such point).

    span: the ends of b; slopes: the ends of a; tau: the rounding error of t. Returns whether such a rule exists, a and b.
    """
    (b0, b1), (low, high) = span, slopes
    # slopes at which t of point i reaches b0 and t of point j stays below b1
    if i >= 0:
        cut = v[i] - b0 + tau
        if u[i] > 0.0:
            high = min(high, cut / u[i])
        elif u[i] < 0.0:
            low = max(low, cut / u[i])
    if j >= 0:
        cut = v[j] - b1 - tau
        if u[j] > 0.0:
            low = max(low, cut / u[j])
        elif u[j] < 0.0:
            high = min(high, cut / u[j])
    a = 0.5 * (low + high)
    ceiling = min(b1, v[i] - a * u[i]) if i >= 0 else b1
    floor = max(b0, v[j] - a * u[j]) if j >= 0 else b0
    b = 0.5 * (ceiling + floor)
    return low <= high, a, b if floor < b else ceiling


@kernel
def local_sweep(search, sides, S, nU, ends, points):
    """Apply criteria 2, 4 and 5: try every partition of the points S by a rule of the box; ends: the result of `events`."""
    u, v, first, klass, weight, total, _ = points
    how, limits, best, counts = search
    k = S.shape[0]
    span = sides[2:]
    counts[SWEEPS] += 1
    t = np.empty(k)
    for e in range(ends.shape[0] - 1):
        mid = 0.5 * (ends[e] + ends[e + 1])
        for x in range(k):
            t[x] = -(v[S[x]] - mid * u[S[x]])
        order = argsort(t)
        left = nU.copy()
        for r in range(k + 1):
            i = S[order[r - 1]] if r > 0 else -1
            j = S[order[r]] if r < k else -1
            if i >= 0:
                for h in range(first[i], first[i + 1]):
                    left[klass[h]] += weight[h]
            value = value_of(how[MEASURE], how[MIN_LEAF], left, total - left)
            if value < min(limits[CAP], best[VALUE]) - limits[TOL]:
                exists, a, b = _find_rule(span, (ends[e], ends[e + 1]), limits[TAU], i, j, u, v)
                if exists:
                    attempt(search, a, b, points)


@kernel
def close(search, sides, bound, stagnant, S, nU, nL, points):
    """Apply the criteria to a box with the uncertain points S; return the work, and whether the box is closed.

    stagnant: number of generations in which the uncertain points stayed the same.
    """
    how, limits, best, _ = search
    u = points.u
    v = points.v
    m = S.shape[0]
    work = 0
    if m == 0:  # criterion 1
        attempt(search, 0.5 * (sides[0] + sides[1]), 0.5 * (sides[2] + sides[3]), points)
        return work, True
    uncertain = points.total - nU - nL
    present = 0
    for c in range(uncertain.shape[0]):
        present += uncertain[c] > 0
    if present == 1 and how[CRITERIA] & 2:
        one_class(search, sides, S, nU, uncertain, points)
        work += 2 * m
        if bound >= (1.0 - limits[EPS]) * min(limits[CAP], best[VALUE]) - limits[TOL]:
            return work, True
    local = how[CRITERIA] & 8
    closing = (m == 1 and how[CRITERIA] & 1) or (local and m <= how[LOCAL])
    line = False
    if not closing and (how[CRITERIA] & 4 or local) and (stagnant > 0 or not local):
        line = collinear(S, u, v)
        work += m
        closing = line
    ends = np.empty(0)
    if closing:
        ends = events(S, u, v, sides[0], sides[1], line)
        work += m * m if not line else m
    elif local and stagnant >= STAGNATION and m * m <= SWEEP_WORK:
        ends = events(S, u, v, sides[0], sides[1], False)
        work += m * m // 2
        closing = ends.shape[0] * m * 10 <= SWEEP_WORK
    if closing:
        local_sweep(search, sides, S, nU, ends, points)
        work += ends.shape[0] * m * (2 + max(0, uncertain.shape[0] - FEW_CLASSES))
    return work, closing
