"""Kernels: depth-two optima of both sides of a split of a node at once; P and e as in `trainer.families.exact.kernels.two`.

The pairs of the smaller side are counted in bit columns; those of the larger side are the node's less these.
"""

from __future__ import annotations

import numpy as np

from trainer.families.exact.kernels.node import MIRRORED, pair_row
from trainer.families.exact.kernels.two import evaluate_many, evaluate_two, values
from trainer.kernels.bits import ctpop, transpose
from trainer.kernels.compiled import kernel

i32 = np.int32
u64 = np.uint64
FEW_WORDS = 10  # of the smaller side, up to which counting each pair twice is faster than writing the best of each question down


@kernel
def row_major(node):
    """The compact columns of a node back as rows: uint64 (64 * words, ceil(p / 64))."""
    words, m = node.columns.shape
    wide = (m + 63) >> 6
    out = np.zeros((64 * words, wide), u64)
    buffer = np.empty(64, u64)
    for w in range(words):
        for v in range(wide):
            inside = min(64, m - 64 * v)
            buffer[:inside] = node.columns[w, 64 * v : 64 * v + inside]
            buffer[inside:] = u64(0)
            transpose(buffer)
            out[64 * w : 64 * w + 64, v] = buffer
    return out


@kernel
def _side_masked(node, mask, words):
    """Columns under `mask`, only the words in which it has a bit."""
    m = node.columns.shape[1]
    out, segment = np.empty((words, m), u64), np.empty((words, 2), i32)
    at = 0
    for w in range(len(mask)):
        if mask[w] != u64(0):
            row, target = node.columns[w], out[at]
            for q in range(m):
                target[q] = row[q] & mask[w]
            segment[at, 0], segment[at, 1] = node.segment[w, 0], node.segment[w, 1]
            at += 1
    return out, segment


@kernel
def _side_packed(node, Rn, mask, words):
    """Columns of the rows under `mask`, packed into `words` words, each within one segment."""
    m = node.columns.shape[1]
    out, segment = np.empty((words, m), u64), np.empty((words, 2), i32)
    chosen = np.empty(64, np.int64)
    buffer = np.empty(64, u64)
    at, held, w = 0, 0, 0
    count = len(mask)
    while w < count:
        bits = mask[w]
        while bits != u64(0):
            low = bits & (~bits + u64(1))
            chosen[held] = 64 * w + np.int64(ctpop(low - u64(1)))
            held += 1
            bits ^= low
            if held == 64:
                _flush(Rn, chosen, held, buffer, out[at])
                segment[at, 0], segment[at, 1] = node.segment[w, 0], node.segment[w, 1]
                at, held = at + 1, 0
        last = w + 1 == count or (
            node.segment[w + 1, 0] != node.segment[w, 0] or node.segment[w + 1, 1] != node.segment[w, 1]
        )
        if last and held:
            _flush(Rn, chosen, held, buffer, out[at])
            segment[at, 0], segment[at, 1] = node.segment[w, 0], node.segment[w, 1]
            at, held = at + 1, 0
        w += 1
    return out, segment


@kernel
def _flush(Rn, chosen, held, buffer, out):
    m = len(out)
    for v in range(Rn.shape[1]):
        for r in range(held):
            buffer[r] = Rn[chosen[r], v]
        for r in range(held, 64):
            buffer[r] = u64(0)
        transpose(buffer)
        inside = min(64, m - 64 * v)
        out[64 * v : 64 * v + inside] = buffer[:inside]


@kernel
def _smaller_side(node, Rn, p, ones_small):
    """Bit columns of the smaller side of split p: packed where that saves more counting than it costs."""
    count = len(node.valid)
    mask = np.empty(count, u64)
    touched, packed = 0, np.int64(0)
    held = np.int64(0)
    for w in range(count):
        mask[w] = node.columns[w, p] if ones_small else node.valid[w] & ~node.columns[w, p]
        if mask[w] != u64(0):
            touched += 1
        held += np.int64(ctpop(mask[w]))
        if w + 1 == count or (
            node.segment[w + 1, 0] != node.segment[w, 0] or node.segment[w + 1, 1] != node.segment[w, 1]
        ):
            packed += (held + 63) >> 6
            held = np.int64(0)
    m = node.columns.shape[1]
    # measured: one 64 x 64 transposition costs about as much as 900 pairs in one word
    if (touched - packed) * m * m // 2 > 900 * packed * ((m + 63) >> 6):
        return _side_packed(node, Rn, mask, packed)
    return _side_masked(node, mask, touched)


