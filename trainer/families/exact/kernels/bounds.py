"""Bound the costs of a node and of its possible children.

An error costs `unit`, a leaf costs `leaf`. Leaf count, equivalent points, support (Keegan et al. 2025, equations 27-40) and similarity
(Demirovic et al. 2022, MurTree).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.node import MIRRORED
from trainer.kernels.compiled import kernel
from trainer.kernels.ordering import ascending


class SideBounds(NamedTuple):
    """Lower bounds of both children of each split, int64 (2, p), and uint8 (2, p), 1 where exact."""

    lower: np.ndarray
    exact: np.ndarray


@kernel
def node_bounds(node, unit, leaf, height, bounds):
    """Return the cost of the node as a leaf, and a lower bound by leaf count, equivalent points and support.

    bounds uint8 (3,): whether to use equivalent points, the leaf count, and support.
    """
    use_equal = bounds[0]
    use_classes = bounds[1]
    use_support = bounds[2]
    counts = ascending(node.totals.astype(np.int64))[::-1]
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
def sort_descending(counts):
    """Sort in place; for so few numbers numba's own sort takes longer."""
    for k in range(1, len(counts)):
        value = counts[k]
        at = k
        while at > 0 and counts[at - 1] < value:
            counts[at] = counts[at - 1]
            at -= 1
        counts[at] = value


@kernel
def _child_counts(node, p, s, counts):
    """Write the class weights of a child, descending, and return their sum."""
    size = np.int64(0)
    for k in range(len(counts)):
        counts[k] = node.ones[k, p] if s else node.totals[k] - node.ones[k, p]
        size += counts[k]
    sort_descending(counts)
    return size


@kernel
def count_bounds(node, unit, leaf, height, bounds, sides):
    """Bound both children of each split by leaf count, equivalent points and support; exact[s, p] = 1 where tight.

    height: that of the children. A tree with t leaves predicts at most t classes. bounds uint8 (3,): see `node_bounds`.
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
            size = _child_counts(node, p, s, counts)
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
    """Bound both children of each split if these have two levels; exact[s, p] = 1 where one or two leaves are optimal.

    children: the result of `best_children`, which gives trees of two leaves. More leaves make at least the errors of `count_bounds`.
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
            size = _child_counts(node, p, s, counts)
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
            lb[s, p] = max(lb[s, p], more)
            exact[s, p] = more == known


@kernel(inline="always")
def pair_weights_of_child(node, P, p, s):
    """Return the weight of the rows with x_p = s, and of those with also x_q = 1, int64 (m,)."""
    classes, m = node.ones.shape
    size = np.int64(0)
    inside = np.zeros(m, np.int64)
    for k in range(classes):
        size += node.ones[k, p] if s else node.totals[k] - node.ones[k, p]
        _add_both(P, k, p, inside)
        inside[p] += node.ones[k, p]
    if not s:
        for q in range(m):
            inside[q] = -inside[q]
        for k in range(classes):
            ones = node.ones[k]
            for q in range(m):
                inside[q] += ones[q]
    return size, inside


@kernel
def apply_similarity(node, P, p, s, value, unit, lb):
    """Raise the lower bounds lb, int64 (2, m), of all children by similarity to the child x_p = s of cost at least `value`.

    A tree for x_q = r, applied to x_p = s, makes additional errors at most on the rows outside x_q = r.
    """
    size, inside = pair_weights_of_child(node, P, p, s)
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
def bound_children_by_node(node, value, unit, lb):
    """Raise the lower bounds lb, int64 (2, m), of the children by similarity to the node.

    On the node, a child's tree errs additionally at most on the rows of the other child. value: a lower bound of the node at the height of
    the children. Not valid with a minimum leaf size above one row.
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
