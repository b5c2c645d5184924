"""A tree as program text: a Python function of a dictionary, and an SQL expression.

Both make the tests of the prediction kernel in the same order, so that every row lands in the same leaf. Names and categories of
the columns appear only as quoted literals.
"""

from __future__ import annotations

import math
import sys
from typing import Literal

from trainer.errors import DataError
from trainer.table import MISSING_CATEGORY, ColumnSchema, Kind, MissingPolicy
from trainer.tree.nodes import Tree
from trainer.tree.splits import Interval, Split, Subset, Threshold

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
    lines += ["LABELS = {", *(f"    {k}: {_py(name)}," for k, name in labels.items()), "}"]
    lines.append("SHARES = {")
    for k, share in shares.items():
        lines.append(f"    {k}: {{" + ", ".join(f"{_py(name)}: {p!r}" for name, p in share.items()) + "},")
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
        lines.append(f"{indent}if {_python_test(v.split, tree.schema)}:")
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
            return _sql_text(tree.classes[v.label]) if output == "label" else str(v.id)
        indent = "  " * level
        return (
            f"CASE WHEN {_sql_test(v.split, tree.schema)}\n"
            f"{indent}  THEN {visit(v.left, level + 1)}\n"
            f"{indent}  ELSE {visit(v.right, level + 1)}\n"
            f"{indent}END"
        )

    if tree.depth > MAX_PYTHON_DEPTH:
        raise DataError(f"The tree has depth {tree.depth}; databases read nested CASE up to about {MAX_PYTHON_DEPTH}.")
    return visit(0, 0) + "\n"


def _missing_category(column: ColumnSchema) -> str | None:
    """The category that an empty cell of the column is, or None."""
    own = column.missing is MissingPolicy.CATEGORY and MISSING_CATEGORY in column.categories
    return MISSING_CATEGORY if own else None


def _py(value: str) -> str:
    return ascii(value)


def _python_test(split: Split, schema: tuple[ColumnSchema, ...]) -> str:
    if isinstance(split, Threshold):
        return f"number(row, {_py(schema[split.feature].name)}) <= {split.threshold!r}"
    if isinstance(split, Interval):
        low, high = _python_number(split.low), _python_number(split.high)
        return f"{low} < number(row, {_py(schema[split.feature].name)}) <= {high}"
    if isinstance(split, Subset):
        column = schema[split.feature]
        names = ", ".join(_py(column.categories[code]) for code in split.codes)
        return f"{_python_category(column)} in {{{names}}}" if names else "False"
    terms = ["0.0"]
    for feature, a, level in zip(split.features, split.coefficients, split.levels, strict=True):
        column = schema[feature]
        if level >= 0:
            value = f"float({_python_category(column)} == {_py(column.categories[level])})"
        elif column.kind is Kind.CATEGORICAL:
            raise DataError(f"A linear split reads the categorical column '{column.name}' as a number.")
        else:
            value = f"number(row, {_py(column.name)})"
        terms.append(f"{a!r} * {value}")
    return f"{' + '.join(terms)} <= {split.threshold!r}"


def _python_category(column: ColumnSchema) -> str:
    missing = _missing_category(column)
    return f"text(row, {_py(column.name)}{'' if missing is None else ', ' + _py(missing)})"


def _python_number(value: float) -> str:
    return f'float("{value}")' if math.isinf(value) else repr(value)


def _sql_test(split: Split, schema: tuple[ColumnSchema, ...]) -> str:
    if isinstance(split, Threshold):
        return f"{_sql_name(schema[split.feature].name)} <= {split.threshold!r}"
    if isinstance(split, Interval):
        name = _sql_name(schema[split.feature].name)
        # databases have no literal for infinity; the largest doubles are the finite ends
        low = f"{name} > {split.low!r}" if math.isfinite(split.low) else f"{name} >= {-sys.float_info.max!r}"
        high = f"{name} <= {split.high!r}" if math.isfinite(split.high) else ("1 = 1" if split.high > 0 else "1 = 0")
        return f"{low} AND {high}"
    if isinstance(split, Subset):
        column = schema[split.feature]
        names = ", ".join(_sql_text(column.categories[code]) for code in split.codes)
        return f"{_sql_category(column)} IN ({names})" if names else "1 = 0"
    terms = ["0.0"]
    for feature, a, level in zip(split.features, split.coefficients, split.levels, strict=True):
        column = schema[feature]
        if level >= 0:
            category = _sql_text(column.categories[level])
            value = f"CASE WHEN {_sql_category(column)} = {category} THEN 1.0 ELSE 0.0 END"
        else:
            value = _sql_name(column.name)
        terms.append(f"({a!r}) * {value}")
    return f"{' + '.join(terms)} <= {split.threshold!r}"


def _sql_category(column: ColumnSchema) -> str:
    missing = _missing_category(column)
    name = _sql_name(column.name)
    return name if missing is None else f"COALESCE({name}, {_sql_text(missing)})"


def _sql_name(name: str) -> str:
    if not name or "\x00" in name:
        raise DataError(f"SQL cannot name the column {name!r}: it is empty or has a null character. Rename it.")
    return '"' + name.replace('"', '""') + '"'


def _sql_text(value: str) -> str:
    if "\x00" in value:
        raise DataError(f"SQL cannot write the text {value!r}: it has a null character. Rename it.")
    return "'" + value.replace("'", "''") + "'"
