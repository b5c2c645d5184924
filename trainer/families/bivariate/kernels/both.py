"""Search both orders of a pair of features in one call.

The boxes of one order hold the rules of slope at most one; the steeper ones are those of the exchanged pair. Bounds of a pair without
search are here, too. Notation as in `explore`.
"""

from __future__ import annotations

from trainer.families.bivariate.kernels.bounds import lower_bound, rule_value, value_of
from trainer.families.bivariate.kernels.explore import explore
from trainer.families.bivariate.kernels.points import exchange, points_floor
from trainer.families.bivariate.kernels.tables import (
    BOUND,
    BOXES,
    CLASSIFIED,
    DONE,
    FIRST,
    FOUND,
    MEASURE,
    MIN_LEAF,
    push_root,
)
from trainer.kernels.compiled import kernel

# indices of `at`, int64 (5,): order that is searched, whether its root box exists, order of the best rule (-1: none yet), and counts
ORDER, BEGUN, WINNER, ALL_BOXES, ALL_CLASSIFIED = range(5)


@kernel
def advance(search, floor, at, points, queue):
    """Continue the search of a pair, first of (u, v), then of (v, u); return DONE, RUNNING or GROW as `explore` does.

    at int64 (5,): the progress, by ORDER to ALL_CLASSIFIED. floor: a lower bound of all rules, in rows.
    """
    counts = search.counts
    while True:
        ordered = points if at[ORDER] == 0 else exchange(points)
        if at[BEGUN] == 0:
            push_root(ordered, floor, queue, counts)
            at[BEGUN] = 1
        code = explore(search, ordered, queue)
        if counts[FOUND] == 1:
            at[WINNER] = at[ORDER]
        if code != DONE:
            return code
        at[ALL_BOXES] += counts[BOXES]
        at[ALL_CLASSIFIED] += counts[CLASSIFIED]
        counts[BOXES] = 0
        counts[CLASSIFIED] = 0
        if at[ORDER] == 1 or (search.how[FIRST] == 1 and at[WINNER] >= 0):
            return DONE
        at[ORDER] = 1
        at[BEGUN] = 0


@kernel
def pair_floor(measure, bound, points):
    """Return a lower bound of all rules: equal points stay together, and the best split divides no class (Bollwein & Westphal, Theorem 1)."""
    left = points.fixed[0].copy()
    right = points.fixed[1].copy()
    return max(points_floor(measure, points), lower_bound(measure, bound, left, right, points.total - left - right))


@kernel
def opening(how, start, points):
    """Return the value of the rule `start` and `pair_floor`.

    start float64 (3,): order, slope a, offset b on (u, v), or on (v, u) if the order is 1. If the split between rows with an empty cell and
    all others is better, it replaces `start`.
    """
    ordered = points if start[0] == 0.0 else exchange(points)
    value = rule_value(how[MEASURE], how[MIN_LEAF], start[1], start[2], ordered)
    if points.fixed[1].any():  # with the rows on the left it is the same division
        apart = value_of(how[MEASURE], how[MIN_LEAF], points.total - points.fixed[1], points.fixed[1])
        if apart < value:
            value = apart
            start[0] = 0.0
            start[1] = 0.0
            start[2] = points.v.min()
    return value, pair_floor(how[MEASURE], how[BOUND], points)
