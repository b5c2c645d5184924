"""Compute fronts of correct positives and negatives of one and two levels.

The front of rows D is an int64 array A: A[t] is the largest weight of correct negatives among the trees with at least t correct
positives, t = 0 .. P(D), so A never increases. Günlük et al., equations (15) and (16), ask for one entry of it.

Legend: rows i with category cat[i, g] of group g, class y[i] (1 positive) and weight w[i]; group g owns the columns
start[g]..start[g+1]-1; ordered[g] = 1 where only thresholds are allowed; neg[f], pos[f] int64, weights of the classes in column f;
card: a subset, or its complement, has at most so many categories (0: any).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.odt.kernels.subset import split_counts
from trainer.kernels.compiled import kernel
from trainer.kernels.ordering import argsort
from trainer.kernels.rows import add_row, copy_row

UNREACHABLE = np.int64(-(1 << 60))


class EntryFront(NamedTuple):
    """The best known tree for each entry t, int64 (P + 1,) each: correct negatives, group tested at the root, categories that go left.

    The categories are a mask.
    """

    best: np.ndarray
    groups: np.ndarray
    masks: np.ndarray


@kernel
def make_monotone(A):
    """Turn entries for exactly t positives into entries for at least t, in place."""
    for t in range(len(A) - 2, -1, -1):
        if A[t + 1] > A[t]:
            A[t] = A[t + 1]


@kernel
def _thresholds(neg, pos, first, stop, A):
    """Raise A by both labellings of every threshold of an ordered group; the last cut is the constant label."""
    N = np.int64(0)
    P = np.int64(0)
    for f in range(first, stop):
        N += neg[f]
        P += pos[f]
    below_n = np.int64(0)
    below_p = np.int64(0)
    for f in range(first, stop):
        below_n += neg[f]
        below_p += pos[f]
        A[below_p] = max(A[below_p], N - below_n)
        A[P - below_p] = max(A[P - below_p], below_n)


@kernel
def _subsets(neg, pos, first, stop, A, S):
    """Raise A by every subset: a knapsack over the positives. S int64 (1 or more, at least len(A)) is scratch."""
    S[0, : len(A)] = UNREACHABLE
    S[0, 0] = 0
    top = np.int64(0)
    for f in range(first, stop):
        n = neg[f]
        p = pos[f]
        if n == 0 and p == 0:
            continue
        top += p
        for t in range(top, -1, -1):
            best = S[0, t] + n
            if t >= p and S[0, t - p] > best:
                best = S[0, t - p]
            S[0, t] = best
    for t in range(top + 1):
        if S[0, t] > A[t]:
            A[t] = S[0, t]


@kernel
def _small_subsets(neg, pos, first, stop, card, A, S):
    """Raise A by every subset with at most `card` categories of one of the labels.

    S int64 (card + 1, at least len(A)) is scratch.
    """
    for few_positive in range(2):
        S[:, : len(A)] = UNREACHABLE
        S[0, 0] = 0
        for f in range(first, stop):
            n = neg[f]
            p = pos[f]
            for c in range(card, -1, -1):
                for t in range(len(A) - 1, -1, -1):
                    if few_positive:
                        best = S[c, t] + n
                        if c > 0 and t >= p and S[c - 1, t - p] > best:
                            best = S[c - 1, t - p]
                    else:
                        best = S[c, t - p] if t >= p else UNREACHABLE
                        if c > 0 and S[c - 1, t] + n > best:
                            best = S[c - 1, t] + n
                    S[c, t] = best
        for c in range(card + 1):
            for t in range(len(A)):
                if S[c, t] > A[t]:
                    A[t] = S[c, t]


@kernel
def raise_by_group(neg, pos, first, stop, is_ordered, card, A, S):
    """Raise A by the tests of one group above two leaves; `make_monotone` must follow."""
    if is_ordered:
        _thresholds(neg, pos, first, stop, A)
    elif card > 0 and 2 * card < stop - first:
        _small_subsets(neg, pos, first, stop, card, A, S)
    else:
        _subsets(neg, pos, first, stop, A, S)


@kernel
def solve_last_level(neg, pos, spans, S):
    """Return the front of one test and two leaves over all groups, int64 (P + 1,); S: scratch of `_subsets`."""
    start, ordered, card = spans
    N = np.int64(0)
    P = np.int64(0)
    for f in range(start[0], start[1]):
        N += neg[f]
        P += pos[f]
    A = np.zeros(P + 1, np.int64)
    A[0] = N
    for g in range(len(ordered)):
        raise_by_group(neg, pos, start[g], start[g + 1], ordered[g], card, A, S)
    make_monotone(A)
    return A


@kernel
def join(A, B):
    """Return the front of two sides together: out[a + b] = A[a] + B[b] over the steps of both, int64 (len(A) + len(B) - 1,)."""
    out = np.full(len(A) + len(B) - 1, UNREACHABLE)
    for a in range(len(A)):
        if a + 1 < len(A) and A[a + 1] == A[a]:
            continue
        for b in range(len(B)):
            if b + 1 < len(B) and B[b + 1] == B[b]:
                continue
            if A[a] + B[b] > out[a + b]:
                out[a + b] = A[a] + B[b]
    make_monotone(out)
    return out


@kernel
def improves(J, best):
    """Return whether the front J exceeds `best` anywhere."""
    return bool((best < J).any())


@kernel
def update_front(J, front, g, mask):
    """Update the entries that J improves by the test that reaches them; return whether any changed."""
    best, groups, masks = front
    changed = False
    for t in range(len(best)):
        if J[t] > best[t]:
            best[t] = J[t]
            groups[t] = g
            masks[t] = mask
            changed = True
    return changed


@kernel
def _cuts(table, size, spans, S, front, g):
    """Raise the front by every cut of the ordered group g.

    table int64 (bins, columns, 2): class counts; size int64 (bins, 2): class weights.
    """
    left = np.zeros((2, table.shape[1]), np.int64)
    right = np.zeros((2, table.shape[1]), np.int64)
    sent = np.int64(0)
    for a in range(len(table)):
        for k in range(2):
            add_row(1, table[a, :, k], right[k])
    for a in range(len(table) - 1):
        sent |= np.int64(1) << a
        for k in range(2):
            add_row(1, table[a, :, k], left[k])
            add_row(-1, table[a, :, k], right[k])
        if size[a, 0] + size[a, 1] == 0:
            continue
        J = join(solve_last_level(left[0], left[1], spans, S), solve_last_level(right[0], right[1], spans, S))
        update_front(J, front, g, sent)


@kernel
def _suffix_fronts(table, order, m, spans, S, size):
    """Return relaxed fronts of the categories from the t-th on, int64 (m + 1, size), and their last entries, int64 (m + 1,).

    Each category has a last-level test of its own.
    """
    alone = np.zeros((m + 1, size), np.int64)
    reach = np.zeros(m + 1, np.int64)
    for t in range(m - 1, -1, -1):
        front = solve_last_level(table[order[t], :, 0].copy(), table[order[t], :, 1].copy(), spans, S)
        joined = join(front, alone[t + 1, : reach[t + 1] + 1])
        reach[t] = len(joined) - 1
        copy_row(joined, alone[t])
    return alone, reach


@kernel
def _assignments(table, size, spans, S, front, g, beat, budget):
    """Raise the front by every subset of the nominal group g; return False if the budget ended the search.

    Depth-first over the categories, largest first. A partial assignment is pruned if the joined front of its decided rows and of each
    other category by itself exceeds `beat` nowhere.
    """
    m = len(table)
    card = spans.card
    order = argsort(-(size[:, 0] + size[:, 1]))
    while m > 1 and size[order[m - 1]].sum() == 0:
        m -= 1
    alone, reach = _suffix_fronts(table, order, m, spans, S, len(front.best))
    if m < 2 or not improves(alone[0], beat):
        return True
    left = np.zeros((2, table.shape[1]), np.int64)
    right = np.zeros((2, table.shape[1]), np.int64)
    sent = np.int64(0)
    state = np.zeros(m, np.int64)
    count = 0
    t = 0
    nodes = 0
    while t >= 0:
        a = order[t]
        if state[t] == 1:
            sent ^= np.int64(1) << a
            count -= 1
            for k in range(2):
                add_row(-1, table[a, :, k], left[k])
        elif state[t] == 2:
            for k in range(2):
                add_row(-1, table[a, :, k], right[k])
        if state[t] == 2 or (t == 0 and state[t] == 1):
            state[t] = 0
            t -= 1
            continue
        state[t] += 1
        if state[t] == 1:
            sent |= np.int64(1) << a
            count += 1
            for k in range(2):
                add_row(1, table[a, :, k], left[k])
        else:
            for k in range(2):
                add_row(1, table[a, :, k], right[k])
        nodes += 1
        if nodes >= budget.nodes or (nodes & 63 == 0 and budget.flag[0] != 0):
            return False
        decided = t + 1
        if card > 0 and min(count, decided - count) > card:
            continue
        J = join(solve_last_level(left[0], left[1], spans, S), solve_last_level(right[0], right[1], spans, S))
        if decided == m:
            if 0 < count < m and update_front(J, front, g, sent):
                for s in range(len(front.best)):
                    beat[s] = max(beat[s], front.best[s])
            continue
        if improves(join(J, alone[decided, : reach[decided] + 1]), beat):
            t += 1
    return True


@kernel
def update_two_levels(rows, spans, g, front, beat, budget):
    """Raise `front` to the front of trees that test group g and any group on each side; return False if the budget ended the search.

    beat int64 (P + 1,): the entries that a tree must exceed; too large for any tree at entries that are not searched.
    """
    start = spans.start
    table = split_counts(rows, start, 2, g)
    S = np.empty((max(spans.card, 0) + 1, len(front.best)), np.int64)
    size = np.zeros((len(table), 2), np.int64)
    for a in range(len(table)):
        for k in range(2):
            for f in range(start[g], start[g + 1]):
                size[a, k] += table[a, f, k]
    if spans.ordered[g]:
        _cuts(table, size, spans, S, front, g)
        return True
    return _assignments(table, size, spans, S, front, g, beat, budget)
