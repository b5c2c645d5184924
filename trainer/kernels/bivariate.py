"""Branch and bound for the best line on one ordered pair of features (Bollwein & Westphal, Algorithm 2).

Rule       (a, b): a u + b <= v; points that satisfy it go left. t(a) = v - a u is the largest b that a point satisfies
Box        a0 <= a <= a1, b0 <= b <= b1; nU, nL counts of the points that every rule of the box satisfies / violates
Uncertain  the other points of a box, as positions `arena[start:start + m]`
Points     identical (u, v) are merged; point i holds the counts `weight[h]` of class `klass[h]`, first[i] <= h < first[i + 1]
Phi        frequency-weighted impurity in rows: 0 Gini, 1 entropy (natural logarithm), 2 error

Rounding can only move points into the uncertain set (tau), so every lower bound holds for the exact data; a value becomes the
incumbent only after the rule itself, as it is stored, has been counted over all points.
"""

from __future__ import annotations

import math

import numpy as np

from trainer.kernels.compiled import kernel

# integer options `how`
MEASURE, BOUND, STRATEGY, BEST_FIRST, CRITERIA, LOCAL, MIN_LEAF, WORK, FIRST = range(9)
# float options `limits`: prune at `CAP`, comparisons in rows, early stopping, rounding
CAP, TOL, EPS, TAU = range(4)
# integer state
HEAP, TOP, FREE, BOXES, CLASSIFIED, SWEEPS, FOUND = range(7)
# float state `best`: value, a, b, smallest bound that early stopping gave up
VALUE, SLOPE, OFFSET, GIVEN_UP = range(4)
DONE, RUNNING, GROW = 0, 1, 2

STAGNATION = 4  # generations without change after which the uncertain points are swept
MARGIN = 0.1  # share of a side that strategy 2 leaves on either side of the branching point
EXACT_CLASSES = 5  # classes whose assignments are enumerated in the strongest bound
SWEEP_WORK = 400_000  # comparisons that one local sweep may take
COLLAPSED = 1e-13  # sides below the resolution of the coordinates


@kernel
def phi(measure, n):
    """Phi of the counts n, int64 (classes,)."""
    total, part, most = 0.0, 0.0, 0.0
    for c in range(n.shape[0]):
        x = float(n[c])
        if x > 0.0:
            total += x
            if measure == 0:
                part += x * x
            elif measure == 1:
                part += x * math.log(x)
            elif x > most:
                most = x
    if total == 0.0:
        return 0.0
    if measure == 0:
        return total - part / total
    if measure == 1:
        return max(0.0, total * math.log(total) - part)
    return total - most


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
    """Theorem 5 (entropy) and Theorem 6 (Gini) for the classes of m that are not in `skip`."""
    total, part, most = 0.0, 0.0, 0.0
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
    """A bound on every rule of a box: kind 0 Theorem 4, 1 with Theorems 5 and 6, 2 all assignments of the largest classes.

    Kind 2 enumerates which side each of the largest uncertain classes takes (Theorem 1: the best assignment splits no class);
    the remaining classes add their own bound by superadditivity.
    """
    K = m.shape[0]
    skip = np.zeros(K, np.int64)
    low = phi(measure, nU) + phi(measure, nL)
    if kind == 0:
        return low
    low += _rest_bound(measure, m, skip)
    if kind == 1:
        return low
    chosen = np.empty(EXACT_CLASSES, np.int64)
    k = 0
    while k < EXACT_CLASSES:
        c, most = -1, 0
        for d in range(K):
            if skip[d] == 0 and m[d] > most:
                c, most = d, m[d]
        if c < 0:
            break
        chosen[k] = c
        skip[c] = 1
        k += 1
    least = math.inf
    up, down = nU.copy(), nL.copy()
    for h in range(k):
        down[chosen[h]] += m[chosen[h]]
    total_up, total_down, part_up, part_down = 0.0, 0.0, 0.0, 0.0
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
            c = chosen[h]
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
    """Phi(left) + Phi(right), or infinity where a side has fewer than `min_leaf` (at least one) rows."""
    if min(left.sum(), right.sum()) < max(1, min_leaf):
        return math.inf
    return phi(measure, left) + phi(measure, right)


