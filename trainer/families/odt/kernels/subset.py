"""Find the best last level and two levels of subset branching.

Günlük, Kalagnanam, Li, Menickelly & Scheinberg, "Optimal decision trees for categorical data via integer programming". Labels are
free: a leaf predicts its majority, which for two classes equals the paper's fixed parity labels.

Legend: rows i with category cat[i, g] of group g, class y[i] and weight w[i]; group g owns the columns start[g]..start[g+1]-1, one
a category; ordered[g] = 1 where only thresholds are allowed (numeric groups in bins); counts[f, k] int64, the weight of class k in
column f of the rows at hand.
"""

from __future__ import annotations

import numpy as np

from trainer.kernels.compiled import kernel
from trainer.kernels.ordering import argsort, ascending


@kernel
def count_classes(cat, y, w, rows, start, n_classes, out):
    """Fill `out`, int64 (columns, classes), with the class weights of `rows` by column."""
    out[:, :] = 0
    for r in rows:
        for g in range(cat.shape[1]):
            out[start[g] + cat[r, g], y[r]] += w[r]


@kernel
def group_value(counts, first, stop, is_ordered, card):
    """Return the largest correct weight of one test of a group, columns `first` to `stop` - 1, with majority labels on both sides.

    `card` > 0 limits a nominal subset, or its complement, to that many categories.
    """
    K = counts.shape[1]
    total = np.zeros(K, np.int64)
    for f in range(first, stop):
        for k in range(K):
            total[k] += counts[f, k]
    best = total.max()
    if is_ordered:
        left = np.zeros(K, np.int64)
        for f in range(first, stop - 1):
            for k in range(K):
                left[k] += counts[f, k]
            value = left.max() + (total - left).max()
            if value > best:
                best = value
        return best
    m = stop - first
    if card <= 0 or 2 * card >= m:
        if K == 2:
            value = np.int64(0)
            for f in range(first, stop):
                value += max(counts[f, 0], counts[f, 1])
            return max(best, value)
        return max(best, _two_way(counts, first, stop, total))
    return max(best, _largest_gains(counts, first, stop, total, card))


@kernel
def _two_way(counts, first, stop, total):
    """Return the value of the best pair of labels, for more than two classes; each category gets the better label."""
    K = counts.shape[1]
    best = np.int64(0)
    for a in range(K):
        for b in range(a + 1, K):
            value = np.int64(0)
            for f in range(first, stop):
                value += max(counts[f, a], counts[f, b])
            if value > best:
                best = value
    return best


@kernel
def _largest_gains(counts, first, stop, total, card):
    """Return the value of the best pair of labels if at most `card` categories get the first label."""
    K = counts.shape[1]
    best = np.int64(0)
    for a in range(K):
        for b in range(K):
            if a == b:
                continue
            gain = ascending(counts[first:stop, a] - counts[first:stop, b])
            value = total[b]
            for s in range(card):
                step = gain[stop - first - 1 - s]
                if step <= 0:
                    break
                value += step
            if value > best:
                best = value
    return best


@kernel
def last_level(counts, start, ordered, card):
    """Return the largest correct weight of one test, and its group; counts int64 (columns, classes)."""
    best = np.int64(-1)
    best_group = -1
    for g in range(len(ordered)):
        value = group_value(counts, start[g], start[g + 1], ordered[g], card)
        if value > best:
            best = value
            best_group = g
    return best, best_group


@kernel
def split_counts(rows, start, n_classes, g):
    """Return the counts by category of group g, int64 (categories of g, columns, classes); rows: a `CategoryRows`."""
    cat, y, w, row_numbers = rows
    out = np.zeros((start[g + 1] - start[g], start[-1], n_classes), np.int64)
    for r in row_numbers:
        for h in range(cat.shape[1]):
            out[cat[r, g], start[h] + cat[r, h], y[r]] += w[r]
    return out


@kernel
def _children_correct(left, right, spans):
    """Return the correct weight of the best last levels of both sides; left, right: their counts, int64 (columns, classes)."""
    start, ordered, card = spans
    return last_level(left, start, ordered, card)[0] + last_level(right, start, ordered, card)[0]


@kernel
def _thresholds(table, weight, spans, lower):
    """Search every cut of an ordered group; return the best value and the mask of the bins that go left (-1 if none exceeds `lower`).

    table: the result of `split_counts`. weight int64 (categories,).
    """
    left = np.zeros(table.shape[1:], np.int64)
    right = table.sum(axis=0)
    best = lower
    mask = np.int64(-1)
    sent = np.int64(0)
    for a in range(len(table) - 1):
        left += table[a]
        right -= table[a]
        sent |= np.int64(1) << a
        if weight[a] == 0:
            continue
        value = _children_correct(left, right, spans)
        if value > best:
            best = value
            mask = sent
    return best, mask


@kernel
def _subsets(table, weight, spans, lower, budget):
    """Search every subset of a nominal group, depth-first over the categories, the largest first.

    Returns the best value, the mask of the categories that go left (-1 if none exceeds `lower`), and whether the search is finished. A
    partial assignment is pruned if it cannot exceed the incumbent, which starts at `lower`.
    """
    limit = budget.nodes
    flag = budget.flag
    card = spans.card
    m = len(table)
    order = argsort(-weight)
    while m > 1 and weight[order[m - 1]] == 0:
        m -= 1
    left = np.zeros(table.shape[1:], np.int64)
    right = np.zeros(table.shape[1:], np.int64)
    rest_weight = np.zeros(m + 1, np.int64)
    for t in range(m - 1, -1, -1):
        rest_weight[t] = rest_weight[t + 1] + weight[order[t]]
    best = lower
    mask = np.int64(-1)
    state = np.zeros(m, np.int64)  # 0 untried, 1 left, 2 right, 3 both done
    size = np.int64(0)
    t = 0
    nodes = 0
    sent = np.int64(0)
    while t >= 0:
        a = order[t]
        if state[t] == 1:
            left -= table[a]
            sent ^= np.int64(1) << a
            size -= 1
        elif state[t] == 2:
            right -= table[a]
        # the largest category goes left only: the mirror image is the same tree
        if state[t] == 2 or (t == 0 and state[t] == 1):
            state[t] = 0
            t -= 1
            continue
        state[t] += 1
        if state[t] == 1:
            left += table[a]
            sent |= np.int64(1) << a
            size += 1
        else:
            right += table[a]
        nodes += 1
        if nodes >= limit or (nodes & 1023 == 0 and flag[0] != 0):
            return best, mask, False
        decided = t + 1
        if card > 0 and min(size, decided - size) > card:
            continue
        value = _children_correct(left, right, spans)
        if value + rest_weight[decided] <= best:
            continue
        if decided == m:
            if 0 < size < m:
                best = value
                mask = sent
            continue
        t += 1
    return best, mask, True


@kernel
def search_two_levels(rows, spans, n_classes, g, lower, budget):
    """Find the best tree above `lower` that tests group g and then any group on each side.

    Returns its correct weight, the mask of the categories that go left, and whether the search is finished; `lower` and -1 if no tree is
    better.
    """
    start = spans.start
    table = split_counts(rows, start, n_classes, g)
    weight = np.zeros(len(table), np.int64)
    for a in range(len(table)):
        for k in range(n_classes):
            for f in range(start[g], start[g + 1]):
                weight[a] += table[a, f, k]
    if spans.ordered[g]:
        best, mask = _thresholds(table, weight, spans, lower)
        return best, mask, True
    return _subsets(table, weight, spans, lower, budget)
