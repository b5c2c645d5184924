"""Draw figures of one split and the training rows at its node."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from octweb.figures.split.column import interval_pictures, missing_pictures, threshold_pictures
from octweb.figures.split.line import plane_picture, single_column
from octweb.figures.split.scene import SplitScene
from octweb.figures.split.subset import subset_pictures
from octweb.figures.split.terms import coefficient_picture, sum_picture
from trainer.dtypes import CodeArray, FloatArray
from trainer.tree.nodes import Tree
from trainer.tree.splits import Interval, Linear, Missing, Subset, Threshold, goes_left


def split_figures(tree: Tree, node_id: int, X: FloatArray, codes: CodeArray) -> list[dict[str, Any]]:
    """Return dicts with title, note and figure (Plotly JSON) of the split at `node_id`, or [] for a leaf.

    Splits on one ordered column also have `warning` and `undeclared`, which concern special values. `X` (n, columns) is
    the training set, and `codes` (n,) are its class codes.
    """
    node = tree.nodes[node_id]
    if node.split is None:
        return []
    rows = _reaching(tree, node_id, X)
    inside = X[rows]
    scene = SplitScene(tree=tree, node=node, X=inside, codes=codes[rows], left=goes_left(node.split, inside))
    return PICTURES[node.split.kind](scene, node.split)


def _linear_pictures(scene: SplitScene, split: Linear) -> list[dict[str, Any]]:
    if len(split.features) == 2 and max(split.levels) < 0 and len(set(split.features)) == 2:
        return [plane_picture(scene, split), *single_column(scene, split)]
    return [sum_picture(scene, split), coefficient_picture(scene, split)]


# kind of split → function that draws its figures; `trainer.tree.splits.KINDS` lists the kinds
PICTURES: dict[str, Callable[[SplitScene, Any], list[dict[str, Any]]]] = {
    Threshold.kind: threshold_pictures,
    Interval.kind: interval_pictures,
    Missing.kind: missing_pictures,
    Subset.kind: subset_pictures,
    Linear.kind: _linear_pictures,
}


def _reaching(tree: Tree, node_id: int, X: FloatArray) -> np.ndarray:
    """Return the indices of the rows of X that reach the node. Only the path to it is evaluated."""
    rows = np.arange(len(X))
    path = tree.path_to(node_id)
    for at, following in itertools.pairwise(path):
        v = tree.nodes[at]
        if v.split is not None:
            left = goes_left(v.split, X[rows])
            rows = rows[left if following == v.left else ~left]
    return rows
