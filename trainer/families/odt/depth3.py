"""Three levels of subset branching for two classes, group by group; the work is in `trainer.families.odt.kernels.depth3`.

The groups are gone through here and not in a kernel, for one kernel that holds all others takes long to compile.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trainer.families.odt.groups import Groups
from trainer.families.odt.kernels import depth3 as kernel
from trainer.families.odt.kernels.records import NodeBudget
from trainer.families.odt.levels import LevelLimitReached


def three_levels(
    groups: Groups, s: np.ndarray, rows: np.ndarray, deep: bool, order: list[int], lower: int, top: int, limit: int,
    *, take: Callable[[int, int, int], None], check: Callable[[], None], flag: np.ndarray,
) -> int:  # fmt: skip
    """Tell `take` (value, group, mask of the categories of side 0) of every tree found above `lower`; the number of nodes.

    Values as in the kernels, `s` the signed weights; side 1 has two levels, side 0 too where `deep`; no tree is worth more than `top`.
    """
    spans = groups.spans
    best = np.int32(lower)
    nodes = 0
    start = spans.start
    for g in order:
        if best >= top:
            break
        T, size = kernel.by_category(groups.cat, s, groups.w, rows, start, g)
        cats = kernel.by_size(np.ascontiguousarray(size[:, start[g] : start[g + 1]].sum(axis=1)), 0, len(T))
        if len(cats) < 2:
            continue
        own = None if groups.ordered[g] else _single_category_values(groups, T, size, cats, limit, check, flag)
        if own is not None and own.sum() <= best:
            continue
        # a threshold has a mirror image unless both sides are alike
        for flip in (False,) if own is not None or deep else (False, True):
            slice_ = limit
            while True:
                check()
                budget = NodeBudget(slice_, flag)
                if own is not None:
                    value, mask, used = kernel.nominal_three(T, size, cats, own, deep, spans, best, budget)
                else:
                    value, cut, used = kernel.ordered_three(T, size, deep, flip, spans, best, budget)
                    mask = _threshold(int(cut), len(T), flip)
                if mask >= 0:
                    best = np.int32(value)
                    take(int(value), g, int(mask))
                if used >= 0:
                    nodes += int(used)
                    break
                if flag[0]:
                    raise LevelLimitReached
                slice_ *= 4
    return nodes


def _single_category_values(
    groups: Groups,
    T: np.ndarray,
    size: np.ndarray,
    cats: np.ndarray,
    limit: int,
    check: Callable[[], None],
    flag: np.ndarray,
) -> np.ndarray:
    """V of two levels of each category by itself, int32 (categories,)."""
    spans = groups.spans
    out = np.zeros(len(cats), np.int32)
    start = spans.start
    for t, a in enumerate(cats):
        weight = np.int32(size[a, start[0] : start[1]].sum())
        slice_ = limit
        used = -1
        while used < 0:
            check()
            known = np.full(len(groups.sizes), weight)
            budget = NodeBudget(slice_, flag)
            out[t], used = kernel.bounded(T[a], size[a], spans, -1, int(weight), known, budget)
            if used < 0 and flag[0]:
                raise LevelLimitReached
            slice_ *= 4
    return out


def _threshold(cut: int, bins: int, flip: bool) -> int:
    """The bins of side 0, as a mask; -1 for no cut."""
    if cut < 0:
        return -1
    low = (1 << cut) - 1
    return (1 << bins) - 1 ^ low if flip else low