@kernel
def both_sides(node, P, Rn, p, min_leaf, e0, e1):
    """e0, e1: e[t] of the rows with x_p = 0 and of those with x_p = 1, from one pass over the pairs of the smaller side.

    The pair counts of the larger side are those of the node less those of the smaller one.
    """
    classes, m = node.ones.shape
    size1, total = 0, 0
    for k in range(classes):
        size1 += node.ones[k, p]
        total += node.totals[k]
    ones_small = 2 * size1 <= total
    columns, segment = _smaller_side(node, Rn, p, ones_small)
    small, large = np.empty((classes, m), i32), np.empty((classes, m), i32)
    ts, tl = np.empty(classes, i32), np.empty(classes, i32)
    for k in range(classes):
        for q in range(m):
            if q == p:
                both = node.ones[k, p]
            else:
                both = P[k, min(p, q), max(p, q)]
            small[k, q] = both if ones_small else i32(node.ones[k, q] - both)
            large[k, q] = i32(node.ones[k, q] - small[k, q])
        ts[k] = node.ones[k, p] if ones_small else i32(node.totals[k] - node.ones[k, p])
        tl[k] = i32(node.totals[k] - ts[k])
    sl, sr = np.full(m, -1, i32), np.full(m, -1, i32)
    ll, lr = np.full(m, -1, i32), np.full(m, -1, i32)
    if classes == 2 and min_leaf <= 1 and m <= MIRRORED and len(columns) <= FEW_WORDS:
        _whole_rows((columns, segment), P, (small, ts, sl, sr), (large, tl, ll, lr))
    else:
        _half_rows((columns, segment), P, min_leaf, (small, ts, sl, sr), (large, tl, ll, lr))
    values(small, ts, sl, sr, min_leaf, e1 if ones_small else e0)
    values(large, tl, ll, lr, min_leaf, e0 if ones_small else e1)


@kernel
def _half_rows(compact, P, min_leaf, one, other):
    """Correct rows of the best children in both sides, from each pair once; one, other: ones (K, m), totals (K,), left and right (m,)."""
    columns, segment = compact
    small, ts, sl, sr = one
    large, tl, ll, lr = other
    classes, m = small.shape
    row, buffer = np.zeros((classes, m), i32), np.empty((4, m), i32)
    for f in range(m):
        pair_row(columns, segment, f, f + 1, row)
        if classes == 2 and min_leaf <= 1:
            evaluate_two(row, small, ts, f, sl, sr)
        else:
            evaluate_many(row, small, ts, f, sl, sr, buffer, min_leaf)
        for k in range(classes):
            whole, part = P[k, f, f + 1 :], row[k, f + 1 :]
            for q in range(m - f - 1):
                part[q] = i32(whole[q] - part[q])
        if classes == 2 and min_leaf <= 1:
            evaluate_two(row, large, tl, f, ll, lr)
        else:
            evaluate_many(row, large, tl, f, ll, lr, buffer, min_leaf)


@kernel
def _whole_rows(compact, P, one, other):
    """As `_half_rows` for two classes, from each pair twice: a loop that writes nothing is so much faster that it pays for few words.

    A question below itself is the leaf written with two leaves, which is never cheaper than the leaf.
    """
    columns, segment = compact
    small, ts, sl, sr = one
    large, tl, ll, lr = other
    m = small.shape[1]
    row, rest = np.zeros((2, m), i32), np.empty((2, m), i32)
    for f in range(m):
        pair_row(columns, segment, f, 0, row)
        for k in range(2):
            whole, part, left = P[k, f], row[k], rest[k]
            for q in range(m):
                left[q] = i32(whole[q] - part[q])
        sl[f], sr[f] = _best_of_row(row[0], row[1], small, ts, f)
        ll[f], lr[f] = _best_of_row(rest[0], rest[1], large, tl, f)


@kernel
def _best_of_row(c0, c1, a, t, f):
    """Correct rows of the best child where x_f = 0 and where x_f = 1, from the pair counts of a whole row."""
    x0, x1 = a[0, f], a[1, f]
    y0, y1 = i32(t[0] - x0), i32(t[1] - x1)
    b0, b1 = a[0], a[1]
    best_l, best_r = i32(0), i32(0)
    for q in range(len(c0)):
        p0, p1 = c0[q], c1[q]
        zero = i32(max(i32(b0[q] - p0), i32(b1[q] - p1)) + max(i32(y0 - b0[q] + p0), i32(y1 - b1[q] + p1)))
        best_l = max(best_l, zero)
        best_r = max(best_r, i32(max(p0, p1) + max(i32(x0 - p0), i32(x1 - p1))))
    return best_l, best_r
