"""Sample start lines, and find the widest line between two sides."""

from __future__ import annotations

import math

import numpy as np

from trainer.kernels.compiled import kernel
from trainer.kernels.impurity import phi
from trainer.kernels.ordering import argsort

GOLDEN = 0.6180339887498949


BUCKETS = 256  # of the bucket sort; samples have about half as many values


@kernel
def _by_value(t, bucket, begin, order):
    """Fill `order` with the positions by increasing t (ties in any order), by bucket sort and insertion sort.

    t float64 (n,); order int64 (n,). bucket int32 (n,) and begin int32 (BUCKETS + 1,) are scratch.
    """
    n = t.shape[0]
    low = t[0]
    high = t[0]
    for i in range(n):
        low = min(low, t[i])
        high = max(high, t[i])
    scale = (BUCKETS - 1) / (high - low) if high > low else 0.0
    if not scale < math.inf:
        by_value = argsort(t)
        for i in range(n):
            order[i] = by_value[i]
        return
    begin[:] = 0
    for i in range(n):
        bucket[i] = int((t[i] - low) * scale)
        begin[bucket[i] + 1] += 1
    for k in range(BUCKETS):
        begin[k + 1] += begin[k]
    for i in range(n):
        order[begin[bucket[i]]] = i
        begin[bucket[i]] += 1
    for x in range(1, n):
        i = order[x]
        y = x - 1
        while y >= 0 and t[order[y]] > t[i]:
            order[y + 1] = order[y]
            y -= 1
        order[y + 1] = i


@kernel
def sample_lines(u, v, y, weight, classes, slopes, out):
    """Fill out, float64 (3,), with the best Gini impurity, slope and offset over all offsets of the given slopes.

    u, v float64 (n,); y integer classes and weight int64 (n,). The impurity is infinite if no line separates rows.
    """
    n = u.shape[0]
    total = np.zeros(classes, np.int64)
    for i in range(n):
        total[y[i]] += weight[i]
    size = total.sum()
    t = np.empty(n)
    left = np.zeros(classes, np.int64)
    bucket = np.empty(n, np.int32)
    begin = np.empty(BUCKETS + 1, np.int32)
    order = np.empty(n, np.int64)
    out[0] = math.inf
    for a in slopes:
        for i in range(n):
            t[i] = v[i] - a * u[i]
        _by_value(t, bucket, begin, order)
        left[:] = 0
        left_size = 0
        up = 0
        down = 0
        for c in range(classes):
            down += total[c] * total[c]
        for r in range(n - 1):
            i = order[r]
            c = y[i]
            w = weight[i]
            up += w * (2 * left[c] + w)
            down -= w * (2 * (total[c] - left[c]) - w)
            left[c] += w
            left_size += w
            if t[i] < t[order[r + 1]]:
                value = size - up / left_size - down / (size - left_size)
                if value < out[0]:
                    out[0] = value
                    out[1] = a
                    out[2] = 0.5 * (t[i] + t[order[r + 1]])


@kernel
def sample_pairs(Z, empty, pairs, y, weight, classes, slopes, out):
    """Fill out, float64 (k, 4), with the best sampled line of each pair in either order: Gini impurity, order, slope, offset.

    Z float64 (features, n); pairs int64 (k, 2). `empty`, bool, has the shape of Z, or no rows. Lines separate the rows without an empty
    cell; the others add their impurity.
    """
    line = np.empty(3)
    empty_counts = np.zeros(classes, np.int64)
    some_empty = empty.shape[0] > 0
    for k in range(pairs.shape[0]):
        out[k, 0] = math.inf
        out[k, 1] = 0.0
        out[k, 2] = 0.0
        out[k, 3] = 0.0
        hollow = empty[pairs[k, 0]] | empty[pairs[k, 1]] if some_empty else np.zeros(0, np.bool_)
        part = hollow.any()
        complete_rows = np.flatnonzero(~hollow)
        apart = 0.0
        if part:
            if complete_rows.shape[0] < 2:
                continue
            empty_counts[:] = 0
            for i in np.flatnonzero(hollow):
                empty_counts[y[i]] += weight[i]
            apart = phi(0, empty_counts)
        for order in range(2):
            u = Z[pairs[k, order]]
            v = Z[pairs[k, 1 - order]]
            if part:
                sample_lines(
                    u[complete_rows], v[complete_rows], y[complete_rows], weight[complete_rows], classes, slopes, line
                )
                line[0] += apart
            else:
                sample_lines(u, v, y, weight, classes, slopes, line)
            if line[0] < out[k, 0]:
                out[k, 0] = line[0]
                out[k, 1] = order
                out[k, 2] = line[1]
                out[k, 3] = line[2]


