"""Kernels of the exact search over all thresholds: depth-two optima of a node by interval pruning.

Z[f,j]   the j-th row of the node in the order of feature f          rank[f,i]  dense rank of row i's value of feature f
E[f]     ends: positions j of Z[f] after which the value changes     inc[i]     weight of row i, shifted by 32 bits for class 1
C[f]     the ends of E[f] on whose sides not all rows are of one class: a tree of one split needs no others
L, R     costs of the rows on either side of a threshold             cost       unit * errors + leaf * leaves

With thresholds s < t of one feature L(s) <= L(t) and R(s) >= R(t), and between them each changes by at most the weight of the rows
between, so that what is known of two thresholds bounds all of those between them (Brita, van der Linden & Demirovic 2025, ConTree).
"""

from __future__ import annotations

import numpy as np

from trainer.kernels.compiled import kernel

LOW = np.int64(0xFFFFFFFF)
FAR = np.int64(1) << np.int64(61)
NONE, ONE, BLOCK = (
    np.uint64(0),
    np.uint64(1),
    np.uint64(32),
)  # unsigned positions: an index that may be negative costs a test for each row


@kernel
def ends(Z, rank, E, sizes):
    """Fill E[f, :sizes[f]] with the positions after which the value of feature f changes."""
    F, m = Z.shape
    for f in range(F):
        at = 0
        for j in range(m - 1):
            if rank[f, Z[f, j]] != rank[f, Z[f, j + 1]]:
                E[f, at] = j
                at += 1
        sizes[f] = at


@kernel
def changes(Z, E, sizes, y, C, counts):
    """Fill C[f, :counts[f]] with the ends between values whose rows are not all of the same class.

    Errors of one split, sum of (rows - majority) of both sides, are concave in the rows of one class that change sides, so between
    two such ends the smallest is at an end; that holds for every subset of the rows.
    """
    for f in range(len(Z)):
        kept, first, pending = 0, 0, np.int32(-1)
        before = np.int64(-1)  # class of the value before: -1 none yet, -2 several
        for e in range(sizes[f] + 1):
            last = E[f, e] if e < sizes[f] else Z.shape[1] - 1
            own = np.int64(y[Z[f, first]])
            for j in range(first + 1, last + 1):
                if y[Z[f, j]] != own:
                    own = np.int64(-2)
                    break
            if e > 0 and (own == -2 or own != before):
                C[f, kept] = pending
                kept += 1
            before, pending, first = own, last, last + 1
        counts[f] = kept


@kernel
def divide(Z, rank, f, t):
    """Orders of the rows with rank <= t of feature f, and of the others."""
    F, m = Z.shape
    k = 0
    for j in range(m):
        k += 1 if rank[f, Z[f, j]] <= t else 0
    low, high = np.empty((F, k), np.int32), np.empty((F, m - k), np.int32)
    r = rank[f]
    for g in range(F):
        a, b = 0, 0
        for j in range(m):
            i = Z[g, j]
            if r[i] <= t:
                low[g, a] = i
                a += 1
            else:
                high[g, b] = i
                b += 1
    return low, high


@kernel
def class_weights(Z, y, weight, classes):
    """Weight of each class among the rows of a node."""
    totals = np.zeros(classes, np.int64)
    for j in range(Z.shape[1]):
        totals[y[Z[0, j]]] += weight[Z[0, j]]
    return totals


@kernel
def _prefixes(Z, inc):
    """S[g, j]: sum of inc over the first j + 1 rows in the order of g (two classes)."""
    F, m = Z.shape
    S = np.empty((F, m), np.int64)
    for g in range(F):
        total = np.int64(0)
        for j in range(m):
            total += inc[Z[g, j]]
            S[g, j] = total
    return S


@kernel
def _signed(S, C, counts):
    """D[g, e]: class 0 less class 1 up to the end C[g, e], from the sums of `_prefixes`."""
    D = np.empty((len(S), max(1, counts.max())), np.int64)
    for g in range(len(S)):
        for e in range(counts[g]):
            D[g, e] = (S[g, C[g, e]] & LOW) - (S[g, C[g, e]] >> 32)
    return D


