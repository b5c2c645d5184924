"""Build Pareto fronts of vectors of small subtrees, for constrained search.

v[0]      cost: unit * errors + leaf * leaves          v[1..r]  errors of the r classes whose recall is bounded below
v[r+1]    leaves, if their number is limited           limits   largest admissible value of each entry
a         the tree of a vector: split, splits of the children (-1: a leaf), labels of the four leaves

Vectors are int64 (entries,), trees int64 (AUX,), a front has one row for each. A vector is dominated if another one is at most as
large in every entry. A leaf may have any label, since a recall may need a minority.
(Containers of non-dominated solutions: van der Linden, de Weerdt & Demirovic 2023.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.kernels.compiled import kernel
from trainer.kernels.rows import copy_row

AUX = 7


class VectorEntries(NamedTuple):
    """The entries of a vector: costs int64 (unit, leaf), the classes `bounded` int64 (r,), and the limits of all entries, int64."""

    costs: np.ndarray
    bounded: np.ndarray
    limits: np.ndarray


class SplitRules(NamedTuple):
    """What two splits f and g of a path mean for each other.

    conflict uint8 (p, p): 1 if no path may have both. tolls int64 (p, p): the cost of g for one unit of weight in a child
    of f, on the diagonal that at the node.
    """

    conflict: np.ndarray
    tolls: np.ndarray


@kernel
def _is_at_most(v, w):
    """Return whether each entry of v is at most that of w."""
    for d in range(len(v)):  # noqa: SIM110 - numba compiles no generator expression
        if v[d] > w[d]:
            return False
    return True


@kernel
def _insert(front, aux, size, v, a, limits):
    """Add v to the first `size` rows of `front` unless it is dominated or over a limit; return the arrays and the size."""
    if not _is_at_most(v, limits):
        return front, aux, size
    for i in range(size):
        if _is_at_most(front[i], v):
            return front, aux, size
    size_left = 0
    for i in range(size):
        if not _is_at_most(v, front[i]):
            if size_left < i:
                copy_row(front[i], front[size_left])
                copy_row(aux[i], aux[size_left])
            size_left += 1
    if size_left == len(front):
        more = np.empty((2 * size_left, len(v)), np.int64)
        more_aux = np.empty((2 * size_left, AUX), np.int64)
        for i in range(size_left):
            copy_row(front[i], more[i])
            copy_row(aux[i], more_aux[i])
        front = more
        aux = more_aux
    copy_row(v, front[size_left])
    copy_row(a, aux[size_left])
    return front, aux, size_left + 1


@kernel
def _write_leaf(counts, label, costs, bounded, v):
    """Write v of a leaf that predicts `label`; costs: unit, leaf."""
    size = np.int64(0)
    for k in range(len(counts)):
        size += counts[k]
    v[0] = (size - counts[label]) * costs[0] + costs[1]
    for j in range(len(bounded)):
        v[1 + j] = np.int64(0) if bounded[j] == label else counts[bounded[j]]
    if len(v) > 1 + len(bounded):
        v[1 + len(bounded)] = 1


@kernel
def leaf_front(totals, entries):
    """Return the front of a single leaf, with a vector for each label."""
    costs, bounded, limits = entries
    D = len(limits)
    front = np.empty((4, D), np.int64)
    aux = np.empty((4, AUX), np.int64)
    size = 0
    v = np.empty(D, np.int64)
    a = np.full(AUX, -1, np.int64)
    counts = totals.astype(np.int64)
    for k in range(len(totals)):
        _write_leaf(counts, k, costs, bounded, v)
        a[3] = k
        front, aux, size = _insert(front, aux, size, v, a, limits)
    return front[:size].copy(), aux[:size].copy()


@kernel
def _child_front(node, P, rules, f, s, height, min_leaf, entries):
    """Return the front of the child x_f = s; aux: split (or -1), labels of its leaves."""
    classes, m = node.ones.shape
    costs, bounded, limits = entries
    D = len(limits)
    front = np.empty((8, D), np.int64)
    aux = np.empty((8, AUX), np.int64)
    size = 0
    v = np.empty(D, np.int64)
    w = np.empty(D, np.int64)
    a = np.full(AUX, -1, np.int64)
    child = np.empty(classes, np.int64)
    one = np.empty(classes, np.int64)
    zero = np.empty(classes, np.int64)
    for k in range(classes):
        child[k] = node.ones[k, f] if s else node.totals[k] - node.ones[k, f]
    for k in range(classes):
        _write_leaf(child, k, costs, bounded, v)
        a[0] = -1
        a[1] = k
        a[2] = k
        front, aux, size = _insert(front, aux, size, v, a, limits)
    if height < 2:
        return front[:size], aux[:size]
    for g in range(m):
        if g == f or rules.conflict[f, g]:
            continue
        inside = np.int64(0)
        outside = np.int64(0)
        for k in range(classes):
            both = np.int64(P[k, min(f, g), max(f, g)])
            one[k] = both if s else node.ones[k, g] - both
            zero[k] = child[k] - one[k]
            inside += one[k]
            outside += zero[k]
        if inside < min_leaf or outside < min_leaf or inside == 0 or outside == 0:
            continue
        for k in range(classes):
            _write_leaf(zero, k, costs, bounded, v)
            for j in range(classes):
                if j == k:
                    continue
                _write_leaf(one, j, costs, bounded, w)
                for d in range(D):
                    w[d] += v[d]
                w[0] += rules.tolls[f, g] * (inside + outside)
                a[0] = g
                a[1] = k
                a[2] = j
                front, aux, size = _insert(front, aux, size, w, a, limits)
    return front[:size], aux[:size]


@kernel
def small_front(node, P, rules, height, min_leaf, entries):
    """Return the front of a node of height one or two."""
    limits = entries.limits
    D = len(limits)
    front, aux = leaf_front(node.totals, entries)
    size = len(front)
    v = np.empty(D, np.int64)
    a = np.empty(AUX, np.int64)
    if size == 0:
        front = np.empty((4, D), np.int64)
        aux = np.empty((4, AUX), np.int64)
    weight = np.int64(0)
    for k in range(len(node.totals)):
        weight += node.totals[k]
    for f in range(node.ones.shape[1]):
        low, low_aux = _child_front(node, P, rules, f, 0, height, min_leaf, entries)
        high, high_aux = _child_front(node, P, rules, f, 1, height, min_leaf, entries)
        for i in range(len(low)):
            for j in range(len(high)):
                for d in range(D):
                    v[d] = low[i, d] + high[j, d]
                v[0] += rules.tolls[f, f] * weight
                a[0] = f
                a[1] = low_aux[i, 0]
                a[2] = high_aux[j, 0]
                a[3] = low_aux[i, 1]
                a[4] = low_aux[i, 2]
                a[5] = high_aux[j, 1]
                a[6] = high_aux[j, 2]
                front, aux, size = _insert(front, aux, size, v, a, limits)
    return front[:size].copy(), aux[:size].copy()


@kernel
def combine(front, aux, f, low, high, limits):
    """Return `front` with all sums of a vector of `low` and one of `high`; aux: f and their positions."""
    D = len(limits)
    size = len(front)
    v = np.empty(D, np.int64)
    a = np.full(AUX, -1, np.int64)
    a[0] = f
    if size == 0:
        front = np.empty((4, D), np.int64)
        aux = np.empty((4, AUX), np.int64)
    for i in range(len(low)):
        for j in range(len(high)):
            for d in range(D):
                v[d] = low[i, d] + high[j, d]
            a[1] = i
            a[2] = j
            front, aux, size = _insert(front, aux, size, v, a, limits)
    return front[:size].copy(), aux[:size].copy()
