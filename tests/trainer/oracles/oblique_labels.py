"""Oracle of labelled hyperplane trees: the fewest errors over every separation at every node."""

from __future__ import annotations

from functools import cache


def fewest_errors(points, counts, tree, parted):
    """Return the least misclassified weight of a tree with given labels.

    `tree` is a class or a pair of trees. `points` are row numbers of `counts` (P, K). `parted(left, right)` returns
    whether a hyperplane separates two sets.
    """

    @cache
    def least(some, labels):
        if isinstance(labels, int):
            own = sorted(some)
            return int(counts[own].sum() - counts[own, labels].sum())
        best = None
        members = sorted(some)
        for mask in range(1 << len(members)):
            left = frozenset(p for i, p in enumerate(members) if mask >> i & 1)
            if parted(left, some - left):
                errors = least(left, labels[0]) + least(some - left, labels[1])
                best = errors if best is None else min(best, errors)
        return best

    return least(frozenset(points), tree)
