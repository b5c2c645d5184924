"""Bound bivariate rules by class counts.

Phi        frequency-weighted impurity in rows: 0 Gini, 1 entropy (natural logarithm), 2 error
Counts     nU, nL of the points that every rule of a box satisfies / violates, m of the uncertain ones; int64 (classes,)

Bollwein & Westphal, Theorems 1 and 4 to 6.
"""

from __future__ import annotations

import math

import numpy as np

from trainer.kernels.compiled import kernel
from trainer.kernels.impurity import phi

EXACT_CLASSES = 5  # classes whose assignments are enumerated in the strongest bound


@kernel
def _from_sums(measure, total, part):
    if total <= 0.0:
        return 0.0
    if measure == 0:
        return total - part / total
    return total * math.log(total) - part


@kernel
def _term(measure, x):
    if measure == 0:
        return x * x
    return x * math.log(x) if x > 0.0 else 0.0


@kernel
def _rest_bound(measure, m, skip):
    """Return the bound of Theorem 5 (entropy) or 6 (Gini) for the classes of m that are not in `skip`, int64 (classes,)."""
    total = 0.0
    part = 0.0
    most = 0.0
    for c in range(m.shape[0]):
        if m[c] > 0 and skip[c] == 0:
            x = float(m[c])
            total += x
            part += _term(measure, x)
            most = max(most, x)
    if total == 0.0 or measure == 2:
        return 0.0
    if measure == 1:
        return max(0.0, total * math.log(0.5 * total) - part)
    total -= most
    return total - (part - most * most) / total if total > 0.0 else 0.0


@kernel
def lower_bound(measure, kind, nU, nL, m):
    """Return a lower bound of every rule of a box: kind 0 Theorem 4, 1 with Theorems 5 and 6, 2 all class assignments.

    Kind 2 enumerates the sides of the largest uncertain classes (Theorem 1: the best assignment splits no class). The remaining classes add
    their bound by superadditivity.
    """
    K = m.shape[0]
    skip = np.zeros(K, np.int64)
    low = phi(measure, nU) + phi(measure, nL)
    if kind == 0:
        return low
    low += _rest_bound(measure, m, skip)
    if kind == 1:
        return low
    largest = np.empty(EXACT_CLASSES, np.int64)
    k = 0
    while k < EXACT_CLASSES:
        c = -1
        most = 0
        for d in range(K):
            if skip[d] == 0 and m[d] > most:
                c = d
                most = m[d]
        if c < 0:
            break
        largest[k] = c
        skip[c] = 1
        k += 1
    least = math.inf
    up = nU.copy()
    down = nL.copy()
    for h in range(k):
        down[largest[h]] += m[largest[h]]
    total_up = 0.0
    total_down = 0.0
    part_up = 0.0
    part_down = 0.0
    for c in range(K):
        total_up += up[c]
        total_down += down[c]
        if measure != 2:
            part_up += _term(measure, float(up[c]))
            part_down += _term(measure, float(down[c]))
    for code in range(1 << k):
        if code > 0:  # Gray code: one class changes sides
            h = 0
            while (code >> h) & 1 == 0:
                h += 1
            c = largest[h]
            x = m[c] if down[c] >= m[c] + nL[c] else -m[c]
            if measure != 2:
                part_up -= _term(measure, float(up[c]))
                part_down -= _term(measure, float(down[c]))
            up[c] += x
            down[c] -= x
            total_up += x
            total_down -= x
            if measure != 2:
                part_up += _term(measure, float(up[c]))
                part_down += _term(measure, float(down[c]))
        if measure == 2:
            value = phi(2, up) + phi(2, down)
        else:
            value = _from_sums(measure, total_up, part_up) + _from_sums(measure, total_down, part_down)
        least = min(least, value)
    return max(low, least + _rest_bound(measure, m, skip))


@kernel
def value_of(measure, min_leaf, left, right):
    """Return Phi(left) + Phi(right), or infinity if a side has fewer than `min_leaf` (at least one) rows."""
    if min(left.sum(), right.sum()) < max(1, min_leaf):
        return math.inf
    return phi(measure, left) + phi(measure, right)


@kernel
def rule_value(measure, min_leaf, a, b, points):
    """Return the impurity of the rule a u + b <= v over all points; infinity if a side has fewer than `min_leaf` rows."""
    u, v, first, klass, weight, total, fixed = points
    left = fixed[0].copy()
    for i in range(u.shape[0]):
        if b <= v[i] - a * u[i]:
            for h in range(first[i], first[i + 1]):
                left[klass[h]] += weight[h]
    return value_of(measure, min_leaf, left, total - left)