@kernel
def _scan_two(order, marks, count, prefix, signed, left, sums, l0, l1, r0, r1, cut_l, cut_r, out):
    """Fewest errors of one split of a feature at most, on the side where `left` holds inc (else 0) and on the other; two classes.

    out: errors and position of each side (-1: a leaf; not sought from the cut on), and the bounds of both.  With s = class 0 less
    class 1 before a threshold, D = l0 - l1 and L = l0 + l1 a split errs (L - max(|D|, |2 s - D|)) / 2 times, so that the largest
    and the smallest s say how good the best is.  The errors before a threshold never fall from one threshold to the next: the scan
    ends where they have reached the cuts, and they then bound the thresholds that are left.  sums: room for a number a row.
    """
    m, n = np.uint64(len(order)), np.uint64(count)
    acc, j, e = np.int64(0), NONE, NONE
    low_l, high_l, low_r, high_r = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    rest_l, rest_r = FAR, FAR
    while e < n:
        block = min(j + BLOCK, m)
        while j < block:
            acc += left[np.uint32(order[j])]
            sums[j] = (acc & LOW) - (acc >> 32)
            j += ONE
        while e < n and np.uint64(marks[e]) < block:
            s = sums[np.uint64(marks[e])]
            t = signed[e] - s
            low_l, high_l = min(low_l, s), max(high_l, s)
            low_r, high_r = min(low_r, t), max(high_r, t)
            e += ONE
        rest = prefix[block - ONE] - acc
        a, b = min(acc & LOW, acc >> 32), min(rest & LOW, rest >> 32)
        if a >= cut_l and b >= cut_r:
            rest_l, rest_r = a, b
            break
    for side in range(2):
        size, D = (l0 + l1, l0 - l1) if side == 0 else (r0 + r1, r0 - r1)
        low, high = (low_l, high_l) if side == 0 else (low_r, high_r)
        out[2 * side], out[2 * side + 1] = (size - abs(D)) // 2, -1
        wrong = (size - max(2 * high - D, D - 2 * low)) // 2
        if wrong < out[2 * side]:
            out[2 * side] = wrong
            if wrong < (cut_l if side == 0 else cut_r):
                sought = high if 2 * high - D >= D - 2 * low else low
                k = NONE
                while (sums[np.uint64(marks[k])] if side == 0 else signed[k] - sums[np.uint64(marks[k])]) != sought:
                    k += ONE
                out[2 * side + 1] = marks[k]
    out[4], out[5] = min(out[0], rest_l), min(out[2], rest_r)


@kernel
def _scan_many(order, marks, count, y, weight, is_left, whole, seen, cut_l, cut_r, out):
    """As `_scan_two` for any number of classes; is_left uint8 (rows,), whole and seen int64 (2, K): of each side."""
    K = whole.shape[1]
    size_l, size_r = whole[0].sum(), whole[1].sum()
    out[0], out[1], out[2], out[3] = size_l - whole[0].max(), -1, size_r - whole[1].max(), -1
    seen[:] = 0
    top_l, top_r = np.int64(0), np.int64(0)  # of the classes seen so far
    sum_l, sum_r = np.int64(0), np.int64(0)
    rest_l, rest_r = FAR, FAR
    j = NONE
    for e in range(count):
        end = np.uint64(marks[e])
        changed_l, changed_r = False, False
        while j <= end:
            i = np.uint32(order[j])
            own = np.uint32(y[i])
            if is_left[i]:
                seen[0, own] += weight[i]
                top_l = max(top_l, seen[0, own])
                sum_l += weight[i]
                changed_l = True
            else:
                seen[1, own] += weight[i]
                top_r = max(top_r, seen[1, own])
                sum_r += weight[i]
                changed_r = True
            j += ONE
        if changed_l:
            rest = np.int64(0)
            for k in range(K):
                rest = max(rest, whole[0, k] - seen[0, k])
            if size_l - top_l - rest < out[0]:
                out[0], out[1] = size_l - top_l - rest, np.int64(end)
        if changed_r:
            rest = np.int64(0)
            for k in range(K):
                rest = max(rest, whole[1, k] - seen[1, k])
            if size_r - top_r - rest < out[2]:
                out[2], out[3] = size_r - top_r - rest, np.int64(end)
        if sum_l - top_l >= cut_l and sum_r - top_r >= cut_r:
            rest_l, rest_r = sum_l - top_l, sum_r - top_r
            break
    out[4], out[5] = min(out[0], rest_l), min(out[2], rest_r)


@kernel
def best_one(Z, E, sizes, y, weight, classes, errors, places):
    """errors[f], places[f]: fewest errors of one split on each feature, and the index of its end (-1: none)."""
    totals = class_weights(Z, y, weight, classes)
    everything, as_leaf = totals.sum(), totals.sum() - totals.max()
    seen = np.empty(classes, np.int64)
    for f in range(len(Z)):
        seen[:] = 0
        errors[f], places[f] = as_leaf, -1
        j = NONE
        for e in range(sizes[f]):
            end = np.uint64(E[f, e])
            while j <= end:
                i = np.uint32(Z[f, j])
                seen[np.uint32(y[i])] += weight[i]
                j += ONE
            low, high = np.int64(0), np.int64(0)
            for k in range(classes):
                low, high = max(low, seen[k]), max(high, totals[k] - seen[k])
            if everything - low - high < errors[f]:
                errors[f], places[f] = everything - low - high, e


