"""Both orders of a pair of features under one call, and what is known of the pair before any search.

The boxes of one order hold the rules of slope at most one; the steeper ones are those of the exchanged pair.
"""

from __future__ import annotations

from trainer.families.bivariate.kernels.bounds import lower_bound, rule_value, value_of
from trainer.families.bivariate.kernels.explore import explore
from trainer.families.bivariate.kernels.points import exchanged, points_floor
from trainer.families.bivariate.kernels.tables import (
    BOUND,
    BOXES,
    CLASSIFIED,
    DONE,
    FIRST,
    FOUND,
    MEASURE,
    MIN_LEAF,
    root,
)
from trainer.kernels.compiled import kernel

# where a pair's search stands: order, whether its root box was made, order of the best rule (-1: none yet), and counts
ORDER, BEGUN, WINNER, ALL_BOXES, ALL_CLASSIFIED = range(5)


@kernel
def advance(search, floor, at, points, queue):
    """`explore` for (u, v) and then for (v, u), from where `at` stands; one call for a pair that is soon done."""
    counts = search.counts
    while True:
        ordered = points if at[ORDER] == 0 else exchanged(points)
        if at[BEGUN] == 0:
            root(ordered, floor, queue, counts)
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
    """A value that no rule on the pair can beat, before any search: equal points stay together, and so do classes (Theorem 1)."""
    left = points.fixed[0].copy()
    right = points.fixed[1].copy()
    return max(points_floor(measure, points), lower_bound(measure, bound, left, right, points.total - left - right))


@kernel
def opening(how, start, points):
    """The value of the rule `start`, float64 (3,): order, slope a, offset b, on (u, v), or (v, u) if the order is 1; `pair_floor`.

    A better rule that sends the rows with an empty cell to one side and all others to the other takes the place of `start`.
    """
    ordered = points if start[0] == 0.0 else exchanged(points)
    value = rule_value(how[MEASURE], how[MIN_LEAF], start[1], start[2], ordered)
    if points.fixed[1].any():  # with the rows on the left it is the same division
        apart = value_of(how[MEASURE], how[MIN_LEAF], points.total - points.fixed[1], points.fixed[1])
        if apart < value:
            value = apart
            start[0] = 0.0
            start[1] = 0.0
            start[2] = points.v.min()
    return value, pair_floor(how[MEASURE], how[BOUND], points)
