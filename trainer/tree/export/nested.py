"""Write nested tests in languages with blocks in braces."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainer.errors import DataError, list_names
from trainer.table import MISSING_CATEGORY, ColumnKind, ColumnSchema
from trainer.tree.literals import missing_category
from trainer.tree.nodes import Tree
from trainer.tree.splits.base import EMPTY, Schema, Term

MAX_DEPTH = 90  # the same limit as for Python, although other compilers accept more


def conditional(test: str, yes: str, no: str) -> str:
    """Return a conditional expression as C writes it: `yes` if the test holds, else `no`."""
    return f"({test} ? {yes} : {no})"


@dataclass(frozen=True, kw_only=True)
class Braces:
    """The tests as expressions of C, Java, JavaScript and R, which share this syntax.

    `number` reads a column of the row as a number. `same` tests whether its text is a category; its last argument is
    the category of an empty cell, or None. `literal` writes a number. `flag` converts true to 1.0, `sure` converts
    unknown to false. `empty` tests whether a number is missing. `choose` gives the first of two numbers if a test
    holds, else the second.
    """

    schema: Schema
    number: Callable[[int], str]
    same: Callable[[int, str, str | None], str]
    literal: Callable[[float], str]
    flag: Callable[[str], str]
    empty: Callable[[str], str]
    choose: Callable[[str, str, str], str] = conditional
    sure: Callable[[str], str] = str
    false: str = "false"

    def at_most(self, column: int, threshold: float) -> str:
        return self.sure(f"{self.number(column)} <= {self.literal(threshold)}")

    def is_empty(self, column: int) -> str:
        return self.empty(self.number(column))

    def any_of(self, tests: Sequence[str]) -> str:
        if len(tests) == 1:
            return tests[0]
        # add parentheses, because compilers warn of "a || b && c" without them
        return " || ".join(f"({test})" if " && " in test else test for test in tests)

    def between(self, column: int, low: float, high: float) -> str:
        value = self.number(column)
        return self.sure(f"{value} > {self.literal(low)} && {value} <= {self.literal(high)}")

    def category_in(self, column: int, codes: Sequence[int]) -> str:
        return " || ".join(self._category(column, code) for code in codes) or self.false

    def sum_at_most(self, terms: Sequence[Term], threshold: float, fills: Sequence[float]) -> str:
        parts = [self.literal(0.0)]
        for (column, level, a), fill in zip(terms, fills, strict=True):
            parts.append(f"{self.literal(a)} * {self._term(column, level, fill)}")
        return self.sure(f"{' + '.join(parts)} <= {self.literal(threshold)}")

    def _term(self, column: int, level: int, fill: float) -> str:
        if level == EMPTY:
            return self.flag(self.is_empty(column))
        if level >= 0:
            return self.flag(self._category(column, level))
        if self.schema[column].kind is ColumnKind.CATEGORICAL:
            name = self.schema[column].name
            raise DataError(
                f"The model file is damaged: a linear split reads the categorical column '{name}' as a number."
            )
        value = self.number(column)
        return value if math.isnan(fill) else self.choose(self.empty(value), self.literal(fill), value)

    def _category(self, column: int, code: int) -> str:
        column_schema: ColumnSchema = self.schema[column]
        return self.same(column, column_schema.categories[code], missing_category(column_schema))


def by_name(
    tree: Tree,
    *,
    same: Callable[[str, str, str | None], str],
    infinity: str,
    flag: Callable[[str], str],
    empty: Callable[[str], str],
) -> Braces:
    """Return the split syntax for languages whose rows are maps.

    The generated code reads cells with `number(row, name)` and `text(row, name)`. `same` gets name, category and the category of an empty cell (or None) as quoted texts.
    """
    names = [json_text(column.name) for column in tree.schema]
    return Braces(
        schema=tree.schema,
        number=lambda j: f"number(row, {names[j]})",
        same=lambda j, word, missing: same(names[j], json_text(word), None if missing is None else json_text(missing)),
        literal=lambda x: decimal_literal(x, infinity),
        flag=flag,
        empty=empty,
    )


def nested_code(tree: Tree, dialect: Braces, *, indent: str = "    ", level: int = 1, end: str = ";") -> list[str]:
    """Return the tests as lines of if and else that return the leaf; raise DataError for a tree that is too deep."""
    if tree.depth > MAX_DEPTH:
        raise DataError(
            f"The tree has depth {tree.depth}, but programs can be written only to a depth of {MAX_DEPTH}. Train a shallower tree or choose another export."
        )
    lines: list[str] = []
    stack: list[tuple[int | str, int]] = [(0, level)]
    while stack:
        item, at = stack.pop()
        if isinstance(item, str):
            lines.append(indent * at + item)
            continue
        v = tree.nodes[item]
        if v.split is None:
            lines.append(f"{indent * at}return ({v.id}){end}")
            continue
        lines.append(f"{indent * at}if ({v.split.expression(dialect)}) {{")
        stack += [("}", at), (v.right, at + 1), ("} else {", at), (v.left, at + 1)]
    return lines


def refuse_unknown(
    tree: Tree, dialect: Braces, refusal: Callable[[str], str], *, indent: str = "    ", level: int = 1
) -> list[str]:
    """Return the lines that run `refusal` of a column's name if it has an unknown value that the contract refuses."""
    lines = []
    for j in tree.unknown_refused:
        column = tree.schema[j]
        # an empty cell does not count as an unknown value
        words = dict.fromkeys((*column.categories, MISSING_CATEGORY))
        is_known = " || ".join(dialect.same(j, word, MISSING_CATEGORY) for word in words)
        lines += [f"if (!({is_known})) {{", f"{indent}{refusal(column.name)}", "}"]
    return [indent * level + line for line in lines]


def refusal_words(column: str) -> str:
    """Return the error message of a program that refuses an unknown value."""
    return f"column '{column}' has a value that training did not have"


def refuse_refusing(tree: Tree, language: str) -> None:
    """Raise DataError if the contract refuses unknown values, because `language` answers every row."""
    if tree.unknown_refused:
        names = list_names([tree.schema[j].name for j in tree.unknown_refused])
        raise DataError(
            f"{language} answers every row, but the contract of this model refuses unknown values of {names}. "
            "Choose another format, or train with unknown=warn."
        )


def decimal_literal(value: float, infinite: str, finite: Callable[[float], str] = repr) -> str:
    """Write a number with every digit, in parentheses if negative; `infinite` is the name of positive infinity."""
    text = infinite if math.isinf(value) else finite(abs(value))
    return f"(-{text})" if value < 0 else text


def json_text(value: str) -> str:
    """Return a text quoted in ASCII, as JavaScript and Java read it."""
    return json.dumps(value)


def refuse_null(tree: Tree, language: str) -> None:
    """Raise DataError if a name, class or category has a null character, which ends texts in `language`."""
    words = [*tree.classes, *(tree.schema[j].name for j in tree.used_columns)]
    words += [c for j in tree.used_columns for c in tree.schema[j].categories]
    for word in words:
        if "\x00" in word:
            raise DataError(f"{language} cannot write the text {word!r}: it has a null character. Rename it.")
