"""Criteria that close a box of bivariate rules: few, collinear or one-class uncertain points (Bollwein & Westphal, C1 to C5).

Names as in `bivariate`. A value becomes the incumbent only after the rule itself, as it is stored, has been counted over all points.
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

STAGNATION = 4  # generations without change after which the uncertain points are swept
SWEEP_WORK = 400_000  # comparisons that one local sweep may take


@kernel
def attempt(how, limits, best, st, a, b, u, v, first, klass, weight, total):
    """Take the rule (a, b) as incumbent if, counted over all points, it is better."""
    value = rule_value(how[MEASURE], how[MIN_LEAF], a, b, u, v, first, klass, weight, total)
    if value < min(limits[CAP], best[VALUE]) - limits[TOL]:
        best[VALUE], best[SLOPE], best[OFFSET] = value, a, b
        st[FOUND] = 1


@kernel
def one_class(how, limits, best, st, box, S, nU, nL, m, u, v, first, klass, weight, total):
    """Criterion 3: all uncertain points to one side, where a rule of the box does so."""
    a0, a1, b0, b1 = box[0], box[1], box[2], box[3]
    for side in range(2):
        left = nU + m if side == 0 else nU.copy()
        value = value_of(how[MEASURE], how[MIN_LEAF], left, total - left)
        if not value < min(limits[CAP], best[VALUE]) - limits[TOL]:
            continue
        b = b0 if side == 0 else b1
        low, high = a0, a1
        for i in S:
            if u[i] != 0.0:
                cut = (v[i] - b) / u[i]
                if (u[i] > 0.0) == (side == 0):
                    high = min(high, cut)
                else:
                    low = max(low, cut)
        if low <= high:
            attempt(how, limits, best, st, 0.5 * (low + high), b, u, v, first, klass, weight, total)


@kernel
def collinear(S, u, v):
    """True where the points S lie on one line; the products are exact for coordinates of up to 26 bits."""
    i, j, far = S[0], S[0], 0.0
    for s in S:
        d = abs(u[s] - u[i]) + abs(v[s] - v[i])
        if d > far:
            far, j = d, s
    du, dv = u[j] - u[i], v[j] - v[i]
    for s in S:  # noqa: SIM110 - a generator would not compile
        if du * (v[s] - v[i]) != dv * (u[s] - u[i]):
            return False
    return True


@kernel
def events(S, u, v, a0, a1, in_line):
    """Ends of the slope intervals on which the order of the points S does not change, from a0 to a1."""
    k = S.shape[0]
    if in_line:
        ends = np.empty(3)
        count = 1
        ends[0] = a0
        i, j = S[0], S[0]
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
    ends = np.sort(slopes[: count + 2])
    kept = 1
    for x in range(1, count + 2):
        if ends[x] != ends[kept - 1]:
            ends[kept] = ends[x]
            kept += 1
    return ends[:kept]


@kernel
def local_sweep(how, limits, best, st, box, S, ends, nU, u, v, first, klass, weight, total):
    """Criteria 2, 4 and 5: every partition of the points S that a rule of the box makes."""
    b0, b1, tau = box[2], box[3], limits[TAU]
    k = S.shape[0]
    st[SWEEPS] += 1
    t = np.empty(k)
    for e in range(ends.shape[0] - 1):
        mid = 0.5 * (ends[e] + ends[e + 1])
        for x in range(k):
            t[x] = -(v[S[x]] - mid * u[S[x]])
        order = np.argsort(t, kind="mergesort")
        left = nU.copy()
        for r in range(k + 1):
            if r > 0:
                i = S[order[r - 1]]
                for h in range(first[i], first[i + 1]):
                    left[klass[h]] += weight[h]
            value = value_of(how[MEASURE], how[MIN_LEAF], left, total - left)
            if not value < min(limits[CAP], best[VALUE]) - limits[TOL]:
                continue
            # the slopes of this interval at which t of the last point in reaches b0 and that of the first one out stays below b1
            low, high = ends[e], ends[e + 1]
            if r > 0:
                i = S[order[r - 1]]
                cut = v[i] - b0 + tau
                if u[i] > 0.0:
                    high = min(high, cut / u[i])
                elif u[i] < 0.0:
                    low = max(low, cut / u[i])
            if r < k:
                j = S[order[r]]
                cut = v[j] - b1 - tau
                if u[j] > 0.0:
                    low = max(low, cut / u[j])
                elif u[j] < 0.0:
                    high = min(high, cut / u[j])
            if low > high:
                continue
            a = 0.5 * (low + high)
            ceiling, floor = b1, b0
            if r > 0:
                i = S[order[r - 1]]
                ceiling = min(ceiling, v[i] - a * u[i])
            if r < k:
                j = S[order[r]]
                floor = max(floor, v[j] - a * u[j])
            b = 0.5 * (ceiling + floor)
            if not floor < b:
                b = ceiling
            attempt(how, limits, best, st, a, b, u, v, first, klass, weight, total)


@kernel
def close(how, limits, best, st, box, bound, stagnant, S, nU, nL, data):
    """Try the criteria on a box with the uncertain points S: units of work taken, and whether no rule of it is left to look at."""
    u, v, first, klass, weight, total = data
    m, work = S.shape[0], 0
    if m == 0:  # criterion 1
        a, b = 0.5 * (box[0] + box[1]), 0.5 * (box[2] + box[3])
        attempt(how, limits, best, st, a, b, u, v, first, klass, weight, total)
        return work, True
    uncertain = total - nU - nL
    present = 0
    for c in range(total.shape[0]):
        present += uncertain[c] > 0
    if present == 1 and how[CRITERIA] & 2:
        one_class(how, limits, best, st, box, S, nU, nL, uncertain, u, v, first, klass, weight, total)
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
    ends = box[:2]
    if closing:
        ends = events(S, u, v, box[0], box[1], line)
        work += m * m if not line else m
    elif local and stagnant >= STAGNATION and m * m <= SWEEP_WORK:
        ends = events(S, u, v, box[0], box[1], False)
        work += m * m // 2
        closing = ends.shape[0] * m * 10 <= SWEEP_WORK
    if closing:
        local_sweep(how, limits, best, st, box, S, ends, nU, u, v, first, klass, weight, total)
        work += ends.shape[0] * m * 2
    return work, closing
