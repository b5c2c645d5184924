"""Where empty cells go at the splits that no training row with an empty cell reaches."""

from __future__ import annotations

from trainer.dtypes import CountArray, FloatArray
from trainer.table import EmptySide, MissingPolicy
from trainer.tree.nodes import Draft, Tree, replace_splits
from trainer.tree.splits import Split


def settle_empty(tree: Tree, matrix: FloatArray, weights: CountArray, *, follow: bool = True) -> Draft:
    """Give each split of a column that learns a side for empty cells.

    Parameters
    ----------
    tree : Tree
    matrix : float64 array of shape (n, columns)
        The training rows, NaN where a cell is empty.
    weights : int64 array of shape (n,)
    follow : bool
        Whether splits that no training row with an empty cell reaches answer empty cells.

    Returns
    -------
    Draft
        The same tree for the training rows. A split that none of them reaches with an empty cell sends such cells to the side with
        the larger training weight, left if equal, and is marked as unseen (missing.md, section 1).
    """
    reached = tree.reach(matrix)
    splits: dict[int, Split] = {}
    for v in tree.branches:
        split = v.split
        if split is None or split.missing is EmptySide.FILL or not _learns(tree, split):
            continue
        if split.empty_rows(matrix[reached[v.id]]).any():
            if split.missing is EmptySide.REFUSE:  # as its counts were made
                splits[v.id] = split.with_empty(EmptySide.RIGHT)
            continue
        heavier = (
            EmptySide.LEFT if weights[reached[v.left]].sum() >= weights[reached[v.right]].sum() else EmptySide.RIGHT
        )
        splits[v.id] = split.with_empty(heavier if follow else EmptySide.REFUSE, seen=not follow)
    return replace_splits(tree, splits)


def _learns(tree: Tree, split: Split) -> bool:
    return all(tree.schema[f].missing is MissingPolicy.LEARN for f in split.used)
