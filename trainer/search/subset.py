"""Exact search for subset branching on a fixed topology, without a MIP.

Below a node with leaf children every group is solved by counting; two levels are a depth-first search over the categories of the
upper group (`trainer.kernels.subset`); above that this module searches depth first over groups and categories, largest category
first, and cuts a partial assignment off when the errors that its decided rows must make already reach the incumbent. Values of
row sets are kept, for a set of rows reached in two ways has one value.

Legend: V(shape, D) is the largest weight of rows of D that a tree of the shape classifies correctly; errors = w(D) - V never fall
when rows are added to D, which gives every bound used here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from trainer.kernels.subset import count, last_level, last_level_of, two_levels_of
from trainer.search.topology import Shape
from trainer.tree.nodes import Draft, DraftLeaf
from trainer.tree.splits import Split

SLICE = 20_000  # nodes of a kernel call, well below a tenth of a second
MEMORY = 200_000  # row sets kept


class Stopped(Exception):
    """A limit was reached."""


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Rows in groups: cat int32 (n, groups), codes y int32 (n,), weights w int64 (n,); group g has sizes[g] categories.

    `branch(g, categories, left, right)` builds the draft of a test on group g whose `categories` go left;
    `question(split)` is its inverse: group and categories that go left.
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

    @property
    def start(self) -> np.ndarray:
        """First column of each group, and the number of columns."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)


