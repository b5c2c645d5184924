"""Share grouped rows and assignments between searches over subsets of categories (`odt`)."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from trainer.check.proof.subject import Shape
from trainer.check.recount.search.exhaustive_search import SearchTooLarge

# fixed work of a subproblem and of joining two sides, as the number of array elements that take as long
VISIT = 1 << 16
JOIN = 1 << 14
Sides = list[list[np.ndarray]]  # for each side, the parts of the rows that are assigned to it
Branch = tuple[Shape, Shape]


class GroupedRows:
    """Rows with equal answers merged, with the weight of each class; work beyond `most` array elements raises SearchTooLarge.

    `columns` hold for each column the category of each row, from 0, and whether its questions are thresholds. `sizes` are the weights of
    each row in each class, int64 of shape (n, K). `card` is the most categories on the smaller side of a question, 0 for any number.
    """

    def __init__(self, columns: Sequence[tuple[np.ndarray, bool]], sizes: np.ndarray, card: int, most: float) -> None:
        asked_columns = [(codes, ordered) for codes, ordered in columns if codes.max(initial=0) > 0]
        codes = np.array([np.zeros(len(sizes)), *(c for c, _ in asked_columns)], np.int64).T
        distinct, where = np.unique(codes, axis=0, return_inverse=True)
        self.codes = distinct[:, 1:]
        self.sizes = np.zeros((len(distinct), sizes.shape[1]), np.int64)
        np.add.at(self.sizes, where.reshape(-1), sizes)
        self.ordered = [ordered for _, ordered in asked_columns]
        ends = np.cumsum([0, *(int(c.max()) + 1 for c, _ in asked_columns)])
        self.spans = list(itertools.pairwise(ends.tolist()))  # first and last cell of each column
        self.starts = ends[:-1]
        self.cells = int(ends[-1])
        self.card = card
        self.left = most

    @property
    def every(self) -> np.ndarray:
        """Return the positions of all rows."""
        return np.arange(len(self.codes))

    def spend(self, numbers: float) -> None:
        """Count work in array elements; raise SearchTooLarge beyond the limit."""
        self.left -= numbers
        if self.left < 0:
            raise SearchTooLarge

    def counts(self, rows: np.ndarray, by: np.ndarray | None = None) -> np.ndarray:
        """Return the weights of the rows for each number of `by`, int64 of shape (M, cells, K)."""
        by = np.zeros(len(rows), np.int64) if by is None else by
        many = int(by.max()) + 1
        self.spend(len(rows) * len(self.spans) + many * self.cells)
        at = ((by * self.cells)[:, None] + self.codes[rows] + self.starts).reshape(-1)
        heavy = [np.repeat(class_weights, len(self.spans)) for class_weights in self.sizes[rows].T]
        totals = [np.bincount(at, class_weights, many * self.cells) for class_weights in heavy]
        return np.stack(totals, axis=1).astype(np.int64).reshape(many, self.cells, len(totals))

    def branches(self, rows: np.ndarray, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of each row's category among those of column j that occur, and the order of their assignment.

        The heaviest category comes first; bins keep their order.
        """
        present, by = np.unique(self.codes[rows, j], return_inverse=True)
        weight = np.bincount(by.reshape(-1), self.sizes[rows].sum(axis=1), len(present))
        order = np.arange(len(present)) if self.ordered[j] else np.argsort(-weight, kind="stable")
        return by.reshape(-1), order

    def walk(
        self, parts: Sequence[np.ndarray], ordered: bool, shape: Branch, visit: Callable[[Sides, Branch, int], bool]
    ) -> None:
        """Enumerate the assignments of parts to two sides; `visit` returns whether to extend a partial assignment."""
        if ordered:
            for cut, ways in itertools.product(range(1, len(parts)), {shape, shape[::-1]}):
                visit([list(parts[:cut]), list(parts[cut:])], ways, len(parts))
            return
        # if both sides have the same shape, the first part goes left, so that mirrored assignments are not repeated
        stack: list[tuple[int, ...]] = [(0,)] if shape[0] == shape[1] else [(1,), (0,)]
        while stack:
            sides = stack.pop()
            if self.card and min(sides.count(0), sides.count(1)) > self.card:
                continue
            assigned_parts = [
                [part for part, part_side in zip(parts, sides, strict=False) if part_side == side] for side in (0, 1)
            ]
            if visit(assigned_parts, shape, len(sides)) and len(sides) < len(parts):
                stack += [(*sides, 1), (*sides, 0)]


def join_rows(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Join the rows of several parts, in their order."""
    return np.sort(np.concatenate([np.zeros(0, np.int64), *parts]))


def key(rows: np.ndarray) -> bytes:
    """Return a short key of a set of rows."""
    return hashlib.blake2b(rows.tobytes(), digest_size=20).digest()


@cache
def height(shape: Shape) -> int:
    """Return the number of questions on the longest path of a topology."""
    return 0 if shape is None else 1 + max(map(height, shape))