@kernel
def rule_value(measure, min_leaf, a, b, u, v, first, klass, weight, total):
    """The value of the rule (a, b) counted over all points."""
    left = np.zeros(total.shape[0], np.int64)
    for i in range(u.shape[0]):
        if b <= v[i] - a * u[i]:
            for h in range(first[i], first[i + 1]):
                left[klass[h]] += weight[h]
    return value_of(measure, min_leaf, left, total - left)


@kernel
def _try(how, limits, best, st, a, b, u, v, first, klass, weight, total):
    """Take the rule (a, b) as incumbent if, counted over all points, it is better."""
    value = rule_value(how[MEASURE], how[MIN_LEAF], a, b, u, v, first, klass, weight, total)
    if value < min(limits[CAP], best[VALUE]) - limits[TOL]:
        best[VALUE], best[SLOPE], best[OFFSET] = value, a, b
        st[FOUND] = 1


@kernel
def _one_class(how, limits, best, st, box, S, nU, nL, m, u, v, first, klass, weight, total):
    """Criterion 3: all uncertain points to one side, where a rule of the box does so."""
    a0, a1, b0, b1 = box[0], box[1], box[2], box[3]
    for side in range(2):
        left = nU + m if side == 0 else nU.copy()
        value = value_of(how[MEASURE], how[MIN_LEAF], left, total - left)
        if not value < min(limits[CAP], best[VALUE]) - limits[TOL]:
            continue
        b = b0 if side == 0 else b1
        low, high = a0, a1
        for i in S:
            if u[i] != 0.0:
                cut = (v[i] - b) / u[i]
                if (u[i] > 0.0) == (side == 0):
                    high = min(high, cut)
                else:
                    low = max(low, cut)
        if low <= high:
            _try(how, limits, best, st, 0.5 * (low + high), b, u, v, first, klass, weight, total)


@kernel
def _collinear(S, u, v):
    """True where the points S lie on one line; the products are exact for coordinates of up to 26 bits."""
    i, j, far = S[0], S[0], 0.0
    for s in S:
        d = abs(u[s] - u[i]) + abs(v[s] - v[i])
        if d > far:
            far, j = d, s
    du, dv = u[j] - u[i], v[j] - v[i]
    for s in S:  # noqa: SIM110 - a generator would not compile
        if du * (v[s] - v[i]) != dv * (u[s] - u[i]):
            return False
    return True


