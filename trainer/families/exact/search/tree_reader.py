"""The tree of a cost that was proved: read back from what a search keeps, and searched again where that was dropped."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from trainer.families.exact.instance import ExactInstance
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.search.memo import INFINITE, SHALLOWER, MemoEntry
from trainer.tree.shapes import Shape


class MemoSource(Protocol):
    """What is asked of a search."""

    instance: ExactInstance

    def kept(self, rows: np.ndarray, path: tuple[int, ...], height: int) -> MemoEntry | None:
        """What it keeps of a subproblem."""

    def solve(
        self, rows: np.ndarray, path: tuple[int, ...], height: int, ub: int, stoppable: bool = ...
    ) -> MemoEntry:  # fmt: skip
        """What it finds of a subproblem."""

    def small(self, rows: np.ndarray, height: int) -> Shape:
        """A cheapest tree of one or two levels."""


def extract(search: MemoSource, rows: np.ndarray, path: tuple[int, ...], height: int, cost: int) -> Shape:
    """The first tree in search order of the known optimal `cost`."""
    known = search.kept(rows, path, height)
    if known is None or not known.exact:
        known = search.solve(rows, path, height, cost + 1, stoppable=False)
    if known.choice is None:
        return None
    if known.choice == SHALLOWER:
        return extract(search, rows, path, height - 1, cost)
    if height <= 2:
        return search.small(rows, height)
    return split(search, rows, path, height, known.choice)


def split(search: MemoSource, rows: np.ndarray, path: tuple[int, ...], height: int, feature: int) -> Shape:
    """The best tree whose root tests `feature`."""
    parts = dp_node.split_rows(search.instance.rows, rows, feature)
    below = []
    for s in range(2):
        inner = tuple(sorted((*path, 2 * feature + s)))
        value = search.solve(parts[s], inner, height - 1, int(INFINITE), stoppable=False)
        below.append(extract(search, parts[s], inner, height - 1, value.lower))
    return feature, below[0], below[1]
