"""What searches over subsets of categories have in common: the rows, and questions whose categories go to a side one after the other (`odt`)."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from trainer.check.proof.subject import Shape
from trainer.check.recount.search.exhaustive_search import SearchTooLarge

VISIT = 1 << 16  # another part of the rows takes as long as so many numbers
JOIN = 1 << 14  # and so do two sides that are added
Sides = list[list[np.ndarray]]  # the parts of the rows that are assigned to each side
Branch = tuple[Shape, Shape]


class GroupedRows:
    """Rows of equal answers together, with the weight of each class. Raises SearchTooLarge beyond `most` numbers that are looked at.

    `columns`: for each column the category of each row, from 0, and whether its questions are thresholds; `sizes` int64 (n, K): the weight of
    each row in each class; `card`: the most categories on the smaller side of a question, 0 for any number.
    """

    def __init__(self, columns: Sequence[tuple[np.ndarray, bool]], sizes: np.ndarray, card: int, most: float) -> None:
        own = [(codes, ordered) for codes, ordered in columns if codes.max(initial=0) > 0]
        codes = np.array([np.zeros(len(sizes)), *(c for c, _ in own)], np.int64).T
        found, where = np.unique(codes, axis=0, return_inverse=True)
        self.codes = found[:, 1:]
        self.sizes = np.zeros((len(found), sizes.shape[1]), np.int64)
        np.add.at(self.sizes, where.reshape(-1), sizes)
        self.ordered = [ordered for _, ordered in own]
        ends = np.cumsum([0, *(int(c.max()) + 1 for c, _ in own)])
        self.spans = list(itertools.pairwise(ends.tolist()))  # the cells of each column
        self.starts = ends[:-1]
        self.cells = int(ends[-1])
        self.card = card
        self.left = most

    @property
    def every(self) -> np.ndarray:
        """All rows."""
        return np.arange(len(self.codes))

    def spend(self, numbers: float) -> None:
        """Raises SearchTooLarge beyond what the search may look at."""
        self.left -= numbers
        if self.left < 0:
            raise SearchTooLarge

    def counts(self, rows: np.ndarray, by: np.ndarray | None = None) -> np.ndarray:
        """The weights int64 (M, cells, K) of the rows, those of each number of `by` for themselves."""
        by = np.zeros(len(rows), np.int64) if by is None else by
        many = int(by.max()) + 1
        self.spend(len(rows) * len(self.spans) + many * self.cells)
        at = ((by * self.cells)[:, None] + self.codes[rows] + self.starts).reshape(-1)
        heavy = [np.repeat(own, len(self.spans)) for own in self.sizes[rows].T]
        found = [np.bincount(at, own, many * self.cells) for own in heavy]
        return np.stack(found, axis=1).astype(np.int64).reshape(many, self.cells, len(found))

    def branches(self, rows: np.ndarray, j: int) -> tuple[np.ndarray, np.ndarray]:
        """For each row the number of its category among those of column j that occur, and these numbers in the order in which they are assigned.

        The heaviest is the first; the ends of bins stay as they are.
        """
        present, by = np.unique(self.codes[rows, j], return_inverse=True)
        weight = np.bincount(by.reshape(-1), self.sizes[rows].sum(axis=1), len(present))
        order = np.arange(len(present)) if self.ordered[j] else np.argsort(-weight, kind="stable")
        return by.reshape(-1), order

    def walk(
        self, parts: Sequence[np.ndarray], ordered: bool, shape: Branch, visit: Callable[[Sides, Branch, int], bool]
    ) -> None:
        """Each way to give parts to two sides, a part after the other; `visit` says whether to go on from the parts that are given."""
        if ordered:
            for cut, ways in itertools.product(range(1, len(parts)), {shape, shape[::-1]}):
                visit([list(parts[:cut]), list(parts[cut:])], ways, len(parts))
            return
        # where both sides are alike, the first part is left
        stack: list[tuple[int, ...]] = [(0,)] if shape[0] == shape[1] else [(1,), (0,)]
        while stack:
            sides = stack.pop()
            if self.card and min(sides.count(0), sides.count(1)) > self.card:
                continue
            given = [[part for part, own in zip(parts, sides, strict=False) if own == side] for side in (0, 1)]
            if visit(given, shape, len(sides)) and len(sides) < len(parts):
                stack += [(*sides, 1), (*sides, 0)]


def join_rows(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The rows of several parts, in their order."""
    return np.sort(np.concatenate([np.zeros(0, np.int64), *parts]))


def key(rows: np.ndarray) -> bytes:
    """A short name of a set of rows."""
    return hashlib.blake2b(rows.tobytes(), digest_size=20).digest()


@cache
def height(shape: Shape) -> int:
    """Questions on the longest path of a topology."""
    return 0 if shape is None else 1 + max(map(height, shape))
