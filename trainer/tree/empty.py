"""Choose sides and fill values for empty cells without training rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from trainer.dtypes import FloatArray
from trainer.table import ColumnKind, ColumnSchema, EmptySide, MissingPolicy
from trainer.tree.nodes import Tree
from trainer.tree.splits import Split


def settle_empty(
    tree: Tree, matrix: FloatArray, *, fills: Mapping[int, float] | None = None, follow: bool = True
) -> Tree:
    """Give each split of a column that learns from empty cells a side for them, or a value in their place.

    Parameters
    ----------
    tree : Tree
    matrix : float64 array of shape (n, columns)
        The training rows that the nodes of `tree` count, NaN where a cell is empty.
    fills : mapping of int to float, optional
        The medians of the columns that learn, for sums that fill empty cells.
    follow : bool
        Whether splits that no training row with an empty cell reaches answer empty cells.

    Returns
    -------
    Tree
        The same tree for the training rows. A split that none of them reaches with an empty cell is marked as unseen.
        It sends empty cells to the side with the larger training weight, left if equal. A sum that fills empty cells
        fills the columns without any with their medians.
    """
    holes = {j for j in tree.used_columns if np.isnan(matrix[:, j]).any()}
    learning = [v for v in tree.branches if v.split is not None and _learns(tree, v.split)]
    deciding = any(holes.intersection(v.split.deciding) for v in learning if v.split is not None)
    reached = tree.reach(matrix) if deciding else []
    nodes = list(tree.nodes)
    for v in learning:
        split = v.split
        if split is None:
            continue
        if split.missing is EmptySide.FILL:
            nodes[v.id] = replace(v, split=_settle_sum(split, holes, fills or {}, follow))
            continue
        if holes.intersection(split.deciding) and split.empty_rows(matrix[reached[v.id]]).any():
            if split.missing is EmptySide.REFUSE:  # when the tree was counted, these cells went right
                nodes[v.id] = replace(v, split=split.with_empty(EmptySide.RIGHT))
            continue
        left_is_heavier = sum(tree.nodes[v.left].counts) >= sum(tree.nodes[v.right].counts)
        heavier = EmptySide.LEFT if left_is_heavier else EmptySide.RIGHT
        nodes[v.id] = replace(v, split=split.with_empty(heavier if follow else EmptySide.REFUSE, seen=not follow))
    return replace(tree, nodes=tuple(nodes))


def filled_schema(tree: Tree, matrix: FloatArray) -> tuple[ColumnSchema, ...]:
    """Return the schema of `tree` with the fill values of its sums; `matrix` (n, columns) are all training rows."""
    schema = list(tree.schema)
    for v in tree.branches:
        for f, fill in v.split.filled.items() if v.split is not None else ():
            schema[f] = replace(schema[f], fill=fill, fill_seen=bool(np.isnan(matrix[:, f]).any()))
    return tuple(schema)


def _learns(tree: Tree, split: Split) -> bool:
    """Return whether a numeric column of the split learns from empty cells, and no other column refuses them."""
    columns = [tree.schema[f] for f in split.used]
    return all(c.missing in (MissingPolicy.LEARN, MissingPolicy.CATEGORY) for c in columns) and any(
        c.missing is MissingPolicy.LEARN and c.kind is not ColumnKind.CATEGORICAL for c in columns
    )


def _settle_sum(split: Split, holes: Collection[int], fills: Mapping[int, float], follow: bool) -> Split:
    """Fill also the columns without empty training cells, or refuse their empty cells.

    `holes` are the columns with empty training cells.
    """
    complete = {f for f in split.numbers if f not in holes}
    has_empty = len(complete) < len(split.numbers)
    if not (follow or has_empty):
        return split.with_empty(EmptySide.REFUSE)
    filled = {f: fills[f] for f in complete if follow and f in fills}
    return split.with_filled(filled).with_empty(EmptySide.FILL, seen=has_empty)
