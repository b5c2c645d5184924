"""Search trees of depth three for two classes, group by group.

The kernels are in `trainer.families.odt.kernels.depth3`. The loop over groups is not a kernel: one kernel that contains all others
takes long to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trainer.families.odt.groups import Groups
from trainer.families.odt.kernels import depth3 as kernel
from trainer.families.odt.kernels.records import NodeBudget
from trainer.families.odt.levels import LevelLimitReached


@dataclass(frozen=True, kw_only=True)
class ValueRange:
    """The values to search for, and who receives them.

    Parameters
    ----------
    lower : int
        The first tree must exceed this value.
    top : int
        An upper bound; the search ends when it is reached.
    take : callable
        Receives the value, the group, and the mask of the categories of side 0.
    """

    lower: int
    top: int
    take: Callable[[int, int, int], None]


@dataclass(frozen=True, kw_only=True)
class KernelLimits:
    """How long a kernel call may take.

    Parameters
    ----------
    nodes : int
        Nodes of the first call; a call that needs more is repeated with four times as many.
    check : callable
        Called before each call; may raise LevelLimitReached.
    flag : int64 array of shape (1,)
        A value other than 0 ends a call.
    """

    nodes: int
    check: Callable[[], None]
    flag: np.ndarray


def search_three_levels(
    groups: Groups,
    s: np.ndarray,
    rows: np.ndarray,
    deep: bool,
    order: list[int],
    values: ValueRange,
    limits: KernelLimits,
) -> int:
    """Search trees of three levels and report each better one; return the number of nodes.

    Values are in the unit of the kernels, 2 (correct weight) - (weight of the rows). Side 1 has two levels, side 0 only if `deep`.

    Parameters
    ----------
    groups : Groups
    s : int32 array of shape (n,)
        Signed weights of all rows.
    rows : int64 array of shape (m,)
        Rows to classify.
    deep : bool
        Whether side 0 has two levels.
    order : list of int
        Groups to test at the root, in the order of the search.
    values : ValueRange
    limits : KernelLimits

    Raises
    ------
    LevelLimitReached
        If the search was stopped.
    """
    spans = groups.spans
    best = np.int32(values.lower)
    nodes = 0
    start = spans.start
    for g in order:
        if best >= values.top:
            break
        T, size = kernel.fill_category_tables(groups.cat, s, groups.w, rows, start, g)
        cats = kernel.sort_by_size(np.ascontiguousarray(size[:, start[g] : start[g + 1]].sum(axis=1)), 0, len(T))
        if len(cats) < 2:
            continue
        single_values = None if groups.ordered[g] else _single_category_values(groups, T, size, cats, limits)
        if single_values is not None and single_values.sum() <= best:
            continue
        # search the mirror image of a threshold as well, unless both sides are alike
        for flip in (False,) if single_values is not None or deep else (False, True):
            nodes_allowed = limits.nodes
            while True:
                limits.check()
                budget = NodeBudget(nodes_allowed, limits.flag)
                if single_values is not None:
                    value, mask, visited = kernel.search_nominal(
                        T, size, cats, single_values, deep, spans, best, budget
                    )
                else:
                    value, cut, visited = kernel.search_ordered(T, size, deep, flip, spans, best, budget)
                    mask = _threshold_mask(int(cut), len(T), flip)
                if mask >= 0:
                    best = np.int32(value)
                    values.take(int(value), g, int(mask))
                if visited >= 0:
                    nodes += int(visited)
                    break
                if limits.flag[0]:
                    raise LevelLimitReached
                nodes_allowed *= 4
    return nodes


def _single_category_values(
    groups: Groups,
    T: np.ndarray,
    size: np.ndarray,
    cats: np.ndarray,
    limits: KernelLimits,
) -> np.ndarray:
    """Return the best value of two levels for the rows of each category, int32 (categories,)."""
    spans = groups.spans
    out = np.zeros(len(cats), np.int32)
    start = spans.start
    for t, a in enumerate(cats):
        weight = np.int32(size[a, start[0] : start[1]].sum())
        nodes_allowed = limits.nodes
        visited = -1
        while visited < 0:
            limits.check()
            bounds = np.full(len(groups.sizes), weight)
            budget = NodeBudget(nodes_allowed, limits.flag)
            out[t], visited = kernel.solve_two_levels(T[a], size[a], spans, -1, int(weight), bounds, budget)
            if visited < 0 and limits.flag[0]:
                raise LevelLimitReached
            nodes_allowed *= 4
    return out


def _threshold_mask(cut: int, bins: int, flip: bool) -> int:
    """Return the bins of side 0 as a mask; -1 if there is no cut."""
    if cut < 0:
        return -1
    low = (1 << cut) - 1
    return (1 << bins) - 1 ^ low if flip else low