@kernel
def _gap(u, v, left, a):
    """Return min t over the left rows minus max t over the others, with t = v - a u; it is concave in a."""
    low = math.inf
    high = -math.inf
    for i in range(u.shape[0]):
        t = v[i] - a * u[i]
        if left[i]:
            low = min(low, t)
        else:
            high = max(high, t)
    return low - high


@kernel
def _shell(u, v, left, slopes):
    """Return a superset of the rows that are extreme on their side for some slope in the range of `slopes`."""
    n = u.shape[0]
    keep = np.zeros(n, np.bool_)
    for s in range(slopes.shape[0] - 1):
        # t is linear in a, so a row matters on an interval only if its better end beats the best worse end of its side
        a0 = slopes[s]
        a1 = slopes[s + 1]
        low = math.inf
        high = -math.inf
        for i in range(n):
            t0 = v[i] - a0 * u[i]
            t1 = v[i] - a1 * u[i]
            if left[i]:
                low = min(low, max(t0, t1))
            else:
                high = max(high, min(t0, t1))
        for i in range(n):
            t0 = v[i] - a0 * u[i]
            t1 = v[i] - a1 * u[i]
            if (left[i] and min(t0, t1) <= low) or (not left[i] and max(t0, t1) >= high):
                keep[i] = True
    return keep


@kernel
def widest_slope(u, v, left, start):
    """Return the slope with the widest perpendicular gap between the sides, and the gap; not positive if no slope separates.

    `start` is a separating slope, or a guess. The search covers |slope| <= 1.25.
    """
    shell = _shell(u, v, left, np.linspace(-1.25, 1.25, 33))
    u = u[shell]
    v = v[shell]
    left = left[shell]
    a = start
    if not _gap(u, v, left, a) > 0.0:
        low = -1.25
        high = 1.25
        for _ in range(120):
            x = high - GOLDEN * (high - low)
            y = low + GOLDEN * (high - low)
            if _gap(u, v, left, x) >= _gap(u, v, left, y):
                high = y
            else:
                low = x
        a = 0.5 * (low + high)
        if not _gap(u, v, left, a) > 0.0:
            return a, _gap(u, v, left, a)
    ends = np.empty(2)
    for side in range(2):
        inside = a
        outside = -1.25 if side == 0 else 1.25
        if _gap(u, v, left, outside) > 0.0:
            inside = outside
        else:
            for _ in range(50):
                mid = 0.5 * (inside + outside)
                if _gap(u, v, left, mid) > 0.0:
                    inside = mid
                else:
                    outside = mid
        ends[side] = inside
    low = ends[0]
    high = ends[1]
    for _ in range(80):
        x = high - GOLDEN * (high - low)
        y = low + GOLDEN * (high - low)
        if _gap(u, v, left, x) / math.sqrt(1.0 + x * x) >= _gap(u, v, left, y) / math.sqrt(1.0 + y * y):
            high = y
        else:
            low = x
    best = a
    width = _gap(u, v, left, a) / math.sqrt(1.0 + a * a)
    b = 0.5 * (low + high)
    gap = _gap(u, v, left, b) / math.sqrt(1.0 + b * b)
    if gap > width:
        best = b
        width = gap
    return best, width
