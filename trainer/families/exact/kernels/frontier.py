"""Find the fewest errors for every number of leaves at once.

e[t]  int64: fewest errors of a tree with at most t + 1 leaves, never increasing in t; a node of height h has 2^h of them.

This is the frontier of accuracy and size. The kernels of `trainer.families.exact.kernels.child_bounds` count the pairs.
(Exact search with a leaf budget: Demirovic et al. 2022, section 4.4.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.child_bounds import solve_children
from trainer.families.exact.kernels.depth2 import INFINITE_ERRORS, best_split_of_child, child_as_leaf
from trainer.kernels.compiled import kernel
from trainer.kernels.ordering import ascending
from trainer.kernels.rows import copy_row

NEXT = 0
DEPTH_TWO_SOLVES = 1
STOPPED = 2


class Frontier(NamedTuple):
    """The best trees so far, by leaves less one.

    best int64 (leaves,): errors. choice int64 (leaves, 3): split, leaves of both children. Only the first `most` entries are needed.
    """

    best: np.ndarray
    choice: np.ndarray
    most: int


@kernel
def accumulate_minimum(e):
    """Turn errors with exactly t + 1 leaves into errors with at most t + 1 leaves, in place."""
    for t in range(1, len(e)):
        e[t] = min(e[t], e[t - 1])


@kernel
def child_frontier_bounds(node, height, lb):
    """Write lb[s, p, t], int64, from equivalent points and the t + 1 most frequent classes, for children of `height`."""
    classes, m = node.ones.shape
    counts = np.empty(classes, np.int64)
    for p in range(m):
        for s in range(2):
            size = np.int64(0)
            for k in range(classes):
                counts[k] = node.ones[k, p] if s else node.totals[k] - node.ones[k, p]
                size += counts[k]
            floor = node.equal_ones[p] if s else node.equal - node.equal_ones[p]
            sorted_counts = ascending(counts)
            top = np.int64(0)
            for t in range(1 << height):
                if t < classes:
                    top += sorted_counts[classes - 1 - t]
                lb[s, p, t] = max(floor, size - top)


@kernel
def apply_similarity_by_leaves(node, P, p, s, e, lb):
    """Bound children by similarity for every number of leaves (see `bounds.apply_similarity`)."""
    classes, m = node.ones.shape
    size_p = np.int64(0)
    for k in range(classes):
        size_p += node.ones[k, p] if s else node.totals[k] - node.ones[k, p]
    for q in range(m):
        if q == p:
            continue
        inside = np.int64(0)
        for k in range(classes):
            both = P[k, min(p, q), max(p, q)]
            inside += both if s else node.ones[k, q] - both
        for t in range(len(e)):
            lb[0, q, t] = max(lb[0, q, t], e[t] - inside)
            lb[1, q, t] = max(lb[1, q, t], e[t] - (size_p - inside))


@kernel
def promising(a, b, best, most):
    """Return whether children with errors a and b may improve best[t] for some t < most."""
    for t in range(1, min(most, len(best))):
        for left in range(max(0, t - len(b)), min(t, len(a))):
            if a[left] + b[t - 1 - left] < best[t]:
                return True
    return False


@kernel
def combine(a, b, p, best, choice, most):
    """Update best and choice[t] = (p, leaves of child 0, of child 1) by split p with child errors a and b."""
    for t in range(1, min(most, len(best))):
        for left in range(max(0, t - len(b)), min(t, len(a))):
            if a[left] + b[t - 1 - left] < best[t]:
                best[t] = a[left] + b[t - 1 - left]
                choice[t, 0] = p
                choice[t, 1] = left + 1
                choice[t, 2] = t - left


@kernel
def prefer_fewer_leaves(best, choice):
    """Replace a tree by the smaller one if one more leaf does not help."""
    for t in range(1, len(best)):
        if best[t - 1] <= best[t]:
            best[t] = best[t - 1]
            copy_row(choice[t - 1], choice[t])


@kernel
def frontier_depth3(node, P, D, costs, lb, frontier, state, budget):
    """Search the frontier of a node of height three; resume at state[NEXT], end when the budget is spent.

    costs: see `solve_depth3`. state int64 (3,): NEXT, DEPTH_TWO_SOLVES, STOPPED.
    """
    min_leaf = costs[2]
    similar = costs[3]
    best, choice, most = frontier
    e0 = np.empty(4, np.int64)
    e1 = np.empty(4, np.int64)
    solved_pairs = 0
    while state[NEXT] < len(node.features):
        if budget.flag[0] or solved_pairs >= budget.pairs:
            state[STOPPED] = 1
            return
        p = state[NEXT]
        if promising(lb[0, p], lb[1, p], best, most):
            solve_children(node, P, D, p, min_leaf, e0, e1)
            accumulate_minimum(e0)
            accumulate_minimum(e1)
            lb[0, p] = e0
            lb[1, p] = e1
            solved_pairs += 1
            state[DEPTH_TWO_SOLVES] += 2
            combine(e0, e1, p, best, choice, most)
            if similar:
                apply_similarity_by_leaves(node, P, p, 0, e0, lb)
                apply_similarity_by_leaves(node, P, p, 1, e1, lb)
        state[NEXT] += 1
    state[STOPPED] = 0


@kernel
def frontier_depth2(node, P, min_leaf, height, best, choice, inner):
    """Write best[t] and choice[t] of a node of height one or two, and inner[t], the splits of both children or -1."""
    m = node.ones.shape[1]
    best[0] = np.int64(node.totals.sum()) - node.totals.max()
    best[1:] = INFINITE_ERRORS
    error = np.empty((2, 2), np.int64)
    child = np.empty(2, np.int64)
    for f in range(m):
        for s in range(2):
            size, error[s, 0] = child_as_leaf(node, f, s)
            error[s, 1] = INFINITE_ERRORS
            child[s] = -1
            if height > 1:
                error[s, 1], child[s] = best_split_of_child(node, P, f, s, size, min_leaf)
        for a in range(height):
            for b in range(height):
                t = a + b + 1
                if error[0, a] + error[1, b] < best[t]:
                    best[t] = error[0, a] + error[1, b]
                    choice[t, 0] = f
                    choice[t, 1] = a + 1
                    choice[t, 2] = b + 1
                    inner[t, 0] = child[0] if a else -1
                    inner[t, 1] = child[1] if b else -1
    for t in range(1, len(best)):
        if best[t - 1] <= best[t]:
            best[t] = best[t - 1]
            copy_row(choice[t - 1], choice[t])
            copy_row(inner[t - 1], inner[t])
