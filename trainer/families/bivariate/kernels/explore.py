"""Find the best line on an ordered pair of features by branch and bound.

Bollwein & Westphal, Algorithm 2.

Rule       (a, b): a u + b <= v; points that satisfy it go left. t(a) = v - a u is the largest b that a point satisfies
Box        a0 <= a <= a1, b0 <= b <= b1; nU, nL counts of the points that every rule of the box satisfies / violates
Uncertain  the other points of a box, as positions `arena[start:start + m]`
Points     identical (u, v) are merged
Phi        frequency-weighted impurity in rows: 0 Gini, 1 entropy (natural logarithm), 2 error

Rounding can only move points into the uncertain set (tau), so every lower bound holds for the exact data. A value becomes the
incumbent only after the stored rule has been evaluated over all points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.bivariate.kernels.bounds import lower_bound, value_of
from trainer.families.bivariate.kernels.close import FEW_CLASSES, attempt, close
from trainer.families.bivariate.kernels.tables import (
    BEST_FIRST,
    BOUND,
    BOXES,
    CAP,
    CLASSIFIED,
    DONE,
    FIRST,
    FOUND,
    FREE,
    GROW,
    HEAP,
    MEASURE,
    MIN_LEAF,
    RUNNING,
    STRATEGY,
    TAU,
    TOL,
    TOP,
    VALUE,
    WORK,
    has_room,
    is_pruned,
    pop,
    push,
)
from trainer.kernels.compiled import kernel
from trainer.kernels.ordering import argsort
from trainer.kernels.rows import add_row

MARGIN = 0.1  # share of a side that strategy 2 leaves on either side of the branching point
COLLAPSED = 1e-13  # a box with shorter sides is closed, since coordinates are no finer
CLASS_LOOPS = 50  # loops over all classes for the bounds of four children


class Children(NamedTuple):
    """The four boxes of a division: nU and nL (4, 2, classes), number of uncertain points (4,), their positions (4, N), bounds (4,).

    Children 0 and 1 have the smaller slopes, 0 and 2 the smaller offsets.
    """

    decided: np.ndarray
    size: np.ndarray
    S: np.ndarray
    low: np.ndarray


@kernel
def _branching_point(strategy, sides, S, u, v, first, weight):
    """Return the branching point.

    Strategy 1: the middle of the box. Strategy 2: the clipped mean, over the points, of the middle of their line in the box.
    """
    a0, a1, b0, b1 = sides
    if strategy == 1:
        return 0.5 * (a0 + a1), 0.5 * (b0 + b1)
    sum_a = 0.0
    sum_b = 0.0
    n = 0.0
    for i in S:
        w = 0.0
        for h in range(first[i], first[i + 1]):
            w += weight[h]
        t0 = v[i] - a0 * u[i]
        t1 = v[i] - a1 * u[i]
        b = 0.5 * (max(b0, min(t0, t1)) + min(b1, max(t0, t1)))
        a = (v[i] - b) / u[i] if u[i] != 0.0 else 0.5 * (a0 + a1)
        sum_a += w * min(a1, max(a0, a))
        sum_b += w * b
        n += w
    wa = MARGIN * (a1 - a0)
    wb = MARGIN * (b1 - b0)
    return min(a1 - wa, max(a0 + wa, sum_a / n)), min(b1 - wb, max(b0 + wb, sum_b / n))


@kernel
def _classify(sides, a, b, tau, S, points, children):
    """Classify the points S in the four boxes that (a, b) makes; return the class counts that the rule (a, b) sends left."""
    u, v, first, klass, weight, total, _ = points
    new, size, uncertain, _ = children
    a0, a1, b0, b1 = sides
    left = np.zeros(total.shape[0], np.int64)
    size[:] = 0
    new[:] = 0
    for i in S:
        t0 = v[i] - a0 * u[i]
        t = v[i] - a * u[i]
        t1 = v[i] - a1 * u[i]
        if b <= t:
            for h in range(first[i], first[i + 1]):
                left[klass[h]] += weight[h]
        for half in range(2):
            near = t0 if half == 0 else t1
            smallest = min(near, t) - tau
            largest = max(near, t) + tau
            for upper in range(2):
                child = 2 * half + upper
                if (b1 if upper == 1 else b) <= smallest:
                    for h in range(first[i], first[i + 1]):
                        new[child, 0, klass[h]] += weight[h]
                elif (b if upper == 1 else b0) > largest:
                    for h in range(first[i], first[i + 1]):
                        new[child, 1, klass[h]] += weight[h]
                else:
                    uncertain[child, size[child]] = i
                    size[child] += 1
    return left


@kernel
def _queue(search, sides, a, b, m, stagnant, children, queue):
    """Push the children that may contain a better rule, the lowest bound last, since it is popped first."""
    boxes, meta, heap, free, arena, _, st = queue
    new, size, uncertain, low = children
    best_first = search.how[BEST_FIRST]
    a0, a1, b0, b1 = sides
    K = new.shape[2]
    for child in argsort(-low):
        if is_pruned(search.limits, search.best, low[child]):
            continue
        st[FREE] -= 1
        slot = free[st[FREE]]
        x = st[TOP]
        for h in range(size[child]):
            arena[x + h] = uncertain[child, h]
        st[TOP] = x + size[child]
        half = child // 2
        upper = child % 2
        boxes[slot, 0] = a0 if half == 0 else a
        boxes[slot, 1] = a if half == 0 else a1
        boxes[slot, 2] = b if upper == 1 else b0
        boxes[slot, 3] = b1 if upper == 1 else b
        boxes[slot, 4] = low[child]
        meta[slot, 0] = x
        meta[slot, 1] = size[child]
        meta[slot, 2] = stagnant + 1 if size[child] == m else 0
        for k in range(K):
            meta[slot, 3 + k] = new[child, 0, k]
            meta[slot, 3 + K + k] = new[child, 1, k]
        push(best_first, heap, boxes, st, slot)


@kernel
def explore(search, points, queue):
    """Search boxes until none waits (DONE), `how[WORK]` units of work are done (RUNNING) or a table is full (GROW)."""
    how, limits, best, counts = search
    boxes, meta, heap, free, arena, scratch, st = queue
    u, v, first, _, weight, total, _ = points
    K = total.shape[0]
    N = u.shape[0]
    new = np.zeros((4, 2, K), np.int64)
    low = np.zeros(4)
    children = Children(new, np.zeros(4, np.int64), scratch[: 4 * N].reshape(4, N), low)
    work = 0
    while st[HEAP] > 0:
        if work >= how[WORK]:
            return RUNNING
        if not has_room(4 * N, heap, meta, arena, st):
            return GROW
        slot = pop(how[BEST_FIRST], heap, boxes, st)
        free[st[FREE]] = slot
        st[FREE] += 1
        start = meta[slot, 0]
        m = meta[slot, 1]
        stagnant = meta[slot, 2]
        bound = boxes[slot, 4]
        if how[BEST_FIRST] == 0:
            st[TOP] = start  # the points of the last popped box are at the end
        if is_pruned(limits, best, bound):
            continue
        counts[BOXES] += 1
        sides = (boxes[slot, 0], boxes[slot, 1], boxes[slot, 2], boxes[slot, 3])
        S = arena[start : start + m].copy()
        nU = meta[slot, 3 : 3 + K].copy()
        nL = meta[slot, 3 + K : 3 + 2 * K].copy()
        closing_work, closed = close(search, sides, bound, stagnant, S, nU, nL, points)
        work += 20 + closing_work
        a = 0.0
        b = 0.0
        if not closed:
            a, b = _branching_point(how[STRATEGY], sides, S, u, v, first, weight)
            a0, a1, b0, b1 = sides
            if a1 - a0 < COLLAPSED and b1 - b0 < COLLAPSED * max(1.0, abs(b0), abs(b1)):
                attempt(search, a, b, points)
                closed = True
        if not closed:
            left = nU + _classify(sides, a, b, limits[TAU], S, points, children)
            counts[CLASSIFIED] += 4 * m
            work += 6 * m
            value = value_of(how[MEASURE], how[MIN_LEAF], left, total - left)
            if value < min(limits[CAP], best[VALUE]) - limits[TOL]:
                attempt(search, a, b, points)
        if how[FIRST] == 1 and counts[FOUND] == 1:
            return DONE
        if closed:
            continue
        for child in range(4):
            add_row(1, nU, new[child, 0])
            add_row(1, nL, new[child, 1])
            uncertain_counts = total - new[child, 0] - new[child, 1]
            low[child] = max(
                bound, lower_bound(how[MEASURE], how[BOUND], new[child, 0], new[child, 1], uncertain_counts)
            )
        work += CLASS_LOOPS * max(0, K - FEW_CLASSES)
        _queue(search, sides, a, b, m, stagnant, children, queue)
    return DONE
