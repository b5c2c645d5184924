"""Kernels: lower bounds of a node and of both sides of its splits, in cost units (one error costs `unit`, one leaf `leaf`).

Leaf count, equivalent points, support (Keegan et al. 2025, equations 27-40) and similarity (Demirovic et al. 2022, MurTree).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.node import MIRRORED
from trainer.kernels.compiled import kernel


class SideBounds(NamedTuple):
    """What is known of both sides of every split: lower bounds of their cost int64 (2, p), and uint8 (2, p), 1 where exact."""

    lower: np.ndarray
    exact: np.ndarray


@kernel
def node_bounds(node, unit, leaf, height, bounds):
    """Cost as a leaf, and the leaf-count, equivalent-points and support bound of the node itself.

    bounds (3,): whether to use equivalent points, the leaf count, and support.
    """
    use_equal = bounds[0]
    use_classes = bounds[1]
    use_support = bounds[2]
    counts = np.sort(node.totals.astype(np.int64))[::-1]
    size = counts.sum()
    as_leaf = (size - counts[0]) * unit + leaf
    if use_support and size * unit <= 2 * leaf:
        return as_leaf, as_leaf
    best = as_leaf
    top = counts[0]
    for t in range(2, min(1 << height, max(2, len(counts))) + 1):
        top += counts[t - 1] if t <= len(counts) else 0
        wrong = np.int64(node.equal) if use_equal else np.int64(0)
        if use_classes:
            wrong = max(wrong, size - top)
        best = min(best, wrong * unit + t * leaf)
    return as_leaf, best


@kernel
def _sort(counts):
    """Descending, in place: there are few, and numba's own sort takes longer."""
    for k in range(1, len(counts)):
        value = counts[k]
        at = k
        while at > 0 and counts[at - 1] < value:
            counts[at] = counts[at - 1]
            at -= 1
        counts[at] = value


@kernel
def _side(node, p, s, counts):
    """Write the class weights of a side, descending; returns their sum."""
    size = np.int64(0)
    for k in range(len(counts)):
        counts[k] = node.ones[k, p] if s else node.totals[k] - node.ones[k, p]
        size += counts[k]
    _sort(counts)
    return size


@kernel
def count_bounds(node, unit, leaf, height, bounds, sides):
    """Lower bounds of both sides of every split: leaf count, equivalent points, support; exact[s, p] = 1 where tight.

    lower[s, p] in cost units.  A tree with t leaves predicts at most t classes.  bounds (3,): which to use, in the order of `node_bounds`.
    """
    use_equal = bounds[0]
    use_classes = bounds[1]
    use_support = bounds[2]
    lb, exact = sides
    classes, m = node.ones.shape
    counts = np.empty(classes, np.int64)
    most = 1 << height
    for p in range(m):
        for s in range(2):
            size = _side(node, p, s, counts)
            floor = 0
            if use_equal:
                floor = node.equal_ones[p] if s else node.equal - node.equal_ones[p]
            as_leaf = (size - counts[0]) * unit + leaf
            best = as_leaf
            if not (use_support and size * unit <= 2 * leaf):
                top = counts[0]
                for t in range(2, most + 1):
                    wrong = floor
                    if use_classes and t <= classes:
                        top += counts[t - 1]
                        wrong = max(wrong, size - top)
                    best = min(best, wrong * unit + t * leaf)
                    if t >= classes:
                        break
            lb[s, p] = max(lb[s, p], best)
            exact[s, p] = 1 if best == as_leaf else 0


@kernel
def child_bounds(node, children, costs, bounds, sides):
    """Lower bounds of both sides of every split where these have two levels; exact[s, p] = 1 where one or two leaves are best.

    children: of `best_children`, so that trees of two leaves are known; more leaves leave the errors that count_bounds knows.
    """
    unit = costs[0]
    leaf = costs[1]
    lb, exact = sides
    classes, m = node.ones.shape
    counts = np.empty(classes, np.int64)
    for p in range(m):
        for s in range(2):
            if exact[s, p]:
                continue
            size = _side(node, p, s, counts)
            wrong = np.int64(0)
            if bounds[0]:
                wrong = node.equal_ones[p] if s else node.equal - node.equal_ones[p]
            known = (size - counts[0]) * unit + leaf
            correct = children[s][p]
            if correct >= 0:
                known = min(known, (size - correct) * unit + 2 * leaf)
            more = known
            top = counts[0]
            for t in range(2, 5):
                top += counts[t - 1] if t <= classes else 0
                if t > 2:
                    more = min(more, (max(wrong, size - top) if bounds[1] else wrong) * unit + t * leaf)
            lb[s, p], exact[s, p] = max(lb[s, p], more), more == known


@kernel(inline="always")
def inside_of(node, P, p, s):
    """Weight of the rows with x_p = s, and of those of them with x_q = 1, int64 (m,)."""
    classes, m = node.ones.shape
    size = np.int64(0)
    inside = np.zeros(m, np.int64)
    for k in range(classes):
        size += node.ones[k, p] if s else node.totals[k] - node.ones[k, p]
        _add_both(P, k, p, inside)
        inside[p] += node.ones[k, p]
    if not s:
        inside[:] = -inside
        for k in range(classes):
            ones = node.ones[k]
            for q in range(m):
                inside[q] += ones[q]
    return size, inside


@kernel
def share(node, P, p, s, value, unit, lb):
    """Similarity: a tree for x_q = r does for x_p = s too, wrong at most on the rows of the latter outside the former."""
    size, inside = inside_of(node, P, p, s)
    # rows of side (p, s) with x_q = 1: outside of side (q, 0); the others are outside of side (q, 1)
    zero = lb[0]
    one = lb[1]
    for q in range(len(inside)):
        zero[q] = max(zero[q], value - inside[q] * unit)
        one[q] = max(one[q], value - (size - inside[q]) * unit)


@kernel
def _add_both(P, k, p, out):
    """Add the weight of class k with x_p = x_q = 1 to out[q], q not p."""
    m = len(out)
    row = P[k, p, p + 1 :]
    target = out[p + 1 :]
    for q in range(len(target)):
        target[q] += row[q]
    if m <= MIRRORED:
        row = P[k, p]
        for q in range(p):
            out[q] += row[q]
    else:
        for q in range(p):
            out[q] += P[k, q, p]


@kernel
def inherit(node, value, unit, lb):
    """Similarity to the node itself: a tree for one side does for all its rows, wrong at most on those of the other side.

    value: a lower bound of the node's cost at the height of the sides. Not with a smallest leaf above one row.
    """
    classes, m = node.ones.shape
    for p in range(m):
        ones = 0
        zeros = 0
        for k in range(classes):
            ones += node.ones[k, p]
            zeros += node.totals[k] - node.ones[k, p]
        lb[0, p] = max(lb[0, p], value - ones * unit)
        lb[1, p] = max(lb[1, p], value - zeros * unit)
