"""Improve a tree by replacing its subtrees, until no replacement helps.

The small subtrees are replaced by optimal ones (Dunn 2018, local search), and the splits above them by the best ones with the
subtrees below fixed (Carreira-Perpiñán & Tavallali 2018, alternating optimisation).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trainer.families.local.subproblem import CountedSubtree, Shape, Subproblems, height_of, join

MOST_ROUNDS = 1000  # each round lowers an integer cost, so this limit only guards against defects
WIDE = 20_000  # rows × features up to which a small tree is also searched in place of a higher subtree


class SubtreeSearch:
    """Search that improves trees of at most `depth` by replacing subtrees of at most `height`."""

    def __init__(self, subproblems: Subproblems, depth: int, height: int) -> None:
        self.subproblems = subproblems
        self.depth = depth
        self.height = height

    def improve(self, shape: Shape, report: Callable[[CountedSubtree], None]) -> CountedSubtree:
        """Return a tree that no replacement improves; if stopped, the best tree so far.

        Reports the tree after each round. Higher subtrees are replaced only once no lower one can be improved.
        """
        order = self.subproblems.rows.order
        part = self._count(order, shape)
        report(part)
        for height in range(1, self.height + 1):
            for _ in range(MOST_ROUNDS):
                better = self._visit(order, part.shape, 0, height)
                improved = self.subproblems.cost(better) < self.subproblems.cost(part)
                part = better if improved else part
                report(part)
                if not improved or self.subproblems.monitor.stopped():
                    break
        return part

    def open_nodes(self, order: np.ndarray, shape: Shape, depth: int = 0) -> bool | tuple[bool | None, object, object]:
        """Return whether the subtree of each node is proved, nested like the tree; None above the height of the search."""
        proved = None
        if height_of(shape) <= self.height:
            part = self._count(order, shape)
            proved = self.subproblems.is_proved(order, self._height_at(depth, self.height), part)
        if not isinstance(shape, tuple):
            return bool(proved)
        low, high = self.subproblems.divide(order, shape[0], shape[1])
        return proved, self.open_nodes(low, shape[2], depth + 1), self.open_nodes(high, shape[3], depth + 1)

    def _count(self, order: np.ndarray, shape: Shape) -> CountedSubtree:
        """Return the subtree with its errors and leaves; a leaf if one of its leaves is lighter than `min_leaf`."""
        part = self.subproblems.evaluate(order, shape)
        return self.subproblems.leaf(order) if part is None else part

    def _height_at(self, depth: int, height: int) -> int:
        return min(height, self.depth - depth)

    def _visit(self, order: np.ndarray, shape: Shape, depth: int, height: int) -> CountedSubtree:
        """Return the subtree of a node after one round of replacements, children before parents; unchanged if stopped."""
        stopped = self.subproblems.monitor.stopped
        if stopped():
            return self._count(order, shape)
        part = self._visit_children(order, shape, depth, height)
        if stopped():
            return part
        if isinstance(part.shape, tuple) and height_of(part.shape) > height:
            part = self._move_split(order, part)
            if order.size > WIDE:
                return part
        better = self.subproblems.find_better(order, self._height_at(depth, height), part)
        return part if better is None else better

    def _visit_children(self, order: np.ndarray, shape: Shape, depth: int, height: int) -> CountedSubtree:
        if not isinstance(shape, tuple):
            return self.subproblems.leaf(order)
        low, high = self.subproblems.divide(order, shape[0], shape[1])
        return join(
            shape, self._visit(low, shape[2], depth + 1, height), self._visit(high, shape[3], depth + 1, height)
        )

    def _move_split(self, order: np.ndarray, part: CountedSubtree) -> CountedSubtree:
        """Return the subtree with the best split above its children, or one child in its place if that costs less."""
        at = order[0]
        y = self.subproblems.rows.y
        sides = part.shape[2], part.shape[3]
        is_right = [self.subproblems.predict(side, at) == y[at] for side in sides]
        candidates = list(sides)
        matters = is_right[0] != is_right[1]
        if matters.any():
            counts = np.zeros(len(y), bool)
            counts[at] = matters
            is_high = np.zeros(len(y), bool)
            is_high[at] = is_right[1]
            few = order[counts[order]].reshape(len(order), int(matters.sum()))
            split = self.subproblems.best_split(few, is_high)
            if split is not None:
                candidates += [(*split, sides[0], sides[1]), (*split, sides[1], sides[0])]
        for candidate in candidates:
            other = self.subproblems.evaluate(order, candidate)
            if other is not None and self.subproblems.cost(other) < self.subproblems.cost(part):
                part = other
        return part
