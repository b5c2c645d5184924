"""Top-down induction (Bollwein & Westphal, Algorithm 1): grow until pure, indistinguishable, or stopped by a limit.

Nodes are split breadth first, so that a run that is cut off leaves a balanced tree whose open nodes are leaves. Subtrees do not
depend on each other: threads that split several nodes side by side grow the same tree.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainer.dtypes import CountArray
from trainer.growing.impurity import impurity
from trainer.growing.node_split import NodeSplit, SplitData, class_counts
from trainer.growing.options import MEASURES
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf
from trainer.tree.splits import Split
from trainer.worker_pool import WorkerPool

Splitter = Callable[[CountArray, int], "NodeSplit | None"]
Translate = Callable[[NodeSplit], "tuple[Split, bool]"]


@dataclass(frozen=True, kw_only=True)
class Stopping:
    """Pre-pruning: depth (None: no limit), rows of a node that is split, rows of a leaf, and least gain in rows."""

    depth: int | None = None
    min_node: int = 2
    min_leaf: int = 1
    min_gain: float = -1.0


@dataclass(frozen=True, kw_only=True)
class Growth:
    """A grown tree: its draft, branches, and whether every node was dealt with."""

    draft: Draft
    branches: int
    finished: bool
    boxes: int
    classified: int


@dataclass(kw_only=True)
class _Open:
    rows: CountArray
    depth: int
    place: int = 1  # in the complete tree: children 2n, 2n + 1
    split: NodeSplit | None = None
    children: list[_Open] = field(default_factory=list)


def grow_tree(
    data: SplitData,
    split: Splitter,
    translate: Translate,
    stopping: Stopping,
    *,
    measure: str,
    stopped: Callable[[], bool] = lambda: False,
    report: Callable[[int, Callable[[], Draft]], None] = lambda leaves, draft: None,
    rows: CountArray | None = None,
    crew: WorkerPool[Any] | None = None,
) -> Growth:
    """Grow a tree over the rows (all by default).

    `split(rows, node)` returns the split of a node or None, node being the number of splits before; `translate` turns it into a
    split of the uploaded columns and says whether its sides are exchanged. `report` hears of each split and can ask for the tree so
    far. A split is kept only if both sides have rows, so the induction ends. The threads of a crew call `split` side by side.
    """
    root = _Open(rows=np.arange(len(data.X)) if rows is None else rows, depth=0)
    branches = boxes = classified = 0
    finished = True
    lock = threading.Lock()

    def divide(node: _Open) -> list[tuple[tuple[int, ...], _Open]]:
        nonlocal branches, boxes, classified, finished
        if not _splittable(data, node, stopping):
            return []
        if stopped():
            finished = False
            return []
        found = split(node.rows, branches)
        if stopped():  # also a search that ended early
            finished = False
        if found is None or not found.left.any() or found.left.all():
            return []
        before = impurity(MEASURES[measure], class_counts(data, node.rows))
        if before - found.value < stopping.min_gain:
            return []
        children = [
            _Open(rows=node.rows[side], depth=node.depth + 1, place=2 * node.place + k)
            for k, side in enumerate((found.left, ~found.left))
        ]
        with lock:
            node.split = found
            node.children = children
            branches = branches + 1
            boxes = boxes + found.boxes
            classified = classified + found.classified
            report(branches + 1, lambda: _draft(root, translate, measure, data.rows_per_weight))
        return [((child.depth, child.place), child) for child in children]

    (crew or WorkerPool()).run((0, 1), root, divide)
    return Growth(
        draft=_draft(root, translate, measure, data.rows_per_weight),
        branches=branches,
        finished=finished,
        boxes=boxes,
        classified=classified,
    )


def _splittable(data: SplitData, node: _Open, stopping: Stopping) -> bool:
    counts = class_counts(data, node.rows)
    size = int(counts.sum())
    return bool(
        np.count_nonzero(counts) > 1
        and (stopping.depth is None or node.depth < stopping.depth)
        and size >= max(2, stopping.min_node)
        and size >= 2 * stopping.min_leaf
    )


def _draft(root: _Open, translate: Translate, measure: str, unit: float) -> Draft:
    """The draft with impurities times `unit`, built from the leaves up without recursion: a degenerate tree may be as deep as it has rows."""
    order = [root]
    for node in order:
        order.extend(node.children)
    drafts: dict[int, Draft] = {}
    for node in reversed(order):
        if node.split is None:
            drafts[id(node)] = DraftLeaf()
            continue
        made, exchanged = translate(node.split)
        low, high = (drafts.pop(id(child)) for child in node.children)
        drafts[id(node)] = DraftBranch(
            split=made,
            left=high if exchanged else low,
            right=low if exchanged else high,
            # what is not proved is not recorded as a claim
            impurity=None if node.split.bound is None else node.split.value * unit,
            impurity_bound=None if node.split.bound is None else node.split.bound * unit,
            measure="" if node.split.bound is None else measure,
        )
    return drafts[id(root)]
