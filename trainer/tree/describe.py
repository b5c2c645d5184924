"""Describe a tree in words: splits, rules and paths of rows.

Every threshold and coefficient has all digits of the model file, so that readers get the model's answers. Trees that are trained here
store the shortest decimals that separate the training rows; see `trainer.tree.shorten`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.dtypes import FloatArray
from trainer.errors import DataError
from trainer.tree.nodes import Node, Tree
from trainer.tree.numbers import category_text, label, number_text
from trainer.tree.splits import Split
from trainer.tree.splits.base import Schema

__all__ = [
    "category_text",
    "counted_words",
    "headline",
    "is_weighted",
    "leaf_text",
    "number_text",
    "path_in_words",
    "rules_text",
    "split_text",
    "value_text",
]


def split_text(split: Split, schema: Schema, *, most: int | None = None) -> str:
    """Describe the test of a split in words; "yes" goes left.

    Parameters
    ----------
    split : Split
    schema : sequence of ColumnSchema
        Columns of the tree.
    most : int, optional
        Largest number of categories to list. Numbers always have every digit.

    Returns
    -------
    str
    """
    return split.text(schema, most)


def value_text(split: Split, schema: Schema, row: FloatArray) -> str:
    """Describe the value of a row that the split tests: a number, a sum as in the rule, or a category.

    Parameters
    ----------
    split : Split
    schema : sequence of ColumnSchema
        Columns of the tree.
    row : float64 array of shape (columns,)

    Returns
    -------
    str
    """
    return split.value_text(schema, row)


def weight_step(certificate: Mapping[str, Any]) -> float:
    """Return the weight of one unit of the counts of a model: 1 unless its rows have decimal weights."""
    return float(Fraction((certificate.get("weights") or {}).get("step", "1")))


def is_weighted(certificate: Mapping[str, Any]) -> bool:
    """Return True if the nodes and the training rows of a model count weights: those of a column, or of classes."""
    return bool(certificate.get("weights") or certificate.get("class_weights"))


def counted_words(certificate: Mapping[str, Any]) -> str:
    """Return the unit of the counts of nodes and training rows, to follow a number: "rows", "of weight"."""
    return "of weight" if certificate.get("class_weights") else row_words(certificate)


def row_words(certificate: Mapping[str, Any]) -> str:
    """Return the unit of counts without class weights, to follow a number: "rows", "of weight", "steps of weight 0.5"."""
    weights = certificate.get("weights")
    if not weights:
        return "rows"
    step = Fraction(weights["step"])
    return "of weight" if step == 1 else f"steps of weight {number_text(float(step), 4)}"


def rules_text(tree: Tree, certificate: Mapping[str, Any] | None = None) -> str:
    """Return the tree as nested lines, two spaces per level: a question, then "yes:" and "no:" with what follows.

    Parameters
    ----------
    tree : Tree
    certificate : mapping, optional
        The certificate of a model file. It says whether the leaves count rows or weights; by default the tree does.

    Returns
    -------
    str
        Lines, each with a line break.
    """
    unit = tree.count_unit if certificate is None else counted_words(certificate)
    lines: list[str] = []
    stack = [(0, 0, "")]
    while stack:
        node, level, prefix = stack.pop()
        v = tree.nodes[node]
        indent = "  " * level + prefix
        if v.split is None:
            lines.append(f"{indent}{leaf_text(tree, v, unit)}")
            continue
        lines.append(f"{indent}{split_text(v.split, tree.schema)}?{v.split.empty_note()}")
        stack.append((v.right, level + 1, "no: "))
        stack.append((v.left, level + 1, "yes: "))
    return "\n".join(lines) + "\n"


def headline(tree: Tree, v: Node) -> str:
    """Return the question of a node in one line, or the class of a leaf; a split of many columns is "Weighs 30 columns".

    Parameters
    ----------
    tree : Tree
    v : Node
        A node of the tree.

    Returns
    -------
    str
    """
    if v.split is None:
        return tree.class_words[v.label]
    words = v.split.brief(tree.schema)
    return words if v.split.many else f"{words}?"


def leaf_text(tree: Tree, leaf: Node, unit: str = "") -> str:
    """Return the prediction of a leaf with its share of the training rows: "benign (349 of 367 rows)".

    Parameters
    ----------
    tree : Tree
    leaf : Node
        A leaf of the tree.
    unit : str
        The unit of the counts, from `counted_words`; by default that of the tree.

    Returns
    -------
    str
    """
    unit = unit or tree.count_unit
    if unit == "of weight":
        return f"{tree.class_words[leaf.label]} (weight {leaf.counts[leaf.label]:,} of {leaf.rows:,})"
    rows = "1 row" if leaf.rows == 1 and unit == "rows" else f"{leaf.rows:,} {unit}"
    return f"{tree.class_words[leaf.label]} ({leaf.counts[leaf.label]:,} of {rows})"


def empty_text(names: Sequence[str], answer: str) -> str:
    """Describe the side of a row with empty cells: "age was empty; empty cells go to no here"."""
    return f"{' and '.join(names)} {'was' if len(names) == 1 else 'were'} empty; empty cells go to {answer} here"


def path_in_words(tree: Tree, leaf: int, row: FloatArray) -> list[str]:
    """Return one sentence for each question on the path of `row` to `leaf`, and one for the prediction.

    Parameters
    ----------
    tree : Tree
    leaf : int
        Node id of the leaf that the row reaches.
    row : float64 array of shape (columns,)

    Returns
    -------
    list of str

    Raises
    ------
    DataError
        If the node is not a leaf, or the row does not reach it.
    """
    row = np.asarray(row, np.float64).reshape(-1)
    if not 0 <= leaf < len(tree.nodes) or not tree.nodes[leaf].is_leaf:
        raise DataError(f"Node {leaf} is not a leaf of this tree. Give the id of a leaf.")
    reached = int(tree.apply(row.reshape(1, -1))[0])
    if reached != leaf:
        raise DataError(f"The row reaches leaf {reached}, not leaf {leaf}. Give leaf {reached}, or another row.")
    path = tree.path_to(leaf)
    sentences = []
    for node, following in itertools.pairwise(path):
        v = tree.nodes[node]
        if v.split is None:
            continue
        answer = "yes" if following == v.left else "no"
        empty = [label(tree.schema[j].name) for j in v.split.empty_in(row)]
        answer_text = empty_text(empty, answer) if empty else f"Here {value_text(v.split, tree.schema, row)}: {answer}"
        sentences.append(f"{split_text(v.split, tree.schema)}? {answer_text}")
    return [*sentences, f"So it is {leaf_text(tree, tree.nodes[leaf])}"]
