"""Convert scikit-learn's decision trees to trees and back.

scikit-learn rounds every value to single precision before it compares, so thresholds are converted to double precision. Missing
numbers go to the side that scikit-learn sends them to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.convert.single_precision import double_threshold
from trainer.convert.source import CountedLeaf, class_text, too_deep, tree_of
from trainer.errors import ConversionError
from trainer.table import ColumnKind, ColumnSchema, EmptySide, MissingPolicy
from trainer.tree.describe import split_text
from trainer.tree.nodes import Draft, DraftBranch, Node, Tree
from trainer.tree.splits import Threshold
from trainer.tree.splits.base import BELOW, IS_EMPTY

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeClassifier

NO_CHILD = -1
NO_COLUMN = -2


def from_sklearn(estimator: Any, feature_names: Sequence[str] | None = None) -> Tree:
    """Convert a fitted classifier of one tree; every row of finite and missing numbers gets the same class.

    Parameters
    ----------
    estimator : DecisionTreeClassifier or ExtraTreeClassifier
        The fitted classifier.
    feature_names : sequence of str, optional
        One name for each column, by default the names of the fit, or x0, x1, …

    Returns
    -------
    Tree
        Its counts are those of the fit, or 0 if rows had fractional weights.

    Raises
    ------
    ConversionError
        If the estimator is not such a classifier, or the number of names is wrong.
    """
    names = _names(estimator, feature_names)
    source = estimator.tree_
    classes = [class_text(c) for c in estimator.classes_]
    counts = _counts(source)
    labels = source.value[:, 0, :].argmax(axis=1)

    def visit(node: int, depth: int) -> Draft:
        too_deep(depth)
        left = int(source.children_left[node])
        right = int(source.children_right[node])
        if left == NO_CHILD:
            return CountedLeaf(label=int(labels[node]), counts=counts[node] if counts else ())
        feature = int(source.feature[node])
        cut = double_threshold(float(source.threshold[node]))
        side = EmptySide.LEFT if source.missing_go_to_left[node] else EmptySide.RIGHT
        low = visit(left, depth + 1)
        high = visit(right, depth + 1)
        return DraftBranch(split=Threshold(feature=feature, threshold=cut, missing=side), left=low, right=high)

    schema = [ColumnSchema(name=name, kind=ColumnKind.NUMERIC, missing=MissingPolicy.LEARN) for name in names]
    return tree_of(visit(0, 0), schema, classes)


def _names(estimator: Any, requested: Sequence[str] | None) -> list[str]:
    kind = type(estimator).__name__
    if not hasattr(estimator, "tree_") or not hasattr(estimator, "classes_"):
        if hasattr(estimator, "get_depth") and hasattr(estimator, "predict_proba") and not hasattr(estimator, "tree_"):
            raise ConversionError(f"This {kind} has not been fitted. Call fit first.")
        raise ConversionError(
            f"{kind} is not a classifier of one tree. Give a fitted DecisionTreeClassifier or ExtraTreeClassifier."
        )
    if int(estimator.n_outputs_) != 1:
        raise ConversionError(
            f"This {kind} predicts {estimator.n_outputs_} columns, but a tree predicts one. Fit it on one column of classes."
        )
    width = int(estimator.n_features_in_)
    names = list(requested) if requested is not None else list(getattr(estimator, "feature_names_in_", []))
    names = [str(name) for name in names] or [f"x{j}" for j in range(width)]
    if len(names) != width:
        raise ConversionError(
            f"feature_names has {len(names)} names, but the classifier was fitted on {width} columns. Give one name for each column."
        )
    return names


def _counts(source: Any) -> list[tuple[int, ...]]:
    """Return the rows of each class at every node; empty if weights make them fractional or change their sum."""
    weights = source.value[:, 0, :] * source.weighted_n_node_samples[:, None]
    counts = np.rint(weights)
    if np.abs(weights - counts).max() > 1e-6 or (counts.sum(axis=1) != source.n_node_samples).any():
        return []
    return [tuple(int(c) for c in row) for row in counts]


def to_sklearn(tree: Tree, classes: np.ndarray, feature_names: np.ndarray | None = None) -> DecisionTreeClassifier:
    """Convert a tree to a fitted DecisionTreeClassifier of scikit-learn.

    Parameters
    ----------
    tree : Tree
        Each split compares one column with a threshold, or tests whether its cell is empty.
    classes : array of shape (n_classes,)
        The labels.
    feature_names : object array of shape (n_columns,), optional
        The columns, if rows come in data frames.

    Returns
    -------
    DecisionTreeClassifier
        Its leaves have the class shares of the training rows. With costs or ties, the answer of a leaf may not be the
        first of its most frequent classes; this leaf has the share 1 for its answer.

    Raises
    ------
    ConversionError
        If a split has another form, or refuses an empty cell.
    """
    from sklearn.tree import DecisionTreeClassifier
    from sklearn.tree._tree import NODE_DTYPE
    from sklearn.tree._tree import Tree as Arrays

    nodes = np.zeros(len(tree.nodes), NODE_DTYPE)
    shares = np.zeros((len(tree.nodes), 1, len(classes)))
    for node in tree.nodes:
        shares[node.id, 0] = _shares(node)
        gini = 1.0 - float((shares[node.id, 0] ** 2).sum())
        nodes[node.id] = (*_places(tree, node), gini, node.rows, float(node.rows), _empty_goes_left(tree, node))
    arrays = Arrays(len(tree.schema), np.array([len(classes)], np.intp), 1)
    arrays.__setstate__({"max_depth": tree.depth, "node_count": len(nodes), "nodes": nodes, "values": shares})
    estimator = DecisionTreeClassifier(max_depth=tree.depth or None)
    fitted = {"n_features_in_": len(tree.schema), "max_features_": len(tree.schema), "n_outputs_": 1, "tree_": arrays}
    fitted |= {"classes_": classes, "n_classes_": np.int64(len(classes))}
    if feature_names is not None:
        fitted["feature_names_in_"] = feature_names
    for name, value in fitted.items():
        setattr(estimator, name, value)
    return estimator


def _shares(node: Node) -> np.ndarray:
    """Return the class shares at a node, float64 (classes,); at a leaf, its answer is the first of the largest shares."""
    shares = np.array(node.counts, np.float64) / max(node.rows, 1)
    return np.eye(len(shares))[node.label] if node.is_leaf and shares.argmax() != node.label else shares


def _places(tree: Tree, node: Node) -> tuple[int, int, int, float]:
    """Return left child, right child, column and threshold of a node. Raises ConversionError for another kind of split."""
    split = node.split
    if split is None:
        return NO_CHILD, NO_CHILD, NO_COLUMN, float(NO_COLUMN)
    flat = split.flat(tree.schema)
    if flat.test == IS_EMPTY:  # scikit-learn sends empty cells right, and every present cell is at most infinity
        return node.right, node.left, flat.feature, np.inf
    if flat.test == BELOW and not split.refused:
        return node.left, node.right, flat.feature, flat.high
    why = "refuses empty cells" if flat.test == BELOW else "is no threshold of one column"
    raise ConversionError(
        f"scikit-learn's trees cannot have the question '{split_text(split, tree.schema)}', which {why}. Use export('onnx') or export('python')."
    )


def _empty_goes_left(tree: Tree, node: Node) -> bool:
    flat = None if node.split is None else node.split.flat(tree.schema)
    return flat is not None and flat.test == BELOW and flat.empty_left
