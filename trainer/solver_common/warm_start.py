"""Convert a known tree to a problem's columns and features.

Proofs do not depend on the start. Splits that a method cannot express are replaced by the most similar ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trainer.data.problem import Problem
from trainer.dtypes import BitArray, CountArray
from trainer.errors import ParameterError
from trainer.table import ColumnSchema, Labels, Table
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf, Tree
from trainer.tree.splits import Split, goes_left

BinaryTree = tuple[int, Any, Any] | None  # (feature, subtree where it is 0, subtree where it is 1); None is a leaf


def adapt(tree: Tree, table: Table, labels: Labels) -> Draft:
    """Convert `tree` to the columns of `table` and the classes of `labels`, matched by name.

    Raises ParameterError if a used column is missing or of another kind. Subsets lose categories that the table does not have. A
    leaf of an unknown class has no label, so it takes the majority of its rows.
    """
    columns = {column.name: j for j, column in enumerate(table.schema)}
    for j in tree.used_columns:
        old = tree.schema[j]
        if old.name not in columns:
            raise ParameterError(
                {
                    "warm_start": f"the start tree asks the column '{old.name}', which these data lack. Choose another start tree, or none."
                }
            )
        new = table.schema[columns[old.name]]
        if new.kind is not old.kind:
            raise ParameterError(
                {
                    "warm_start": f"the start tree reads '{old.name}' as {old.kind}, but in these data it is {new.kind}. Choose the same kind, or another start tree."
                }
            )
    known = {name: code for code, name in enumerate(labels.classes)}
    drafts: dict[int, Draft] = {}
    # children follow their parents in the list, so the reverse order builds bottom-up
    for node in reversed(tree.nodes):
        if node.split is None:
            drafts[node.id] = DraftLeaf(label=known.get(tree.classes[node.label]))
        else:
            split = _rename_split(node.split, tree.schema, table.schema, columns)
            drafts[node.id] = DraftBranch(split=split, left=drafts.pop(node.left), right=drafts.pop(node.right))
    return drafts[0]


def _rename_split(
    split: Split, old: Sequence[ColumnSchema], new: Sequence[ColumnSchema], columns: dict[str, int]
) -> Split:
    def code(feature: int, level: int) -> int:
        """Return the code of the same category in the new schema; -1 if it is absent."""
        name = old[feature].categories[level]
        categories = new[columns[old[feature].name]].categories
        return categories.index(name) if name in categories else -1

    def column(feature: int) -> int:
        return columns[old[feature].name]

    return split.rename(column, code)


def binary_tree(
    draft: Draft, problem: Problem, *, depth: int, min_leaf: int = 1, allowed: BitArray | None = None
) -> BinaryTree:
    """Convert a draft to a tree of at most `depth` over the problem's binary features.

    A split becomes the feature that separates its rows most similarly; ties are broken by a feature of its column. Features with a
    side lighter than `min_leaf` are not used; without any feature the node is a leaf. `allowed` uint8 (features,) is 0 for forbidden
    features.
    """
    X = problem.binary.bits(problem.table)
    usable = np.ones(X.shape[1], bool) if allowed is None else allowed.astype(bool)
    columns = np.array([feature.column for feature in problem.binary.features], np.int64)
    weight = problem.row_weights

    def visit(part: Draft, rows: CountArray, height: int) -> BinaryTree:
        if isinstance(part, DraftLeaf) or height == 0:
            return None
        left = goes_left(part.split, problem.matrix[rows])
        w = weight[rows]
        bits = X[rows]
        ones = w @ bits
        fits = usable & (np.minimum(ones, w.sum() - ones) >= max(1, min_leaf))
        if not fits.any():
            return None
        same = w @ (bits == left[:, None])  # weight of the left rows with a 1 and the right rows with a 0
        agreement = np.where(fits, np.maximum(same, w.sum() - same), -1)
        # count the agreement twice, so that using a column of the split only breaks ties
        feature = int(np.argmax(2 * agreement + np.isin(columns, part.split.used)))
        one = bits[:, feature] == 1
        sides = (part.right, part.left) if 2 * same[feature] >= w.sum() else (part.left, part.right)
        return feature, visit(sides[0], rows[~one], height - 1), visit(sides[1], rows[one], height - 1)

    return visit(draft, np.arange(len(problem.y)), depth)