@kernel
def _events(S, u, v, a0, a1, collinear):
    """Ends of the slope intervals on which the order of the points S does not change, from a0 to a1."""
    k = S.shape[0]
    if collinear:
        ends = np.empty(3)
        count = 1
        ends[0] = a0
        i, j = S[0], S[0]
        for s in S:
            i = s if u[s] < u[i] else i
            j = s if u[s] > u[j] else j
        if u[j] > u[i]:
            slope = (v[j] - v[i]) / (u[j] - u[i])
            if a0 < slope < a1:
                ends[1] = slope
                count = 2
        ends[count] = a1
        return ends[: count + 1]
    slopes = np.empty(k * (k - 1) // 2 + 2)
    count = 0
    for x in range(k):
        for y in range(x):
            du = u[S[x]] - u[S[y]]
            if du != 0.0:
                slope = (v[S[x]] - v[S[y]]) / du
                if a0 < slope < a1:
                    slopes[count] = slope
                    count += 1
    slopes[count] = a0
    slopes[count + 1] = a1
    ends = np.sort(slopes[: count + 2])
    kept = 1
    for x in range(1, count + 2):
        if ends[x] != ends[kept - 1]:
            ends[kept] = ends[x]
            kept += 1
    return ends[:kept]


@kernel
def _sweep(how, limits, best, st, box, S, ends, nU, u, v, first, klass, weight, total):
    """Criteria 2, 4 and 5: every partition of the points S that a rule of the box makes."""
    b0, b1, tau = box[2], box[3], limits[TAU]
    k = S.shape[0]
    st[SWEEPS] += 1
    t = np.empty(k)
    for e in range(ends.shape[0] - 1):
        mid = 0.5 * (ends[e] + ends[e + 1])
        for x in range(k):
            t[x] = -(v[S[x]] - mid * u[S[x]])
        order = np.argsort(t, kind="mergesort")
        left = nU.copy()
        for r in range(k + 1):
            if r > 0:
                i = S[order[r - 1]]
                for h in range(first[i], first[i + 1]):
                    left[klass[h]] += weight[h]
            value = value_of(how[MEASURE], how[MIN_LEAF], left, total - left)
            if not value < min(limits[CAP], best[VALUE]) - limits[TOL]:
                continue
            # the slopes of this interval at which t of the last point in reaches b0 and that of the first one out stays below b1
            low, high = ends[e], ends[e + 1]
            if r > 0:
                i = S[order[r - 1]]
                cut = v[i] - b0 + tau
                if u[i] > 0.0:
                    high = min(high, cut / u[i])
                elif u[i] < 0.0:
                    low = max(low, cut / u[i])
            if r < k:
                j = S[order[r]]
                cut = v[j] - b1 - tau
                if u[j] > 0.0:
                    low = max(low, cut / u[j])
                elif u[j] < 0.0:
                    high = min(high, cut / u[j])
            if low > high:
                continue
            a = 0.5 * (low + high)
            ceiling, floor = b1, b0
            if r > 0:
                i = S[order[r - 1]]
                ceiling = min(ceiling, v[i] - a * u[i])
            if r < k:
                j = S[order[r]]
                floor = max(floor, v[j] - a * u[j])
            b = 0.5 * (ceiling + floor)
            if not floor < b:
                b = ceiling
            _try(how, limits, best, st, a, b, u, v, first, klass, weight, total)


@kernel
def _branching_point(strategy, box, S, u, v, first, weight):
    """Strategy 1: the middle. Strategy 2: the mean over the points of the middle of their line in the box, clipped."""
    a0, a1, b0, b1 = box[0], box[1], box[2], box[3]
    if strategy == 1:
        return 0.5 * (a0 + a1), 0.5 * (b0 + b1)
    sum_a, sum_b, n = 0.0, 0.0, 0.0
    for i in S:
        w = 0.0
        for h in range(first[i], first[i + 1]):
            w += weight[h]
        t0, t1 = v[i] - a0 * u[i], v[i] - a1 * u[i]
        b = 0.5 * (max(b0, min(t0, t1)) + min(b1, max(t0, t1)))
        a = (v[i] - b) / u[i] if u[i] != 0.0 else 0.5 * (a0 + a1)
        sum_a += w * min(a1, max(a0, a))
        sum_b += w * b
        n += w
    wa, wb = MARGIN * (a1 - a0), MARGIN * (b1 - b0)
    return min(a1 - wa, max(a0 + wa, sum_a / n)), min(b1 - wb, max(b0 + wb, sum_b / n))


@kernel
def _push(best_first, heap, boxes, st, slot):
    x = st[HEAP]
    st[HEAP] += 1
    heap[x] = slot
    if best_first == 1:
        while x > 0 and boxes[heap[(x - 1) // 2], 4] > boxes[heap[x], 4]:
            heap[x], heap[(x - 1) // 2] = heap[(x - 1) // 2], heap[x]
            x = (x - 1) // 2


@kernel
def _pop(best_first, heap, boxes, st):
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
    order = np.argsort(meta[waiting, 0])
    top = 0
    for x in order:
        slot = waiting[x]
        start, m = meta[slot, 0], meta[slot, 1]
        for h in range(m):
            arena[top + h] = arena[start + h]
        meta[slot, 0] = top
        top += m
    st[TOP] = top


@kernel
def root(how, limits, u, v, first, klass, weight, total, boxes, meta, heap, free, arena, st):
    """Put the box of all rules with |a| <= 1 (spec: the root box) in the list, all points being uncertain."""
    low, high = math.inf, -math.inf
    for i in range(u.shape[0]):
        low = min(low, v[i] - abs(u[i]))
        high = max(high, v[i] + abs(u[i]))
        arena[i] = i
    st[:] = 0
    boxes[0, 0], boxes[0, 1], boxes[0, 2], boxes[0, 3], boxes[0, 4] = -1.0, 1.0, low, high + 1.0, 0.0
    meta[0, :] = 0
    meta[0, 1] = u.shape[0]
    heap[0] = 0
    st[HEAP], st[TOP] = 1, u.shape[0]
    for x in range(boxes.shape[0] - 1):
        free[x] = boxes.shape[0] - 1 - x
    st[FREE] = boxes.shape[0] - 1


@kernel
def explore(how, limits, u, v, first, klass, weight, total, boxes, meta, heap, free, arena, scratch, st, best):
    """Search until the list is empty (DONE), `how[WORK]` points were classified (RUNNING) or a table is full (GROW).

    boxes float64 (slots, 5): a0, a1, b0, b1, bound; meta int64 (slots, 3 + 2 classes): start, m, stagnation, nU, nL.
    """
    K = total.shape[0]
    N = u.shape[0]
    measure, tau = how[MEASURE], limits[TAU]
    work = 0
    size = np.zeros(4, np.int64)
    unchanged = np.zeros(4, np.int64)
    new = np.zeros((4, 2, K), np.int64)
    low = np.zeros(4)
    while st[HEAP] > 0:
        if work >= how[WORK]:
            return RUNNING
        if st[FREE] < 4:
            return GROW
        if st[TOP] + 4 * N > arena.shape[0]:
            _compact(heap, meta, arena, st)
            if st[TOP] + 4 * N > arena.shape[0]:
                return GROW
        slot = _pop(how[BEST_FIRST], heap, boxes, st)
        free[st[FREE]] = slot
        st[FREE] += 1
        start, m = meta[slot, 0], meta[slot, 1]
        if how[BEST_FIRST] == 0:
            st[TOP] = start  # the list of the box taken last lies at the end
        box = boxes[slot, :4].copy()
        prune = min(limits[CAP], best[VALUE])
        bound = boxes[slot, 4]
        if bound >= (1.0 - limits[EPS]) * prune - limits[TOL]:
            if bound < prune - limits[TOL]:
                best[GIVEN_UP] = min(best[GIVEN_UP], bound)
            continue
        st[BOXES] += 1
        work += 20
        nU, nL = meta[slot, 3 : 3 + K].copy(), meta[slot, 3 + K : 3 + 2 * K].copy()
        stagnant = meta[slot, 2]
        if m == 0:  # criterion 1
            _try(
                how,
                limits,
                best,
                st,
                0.5 * (box[0] + box[1]),
                0.5 * (box[2] + box[3]),
                u,
                v,
                first,
                klass,
                weight,
                total,
            )
            if how[FIRST] == 1 and st[FOUND] == 1:
                return DONE
            continue
        S = arena[start : start + m].copy()
        uncertain = total - nU - nL
        present = 0
        for c in range(K):
            present += uncertain[c] > 0
        if present == 1 and how[CRITERIA] & 2:
            _one_class(how, limits, best, st, box, S, nU, nL, uncertain, u, v, first, klass, weight, total)
            work += 2 * m
            if bound >= (1.0 - limits[EPS]) * min(limits[CAP], best[VALUE]) - limits[TOL]:
                if how[FIRST] == 1 and st[FOUND] == 1:
                    return DONE
                continue
        local = how[CRITERIA] & 8
        closing = (m == 1 and how[CRITERIA] & 1) or (local and m <= how[LOCAL])
        line = False
        if not closing and (how[CRITERIA] & 4 or local) and (stagnant > 0 or not local):
            line = _collinear(S, u, v)
            work += m
            closing = line
        ends = box[:2]
        if closing:
            ends = _events(S, u, v, box[0], box[1], line)
            work += m * m if not line else m
        elif local and stagnant >= STAGNATION and m * m <= SWEEP_WORK:
            ends = _events(S, u, v, box[0], box[1], False)
            work += m * m // 2
            closing = ends.shape[0] * m * 10 <= SWEEP_WORK
        if closing:
            _sweep(how, limits, best, st, box, S, ends, nU, u, v, first, klass, weight, total)
            work += ends.shape[0] * m * 2
            if how[FIRST] == 1 and st[FOUND] == 1:
                return DONE
            continue
        a, b = _branching_point(how[STRATEGY], box, S, u, v, first, weight)
        if box[1] - box[0] < COLLAPSED and box[3] - box[2] < COLLAPSED * max(1.0, abs(box[2]), abs(box[3])):
            _try(how, limits, best, st, a, b, u, v, first, klass, weight, total)
            continue
        # children 0 and 1 have the smaller slopes, 0 and 2 the smaller offsets
        size[:] = 0
        new[:] = 0
        here = nU.copy()
        for i in S:
            t0, t, t1 = v[i] - box[0] * u[i], v[i] - a * u[i], v[i] - box[1] * u[i]
            if b <= t:
                for h in range(first[i], first[i + 1]):
                    here[klass[h]] += weight[h]
            for half in range(2):
                near = t0 if half == 0 else t1
                smallest, largest = min(near, t) - tau, max(near, t) + tau
                for upper in range(2):
                    child = 2 * half + upper
                    if (box[3] if upper == 1 else b) <= smallest:
                        for h in range(first[i], first[i + 1]):
                            new[child, 0, klass[h]] += weight[h]
                    elif (b if upper == 1 else box[2]) > largest:
                        for h in range(first[i], first[i + 1]):
                            new[child, 1, klass[h]] += weight[h]
                    else:
                        scratch[child * N + size[child]] = i
                        size[child] += 1
        st[CLASSIFIED] += 4 * m
        work += 6 * m
        value = value_of(measure, how[MIN_LEAF], here, total - here)
        if value < min(limits[CAP], best[VALUE]) - limits[TOL]:
            _try(how, limits, best, st, a, b, u, v, first, klass, weight, total)
            if how[FIRST] == 1 and st[FOUND] == 1:
                return DONE
        for child in range(4):
            new[child, 0] += nU
            new[child, 1] += nL
            rest = total - new[child, 0] - new[child, 1]
            low[child] = max(bound, lower_bound(measure, how[BOUND], new[child, 0], new[child, 1], rest))
            unchanged[child] = stagnant + 1 if size[child] == m else 0
        prune = min(limits[CAP], best[VALUE])
        for child in np.argsort(-low, kind="mergesort"):
            if low[child] >= (1.0 - limits[EPS]) * prune - limits[TOL]:
                if low[child] < prune - limits[TOL]:
                    best[GIVEN_UP] = min(best[GIVEN_UP], low[child])
                continue
            st[FREE] -= 1
            slot = free[st[FREE]]
            x = st[TOP]
            for h in range(size[child]):
                arena[x + h] = scratch[child * N + h]
            st[TOP] = x + size[child]
            half, upper = child // 2, child % 2
            boxes[slot, 0] = box[0] if half == 0 else a
            boxes[slot, 1] = a if half == 0 else box[1]
            boxes[slot, 2] = b if upper == 1 else box[2]
            boxes[slot, 3] = box[3] if upper == 1 else b
            boxes[slot, 4] = low[child]
            meta[slot, 0], meta[slot, 1], meta[slot, 2] = x, size[child], unchanged[child]
            meta[slot, 3 : 3 + K] = new[child, 0]
            meta[slot, 3 + K : 3 + 2 * K] = new[child, 1]
            _push(how[BEST_FIRST], heap, boxes, st, slot)
    return DONE
