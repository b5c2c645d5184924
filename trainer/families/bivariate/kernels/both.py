"""Both orders of a pair of features under one call, and what is known of the pair before any search.

The boxes of one order hold the rules of slope at most one; the steeper ones are those of the exchanged pair.
"""

from __future__ import annotations

import numpy as np

from trainer.families.bivariate.kernels.bounds import lower_bound, rule_value
from trainer.families.bivariate.kernels.explore import explore
from trainer.families.bivariate.kernels.points import points_floor
from trainer.families.bivariate.kernels.tables import BOXES, CLASSIFIED, DONE, FIRST, FOUND, root
from trainer.kernels.compiled import kernel

# where a pair's search stands: order, whether its root box was made, order of the best rule (-1: none yet), and counts
ORDER, BEGUN, WINNER, ALL_BOXES, ALL_CLASSIFIED = range(5)


@kernel
def advance(
    how, limits, floor, at, u, v, first, klass, weight, total, boxes, meta, heap, free, arena, scratch, st, best
):
    """`explore` for (u, v) and then for (v, u), from where `at` stands; one call for a pair that is soon done."""
    while True:
        x, z = (u, v) if at[ORDER] == 0 else (v, u)
        if at[BEGUN] == 0:
            root(how, limits, x, z, first, klass, weight, total, boxes, meta, heap, free, arena, st)
            boxes[0, 4] = floor
            at[BEGUN] = 1
        code = explore(
            how, limits, x, z, first, klass, weight, total, boxes, meta, heap, free, arena, scratch, st, best
        )
        if st[FOUND] == 1:
            at[WINNER] = at[ORDER]
        if code != DONE:
            return code
        at[ALL_BOXES] += st[BOXES]
        at[ALL_CLASSIFIED] += st[CLASSIFIED]
        st[BOXES], st[CLASSIFIED] = 0, 0
        if at[ORDER] == 1 or (how[FIRST] == 1 and at[WINNER] >= 0):
            return DONE
        at[ORDER], at[BEGUN] = 1, 0


@kernel
def pair_floor(measure, bound, first, klass, weight, total):
    """A value that no rule on the pair can beat, before any search: equal points stay together, and so do classes (Theorem 1)."""
    none = np.zeros(total.shape[0], np.int64)
    together = points_floor(measure, first, klass, weight, total.shape[0])
    return max(together, lower_bound(measure, bound, none, none, total))


@kernel
def opening(measure, bound, min_leaf, order, a, b, u, v, first, klass, weight, total):
    """The value of the rule (a, b) on (u, v), or on (v, u) if `order` is 1, and `pair_floor`."""
    x, z = (u, v) if order == 0 else (v, u)
    value = rule_value(measure, min_leaf, a, b, x, z, first, klass, weight, total)
    return value, pair_floor(measure, bound, first, klass, weight, total)
