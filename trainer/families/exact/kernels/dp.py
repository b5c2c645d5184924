"""Kernels of the exact search on a node (`trainer.families.exact.kernels.node`): all depth-two subtrees below each split, and bounds.

P[k,p,q] weight of class k with x_p = x_q = 1, p < q
e[t]     smallest error of a tree of depth 2 with t leaves (t = 1..4; index t - 1)
(Demirovic et al. 2022, MurTree; Keegan et al. 2025, equations 27-40.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.dtypes import CountArray
from trainer.families.exact.kernels.node import pair_row
from trainer.kernels.bits import ctpop, transpose
from trainer.kernels.compiled import kernel

i32 = np.int32
u64 = np.uint64
FAR = np.int64(1) << np.int64(40)  # an error count that no data set reaches


class Sides(NamedTuple):
    """What is known of both sides of every split: lower bounds of their cost int64 (2, p), and uint8 (2, p), 1 where exact."""

    lower: np.ndarray
    exact: np.ndarray


class Kept(NamedTuple):
    """The cache of depth-two subtrees: cost + 1 of the rows of a path, by `place`; table int64, 0 unknown, empty for no cache.

    path int64: the ascending literals of the node; binomials as `binomial_table` gives them.
    """

    path: np.ndarray
    binomials: np.ndarray
    table: np.ndarray


class Budget(NamedTuple):
    """How many depth-two pairs a call may solve; flag int64 (1,): anything but 0 ends the call."""

    pairs: int
    flag: np.ndarray


@kernel
def _evaluate_two(c, a, t, f, left, right):
    """Correct rows of the best children of f and of each q > f (two classes), from the pair counts c[k, q] of row f."""
    n = a.shape[1] - f - 1
    x0, x1 = a[0, f], a[1, f]
    y0, y1 = i32(t[0] - x0), i32(t[1] - x1)
    c0, c1, b0, b1 = c[0, f + 1 :], c[1, f + 1 :], a[0, f + 1 :], a[1, f + 1 :]
    L, Rt = left[f + 1 :], right[f + 1 :]
    best_l, best_r = i32(0), i32(0)
    for q in range(n):
        p0, p1 = c0[q], c1[q]
        q0, q1 = i32(b0[q] - p0), i32(b1[q] - p1)
        m11 = max(p0, p1)
        m10 = max(i32(x0 - p0), i32(x1 - p1))
        m01 = max(q0, q1)
        m00 = max(i32(y0 - q0), i32(y1 - q1))
        best_l = max(best_l, i32(m00 + m01))
        best_r = max(best_r, i32(m10 + m11))
        L[q] = max(L[q], i32(m00 + m10))
        Rt[q] = max(Rt[q], i32(m01 + m11))
    left[f] = max(left[f], best_l)
    right[f] = max(right[f], best_r)


@kernel
def _evaluate_many(c, a, t, f, left, right, buffer, min_leaf):
    """As `_evaluate_two` for any number of classes and a smallest leaf; `buffer` is int32 (8, features)."""
    n = a.shape[1] - f - 1
    m00, m01, m10, m11 = buffer[0, :n], buffer[1, :n], buffer[2, :n], buffer[3, :n]
    buffer[:4, :n] = i32(0)
    for k in range(a.shape[0]):
        x, y = a[k, f], i32(t[k] - a[k, f])
        ck, bk = c[k, f + 1 :], a[k, f + 1 :]
        for q in range(n):
            both = ck[q]
            rest = i32(bk[q] - both)
            m11[q] = max(m11[q], both)
            m10[q] = max(m10[q], i32(x - both))
            m01[q] = max(m01[q], rest)
            m00[q] = max(m00[q], i32(y - rest))
    if min_leaf > 1:
        _too_small(c, a, t, f, buffer, min_leaf)
    L, Rt = left[f + 1 :], right[f + 1 :]
    best_l, best_r = left[f], right[f]
    for q in range(n):
        best_l = max(best_l, i32(m00[q] + m01[q]))
        best_r = max(best_r, i32(m10[q] + m11[q]))
        L[q] = max(L[q], i32(m00[q] + m10[q]))
        Rt[q] = max(Rt[q], i32(m01[q] + m11[q]))
    left[f], right[f] = best_l, best_r


@kernel
def _too_small(c, a, t, f, buffer, min_leaf):
    """Give a leaf with fewer than `min_leaf` rows a value that no sum makes positive."""
    n = a.shape[1] - f - 1
    for q in range(n):
        both, x, b, all_rows = 0, 0, 0, 0
        for k in range(a.shape[0]):
            both += c[k, f + 1 + q]
            x += a[k, f]
            b += a[k, f + 1 + q]
            all_rows += t[k]
        if all_rows - x - b + both < min_leaf:
            buffer[0, q] = i32(-(1 << 29))
        if b - both < min_leaf:
            buffer[1, q] = i32(-(1 << 29))
        if x - both < min_leaf:
            buffer[2, q] = i32(-(1 << 29))
        if both < min_leaf:
            buffer[3, q] = i32(-(1 << 29))


@kernel
def _values(a, t, left, right, min_leaf, e):
    """e[0..3]: smallest errors with 1 to 4 leaves, from the best children of every root feature."""
    classes, m = a.shape
    total, top = np.int64(0), i32(0)
    for k in range(classes):
        total += t[k]
        top = max(top, t[k])
    e[0] = total - top
    e[1] = e[2] = e[3] = FAR
    for f in range(m):
        one, top1, top0 = np.int64(0), i32(0), i32(0)
        for k in range(classes):
            one += a[k, f]
            top1 = max(top1, a[k, f])
            top0 = max(top0, i32(t[k] - a[k, f]))
        if one < min_leaf or total - one < min_leaf:
            continue
        e[1] = min(e[1], total - top0 - top1)
        if left[f] >= 0:
            e[2] = min(e[2], total - left[f] - top1)
        if right[f] >= 0:
            e[2] = min(e[2], total - top0 - right[f])
        if left[f] >= 0 and right[f] >= 0:
            e[3] = min(e[3], total - left[f] - right[f])


@kernel
def price(e, unit, leaf, most):
    """Smallest cost over 1..most leaves: `unit` for each error, `leaf` for each leaf."""
    best = e[0] * unit + leaf
    for t in range(1, most):
        if e[t] < FAR:
            best = min(best, e[t] * unit + (t + 1) * leaf)
    return best


@kernel
def own_values(node, P, min_leaf, e):
    """e[t] of the node itself."""
    classes, m = node.ones.shape
    left, right = np.full(m, -1, i32), np.full(m, -1, i32)
    buffer = np.empty((4, m), i32)
    for f in range(m):
        if classes == 2 and min_leaf <= 1:
            _evaluate_two(P[:, f, :], node.ones, node.totals, f, left, right)
        else:
            _evaluate_many(P[:, f, :], node.ones, node.totals, f, left, right, buffer, min_leaf)
    _values(node.ones, node.totals, left, right, min_leaf, e)


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
    row, buffer = np.zeros((classes, m), i32), np.empty((4, m), i32)
    for f in range(m):
        pair_row(columns, segment, f, row)
        if classes == 2 and min_leaf <= 1:
            _evaluate_two(row, small, ts, f, sl, sr)
        else:
            _evaluate_many(row, small, ts, f, sl, sr, buffer, min_leaf)
        for k in range(classes):
            whole, part = P[k, f, f + 1 :], row[k, f + 1 :]
            for q in range(m - f - 1):
                part[q] = i32(whole[q] - part[q])
        if classes == 2 and min_leaf <= 1:
            _evaluate_two(row, large, tl, f, ll, lr)
        else:
            _evaluate_many(row, large, tl, f, ll, lr, buffer, min_leaf)
    _values(small, ts, sl, sr, min_leaf, e1 if ones_small else e0)
    _values(large, tl, ll, lr, min_leaf, e0 if ones_small else e1)


@kernel
def count_bounds(node, unit, leaf, height, bounds, sides):
    """Lower bounds of both sides of every split: leaf count, equivalent points, support; exact[s, p] = 1 where tight.

    lower[s, p] in cost units.  A tree with t leaves predicts at most t classes.  bounds (3,): which to use, in the order of `node_bounds`.
    """
    use_equal, use_classes, use_support = bounds[0], bounds[1], bounds[2]
    lb, exact = sides
    classes, m = node.ones.shape
    counts = np.empty(classes, np.int64)
    most = 1 << height
    for p in range(m):
        for s in range(2):
            size = 0
            for k in range(classes):
                counts[k] = node.ones[k, p] if s else node.totals[k] - node.ones[k, p]
                size += counts[k]
            floor = 0
            if use_equal:
                floor = node.equal_ones[p] if s else node.equal - node.equal_ones[p]
            counts.sort()
            as_leaf = (size - counts[classes - 1]) * unit + leaf
            best = as_leaf
            if not (use_support and size * unit <= 2 * leaf):
                top = counts[classes - 1]
                for t in range(2, most + 1):
                    wrong = floor
                    if use_classes and t <= classes:
                        top += counts[classes - t]
                        wrong = max(wrong, size - top)
                    best = min(best, wrong * unit + t * leaf)
                    if t >= classes:
                        break
            lb[s, p] = max(lb[s, p], best)
            exact[s, p] = 1 if best == as_leaf else 0


@kernel
def share(node, P, p, s, value, unit, lb):
    """Similarity: a tree for x_q = r does for x_p = s too, wrong at most on the rows of the latter outside the former."""
    classes, m = node.ones.shape
    size_p = 0
    for k in range(classes):
        size_p += node.ones[k, p] if s else node.totals[k] - node.ones[k, p]
    for q in range(m):
        if q == p:
            continue
        inside = 0
        for k in range(classes):
            both = P[k, min(p, q), max(p, q)]
            inside += both if s else node.ones[k, q] - both
        # rows of side (p, s) with x_q = 1: outside of side (q, 0); the others are outside of side (q, 1)
        lb[0, q] = max(lb[0, q], value - inside * unit)
        lb[1, q] = max(lb[1, q], value - (size_p - inside) * unit)


@kernel
def place(path, literal, binomials):
    """Index of the set path + literal in the table of all sets of that size (combinatorial number system); -1: too large."""
    index, at, placed = np.int64(0), 0, False
    for j in range(len(path) + 1):
        if not placed and (at == len(path) or literal < path[at]):
            value, placed = literal, True
        else:
            value = path[at]
            at += 1
        index += binomials[j + 1, value]
    return index


# positions in the state of `three`
BEST, CHOICE, NEXT, TWOS, STOPPED = 0, 1, 2, 3, 4


@kernel
def three(node, P, Rn, costs, kept, sides, state, budget):
    """Best split of a node whose subtrees have depth two; resumes at state[NEXT] and ends when the budget is spent.

    costs: int64 (unit, leaf, min_leaf, use_similarity).  state: best cost so far (an upper bound to beat), chosen position,
    next position, depth-two solves, whether the budget ended it.  What `sides` hold stays valid.
    """
    path, binomials, table = kept
    lb, exact = sides
    unit, leaf, min_leaf, similar = costs[0], costs[1], costs[2], costs[3]
    m = len(node.features)
    e0, e1 = np.empty(4, np.int64), np.empty(4, np.int64)
    cached = len(table) > 0
    done = 0
    while state[NEXT] < m:
        if budget.flag[0] or done >= budget.pairs:
            state[STOPPED] = 1
            return
        p = state[NEXT]
        if lb[0, p] + lb[1, p] < state[BEST]:
            at0, at1 = np.int64(-1), np.int64(-1)
            if cached:
                at0 = place(path, 2 * node.features[p], binomials)
                at1 = place(path, 2 * node.features[p] + 1, binomials)
                if table[at0]:
                    lb[0, p], exact[0, p] = table[at0] - 1, 1
                if table[at1]:
                    lb[1, p], exact[1, p] = table[at1] - 1, 1
            if not (exact[0, p] and exact[1, p]) and lb[0, p] + lb[1, p] < state[BEST]:
                both_sides(node, P, Rn, p, min_leaf, e0, e1)
                lb[0, p], lb[1, p] = price(e0, unit, leaf, 4), price(e1, unit, leaf, 4)
                exact[0, p] = exact[1, p] = 1
                done += 1
                state[TWOS] += 2
                if cached:
                    table[at0], table[at1] = lb[0, p] + 1, lb[1, p] + 1
            if similar:
                for s in range(2):
                    if exact[s, p]:
                        share(node, P, p, s, lb[s, p], unit, lb)
            if exact[0, p] and exact[1, p] and lb[0, p] + lb[1, p] < state[BEST]:
                state[BEST], state[CHOICE] = lb[0, p] + lb[1, p], p
        state[NEXT] += 1
    state[STOPPED] = 0


@kernel
def node_bounds(node, unit, leaf, height, bounds):
    """Cost as a leaf, and the leaf-count, equivalent-points and support bound of the node itself.

    bounds (3,): whether to use equivalent points, the leaf count, and support.
    """
    use_equal, use_classes, use_support = bounds[0], bounds[1], bounds[2]
    counts = np.sort(node.totals.astype(np.int64))[::-1]
    size = counts.sum()
    as_leaf = (size - counts[0]) * unit + leaf
    if use_support and size * unit <= 2 * leaf:
        return as_leaf, as_leaf
    best, top = as_leaf, counts[0]
    for t in range(2, min(1 << height, max(2, len(counts))) + 1):
        top += counts[t - 1] if t <= len(counts) else 0
        wrong = np.int64(node.equal) if use_equal else np.int64(0)
        if use_classes:
            wrong = max(wrong, size - top)
        best = min(best, wrong * unit + t * leaf)
    return as_leaf, best


@kernel
def best_two(node, P, unit, leaf, min_leaf, most):
    """Positions (root, child where x = 0, child where x = 1; -1: a leaf) of a cheapest tree with depth two at most.

    The first in search order among the cheapest; `most` leaves (2 for depth one, 4 for depth two). The values of all pairs are
    taken row by row, as in `own_values`: column by column a thousand questions take a second.
    """
    classes, m = node.ones.shape
    total = np.int64(node.totals.sum())
    best, root = (total - node.totals.max()) * unit + leaf, -1
    correct = np.full((2, m), -1, i32)
    if most > 2:
        buffer = np.empty((4, m), i32)
        for f in range(m):
            if classes == 2 and min_leaf <= 1:
                _evaluate_two(P[:, f, :], node.ones, node.totals, f, correct[0], correct[1])
            else:
                _evaluate_many(P[:, f, :], node.ones, node.totals, f, correct[0], correct[1], buffer, min_leaf)
    for f in range(m):
        cost = np.int64(0)
        for s in range(2):
            size, as_leaf = _side_as_leaf(node, f, s, unit, leaf)
            cost += as_leaf if correct[s, f] < 0 else min(as_leaf, (size - correct[s, f]) * unit + 2 * leaf)
        if cost < best:
            best, root = cost, f
    if root < 0 or most == 2:
        return (root, -1, -1), best
    return (root, _child(node, P, root, 0, unit, leaf, min_leaf), _child(node, P, root, 1, unit, leaf, min_leaf)), best


@kernel
def _side_as_leaf(node, f, s, unit, leaf):
    """Weight of the rows with x_f = s, and their cost as a leaf."""
    size, top = np.int64(0), np.int64(0)
    for k in range(len(node.ones)):
        value = np.int64(node.ones[k, f] if s else node.totals[k] - node.ones[k, f])
        size += value
        top = max(top, value)
    return size, (size - top) * unit + leaf


@kernel
def _child(node, P, f, s, unit, leaf, min_leaf):
    """The first split that makes the rows with x_f = s cheapest, -1 where a leaf is as cheap."""
    classes, m = node.ones.shape
    size, cost = _side_as_leaf(node, f, s, unit, leaf)
    child = -1
    for q in range(m):
        if q == f:
            continue
        one, top1, top0 = np.int64(0), np.int64(0), np.int64(0)
        for k in range(classes):
            both = np.int64(P[k, min(f, q), max(f, q)])
            inside = both if s else node.ones[k, q] - both
            outside = (node.ones[k, f] if s else node.totals[k] - node.ones[k, f]) - inside
            one += inside
            top1, top0 = max(top1, inside), max(top0, outside)
        if one < min_leaf or size - one < min_leaf:
            continue
        value = (size - top1 - top0) * unit + 2 * leaf
        if value < cost:
            cost, child = value, q
    return child


def binomial_table(literals: int, size: int) -> CountArray:
    """binomials[j, v] = v choose j, int64 (size + 1, literals + 1)."""
    out = np.zeros((size + 1, literals + 1), np.int64)
    out[0] = 1
    for j in range(1, size + 1):
        for v in range(1, literals + 1):
            out[j, v] = out[j, v - 1] + out[j - 1, v - 1]
    return out
