"""Hold the tables of a pair's search: options, boxes and uncertain points.

The constants are indices into the arrays of `PairSearch` and `Queue`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trainer.kernels.compiled import kernel
from trainer.kernels.ordering import argsort

# int64 `how`: impurity, kind of bound, branching strategy, heap or stack, bits of the criteria C2 (1), C3 (2), C4 (4) and C5 (8), most
# points for the local sweep, minimum leaf size, units of work per call, whether to end at the first rule, whether the angular sweep may
# take over
MEASURE, BOUND, STRATEGY, BEST_FIRST, CRITERIA, LOCAL, MIN_LEAF, WORK, FIRST, SWEEP = range(10)
# float64 `limits`: value from which on boxes are pruned, tolerance in rows, gap of early stopping, rounding error of t
CAP, TOL, EPS, TAU = range(4)
# int64 `state` of the queue: number of waiting boxes, end of the used part of `arena`, number of free slots
HEAP, TOP, FREE = range(3)
# int64 `counts`: searched boxes, classified points, local sweeps, and whether a rule was found
BOXES, CLASSIFIED, SWEEPS, FOUND = range(4)
# float64 `best`: value, a and b of the incumbent, and the smallest bound that only early stopping pruned
VALUE, SLOPE, OFFSET, GIVEN_UP = range(4)
# return codes of `explore`: all boxes are closed, the work of the call is done, a table must grow
DONE = 0
RUNNING = 1
GROW = 2


class PairSearch(NamedTuple):
    """Options and results of a pair's search: `how` and `counts` int64, `limits` and `best` float64, by the indices above."""

    how: np.ndarray
    limits: np.ndarray
    best: np.ndarray
    counts: np.ndarray


class Queue(NamedTuple):
    """The waiting boxes and the positions of their uncertain points.

    boxes float64 (slots, 5): a0, a1, b0, b1, bound. meta int64 (slots, 3 + 2 classes): start, m, stagnation, nU, nL.
    `arena[start:start + m]` holds the positions of a box's uncertain points, `scratch` those of four children. `heap` lists the waiting
    slots, `free` the others; `state` by the indices above. These five are int64.
    """

    boxes: np.ndarray
    meta: np.ndarray
    heap: np.ndarray
    free: np.ndarray
    arena: np.ndarray
    scratch: np.ndarray
    state: np.ndarray


@kernel
def push(best_first, heap, boxes, st, slot):
    """Push a slot: onto a heap by bound if `best_first` is 1, else onto a stack. st: the `state` of the queue."""
    x = st[HEAP]
    st[HEAP] += 1
    heap[x] = slot
    if best_first == 1:
        while x > 0 and boxes[heap[(x - 1) // 2], 4] > boxes[heap[x], 4]:
            heap[x], heap[(x - 1) // 2] = heap[(x - 1) // 2], heap[x]
            x = (x - 1) // 2


@kernel
def pop(best_first, heap, boxes, st):
    """Remove the next slot and return it: the one with the least bound, or the newest."""
    st[HEAP] -= 1
    last = st[HEAP]
    if best_first == 0:
        return heap[last]
    slot = heap[0]
    heap[0] = heap[last]
    x = 0
    while True:
        y = 2 * x + 1
        if y >= last:
            return slot
        if y + 1 < last and boxes[heap[y + 1], 4] < boxes[heap[y], 4]:
            y += 1
        if boxes[heap[x], 4] <= boxes[heap[y], 4]:
            return slot
        heap[x], heap[y] = heap[y], heap[x]
        x = y


@kernel
def _compact(heap, meta, arena, st):
    """Close the gaps between the point lists of the waiting boxes."""
    waiting = heap[: st[HEAP]]
    order = argsort(meta[waiting, 0])
    top = 0
    for x in order:
        slot = waiting[x]
        start = meta[slot, 0]
        m = meta[slot, 1]
        for h in range(m):
            arena[top + h] = arena[start + h]
        meta[slot, 0] = top
        top += m
    st[TOP] = top


@kernel
def has_room(points, heap, meta, arena, st):
    """Return whether four more boxes with `points` uncertain points fit."""
    if st[FREE] < 4:
        return False
    if st[TOP] + points > arena.shape[0]:
        _compact(heap, meta, arena, st)
    return st[TOP] + points <= arena.shape[0]


@kernel
def is_pruned(limits, best, bound):
    """Return whether `bound` prunes a box; record the bound if only early stopping prunes it."""
    prune = min(limits[CAP], best[VALUE])
    if bound < (1.0 - limits[EPS]) * prune - limits[TOL]:
        return False
    if bound < prune - limits[TOL]:
        best[GIVEN_UP] = min(best[GIVEN_UP], bound)
    return True


@kernel
def push_root(points, floor, queue, counts):
    """Push the root box: all rules with |a| <= 1, bound `floor`, all points uncertain.

    Rows with an empty cell are on their fixed side.
    """
    u = points.u
    v = points.v
    boxes = queue.boxes
    meta = queue.meta
    st = queue.state
    low = math.inf
    high = -math.inf
    for i in range(u.shape[0]):
        low = min(low, v[i] - abs(u[i]))
        high = max(high, v[i] + abs(u[i]))
        queue.arena[i] = i
    st[:] = 0
    counts[:] = 0
    boxes[0, 0] = -1.0
    boxes[0, 1] = 1.0
    boxes[0, 2] = low
    boxes[0, 3] = high + 1.0
    boxes[0, 4] = floor
    K = points.total.shape[0]
    meta[0, :] = 0
    meta[0, 1] = u.shape[0]
    for k in range(K):
        meta[0, 3 + k] = points.fixed[0, k]
        meta[0, 3 + K + k] = points.fixed[1, k]
    queue.heap[0] = 0
    st[HEAP] = 1
    st[TOP] = u.shape[0]
    for x in range(boxes.shape[0] - 1):
        queue.free[x] = boxes.shape[0] - 1 - x
    st[FREE] = boxes.shape[0] - 1