@dataclass(kw_only=True)
class SubsetSearch:
    """One search; `stopped` is asked often, `flag[0] != 0` ends a kernel call."""

    groups: Groups
    root: Shape
    stopped: Callable[[], bool] = lambda: False
    on_incumbent: Callable[[int, Draft], None] = lambda value, draft: None
    flag: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    nodes: int = 0
    _values: dict[tuple[Shape, bytes], tuple[int, bool]] = field(default_factory=dict)
    _start: np.ndarray = field(init=False)
    _identical: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self._start = self.groups.start
        _, inverse = np.unique(self.groups.cat, axis=0, return_inverse=True)
        self._identical = inverse.reshape(-1).astype(np.int64)

    def ceiling(self, rows: np.ndarray) -> int:
        """No tree classifies more of `rows`: rows equal in all groups get one label."""
        if len(rows) == 0:
            return 0
        K = self.groups.n_classes
        table = np.bincount(
            self._identical[rows] * K + self.groups.y[rows],
            weights=self.groups.w[rows],
            minlength=K * (self._identical.max() + 1),
        )
        return round(table.reshape(-1, K).max(axis=1).sum())

    def best_last(self, rows: np.ndarray) -> tuple[int, int]:
        """V of one test and two leaves: (value, group)."""
        G = self.groups
        counts = np.zeros((self._start[-1], G.n_classes), np.int64)
        count(G.cat, G.y, G.w, rows, self._start, G.n_classes, counts)
        value, group = last_level(counts, self._start, G.ordered, G.card)
        return int(value), int(group)

    def value(self, shape: Shape | None, rows: np.ndarray, lower: int = -1) -> int:
        """V(shape, rows) if it exceeds `lower`; otherwise some number ≤ lower that V does not exceed being above it."""
        return self.solve(shape, rows, lower)[0]

    def solve(self, shape: Shape | None, rows: np.ndarray, lower: int = -1) -> tuple[int, Draft | None]:
        """(V, draft) where V > lower, else (an upper bound of V that is ≤ lower, None). Raises Stopped."""
        self._check()
        if shape is None or len(rows) == 0 or not self.groups.cat.shape[1]:
            # no group left: every test is trivial and a leaf says it all
            total = np.bincount(self.groups.y[rows], weights=self.groups.w[rows], minlength=self.groups.n_classes)
            best = round(total.max()) if len(rows) else 0
            return (best, DraftLeaf(label=int(total.argmax()) if len(rows) else 0)) if best > lower else (lower, None)
        key = (shape, rows.tobytes())
        known = self._values.get(key)
        top = known[0] if known else self.ceiling(rows)
        if top <= lower:
            return lower, None
        if shape.is_last:
            value, group = self.best_last(rows)
            draft = self._last_draft(rows, group) if value > lower else None
        else:
            value, draft = self._branch(shape, rows, lower if not (known and known[1]) else known[0] - 1, top)
        if len(self._values) >= MEMORY:
            self._values.clear()
        self._values[key] = (value, draft is not None)
        return value, draft

    def _branch(self, shape: Shape, rows: np.ndarray, lower: int, top: int) -> tuple[int, Draft | None]:
        best, draft = self._one_sided(shape, rows, lower)
        self._tell(shape, rows, best, draft)
        two = shape.left is not None and shape.right is not None and shape.left.is_last and shape.right.is_last
        for g in self._order(rows):
            if best >= top:
                break
            value, found = self._two_levels(rows, g, best) if two else self._assign(shape, rows, g, best)
            if found is not None:
                best, draft = value, found
                self._tell(shape, rows, best, draft)
        return best, draft

    def _tell(self, shape: Shape, rows: np.ndarray, value: int, draft: Draft | None) -> None:
        """A better tree of the whole problem is news."""
        if draft is not None and shape == self.root and len(rows) == len(self.groups.y):
            self.on_incumbent(value, draft)

    def _order(self, rows: np.ndarray) -> list[int]:
        """Groups by what one test of them is worth, best first, so that the incumbent is good early."""
        G = self.groups
        counts = np.zeros((self._start[-1], G.n_classes), np.int64)
        count(G.cat, G.y, G.w, rows, self._start, G.n_classes, counts)
        worth = [
            int(last_level_of(counts, self._start[g], self._start[g + 1], G.ordered[g], G.card))
            for g in range(len(G.sizes))
        ]
        return sorted(range(len(G.sizes)), key=lambda g: -worth[g])

    def _two_levels(self, rows: np.ndarray, g: int, lower: int) -> tuple[int, Draft | None]:
        G = self.groups
        limit = SLICE
        while True:
            self._check()
            value, mask, finished = two_levels_of(
                G.cat, G.y, G.w, rows, self._start, G.ordered, G.n_classes, g, G.card, lower, limit, self.flag
            )
            self.nodes += 1
            if finished:
                break
            if self.flag[0]:
                raise Stopped
            # start again with a larger slice: the work lost is at most a third
            limit *= 4
        if mask < 0:
            return lower, None
        goes = ((np.int64(mask) >> G.cat[rows, g].astype(np.int64)) & 1).astype(bool)
        categories = [a for a in range(G.sizes[g]) if (int(mask) >> a) & 1]
        left, right = rows[goes], rows[~goes]
        return int(value), G.branch(
            g,
            categories,
            self._last_draft(left, self.best_last(left)[1]),
            self._last_draft(right, self.best_last(right)[1]),
        )

    def _last_draft(self, rows: np.ndarray, g: int) -> Draft:
        """One test of group g and its two leaves, for the subset that `last_level_of` has counted."""
        G = self.groups
        counts = np.zeros((self._start[-1], G.n_classes), np.int64)
        count(G.cat, G.y, G.w, rows, self._start, G.n_classes, counts)
        part = counts[self._start[g] : self._start[g + 1]]
        subset = best_subset(part, bool(G.ordered[g]), G.card)
        labels = [int(part[subset].sum(axis=0).argmax()), int(part.sum(axis=0).argmax())]
        others = np.setdiff1d(np.arange(len(part)), subset)
        labels[1] = int(part[others].sum(axis=0).argmax()) if len(others) else labels[0]
        if not len(subset) or not len(others) or labels[0] == labels[1]:
            return DraftLeaf(label=int(part.sum(axis=0).argmax()))
        return G.branch(g, [int(a) for a in subset], DraftLeaf(label=labels[0]), DraftLeaf(label=labels[1]))

    def _assign(self, shape: Shape, rows: np.ndarray, g: int, lower: int) -> tuple[int, Draft | None]:
        """The best test of group g at the root of `shape`: categories are sent left or right one after the other."""
        G = self.groups
        categories = np.unique(G.cat[rows, g])
        parts = {int(a): rows[G.cat[rows, g] == a] for a in categories}
        weight = {a: int(G.w[part].sum()) for a, part in parts.items()}
        best: int = lower
        draft: Draft | None = None
        if len(categories) < 2:
            return best, draft
        if G.ordered[g]:
            for cut in range(1, len(categories)):
                for flip in (False,) if shape.is_symmetric else (False, True):
                    low = [int(a) for a in categories[:cut]]
                    chosen = [int(a) for a in categories[cut:]] if flip else low
                    value, found = self._both(shape, g, chosen, parts, best)
                    if found is not None:
                        best, draft = value, found
            return best, draft
        order = sorted(parts, key=lambda a: -weight[a])
        rest = np.concatenate([np.cumsum([weight[a] for a in order[::-1]])[::-1], [0]])
        stack: list[tuple[int, tuple[int, ...]]] = [(1, (order[0],))]
        if not shape.is_symmetric:
            stack.append((1, ()))
        while stack:
            self._check()
            self.nodes += 1
            decided, left = stack.pop()
            if G.card and min(len(left), decided - len(left)) > G.card:
                continue
            if decided == len(order):
                if 0 < len(left) < len(order):
                    value, found = self._both(shape, g, list(left), parts, best)
                    if found is not None:
                        best, draft = value, found
                continue
            if decided >= 2 and not self._can_win(shape, order[:decided], left, parts, best - int(rest[decided])):
                continue
            stack.append((decided + 1, left))
            stack.append((decided + 1, (*left, order[decided])))
        return best, draft

    def _one_sided(self, shape: Shape, rows: np.ndarray, lower: int) -> tuple[int, Draft | None]:
        """A trivial test: all rows into one subtree."""
        best: int = lower
        draft: Draft | None = None
        for child in (shape.left, shape.right):
            value, found = self.solve(child, rows, best)
            if found is not None:
                best, draft = value, found
        return best, draft

    def _both(
        self, shape: Shape, g: int, chosen: list[int], parts: dict[int, np.ndarray], lower: int
    ) -> tuple[int, Draft | None]:
        """Both subtrees of the test `group g in chosen`, if together they exceed `lower`."""
        left = np.sort(np.concatenate([parts[a] for a in chosen if a in parts] or [np.zeros(0, np.int64)]))
        right = np.sort(
            np.concatenate([part for a, part in parts.items() if a not in chosen] or [np.zeros(0, np.int64)])
        )
        other = self.ceiling(right)
        a, left_draft = self.solve(shape.left, left, lower - other)
        if left_draft is None:
            return lower, None
        b, right_draft = self.solve(shape.right, right, lower - a)
        if right_draft is None:
            return lower, None
        return a + b, self.groups.branch(g, sorted(chosen), left_draft, right_draft)

    def _can_win(
        self, shape: Shape, decided: list[int], left: tuple[int, ...], parts: dict[int, np.ndarray], lower: int
    ) -> bool:
        """Whether the decided rows may still be classified better than `lower`."""
        a = np.sort(np.concatenate([parts[c] for c in decided if c in left] or [np.zeros(0, np.int64)]))
        b = np.sort(np.concatenate([parts[c] for c in decided if c not in left] or [np.zeros(0, np.int64)]))
        top_a, top_b = self.ceiling(a), self.ceiling(b)
        if top_a + top_b <= lower:
            return False
        value, found = self.solve(shape.left, a, lower - top_b)
        if found is None and value <= lower - top_b:
            return False
        return self.solve(shape.right, b, lower - value)[1] is not None

    def _check(self) -> None:
        if self.stopped():
            self.flag[0] = 1
            raise Stopped


def best_subset(counts: np.ndarray, is_ordered: bool, card: int) -> np.ndarray:
    """The categories (int64 indices) that go left in the best test of one group; counts int64 (categories, classes)."""
    total = counts.sum(axis=0)
    best, chosen = int(total.max()), np.zeros(0, np.int64)
    if is_ordered:
        below = np.cumsum(counts, axis=0)
        for cut in range(len(counts) - 1):
            value = int(below[cut].max() + (total - below[cut]).max())
            if value > best:
                best, chosen = value, np.arange(cut + 1)
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
                        best, chosen = value, np.sort(order[:s])
                continue
            value = int(total[b] + gain[order[:size]].sum())
            if value > best:
                best, chosen = value, np.sort(order[:size])
    return chosen
