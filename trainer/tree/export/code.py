"""A tree as program text: a Python function of a dictionary, and an SQL expression.

Both make the tests of the prediction kernel in the same order, so that every row lands in the same leaf. Names and categories of
the columns appear only as quoted literals.
"""

from __future__ import annotations

from typing import Literal

from trainer.errors import DataError
from trainer.tree.literals import python_text, sql_text
from trainer.tree.nodes import Tree

MAX_PYTHON_DEPTH = 90  # Python reads at most 100 levels of indentation

_HELPERS = """
def number(row, column):
    value = row.get(column)
    return float("nan") if value is None else float(value)


def text(row, column, missing=None):
    value = row.get(column)
    return missing if value is None else str(value)
"""


def to_python(tree: Tree) -> str:
    """A module with `leaf(row)`, `predict(row)` and `probabilities(row)`; a row is a dictionary from column to value.

    Absent and None are missing. Needs no package. Raises DataError for a tree deeper than Python can nest.
    """
    if tree.depth > MAX_PYTHON_DEPTH:
        raise DataError(f"The tree has depth {tree.depth}; Python code can be written up to {MAX_PYTHON_DEPTH}.")
    labels = {v.id: tree.classes[v.label] for v in tree.leaves}
    shares = {v.id: dict(zip(tree.classes, tree.probabilities[v.id].tolist(), strict=True)) for v in tree.leaves}
    lines = ['"""A classification tree: leaf(row), predict(row), probabilities(row); row is a dict of columns."""', ""]
    lines += ["LABELS = {", *(f"    {k}: {python_text(name)}," for k, name in labels.items()), "}"]
    lines.append("SHARES = {")
    for k, share in shares.items():
        lines.append(f"    {k}: {{" + ", ".join(f"{python_text(name)}: {p!r}" for name, p in share.items()) + "},")
    lines += ["}", "", _HELPERS.rstrip(), "", "", "def leaf(row):"]
    stack: list[tuple[int | str, int]] = [(0, 1)]
    while stack:
        item, level = stack.pop()
        indent = "    " * level
        if isinstance(item, str):
            lines.append(indent + item)
            continue
        v = tree.nodes[item]
        if v.split is None:
            lines.append(f"{indent}return {v.id}")
            continue
        lines.append(f"{indent}if {v.split.python(tree.schema)}:")
        stack += [(v.right, level + 1), ("else:", level), (v.left, level + 1)]
    lines += ["", "", "def predict(row):", "    return LABELS[leaf(row)]", "", ""]
    lines += ["def probabilities(row):", "    return SHARES[leaf(row)]"]
    return "\n".join(lines) + "\n"


def to_sql(tree: Tree, output: Literal["label", "leaf"] = "label") -> str:
    """An SQL expression (nested CASE, standard quoting) that gives the predicted class or the leaf of a row.

    NULL is missing. Categorical columns must be text, the others numbers. Raises DataError for names that SQL cannot quote.
    """

    def visit(node: int, level: int) -> str:
        v = tree.nodes[node]
        if v.split is None:
            return sql_text(tree.classes[v.label]) if output == "label" else str(v.id)
        indent = "  " * level
        return (
            f"CASE WHEN {v.split.sql(tree.schema)}\n"
            f"{indent}  THEN {visit(v.left, level + 1)}\n"
            f"{indent}  ELSE {visit(v.right, level + 1)}\n"
            f"{indent}END"
        )

    if tree.depth > MAX_PYTHON_DEPTH:
        raise DataError(f"The tree has depth {tree.depth}; databases read nested CASE up to about {MAX_PYTHON_DEPTH}.")
    return visit(0, 0) + "\n"
