"""Define converted trees and build them from drafts with counts."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainer.errors import ConversionError
from trainer.table import ColumnSchema
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf, Tree, grow, tree_from_json

METHOD = "converted"  # method of a model file whose tree another program trained
MOST_DEPTH = 200  # trees are walked by recursion, which limits their depth
MOST_NODES = 200_000
MOST_BYTES = 50_000_000


@dataclass(frozen=True, kw_only=True)
class CountedLeaf(DraftLeaf):
    """A leaf with the number of rows per class that the source states; empty if it states none."""

    counts: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ConvertedTree:
    """A tree of another program with the column that it predicts, and the program or format it came from."""

    tree: Tree
    target: str
    form: str


def tree_of(draft: Draft, schema: Sequence[ColumnSchema], classes: Sequence[str]) -> Tree:
    """Build the tree of a draft with the counts of its leaves, all 0 if one leaf has none; raise ConversionError."""
    if not classes or len(set(classes)) != len(classes):
        raise ConversionError(
            f"The classes need different names, but these are: {', '.join(classes)[:200]}. Give one distinct name for each class."
        )
    names = [column.name for column in schema]
    if len(set(names)) != len(names):
        raise ConversionError("Two columns of the model have the same name. Rename one of them at its source.")
    bare = grow(draft, np.zeros((0, len(names))), np.zeros(0, np.int32), schema=schema, classes=classes)
    counts = _counts(draft, len(classes))
    records: list[dict[str, Any]] = [
        record | {"counts": node_counts} for record, node_counts in zip(bare.to_json(), counts, strict=True)
    ]
    return tree_from_json(records, schema=bare.schema, classes=bare.classes)


def _counts(draft: Draft, classes: int) -> list[list[int]]:
    """Return the counts of every node, in the order of `grow`."""
    order: list[Draft] = []
    children: list[tuple[int, int]] = []
    queue: deque[Draft] = deque([draft])
    while queue:
        item = queue.popleft()
        first = len(order) + len(queue) + 1
        order.append(item)
        children.append((first, first + 1))
        if isinstance(item, DraftBranch):
            queue += (item.left, item.right)
    if len(order) > MOST_NODES:
        raise ConversionError(
            f"The tree has {len(order):,} nodes, but at most {MOST_NODES:,} can be converted. Train a smaller tree."
        )
    counts = [[0] * classes for _ in order]
    if any(isinstance(item, DraftLeaf) and not getattr(item, "counts", ()) for item in order):
        return counts
    for i in reversed(range(len(order))):
        item = order[i]
        if isinstance(item, CountedLeaf):
            counts[i] = list(item.counts)
        elif isinstance(item, DraftBranch):
            counts[i] = [a + b for a, b in zip(counts[children[i][0]], counts[children[i][1]], strict=True)]
    return counts


def too_deep(depth: int) -> None:
    """Raise ConversionError beyond the supported depth."""
    if depth > MOST_DEPTH:
        raise ConversionError(
            f"The tree is deeper than {MOST_DEPTH} questions, the limit for conversion. Train a tree of less depth."
        )


def class_text(value: Any) -> str:
    """Return the name of a class as a table writes it: 1.0 is "1"."""
    plain = value.item() if isinstance(value, np.generic) else value
    return str(int(plain)) if isinstance(plain, float) and plain.is_integer() else str(plain)
