"""Export a tree as a Python module or an SQL expression.

Both make the tests of the prediction kernel in the same order, so every row reaches the same leaf. Column names and
categories appear only as quoted literals.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trainer.errors import DataError
from trainer.table import MISSING_CATEGORY
from trainer.tree.literals import (
    python_category,
    python_number,
    python_text,
    python_value,
    sql_category,
    sql_name,
    sql_text,
)
from trainer.tree.nodes import Tree
from trainer.tree.splits.base import EMPTY, Schema, Term

MAX_PYTHON_DEPTH = 90  # Python's parser allows at most 100 levels of indentation

_HELPERS = """
def number(row, column):
    value = row.get(column)
    return float("nan") if value is None else float(value)


def text(row, column, missing=None):
    value = row.get(column)
    return missing if value is None else str(value)
"""
_EMPTY_HELPERS = """

def empty(row, column):
    value = number(row, column)
    return value != value


def filled(row, column, fill):
    return fill if empty(row, column) else number(row, column)
"""
_KNOWN_HELPER = """

def check_known(row, column, known):
    value = text(row, column)
    if value is not None and value not in known:
        raise ValueError("column " + repr(column) + " has a value that training did not have: " + repr(value))
"""


@dataclass(frozen=True, kw_only=True)
class Python:
    """The tests as Python expressions of `row`."""

    schema: Schema

    def at_most(self, column: int, threshold: float) -> str:
        return f"number(row, {self._name(column)}) <= {threshold!r}"

    def is_empty(self, column: int) -> str:
        return f"empty(row, {self._name(column)})"

    def any_of(self, tests: Sequence[str]) -> str:
        return " or ".join(tests)

    def between(self, column: int, low: float, high: float) -> str:
        return f"{python_number(low)} < number(row, {self._name(column)}) <= {python_number(high)}"

    def category_in(self, column: int, codes: Sequence[int]) -> str:
        column_schema = self.schema[column]
        names = ", ".join(python_text(column_schema.categories[code]) for code in codes)
        return f"{python_category(column_schema)} in {{{names}}}" if names else "False"

    def sum_at_most(self, terms: Sequence[Term], threshold: float, fills: Sequence[float]) -> str:
        parts = ["0.0"]
        for (column, level, a), fill in zip(terms, fills, strict=True):
            parts.append(f"{a!r} * {self._term(column, level, fill)}")
        return f"{' + '.join(parts)} <= {threshold!r}"

    def _term(self, column: int, level: int, fill: float) -> str:
        column_schema = self.schema[column]
        if level == EMPTY:
            return f"float({self.is_empty(column)})"
        if level >= 0:
            return f"float({python_category(column_schema)} == {python_text(column_schema.categories[level])})"
        return python_value(column_schema) if math.isnan(fill) else f"filled(row, {self._name(column)}, {fill!r})"

    def _name(self, column: int) -> str:
        return python_text(self.schema[column].name)


@dataclass(frozen=True, kw_only=True)
class Sql:
    """The tests as conditions of standard SQL.

    CASE treats an unknown condition as false. OR of an unknown and a true condition is true.
    """

    schema: Schema

    def at_most(self, column: int, threshold: float) -> str:
        return f"{self._name(column)} <= {threshold!r}"

    def is_empty(self, column: int) -> str:
        return f"{self._name(column)} IS NULL"

    def any_of(self, tests: Sequence[str]) -> str:
        return " OR ".join(tests)

    def between(self, column: int, low: float, high: float) -> str:
        name = self._name(column)
        # databases have no literal for infinity, so use the largest doubles as ends
        above = f"{name} > {low!r}" if math.isfinite(low) else f"{name} >= {-sys.float_info.max!r}"
        if math.isfinite(high):
            below = f"{name} <= {high!r}"
        else:
            below = "1 = 1" if high > 0 else "1 = 0"
        return f"{above} AND {below}"

    def category_in(self, column: int, codes: Sequence[int]) -> str:
        column_schema = self.schema[column]
        names = ", ".join(sql_text(column_schema.categories[code]) for code in codes)
        return f"{sql_category(column_schema)} IN ({names})" if names else "1 = 0"

    def sum_at_most(self, terms: Sequence[Term], threshold: float, fills: Sequence[float]) -> str:
        parts = ["0.0"]
        for (column, level, a), fill in zip(terms, fills, strict=True):
            parts.append(f"({a!r}) * {self._term(column, level, fill)}")
        return f"{' + '.join(parts)} <= {threshold!r}"

    def _term(self, column: int, level: int, fill: float) -> str:
        column_schema = self.schema[column]
        if level == EMPTY:
            return f"CASE WHEN {self.is_empty(column)} THEN 1.0 ELSE 0.0 END"
        if level >= 0:
            return f"CASE WHEN {sql_category(column_schema)} = {sql_text(column_schema.categories[level])} THEN 1.0 ELSE 0.0 END"
        return self._name(column) if math.isnan(fill) else f"COALESCE({self._name(column)}, {fill!r})"

    def _name(self, column: int) -> str:
        return sql_name(self.schema[column].name)


def to_python(tree: Tree) -> str:
    """Return a module with `leaf(row)`, `predict(row)` and `probabilities(row)`; a row is a dictionary from column to value.

    Absent, None and NaN are missing. The module needs no package. It raises ValueError for an unknown value that the
    contract refuses. Raise DataError for a tree deeper than Python can nest.
    """
    if tree.depth > MAX_PYTHON_DEPTH:
        raise DataError(
            f"The tree has depth {tree.depth}, but Python code can be written only to a depth of {MAX_PYTHON_DEPTH}. "
            "Train a shallower tree or choose another export."
        )
    labels = {v.id: tree.classes[v.label] for v in tree.leaves}
    shares = {v.id: dict(zip(tree.classes, tree.probabilities[v.id].tolist(), strict=True)) for v in tree.leaves}
    lines = ['"""A classification tree: leaf(row), predict(row), probabilities(row); row is a dict of columns."""', ""]
    lines += ["LABELS = {", *(f"    {k}: {python_text(name)}," for k, name in labels.items()), "}"]
    lines.append("SHARES = {")
    for k, share in shares.items():
        lines.append(f"    {k}: {{" + ", ".join(f"{python_text(name)}: {p!r}" for name, p in share.items()) + "},")
    lines += ["}", "", _HELPERS.rstrip()]
    if any(v.split is not None and v.split.reads_empty for v in tree.branches):
        lines.append(_EMPTY_HELPERS.rstrip())
    lines += [_KNOWN_HELPER.rstrip()] if tree.unknown_refused else []
    lines += ["", "", "def leaf(row):"]
    for j in tree.unknown_refused:
        categories = ", ".join(map(python_text, dict.fromkeys((*tree.schema[j].categories, MISSING_CATEGORY))))
        lines.append(f"    check_known(row, {python_text(tree.schema[j].name)}, {{{categories}}})")
    dialect = Python(schema=tree.schema)
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
        lines.append(f"{indent}if {v.split.expression(dialect)}:")
        stack += [(v.right, level + 1), ("else:", level), (v.left, level + 1)]
    lines += ["", "", "def predict(row):", "    return LABELS[leaf(row)]", "", ""]
    lines += ["def probabilities(row):", "    return SHARES[leaf(row)]"]
    return "\n".join(lines) + "\n"


def to_sql(tree: Tree, output: Literal["label", "leaf"] = "label") -> str:
    """Return an SQL expression (nested CASE, standard quoting) for the predicted class or the leaf of a row.

    NULL is missing. Categorical columns must be text, the others numbers. The answer is NULL for an unknown value that
    the contract refuses. Raise DataError for names that SQL cannot quote, and for a tree that is too deep.
    """

    dialect = Sql(schema=tree.schema)

    def visit(node: int, level: int) -> str:
        v = tree.nodes[node]
        if v.split is None:
            return sql_text(tree.classes[v.label]) if output == "label" else str(v.id)
        indent = "  " * level
        return (
            f"CASE WHEN {v.split.expression(dialect)}\n"
            f"{indent}  THEN {visit(v.left, level + 1)}\n"
            f"{indent}  ELSE {visit(v.right, level + 1)}\n"
            f"{indent}END"
        )

    if tree.depth > MAX_PYTHON_DEPTH:
        raise DataError(
            f"The tree has depth {tree.depth}, but databases read nested CASE only to a depth of about {MAX_PYTHON_DEPTH}. "
            "Train a shallower tree or choose another export."
        )
    expression = visit(0, 0)
    for j in reversed(tree.unknown_refused):
        name = sql_name(tree.schema[j].name)
        words = ", ".join(map(sql_text, dict.fromkeys((*tree.schema[j].categories, MISSING_CATEGORY))))
        expression = f"CASE WHEN {name} IS NULL OR {name} IN ({words}) THEN {expression} END"
    return expression + "\n"
