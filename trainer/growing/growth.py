"""Grow trees top down (Bollwein & Westphal, Algorithm 1).

Growth ends at pure or inseparable nodes, or at limits. Nodes are split breadth first, so an interrupted run leaves a
balanced tree whose open nodes are leaves. Subtrees are independent, so several threads grow the same tree.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from trainer.dtypes import CountArray
from trainer.growing.impurity import MEASURES, impurity
from trainer.growing.node_split import NodeSplit, SplitData, class_counts
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf
from trainer.tree.splits import Split
from trainer.worker_pool import WorkerPool

Splitter = Callable[[CountArray, int], "NodeSplit | None"]
Translate = Callable[[NodeSplit], "tuple[Split, bool]"]


@dataclass(frozen=True, kw_only=True)
class Stopping:
    """Pre-pruning: largest depth (None: no limit), least rows to split a node, least rows of a leaf, and least gain in rows.

    `measure`, a key of MEASURES, measures the gain.
    """

    depth: int | None = None
    min_node: int = 2
    min_leaf: int = 1
    min_gain: float = -1.0
    measure: str = "gini"


@dataclass(frozen=True, kw_only=True)
class Growth:
    """A grown tree: its draft, number of splits, and whether every node was processed."""

    draft: Draft
    branches: int
    finished: bool
    boxes: int
    classified: int


@dataclass(kw_only=True)
class _Open:
    rows: CountArray
    depth: int
    place: int = 1  # number of the node in the complete tree, where n has the children 2n and 2n + 1
    split: NodeSplit | None = None
    children: list[_Open] = field(default_factory=list)


def grow_tree(
    data: SplitData,
    split: Splitter,
    translate: Translate,
    stopping: Stopping,
    *,
    stopped: Callable[[], bool] = lambda: False,
    report: Callable[[int, Callable[[], Draft]], None] = lambda leaves, draft: None,
    rows: CountArray | None = None,
    worker_pool: WorkerPool[Any] | None = None,
) -> Growth:
    """Grow a tree over the rows.

    Parameters
    ----------
    data : SplitData
        The arrays that all nodes share.
    split : callable
        Returns the split of a node or None; called with the rows and the number of splits so far.
    translate : callable
        Converts a split to one of the uploaded columns; also returns whether its children are exchanged.
    stopping : Stopping
        Pre-pruning.
    stopped : callable
        Returns True to end the growth.
    report : callable
        Called after each split with the number of leaves and a function that returns the current draft.
    rows : int64 array, optional
        Row numbers, by default all.
    worker_pool : WorkerPool, optional
        Its threads call `split` concurrently.

    Returns
    -------
    Growth
        Splits with an empty child are dropped, so the induction ends.
    """
    measure = stopping.measure
    root = _Open(rows=np.arange(len(data.X)) if rows is None else rows, depth=0)
    branches = 0
    boxes = 0
    classified = 0
    finished = True
    lock = threading.Lock()

    def divide(node: _Open) -> list[tuple[tuple[int, ...], _Open]]:
        nonlocal branches, boxes, classified, finished
        if not _is_splittable(data, node, stopping):
            return []
        if stopped():
            finished = False
            return []
        best_split = split(node.rows, branches)
        if stopped():  # a stop may have cut the search for this split short
            finished = False
        if best_split is None or not best_split.left.any() or best_split.left.all():
            return []
        before = impurity(MEASURES[measure], class_counts(data, node.rows))
        if before - best_split.value < stopping.min_gain:
            return []
        children = [
            _Open(rows=node.rows[side], depth=node.depth + 1, place=2 * node.place + k)
            for k, side in enumerate((best_split.left, ~best_split.left))
        ]
        with lock:
            node.split = best_split
            node.children = children
            branches = branches + 1
            boxes = boxes + best_split.boxes
            classified = classified + best_split.classified
            report(branches + 1, lambda: _draft(root, translate, measure, data.rows_per_weight))
        return [((child.depth, child.place), child) for child in children]

    (worker_pool or WorkerPool()).run((0, 1), root, divide)
    return Growth(
        draft=_draft(root, translate, measure, data.rows_per_weight),
        branches=branches,
        finished=finished,
        boxes=boxes,
        classified=classified,
    )


def _is_splittable(data: SplitData, node: _Open, stopping: Stopping) -> bool:
    counts = class_counts(data, node.rows)
    size = int(counts.sum())
    return bool(
        np.count_nonzero(counts) > 1
        and (stopping.depth is None or node.depth < stopping.depth)
        and size >= max(2, stopping.min_node)
        and size >= 2 * stopping.min_leaf
    )


def _draft(root: _Open, translate: Translate, measure: str, unit: float) -> Draft:
    """Build the draft bottom up with impurities times `unit`; without recursion, since a tree may be as deep as it has rows."""
    order = [root]
    for node in order:
        order.extend(node.children)
    drafts: dict[int, Draft] = {}
    for node in reversed(order):
        if node.split is None:
            drafts[id(node)] = DraftLeaf()
            continue
        uploaded_split, exchanged = translate(node.split)
        children = node.children[::-1] if exchanged else node.children
        left, right = (drafts.pop(id(child)) for child in children)
        branch = DraftBranch(split=uploaded_split, left=left, right=right)
        # only a proved bound may be recorded as a claim
        if node.split.bound is not None:
            branch = replace(
                branch, impurity=node.split.value * unit, impurity_bound=node.split.bound * unit, measure=measure
            )
        drafts[id(node)] = branch
    return drafts[id(root)]
