"""Export a tree as a spreadsheet formula in a CSV file.

The CSV has two lines: the columns, and an empty row with the formula in the last cell. Spreadsheets store and compare
15 digits of a number, so thresholds with more are refused. They add a weighted sum in the kernel's order, but treat
sums that agree in 15 digits as equal. A row that close to a hyperplane may go to the other side.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

from trainer.errors import DataError
from trainer.table import MISSING_CATEGORY, ColumnKind
from trainer.tree.literals import missing_category
from trainer.tree.nodes import Tree
from trainer.tree.splits.base import EMPTY, VALUE, Term

MAX_LENGTH = 8_192
MAX_DEPTH = 60
MAX_TEXT = 255
DIGITS = 15
MAX_EXCEL_NUMBER = 9.99999999999999e307
MIN_EXCEL_NUMBER = 2.2250738585072014e-308


def to_excel(tree: Tree, *, target: str = "class", notes: Sequence[str] = ()) -> str:
    """Return the CSV. Each note has a cell of the first line.

    Raise DataError for a tree that one formula cannot hold, and for numbers and texts that spreadsheets
    cannot store.
    """
    names = [tree.schema[j].name for j in tree.used_columns]
    cells = [_as_text(name) for name in [*names, target, *notes]]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(cells)
    writer.writerow([*([""] * len(names)), f"={formula(tree)}"])
    return text.getvalue()


def formula(tree: Tree, row: int = 2, *, leaf: bool = False) -> str:
    """Return the formula for the cells of `row`, in which the used columns begin at A; it gives the class, or the `leaf`.

    It gives #N/A for an unknown value that the contract refuses.
    """
    if tree.depth > MAX_DEPTH:
        raise DataError(
            f"The tree has depth {tree.depth}, but formulas nest only up to {MAX_DEPTH}. Train a shallower tree or choose another export."
        )
    dialect = Sheet(tree, row)

    def visit(node: int) -> str:
        v = tree.nodes[node]
        if v.split is None:
            return str(v.id) if leaf else quote(tree.classes[v.label])
        return f"IF({v.split.expression(dialect)},{visit(v.left)},{visit(v.right)})"

    expression = visit(0)
    for j in reversed(tree.unknown_refused):
        words = dict.fromkeys((*tree.schema[j].categories, MISSING_CATEGORY))
        conditions = [f'{dialect.cells[j]}=""', *(f"EXACT({dialect.cells[j]},{quote(word)})" for word in words)]
        expression = f"IF(OR({','.join(conditions)}),{expression},NA())"
    if len(expression) > MAX_LENGTH:
        raise DataError(
            f"The formula has {len(expression):,} characters, but spreadsheets read at most {MAX_LENGTH:,}. Train a smaller tree or choose another export."
        )
    return expression


class Sheet:
    """The tests as formulas of a spreadsheet.

    A text in place of a number answers "no", and so does an empty cell unless the split says otherwise. A
    cell with an empty text counts as empty, because users may leave one when they clear a cell.
    """

    def __init__(self, tree: Tree, row: int) -> None:
        self.tree = tree
        self.cells = {j: f"{_letters(at)}{row}" for at, j in enumerate(tree.used_columns)}

    def at_most(self, column: int, threshold: float) -> str:
        cell = self.cells[column]
        return f"AND(ISNUMBER({cell}),{cell}<={number(threshold)})"

    def is_empty(self, column: int) -> str:
        return f'{self.cells[column]}=""'

    def any_of(self, tests: Sequence[str]) -> str:
        return f"OR({','.join(tests)})" if len(tests) > 1 else tests[0]

    def between(self, column: int, low: float, high: float) -> str:
        cell = self.cells[column]
        ends = [f"{cell}>{number(low)}"] if math.isfinite(low) else []
        ends += [f"{cell}<={number(high)}"] if math.isfinite(high) else []
        return f"AND({','.join([f'ISNUMBER({cell})', *ends])})"

    def category_in(self, column: int, codes: Sequence[int]) -> str:
        return self.any_of([self._category(column, code) for code in codes] or ["FALSE"])

    def sum_at_most(self, terms: Sequence[Term], threshold: float, fills: Sequence[float]) -> str:
        known: dict[str, None] = {}
        parts = []
        for (j, level, a), fill in zip(terms, fills, strict=True):
            parts.append(f"{number(a)}*{self._term(j, level, fill)}")
            if level == VALUE:
                is_number = f"ISNUMBER({self.cells[j]})"
                known[is_number if math.isnan(fill) else self.any_of([self.is_empty(j), is_number])] = None
        total = "+".join(parts)
        return f"AND({','.join([*known, f'{total}<={number(threshold)}'])})"

    def _term(self, column: int, level: int, fill: float) -> str:
        if level == VALUE:
            value = f"N({self.cells[column]})"
            return value if math.isnan(fill) else f"IF({self.is_empty(column)},{number(fill)},{value})"
        return f"IF({self.is_empty(column) if level == EMPTY else self._category(column, level)},1,0)"

    def _category(self, column: int, code: int) -> str:
        column_schema = self.tree.schema[column]
        cell = self.cells[column]
        if column_schema.kind is not ColumnKind.CATEGORICAL:
            raise DataError(f"The column '{column_schema.name}' has no categories.")
        name = column_schema.categories[code]
        test = f"EXACT({cell},{quote(name)})"
        if name == missing_category(column_schema):
            return f"OR(ISBLANK({cell}),{test})"
        return f"AND(NOT(ISBLANK({cell})),{test})" if name == "" else test


def number(value: float) -> str:
    """Write a number of at most 15 digits; raise DataError for others."""
    text = f"{value:.{DIGITS}G}"
    if float(text) != value or (value and not MIN_EXCEL_NUMBER <= abs(value) <= MAX_EXCEL_NUMBER):
        raise DataError(
            f"Spreadsheets keep {DIGITS} digits, but the number {value!r} needs more. Choose another export."
        )
    return text


def quote(value: str) -> str:
    """Write a text in quotes, in pieces if it is long; raise DataError for a text that sheets cannot hold."""
    if any(ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 for c in value):
        raise DataError(f"A formula cannot write the text {value!r}: it has a control character. Rename it.")
    escaped = [c if c != '"' else '""' for c in value]
    pieces = ["".join(escaped[i : i + MAX_TEXT // 2]) for i in range(0, len(escaped), MAX_TEXT // 2)] or [""]
    return "&".join(f'"{piece}"' for piece in pieces)


def _as_text(name: str) -> str:
    """Return a name that a spreadsheet does not run as a formula."""
    return f"'{name}" if name[:1] in ("=", "+", "-", "@", "\t", "\r") else name


def _letters(at: int) -> str:
    """Return the letters A, B, …, Z, AA, … of a column, counted from 0."""
    text = ""
    at += 1
    while at:
        at, remainder = divmod(at - 1, 26)
        text = chr(65 + remainder) + text
    return text
