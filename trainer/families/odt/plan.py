"""Map trees onto a topology, and grow greedy start trees.

A plan has (group, categories that go left) for every decision node of a topology; an unused node sends all rows one way. The
planner maps drafts with subset and threshold splits to plans and exchanges sides where the topology allows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from trainer.families.odt.groups import Groups, best_subset
from trainer.families.odt.kernels.subset import count_classes
from trainer.families.odt.topology import Shape
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf


@dataclass(frozen=True, kw_only=True)
class DecisionNode:
    """A decision node of a topology: breadth-first number, children (negative: leaf -1 - t), and leaves on either side."""

    number: int
    shape: Shape
    children: tuple[int, int]
    leaves: tuple[tuple[int, ...], tuple[int, ...]]


def number_nodes(root: Shape) -> tuple[list[DecisionNode], int]:
    """Return the decision nodes in breadth-first order and the number of leaves. Leaves are numbered from left to right."""
    order: list[Shape] = [root]
    children: list[list[Shape | None]] = []
    links: list[list[int]] = []
    for shape in order:  # the loop appends to the list over which it iterates
        children.append([shape.left, shape.right])
        links.append([])
        for child in children[-1]:
            links[-1].append(len(order) if child is not None else -1)
            if child is not None:
                order.append(child)
    below: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
    leaf_numbers: dict[tuple[int, int], int] = {}

    def walk(v: int) -> tuple[int, ...]:
        sides = []
        for side in range(2):
            if links[v][side] >= 0:
                sides.append(walk(links[v][side]))
            else:
                leaf_numbers[v, side] = len(leaf_numbers)
                sides.append((leaf_numbers[v, side],))
        below[v] = (sides[0], sides[1])
        return sides[0] + sides[1]

    walk(0)

    def link(v: int, side: int) -> int:
        return links[v][side] if links[v][side] >= 0 else -1 - leaf_numbers[v, side]

    nodes = [
        DecisionNode(number=v, shape=s, children=(link(v, 0), link(v, 1)), leaves=below[v]) for v, s in enumerate(order)
    ]
    return nodes, len(leaf_numbers)


@dataclass(kw_only=True)
class TreePlan:
    """`tests[v]` = (group, categories that go left) for every decision node, `labels[t]` for every leaf."""

    tests: dict[int, tuple[int, frozenset[int]]] = field(default_factory=dict)
    labels: dict[int, int] = field(default_factory=dict)


class Planner:
    """Planner of drafts on a topology.

    At `anchored` nodes category `anchor[g]` goes left. At `fixed` nodes the left leaf is 0 and the right one 1.
    """

    def __init__(self, groups: Groups, root: Shape, anchored: set[int], fixed: set[int], anchor: list[int]) -> None:
        self.groups = groups
        self.anchored = anchored
        self.fixed = fixed
        self.anchor = anchor
        self.places, self.n_leaves = number_nodes(root)

    def plan(self, draft: Draft) -> TreePlan | None:
        """Return the plan of a draft, or None if it does not fit."""
        plan = TreePlan()
        return plan if self._lay(draft, 0, plan) else None

    def _lay(self, draft: Draft, v: int, plan: TreePlan) -> bool:
        if v < 0:
            if isinstance(draft, DraftLeaf):
                plan.labels[-1 - v] = draft.label or 0
            return isinstance(draft, DraftLeaf)
        for g, chosen, left, right in self._ways(draft, v):
            sides = self.places[v].children
            if self._lay(left, sides[0], plan) and self._lay(right, sides[1], plan):
                plan.tests[v] = (g, chosen)
                return True
        return False

    def _ways(self, draft: Draft, v: int) -> Iterator[tuple[int, frozenset[int], Draft, Draft]]:
        """Yield the allowed tests of node v that represent the draft, with the drafts of both sides."""
        sizes = self.groups.sizes
        ways: list[tuple[int, frozenset[int], Draft, Draft]] = []
        if isinstance(draft, DraftBranch):
            tested, left_categories = self.groups.question(draft.split)
            ways.append((tested, frozenset(left_categories), draft.left, draft.right))
            ways.append((tested, frozenset(range(sizes[tested])) - set(left_categories), draft.right, draft.left))
        # a trivial test puts the draft on one side and a leaf on the other
        idle = (DraftLeaf(label=0), DraftLeaf(label=1))
        ways.append((0, frozenset(), idle[0], draft))
        ways.append((0, frozenset(range(sizes[0])), draft, idle[1]))
        for g, chosen, left, right in ways:
            if v in self.anchored and self.anchor[g] not in chosen:
                continue
            if v in self.fixed and not (_is_leaf(left, 0) and _is_leaf(right, 1)):
                continue
            yield g, chosen, left, right


def _is_leaf(draft: Draft, label: int) -> bool:
    return isinstance(draft, DraftLeaf) and (draft.label or 0) == label


# -- greedy trees ------------------------------------------------------------------------------------------------------


def grow_greedy_tree(groups: Groups, root: Shape | None, rows: np.ndarray | None = None) -> Draft:
    """Grow a tree on the topology by the best Gini splits; tests above two leaves have the fewest errors."""
    rows = np.arange(len(groups.y)) if rows is None else rows
    weights = np.bincount(groups.y[rows], groups.w[rows], groups.n_classes)
    leaf = DraftLeaf(label=int(weights.argmax()))
    if root is None or (weights > 0).sum() < 2:
        return leaf
    best_test = split_by_count(groups, rows) if root.is_last else split_by_gini(groups, rows)
    if best_test is None:
        return leaf
    g, categories = best_test
    left = np.isin(groups.cat[rows, g], categories)
    return groups.branch(
        g,
        categories,
        grow_greedy_tree(groups, root.left, rows[left]),
        grow_greedy_tree(groups, root.right, rows[~left]),
    )


def find_tested_groups(
    groups: Groups, rows: np.ndarray | None = None, least: int = 20, limit: int = 10_000
) -> set[int]:
    """Return the groups that a full CART tree tests (Günlük et al.).

    Nodes are split by Gini impurity down to fewer than `least` rows or one class, at most `limit` nodes in all.
    """
    tested: set[int] = set()
    stack = [np.arange(len(groups.y)) if rows is None else rows]
    while stack and limit:
        part = stack.pop()
        limit -= 1
        if len(part) < least or len(np.unique(groups.y[part])) < 2:
            continue
        best_test = split_by_gini(groups, part)
        if best_test is None:
            continue
        tested.add(best_test[0])
        left = np.isin(groups.cat[part, best_test[0]], best_test[1])
        stack += [part[left], part[~left]]
    return tested


def _count_classes(groups: Groups, rows: np.ndarray) -> np.ndarray:
    start = groups.start
    counts = np.zeros((start[-1], groups.n_classes), np.int64)
    count_classes(groups.cat, groups.y, groups.w, rows, start, groups.n_classes, counts)
    return counts


def split_by_count(groups: Groups, rows: np.ndarray) -> tuple[int, list[int]] | None:
    """Return the best test above two leaves; None if no test is better than a leaf."""
    counts = _count_classes(groups, rows)
    start = groups.start
    best = -1
    best_test = None
    for g in range(len(groups.sizes)):
        part = counts[start[g] : start[g + 1]]
        categories = best_subset(part, bool(groups.ordered[g]), groups.card)
        inside = part[categories].sum(axis=0)
        value = int(inside.max() + (part.sum(axis=0) - inside).max())
        if len(categories) and value > best:
            best = value
            best_test = (g, [int(a) for a in categories])
    return best_test


def split_by_gini(groups: Groups, rows: np.ndarray) -> tuple[int, list[int]] | None:
    """Return the test of least Gini impurity, as group and categories; None if no group splits the rows.

    Nominal categories are sorted by the share of the most frequent class, which is exact for two classes (Breiman).
    """
    counts = _count_classes(groups, rows)
    start = groups.start
    best = -1.0
    best_test = None
    for g in range(len(groups.sizes)):
        part = counts[start[g] : start[g + 1]].astype(float)
        size = part.sum(axis=1)
        present = np.flatnonzero(size)
        if len(present) < 2:
            continue
        total = part.sum(axis=0)
        order = present
        if not groups.ordered[g]:
            order = present[np.argsort(part[present, total.argmax()] / size[present], kind="stable")]
        low = np.cumsum(part[order], axis=0)[:-1]
        high = total - low
        worth = (low**2).sum(axis=1) / low.sum(axis=1) + (high**2).sum(axis=1) / high.sum(axis=1)
        if groups.card and not groups.ordered[g]:
            cut = np.arange(1, len(order))
            worth[np.minimum(cut, len(order) - cut) > groups.card] = -1.0
        place = int(worth.argmax())
        if worth[place] > best:
            best = float(worth[place])
            categories = order[: place + 1]
            if groups.ordered[g]:
                categories = np.arange(categories.max() + 1)
            best_test = (g, [int(a) for a in categories])
    return best_test
