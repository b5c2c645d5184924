"""Hold rows as categories of groups, and find tests of groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trainer.families.odt.kernels.records import CategoryRows, Spans
from trainer.tree.nodes import Draft, DraftLeaf
from trainer.tree.splits import Split


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Rows with a category in each group: cat int32 (n, groups), codes y int32 (n,), weights w int64 (n,).

    Group g has sizes[g] categories; `ordered` ones are bins. `card` limits subsets, 0 for no limit. `columns` are the positions of
    the groups' columns in the table.

    `branch(g, categories, left, right)` builds the draft of a test on group g whose `categories` go left. `question(split)` is its
    inverse: it returns the group and the categories that go left.
    """

    cat: np.ndarray
    y: np.ndarray
    w: np.ndarray
    sizes: np.ndarray
    ordered: np.ndarray
    n_classes: int
    card: int
    branch: Callable[[int, list[int], Draft, Draft], Draft]
    question: Callable[[Split], tuple[int, list[int]]]
    columns: tuple[int, ...] = ()

    @property
    def start(self) -> np.ndarray:
        """First category column of each group, and the number of all category columns."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @property
    def spans(self) -> Spans:
        """Category columns of the groups, as a record for kernels."""
        return Spans(self.start, self.ordered, self.card)

    def select(self, rows: np.ndarray) -> CategoryRows:
        """Return a subset of the rows as a record for kernels."""
        return CategoryRows(self.cat, self.y, self.w, rows)


def split(groups: Groups, rows: np.ndarray, g: int, mask: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows with a category of group g in the mask, and the others."""
    goes = goes_left_mask(groups.cat[rows, g], mask)
    return rows[goes], rows[~goes]


def goes_left_mask(categories: np.ndarray, mask: int) -> np.ndarray:
    """Return which of the categories, numbers below 64, are in the mask."""
    return ((np.uint64(mask & ((1 << 64) - 1)) >> categories.astype(np.uint64)) & np.uint64(1)).astype(bool)


def predict_labels(groups: Groups, draft: Draft) -> np.ndarray:
    """Predict all rows by a draft with labelled leaves, int64 (n,)."""
    out = np.empty(len(groups.y), np.int64)
    stack: list[tuple[Draft, np.ndarray]] = [(draft, np.arange(len(out)))]
    while stack:
        item, rows = stack.pop()
        if isinstance(item, DraftLeaf):
            out[rows] = item.label or 0
            continue
        g, categories = groups.question(item.split)
        left, right = split(groups, rows, g, sum(1 << a for a in categories))
        stack += [(item.left, left), (item.right, right)]
    return out


def best_subset(counts: np.ndarray, is_ordered: bool, card: int) -> np.ndarray:
    """Return the categories (int64 indices) that the best test of one group sends left; empty if a leaf is as good.

    `counts` is int64 (categories, classes).
    """
    total = counts.sum(axis=0)
    best = int(total.max())
    chosen = np.zeros(0, np.int64)
    if is_ordered:
        below = np.cumsum(counts, axis=0)
        for cut in range(len(counts) - 1):
            value = int(below[cut].max() + (total - below[cut]).max())
            if value > best:
                best = value
                chosen = np.arange(cut + 1)
        return chosen
    K = counts.shape[1]
    m = len(counts)
    for a in range(K):
        for b in range(K):
            gain = counts[:, a] - counts[:, b]
            order = np.argsort(-gain, kind="stable")
            size = int((gain > 0).sum())
            if card > 0 and 2 * card < m and size > card and m - size > card:
                for s in (card, m - card):
                    value = int(total[b] + gain[order[:s]].sum())
                    if value > best:
                        best = value
                        chosen = np.sort(order[:s])
                continue
            value = int(total[b] + gain[order[:size]].sum())
            if value > best:
                best = value
                chosen = np.sort(order[:size])
    return chosen


def random_test(groups: Groups, g: int, rng: np.random.Generator) -> tuple[int, int]:
    """Return a random allowed test of a group, as group and mask."""
    size = int(groups.sizes[g])
    if groups.ordered[g]:
        return g, (1 << int(rng.integers(1, size))) - 1
    most = groups.card if 0 < 2 * groups.card < size else size // 2
    categories = rng.permutation(size)[: int(rng.integers(1, most + 1))]
    return g, sum(1 << int(a) for a in categories)


def better_test(groups: Groups, rows: np.ndarray, left: np.ndarray, right: np.ndarray) -> tuple[int, int]:
    """Return the best test, as group and mask, that sends each category to the side with more correct rows.

    Returns (0, 0) if that is an allowed test for no group. `left` and `right` are the labels that the two subtrees predict for all
    rows.
    """
    best = -1
    best_test = (0, 0)
    categories = groups.cat[rows]
    for g in range(len(groups.sizes)):
        correct = [
            np.bincount(categories[:, g], (side == groups.y)[rows] * groups.w[rows], int(groups.sizes[g]))
            for side in (left, right)
        ]
        goes = correct[0] > correct[1]
        if groups.card and min(goes.sum(), len(goes) - goes.sum()) > groups.card:
            continue
        if groups.ordered[g] and np.count_nonzero(goes[1:] != goes[:-1]) > 1:
            continue
        value = int(np.maximum(correct[0], correct[1]).sum())
        if value > best:
            best = value
            best_test = (g, sum(1 << int(a) for a in np.flatnonzero(goes)))
    return best_test
