"""Perturb the coefficients of a hyperplane as OC1 does.

Legend     V_i = sum_j a_j x_ij + a_0; row i is on the positive side iff V_i > 0. Z float64 (n, m + 1) holds the features and a last
           column of ones; `flat` is its transpose, so that a coefficient's column is contiguous.
State      a float64 (m + 1,), V float64 (n,), status float64 (2,): the impurity of the hyperplane and the stagnation probability
Flag       int64 (1,): a value other than 0 ends the search

Random jumps follow where no perturbation helps (Murthy, Kasif & Salzberg, "A System for Induction of Oblique Decision Trees", 1994).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trainer.kernels.compiled import kernel
from trainer.kernels.impurity import of_parts
from trainer.kernels.rows import copy_row


class HyperplaneRows(NamedTuple):
    """The rows of a node: `flat` as above, class and weight int64 (n,), the total weight of each class; measure and minimum leaf size."""

    flat: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    total: np.ndarray
    measure: int
    min_leaf: int


class PlaneState(NamedTuple):
    """State of the climb: a, V and status, as above."""

    a: np.ndarray
    V: np.ndarray
    status: np.ndarray


@kernel
def _value(measure, min_leaf, up, total):
    """Return the impurity of both sides, `up` and the rest; it allocates no array, since it is called for every step."""
    size = 0.0
    part = 0.0
    most = 0.0
    other_size = 0.0
    other_part = 0.0
    other_most = 0.0
    for c in range(up.shape[0]):
        x = float(up[c])
        z = float(total[c] - up[c])
        size += x
        other_size += z
        if measure == 0:
            part += x * x
            other_part += z * z
        elif measure == 1:
            part += x * math.log(x) if x > 0.0 else 0.0
            other_part += z * math.log(z) if z > 0.0 else 0.0
        else:
            most = max(most, x)
            other_most = max(other_most, z)
    if min(size, other_size) < max(1, min_leaf):
        return math.inf
    return of_parts(measure, size, part, most) + of_parts(measure, other_size, other_part, other_most)


@kernel
def hyperplane_value(V, y, weight, total, measure, min_leaf):
    """Return the impurity of the hyperplane with values V (n,); infinity if a side has too few rows."""
    up = np.zeros(total.shape[0], np.int64)
    for i in range(V.shape[0]):
        if V[i] > 0.0:
            up[y[i]] += weight[i]
    return _value(measure, min_leaf, up, total)


@kernel
def _between(cuts, order, x):
    """Return a number above the first x cuts in order and below the others."""
    if x == 0:
        return cuts[order[0]] - 1.0
    if x == len(order):
        return cuts[order[x - 1]] + 1.0
    return 0.5 * (cuts[order[x - 1]] + cuts[order[x]])


@kernel
def _best_step(direction, W, y, weight, total, measure, min_leaf):
    """Return the d for which W + d * direction has the least impurity, and that impurity (infinity: no row moves)."""
    n = W.shape[0]
    up = np.zeros(total.shape[0], np.int64)
    cuts = np.empty(n)
    rows = np.empty(n, np.int64)
    k = 0
    for i in range(n):
        r = direction[i]
        if r == 0.0:
            if W[i] > 0.0:
                up[y[i]] += weight[i]
            continue
        if r < 0.0:  # W + d * direction is positive for every d below the cut
            up[y[i]] += weight[i]
        cuts[k] = -W[i] / r
        rows[k] = i
        k += 1
    if k == 0:
        return 0.0, math.inf
    order = np.argsort(cuts[:k])
    step = 0.0
    least = math.inf
    for x in range(k + 1):
        if x > 0:
            i = rows[order[x - 1]]
            if direction[i] > 0.0:
                up[y[i]] += weight[i]
            else:
                up[y[i]] -= weight[i]
        if 0 < x < k and cuts[order[x - 1]] == cuts[order[x]]:
            continue
        value = _value(measure, min_leaf, up, total)
        if value < least:
            least = value
            step = _between(cuts, order, x)
    return step, least


@kernel
def _perturb(rows, h, a, V):
    """Return the best value of coefficient h while the others are fixed, and its impurity."""
    flat, y, weight, total, measure, min_leaf = rows
    column = flat[h]
    return _best_step(column, V - a[h] * column, y, weight, total, measure, min_leaf)


@kernel
def _set(flat, h, value, a, V):
    column = flat[h]
    for i in range(V.shape[0]):
        V[i] += (value - a[h]) * column[i]
    a[h] = value


@kernel
def cycle(rows, plane, mode, draws, flag):
    """Run a cycle over the coefficients: mode 0 in order, 1 the best of all, 2 fifty random ones; return whether any changed.

    An equal impurity is accepted with the stagnation probability, which then decreases by 0.1 and is reset to 1 after an improvement.
    draws float64 (max(m, 50), 2), uniform in [0, 1), are the random numbers of the cycle.
    """
    flat = rows.flat
    a, V, status = plane
    m = a.shape[0]
    tol = 1e-9 * rows.total.sum()
    changed = False
    if mode == 1:
        best = 0.0
        place = -1
        least = math.inf
        for h in range(m):
            if flag[0] != 0:
                return False
            value, impurity = _perturb(rows, h, a, V)
            if impurity < least - tol:
                best = value
                place = h
                least = impurity
        if place >= 0 and _accept(least, tol, status, draws[0, 1]):
            _set(flat, place, best, a, V)
            status[0] = min(status[0], least)
            return True
        return False
    for x in range(50 if mode == 2 else m):
        if flag[0] != 0:
            return False
        h = int(draws[x, 0] * m) if mode == 2 else x
        value, impurity = _perturb(rows, h, a, V)
        if value != a[h] and _accept(impurity, tol, status, draws[x, 1]):
            _set(flat, h, value, a, V)
            status[0] = min(status[0], impurity)
            changed = True
    return changed


@kernel
def _accept(impurity, tol, status, draw):
    if impurity < status[0] - tol:
        status[1] = 1.0
        return True
    if impurity <= status[0] + tol and draw < status[1]:
        status[1] -= 0.1
        return True
    return False


@kernel
def jump(rows, plane, r):
    """Move along the direction r (m + 1,) to the least impurity; return whether it improves."""
    flat, y, weight, total, measure, min_leaf = rows
    a, V, status = plane
    m = a.shape[0]
    R = np.zeros(V.shape[0])
    for h in range(m):
        for i in range(V.shape[0]):
            R[i] += r[h] * flat[h, i]
    step, impurity = _best_step(R, V, y, weight, total, measure, min_leaf)
    if not impurity < status[0] - 1e-9 * total.sum():
        return False
    for h in range(m):
        a[h] += step * r[h]
    for i in range(V.shape[0]):
        V[i] += step * R[i]
    status[0] = impurity
    status[1] = 1.0
    return True


@kernel
def climb(rows, a, mode, jumps, idle, random, flag):
    """Improve `a` in place until neither cycles nor jumps help, or after `idle` cycles without improvement; return its impurity.

    Rounding may move rows on the hyperplane to the other side. So the value is computed again after each cycle, and the best hyperplane is
    stored. random: a NumPy generator.
    """
    m = a.shape[0]
    V = np.dot(rows.flat.T, a)
    status = np.array([hyperplane_value(V, rows.y, rows.weight, rows.total, rows.measure, rows.min_leaf), 1.0])
    plane = PlaneState(a, V, status)
    best = status[0]
    best_a = a.copy()
    idle_cycles = 0
    while flag[0] == 0 and idle_cycles < idle:
        draws = random.random((max(m, 50), 2))
        moved = cycle(rows, plane, mode, draws, flag)
        if moved:
            idle_cycles, best = _refresh(rows, plane, best_a, idle_cycles, best)
            if idle_cycles < idle:
                continue
        moved = False
        for _ in range(jumps):
            if not moved and flag[0] == 0:
                direction = random.uniform(-1.0, 1.0, m)
                moved = jump(rows, plane, direction)
        if not moved:
            break
        idle_cycles, best = _refresh(rows, plane, best_a, idle_cycles, best)
    copy_row(best_a, a)
    return best


@kernel
def _refresh(rows, plane, best_a, idle_cycles, best):
    """Compute the values again, so that rounding errors do not accumulate, and store the best coefficients."""
    flat, y, weight, total, measure, min_leaf = rows
    a, V, status = plane
    copy_row(np.dot(flat.T, a), V)
    status[0] = hyperplane_value(V, y, weight, total, measure, min_leaf)
    if status[0] < best - 1e-9 * total.sum():
        copy_row(a, best_a)
        return 0, status[0]
    return idle_cycles + 1, best
