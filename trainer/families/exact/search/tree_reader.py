"""Read an optimal tree from the memo of a search.

Evicted subproblems are solved again.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from trainer.families.exact.instance import ExactInstance
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.search.memo import INFINITE, SHALLOWER, MemoEntry
from trainer.tree.shapes import Shape


class MemoSource(Protocol):
    """The part of `ExactSearch` that reading a tree needs."""

    instance: ExactInstance

    def memo_entry(self, rows: np.ndarray, path: tuple[int, ...], height: int) -> MemoEntry | None:
        """Return the memo entry of a subproblem, if there is one."""

    def solve(self, rows: np.ndarray, path: tuple[int, ...], height: int, ub: int, stoppable: bool = ...) -> MemoEntry:
        """Solve a subproblem for costs below `ub`."""

    def small_tree(self, rows: np.ndarray, height: int) -> Shape:
        """Return a cheapest tree of one or two levels."""


def extract(search: MemoSource, rows: np.ndarray, path: tuple[int, ...], height: int, cost: int) -> Shape:
    """Return the first tree in search order with the optimal `cost`."""
    entry = search.memo_entry(rows, path, height)
    if entry is None or not entry.exact:
        entry = search.solve(rows, path, height, cost + 1, stoppable=False)
    if entry.choice is None:
        return None
    if entry.choice == SHALLOWER:
        return extract(search, rows, path, height - 1, cost)
    if height <= 2:
        return search.small_tree(rows, height)
    return split_tree(search, rows, path, height, entry.choice)


def split_tree(search: MemoSource, rows: np.ndarray, path: tuple[int, ...], height: int, feature: int) -> Shape:
    """Return the best tree whose root tests `feature`."""
    parts = dp_node.split_rows(search.instance.rows, rows, feature)
    below = []
    for s in range(2):
        inner = tuple(sorted((*path, 2 * feature + s)))
        value = search.solve(parts[s], inner, height - 1, int(INFINITE), stoppable=False)
        below.append(extract(search, parts[s], inner, height - 1, value.lower))
    return feature, below[0], below[1]
