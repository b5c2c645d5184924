"""Minimise the zero-one loss of a hyperplane by exact line searches.

Legend     point i is on the left iff V_i = Σ_h a_h flat[h, i] <= 0; flat float64 (m + 1, n), whose last row holds ones, so a[m] = -c
           want int8 (n,): 1 if i should be on the left; weight int64 (n,): its cost if it is not
"""

from __future__ import annotations

import numpy as np

from trainer.kernels.compiled import kernel
from trainer.kernels.rows import copy_row


@kernel
def _loss(V, want, weight):
    total = 0
    for i in range(V.shape[0]):
        if (V[i] <= 0.0) != (want[i] == 1):
            total += weight[i]
    return total


@kernel
def _between(cuts, order, x):
    """Return a number above the first x cuts in order and below the others."""
    if x == 0:
        return cuts[order[0]] - 1.0
    if x == len(order):
        return cuts[order[x - 1]] + 1.0
    return 0.5 * (cuts[order[x - 1]] + cuts[order[x]])


@kernel
def _pick(losses, least, pick):
    """Return the position of the loss `least` number `pick`, from 0."""
    x = 0
    while losses[x] != least or pick > 0:
        if losses[x] == least:
            pick -= 1
        x += 1
    return x


@kernel
def _line(V, R, want, weight, draw, worst):
    """Return a step d of least loss along R, random among ties, and its loss; loss -1 if no point moves."""
    n = V.shape[0]
    cuts = np.empty(n)
    rows = np.empty(n, np.int64)
    k = 0
    loss = 0
    for i in range(n):
        r = R[i]
        if r == 0.0:
            left = V[i] <= 0.0
        else:
            left = r > 0.0  # at d = -infinity
            cuts[k] = -V[i] / r
            rows[k] = i
            k += 1
        if left != (want[i] == 1):
            loss += weight[i]
    if k == 0:
        return 0.0, -1
    order = np.argsort(cuts[:k], kind="mergesort")
    losses = np.empty(k + 1, np.int64)
    losses[0] = loss
    least = loss
    ways = 1
    for x in range(1, k + 1):
        i = rows[order[x - 1]]
        now_left = R[i] < 0.0
        if now_left == (want[i] == 1):
            loss -= weight[i]
        else:
            loss += weight[i]
        losses[x] = loss
        if x < k and not cuts[order[x - 1]] < cuts[order[x]]:
            losses[x] = -1
            continue
        if loss < least:
            least = loss
            ways = 1
        elif loss == least:
            ways += 1
    if least > worst:
        return 0.0, -1
    return _between(cuts, order, _pick(losses, least, int(draw * ways))), least


@kernel
def _products(flat, a, V):
    """Write the sums of the columns times `a` into V."""
    V[:] = 0.0
    for h in range(len(a)):
        if a[h] != 0.0:
            for i in range(len(V)):
                V[i] += a[h] * flat[h, i]


@kernel
def _first_wrong(V, want, start):
    """Return the first misclassified point from `start` on, cyclically; -1 if there is none."""
    n = len(V)
    for x in range(n):
        i = (start + x) % n
        if (V[i] <= 0.0) != (want[i] == 1):
            return i
    return -1


@kernel
def descend(flat, want, weight, a, draws, directions, flag):
    """Lower the loss of `a` (m + 1,) in place and return it; draws float64 (steps, 3) and directions (steps, m + 1) are random.

    Steps of equal loss are accepted, so that the search moves on plateaus. Directions are coordinates, random vectors, and
    misclassified points.
    """
    m, n = flat.shape
    V = np.empty(n)
    _products(flat, a, V)
    best = _loss(V, want, weight)
    R = np.empty(n)
    r = np.zeros(m)
    for step in range(draws.shape[0]):
        if best == 0 or flag[0] != 0:
            break
        kind = step % 3
        r[:] = 0.0
        if kind == 0:
            r[int(draws[step, 0] * m)] = 1.0
        elif kind == 1:
            copy_row(directions[step], r)
        else:
            wrong = _first_wrong(V, want, int(draws[step, 0] * n))
            if wrong < 0:
                break
            for h in range(m):
                r[h] = flat[h, wrong] * (0.5 + directions[step, h] * 0.5)
        _products(flat, r, R)
        d, loss = _line(V, R, want, weight, draws[step, 1], best)
        if loss < 0:
            continue
        size = 0.0
        for h in range(m):
            a[h] += d * r[h]
            size = max(size, abs(a[h]))
        if size == 0.0:
            continue
        for h in range(m):
            a[h] /= size
        _products(flat, a, V)
        best = _loss(V, want, weight)
    return best
