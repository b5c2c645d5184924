"""View a node's rows as bit columns, and count feature pairs.

R[i,v]   row i as 64-bit words of binary features          C[w,p]  word w of column p, for the rows of the node
n1[k,p]  weight of class k with x_p = 1                     P[k,p,q] weight of class k with x_p = x_q = 1, p < q

A word holds rows of one segment: one class and one power of two of the row weights. So a weighted count is a sum of shifted
population counts. Weights of many bits are listed by row instead. (Demirovic et al. 2022, MurTree; Keegan et al. 2025, equations
27-40.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.weighted_pairs import add_all_pairs, add_pairs_of
from trainer.kernels.bits import ctpop, transpose
from trainer.kernels.compiled import kernel
from trainer.kernels.ordering import argsort
from trainer.kernels.rows import copy_row

i32 = np.int32
u64 = np.uint64
WEIGHT_BITS = 29  # bits of the largest weight of an instance
MIRRORED = 256  # features up to which both halves of the pair counts are stored, so that loops run along rows


class DataRows(NamedTuple):
    """The rows of a data set, as `ExactInstance` builds them."""

    R: np.ndarray  # uint64 (n, words)
    segment_of: np.ndarray  # of each row
    segments: np.ndarray  # int32 (segments, 2): class, shift
    equal: np.ndarray  # uint8 (n,): 1 where an equal row has a more frequent class
    weights: np.ndarray  # int32 (n,), then all shifts are 0; empty if the segments imply the weights
    classes: int


class NodeView(NamedTuple):
    """Compact view of the rows of a subproblem; columns are the admissible, distinct features in search order."""

    features: np.ndarray  # int32 (p,), index in the whole data set
    columns: np.ndarray  # uint64 (words, p)
    valid: np.ndarray  # uint64 (words,), bits that hold a row
    segment: np.ndarray  # int32 (words, 2): class, shift
    weights: np.ndarray  # int32 (64 * words,), by place in the words; empty if the segments imply them
    ones: np.ndarray  # int32 (K, p)
    equal_ones: np.ndarray  # int64 (p,), unavoidable errors among the rows with x_p = 1
    totals: np.ndarray  # int32 (K,)
    equal: int  # unavoidable errors of the node: rows that equal a row of a more frequent class


@kernel
def gather_columns(data, rows):
    """Return column words, valid bits, segments and listed weights of `rows`, as `NodeView` describes them, for all features.

    rows: ascending, hence by segment.
    """
    R = data.R
    segments = data.segments
    n = len(rows)
    words = R.shape[1]
    sizes = np.zeros(len(segments), np.int64)
    for i in range(n):
        sizes[data.segment_of[rows[i]]] += 1
    blocks = 0
    for s in range(len(segments)):
        blocks += (sizes[s] + 63) >> 6
    columns = np.empty((blocks, 64 * words), u64)
    valid = np.empty(blocks, u64)
    segment = np.empty((blocks, 2), i32)
    weights = np.zeros(64 * blocks if len(data.weights) else 0, i32)
    buffer = np.empty(64, u64)
    w = 0
    start = 0
    for s in range(len(segments)):
        end = start + sizes[s]
        for first in range(start, end, 64):
            m = min(64, end - first)
            valid[w] = ~u64(0) if m == 64 else (u64(1) << u64(m)) - u64(1)
            segment[w, 0] = segments[s, 0]
            segment[w, 1] = segments[s, 1]
            if len(weights):
                for r in range(m):
                    weights[64 * w + r] = data.weights[rows[first + r]]
            for v in range(words):
                for r in range(m):
                    buffer[r] = R[rows[first + r], v]
                for r in range(m, 64):
                    buffer[r] = u64(0)
                transpose(buffer)
                copy_row(buffer, columns[w, 64 * v : 64 * v + 64])
            w += 1
        start = end
    return columns, valid, segment, weights


@kernel
def _count(gathered, mask, ones, use_class):
    """Add the weighted population counts of every column under `mask` to ones[class or 0]."""
    columns, _, segment, weights = gathered
    planes = np.empty(64, u64)
    for w in range(len(columns)):
        if mask[w] == u64(0):
            continue
        out = ones[segment[w, 0] if use_class else 0]
        if len(weights) == 0:
            _add_counts(columns[w], mask[w], i32(segment[w, 1]), out)
            continue
        for r in range(64):
            planes[r] = u64(weights[64 * w + r])
        transpose(planes)
        for shift in range(WEIGHT_BITS):
            if planes[shift] & mask[w]:
                _add_counts(columns[w], planes[shift] & mask[w], i32(shift), out)


@kernel
def _add_counts(row, bits, shift, out):
    for p in range(len(row)):
        out[p] = i32(out[p] + i32(i32(ctpop(row[p] & bits)) << shift))


@kernel
def _mark_distinct(columns, valid, candidates, keep):
    """Mark in `keep` the first of each set of equal or complementary columns."""
    words = len(columns)
    m = len(candidates)
    hashes = np.zeros(m, u64)
    flips = np.zeros(m, np.uint8)
    for c in range(m):
        f = candidates[c]
        flip = columns[0, f] & u64(1)
        flips[c] = flip
        h = u64(0x9E3779B97F4A7C15)
        for w in range(words):
            x = columns[w, f] ^ valid[w] if flip else columns[w, f]
            h = (h ^ x) * u64(0xD6E8FEB86659FD93)
            h ^= h >> u64(32)
        hashes[c] = h
    size = 1
    while size < 2 * m + 2:
        size *= 2
    slots = np.full(size, -1, np.int64)
    for c in range(m):
        place = np.int64(hashes[c] & u64(size - 1))
        fresh = True
        while slots[place] >= 0 and fresh:
            other = slots[place]
            if hashes[other] == hashes[c]:
                same = True
                for w in range(words):
                    x = columns[w, candidates[c]] ^ columns[w, candidates[other]]
                    if flips[c] != flips[other]:
                        x ^= valid[w]
                    if x != u64(0):
                        same = False
                        break
                if same:
                    fresh = False
                    break
            place = (place + 1) & (size - 1)
        if fresh:
            slots[place] = c
            keep[c] = 1


@kernel
def prepare(data, rows, allowed, min_leaf, reduce, sort):
    """Return the node of `rows`, int32 (n,), ascending.

    allowed: uint8 (features,), 1 for features that may be split on. reduce: drop equal and complementary columns. sort: order the features
    by Gini gain.
    """
    gathered = gather_columns(data, rows)
    return view_node(data, rows, gathered, allowed, min_leaf, reduce, sort)


@kernel
def _sum_rows(data, rows, gathered, totals, mask):
    """Add the weights of the rows to `totals`, by class; mark unavoidable errors in `mask`, and return their weight."""
    _, valid, segment, weights = gathered
    equal = np.int64(0)
    at = np.int64(0)
    for w in range(len(valid)):
        inside = np.int64(ctpop(valid[w]))
        if len(weights) == 0:
            totals[segment[w, 0]] += i32(inside << segment[w, 1])
        for r in range(inside):
            weight = np.int64(1) << segment[w, 1]
            if len(weights):
                weight = np.int64(weights[64 * w + r])
                totals[segment[w, 0]] += i32(weight)
            if data.equal[rows[at + r]]:
                mask[w] |= u64(1) << u64(r)
                equal += weight
        at += inside
    return equal


@kernel
def _find_splits(ones, total, allowed, min_leaf):
    """Return the allowed features whose children both weigh at least `min_leaf`, int64."""
    candidates = np.empty(len(allowed), np.int64)
    count = 0
    for f in range(len(allowed)):
        inside = ones[:, f].sum()
        if allowed[f] and inside >= min_leaf and total - inside >= min_leaf:
            candidates[count] = f
            count += 1
    return candidates[:count]


@kernel
def _sort_by_gain(candidates, ones, totals, total):
    """Return the candidates by descending Gini gain."""
    gain = np.empty(len(candidates), np.float64)
    for c in range(len(candidates)):
        f = candidates[c]
        size1 = 0
        pure1 = 0.0
        pure0 = 0.0
        for k in range(len(totals)):
            a = float(ones[k, f])
            b = float(totals[k] - ones[k, f])
            size1 += ones[k, f]
            pure1 += a * a
            pure0 += b * b
        gain[c] = -(pure1 / size1 + pure0 / (total - size1))
    return candidates[argsort(gain)]


@kernel
def view_node(data, rows, gathered, allowed, min_leaf, reduce, sort):
    """Return the node of `rows` from the result of `gather_columns`; the other arguments are those of `prepare`."""
    columns, valid, segment, weights = gathered
    classes = data.classes
    ones = np.zeros((classes, columns.shape[1]), i32)
    _count(gathered, valid, ones, True)
    mask = np.zeros(len(valid), u64)
    totals = np.zeros(classes, i32)
    equal = _sum_rows(data, rows, gathered, totals, mask)
    equal_ones = np.zeros((1, columns.shape[1]), i32)
    if equal:
        _count(gathered, mask, equal_ones, False)
    total = totals.sum()
    candidates = _find_splits(ones, total, allowed, min_leaf)
    if reduce and len(candidates):
        keep = np.zeros(len(candidates), np.uint8)
        _mark_distinct(columns, valid, candidates, keep)
        candidates = candidates[keep == 1]
    if sort:
        candidates = _sort_by_gain(candidates, ones, totals, total)
    count = len(candidates)
    compact = np.empty((len(valid), count), u64)
    for w in range(len(valid)):
        for c in range(count):
            compact[w, c] = columns[w, candidates[c]]
    ones_c = np.empty((classes, count), i32)
    equal_c = np.empty(count, np.int64)
    for c in range(count):
        for k in range(classes):
            ones_c[k, c] = ones[k, candidates[c]]
        equal_c[c] = equal_ones[0, candidates[c]]
    return NodeView(candidates.astype(i32), compact, valid, segment, weights, ones_c, equal_c, totals, int(equal))


@kernel
def split_rows(R, rows, feature):
    """Return the rows with x_feature = 0 and those with x_feature = 1, int32, in their order."""
    n = len(rows)
    word = feature >> 6
    bit = u64(feature & 63)
    zeros = np.empty(n, i32)
    ones = np.empty(n, i32)
    a = 0
    b = 0
    for i in range(n):
        if (R[rows[i], word] >> bit) & u64(1):
            ones[b] = rows[i]
            b += 1
        else:
            zeros[a] = rows[i]
            a += 1
    return zeros[:a], ones[:b]


@kernel
def pair_row(columns, segment, weights, f, first, out):
    """Write out[k, q], int32, the weight of class k with x_f = x_q = 1, for q ≥ first."""
    m = columns.shape[1]
    n = m - first
    out[:, first:m] = i32(0)
    if len(weights):
        add_pairs_of(columns, weights, segment, f, first, out)
        return
    for w in range(len(columns)):
        bits = columns[w, f]
        if bits == u64(0):
            continue
        shift = i32(segment[w, 1])
        row = columns[w, first:]
        target = out[segment[w, 0], first:m]
        if shift == i32(0):
            for q in range(n):
                target[q] = i32(target[q] + i32(ctpop(bits & row[q])))
        else:
            for q in range(n):
                target[q] = i32(target[q] + i32(i32(ctpop(bits & row[q])) << shift))


@kernel
def pair_counts(node, P):
    """Write P[k, p, q], int32 (K, m, m), for p < q; with at most MIRRORED features also the other half and the diagonal."""
    classes, m = node.ones.shape
    if len(node.weights):
        P[:] = i32(0)
        add_all_pairs(node.columns, node.weights, node.segment, P)
        mirror(node, P)
        return
    row = np.empty((classes, m), i32)
    for f in range(m):
        pair_row(node.columns, node.segment, node.weights, f, f + 1, row)
        for k in range(classes):
            source = row[k, f + 1 :]
            target = P[k, f, f + 1 :]
            for q in range(m - f - 1):
                target[q] = source[q]
    mirror(node, P)


@kernel
def mirror(node, P):
    """Write P[k, q, p] = P[k, p, q] and the diagonal, if there are at most MIRRORED features."""
    classes, m = node.ones.shape
    if m > MIRRORED:
        return
    for k in range(classes):
        for f in range(m):
            P[k, f, f] = node.ones[k, f]
            for q in range(f):
                P[k, f, q] = P[k, q, f]