@kernel
def _seat(order, before, now, y, weight, inc, classes, left, is_left, counts):
    """Put the first `now` rows of the order on the left side, where the first `before` are; counts: class weights of that side."""
    for j in range(min(before, now), max(before, now)):
        i = np.uint32(order[j])
        joins = now > before
        if classes == 2:
            left[i] = inc[i] if joins else 0
        else:
            is_left[i] = joins
        counts[np.uint32(y[i])] += weight[i] if joins else -weight[i]


@kernel
def _trim(Lv, Rv, W, unit, a, b, best):
    """First and last threshold between a and b that may cost less than `best`, and the least bound of those left out."""
    lo, hi, least = a + 1, b - 1, FAR
    while lo <= hi:
        bound = _floor(Lv, Rv, W, unit, a, b, lo)
        if bound < best:
            break
        least = min(least, bound)
        lo += 1
    while lo <= hi:
        bound = _floor(Lv, Rv, W, unit, a, b, hi)
        if bound < best:
            break
        least = min(least, bound)
        hi -= 1
    return lo, hi, least


@kernel
def depth_two(Z, rank, y, weight, inc, classes, costs, ub, flag, answer, LB):
    """The smallest cost below `ub` of a tree of depth two at most, or `ub`; negative where flag[0] ended the search.

    costs: unit, leaf.  answer: feature, rank of its threshold, then the same for the children (feature -1: a leaf).
    LB[f]: lower bounds of the trees whose first question is about f, read and raised.
    """
    F, m = Z.shape
    unit, leaf = costs[0], costs[1]
    totals = class_weights(Z, y, weight, classes)
    answer[:] = -1
    best, total = ub, totals.sum()
    as_leaf = (total - totals.max()) * unit + leaf
    if as_leaf < best:
        best = as_leaf
    if m < 2 or as_leaf == leaf or best <= 2 * leaf or total * unit <= 2 * leaf or LB.min() >= best:
        return best
    E, sizes = np.empty((F, m), np.int32), np.zeros(F, np.int64)
    ends(Z, rank, E, sizes)
    errors, places = np.empty(F, np.int64), np.empty(F, np.int64)
    best_one(Z, E, sizes, y, weight, classes, errors, places)
    C, changing = np.empty((F, m), np.int32), np.zeros(F, np.int64)
    changes(Z, E, sizes, y, C, changing)
    S = _prefixes(Z, inc) if classes == 2 else np.empty((F, 1), np.int64)
    D = _signed(S, C, changing) if classes == 2 else np.empty((F, 1), np.int64)
    sums = np.empty(m, np.int64)
    n, most = rank.shape[1], sizes.max()
    left, is_left = np.zeros(n if classes == 2 else 1, np.int64), np.zeros(n if classes > 2 else 1, np.uint8)
    Lv, Rv, W = np.empty(most + 2, np.int64), np.empty(most + 2, np.int64), np.empty(most + 2, np.int64)
    # errors with one split on g, of the rows left and right of each threshold: bounds, exact where g was looked at
    GL, GR = np.empty((most + 2, F), np.int32), np.empty((most + 2, F), np.int32)
    good = np.empty((most + 2, 2), np.int64)  # the feature that was best on either side
    lo_stack, hi_stack = np.empty(most + 2, np.int64), np.empty(most + 2, np.int64)
    whole, seen = np.zeros((2, classes), np.int64), np.zeros((2, classes), np.int64)
    out, first = np.empty(6, np.int64), np.empty(F + 4, np.int64)
    one_split = min(as_leaf, errors.min() * unit + 2 * leaf)
    for f in np.argsort(errors, kind="mergesort"):
        count = sizes[f]
        if count == 0:
            LB[f] = max(LB[f], one_split)
        if count == 0 or LB[f] >= best:
            continue
        # thresholds are 1..count; 0 and count + 1 stand for all rows on one side
        at, acc = 0, np.int64(0)
        for e in range(count):
            while at <= E[f, e]:
                acc += weight[Z[f, at]]
                at += 1
            W[e + 1] = acc
        W[0], W[count + 1] = 0, total
        Lv[0], Rv[0], Lv[count + 1], Rv[count + 1] = leaf, one_split, one_split, leaf
        for g in range(F):
            GL[0, g], GR[0, g] = 0, errors[g]
            GL[count + 1, g], GR[count + 1, g] = errors[g], 0
        good[0], good[count + 1] = -1, -1
        lo_stack[0], hi_stack[0] = 0, count + 1
        depth, floor, seated = 1, FAR, 0  # rows before `seated` in the order of f are on the left
        whole[0] = 0
        while depth:
            depth -= 1
            a, b = lo_stack[depth], hi_stack[depth]
            if b - a < 2:
                continue
            if Lv[a] + Rv[b] >= best:
                floor = min(floor, Lv[a] + Rv[b])
                continue
            lo, hi, least = _trim(Lv, Rv, W, unit, a, b, best)
            floor = min(floor, least)
            if lo > hi:
                continue
            if flag[0]:
                return np.int64(-1)
            c = (lo + hi) // 2
            if a == 0 and b == count + 1 and places[f] >= lo - 1 and places[f] <= hi - 1:
                c = places[f] + 1  # the best single split first
            end = E[f, c - 1]
            _seat(Z[f], seated, end + 1, y, weight, inc, classes, left, is_left, whole[0])
            seated = end + 1
            whole[1] = totals - whole[0]
            leaf_l, leaf_r = whole[0].sum() - whole[0].max(), whole[1].sum() - whole[1].max()
            floor_l = max(Lv[a], Lv[b] - unit * (W[b] - W[c]))
            floor_r = max(Rv[b], Rv[a] - unit * (W[c] - W[a]))
            # a side with so many errors is of no use, whatever the other side has
            useless_l = (best - floor_r - 2 * leaf + unit - 1) // unit
            useless_r = (best - floor_l - 2 * leaf + unit - 1) // unit
            found_l, found_r, low_l, low_r = leaf_l, leaf_r, leaf_l, leaf_r
            gl, gr, at_l, at_r = -1, -1, -1, -1
            first[0], first[1], first[2], first[3] = good[a, 0], good[a, 1], good[b, 0], good[b, 1]
            for g in range(F):
                GL[c, g] = max(GL[a, g], GL[b, g] - (W[b] - W[c]))
                GR[c, g] = max(GR[b, g], GR[a, g] - (W[c] - W[a]))
                first[4 + g] = g
            for k in range(F + 4):
                g = first[k]
                if g < 0:
                    continue
                done_l, done_r = GL[c, g] >= min(found_l, useless_l), GR[c, g] >= min(found_r, useless_r)
                if done_l and done_r:
                    low_l, low_r = min(low_l, GL[c, g]), min(low_r, GR[c, g])
                    continue
                cut_l = np.int64(0) if done_l else min(found_l, useless_l)
                cut_r = np.int64(0) if done_r else min(found_r, useless_r)
                if classes == 2:
                    l0, l1, r0, r1 = whole[0, 0], whole[0, 1], whole[1, 0], whole[1, 1]
                    _scan_two(Z[g], C[g], changing[g], S[g], D[g], left, sums, l0, l1, r0, r1, cut_l, cut_r, out)
                else:
                    _scan_many(Z[g], C[g], changing[g], y, weight, is_left, whole, seen, cut_l, cut_r, out)
                GL[c, g], GR[c, g] = max(GL[c, g], out[4]), max(GR[c, g], out[5])
                low_l, low_r = min(low_l, GL[c, g]), min(low_r, GR[c, g])
                if out[0] < found_l:
                    found_l, gl, at_l = out[0], g, out[1]
                if out[2] < found_r:
                    found_r, gr, at_r = out[2], g, out[3]
            good[c, 0], good[c, 1] = gl, gr
            Lv[c] = max(floor_l, min(leaf_l * unit + leaf, low_l * unit + 2 * leaf))
            Rv[c] = max(floor_r, min(leaf_r * unit + leaf, low_r * unit + 2 * leaf))
            floor = min(floor, Lv[c] + Rv[c])
            split_l = gl >= 0 and found_l * unit + 2 * leaf < leaf_l * unit + leaf
            split_r = gr >= 0 and found_r * unit + 2 * leaf < leaf_r * unit + leaf
            cost = found_l * unit + 2 * leaf if split_l else leaf_l * unit + leaf
            cost += found_r * unit + 2 * leaf if split_r else leaf_r * unit + leaf
            if cost < best:
                best = cost
                answer[0], answer[1] = f, rank[f, Z[f, end]]
                answer[2] = gl if split_l else -1
                answer[3] = rank[gl, Z[gl, at_l]] if split_l else -1
                answer[4] = gr if split_r else -1
                answer[5] = rank[gr, Z[gr, at_r]] if split_r else -1
            lo_stack[depth], hi_stack[depth] = a, c
            lo_stack[depth + 1], hi_stack[depth + 1] = c, b
            depth += 2
        _seat(Z[f], seated, 0, y, weight, inc, classes, left, is_left, whole[0])
        # of more rows than these, a threshold may part none of these: what is left is a single split
        LB[f] = max(LB[f], min(floor, one_split))
    return best


@kernel
def _floor(Lv, Rv, W, unit, a, b, c):
    """A lower bound of the cost at threshold c between the thresholds a and b."""
    low = max(Lv[a], Lv[b] - unit * (W[b] - W[c]))
    high = max(Rv[b], Rv[a] - unit * (W[c] - W[a]))
    return low + high
