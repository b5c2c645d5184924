"""Oracle of labelled hyperplane trees: the fewest errors over every separation at every node."""

from __future__ import annotations

from functools import cache


def fewest_errors(points, counts, tree, parted):
    """The least weight of wrong rows; `parted(left, right)` says whether some hyperplane has the two sets on its two sides.

    `tree` is a class or a pair of trees; `points` are numbers of rows of `counts` (P, K).
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
