"""Columns and categories as text of a program: Python and standard SQL. Names appear only as quoted literals."""

from __future__ import annotations

import math

from trainer.errors import DataError
from trainer.table import MISSING_CATEGORY, ColumnKind, ColumnSchema


def missing_category(column: ColumnSchema) -> str | None:
    """The category that an empty cell of the column is, or None."""
    return None if column.missing_code is None else MISSING_CATEGORY


def python_text(value: str) -> str:
    """A Python literal of a text, in ASCII."""
    return ascii(value)


def python_number(value: float) -> str:
    """A Python literal of a number; infinities too."""
    return f'float("{value}")' if math.isinf(value) else repr(value)


def python_value(column: ColumnSchema) -> str:
    """The number in a column of `row`; raises DataError for a categorical column."""
    if column.kind is ColumnKind.CATEGORICAL:
        raise DataError(f"A linear split reads the categorical column '{column.name}' as a number.")
    return f"number(row, {python_text(column.name)})"


def python_category(column: ColumnSchema) -> str:
    """The category in a column of `row`."""
    missing = missing_category(column)
    return f"text(row, {python_text(column.name)}{'' if missing is None else ', ' + python_text(missing)})"


def sql_name(name: str) -> str:
    """A quoted column; raises DataError for names that SQL cannot quote."""
    if not name or "\x00" in name:
        raise DataError(f"SQL cannot name the column {name!r}: it is empty or has a null character. Rename it.")
    return '"' + name.replace('"', '""') + '"'


def sql_text(value: str) -> str:
    """A quoted text; raises DataError for a text with a null character."""
    if "\x00" in value:
        raise DataError(f"SQL cannot write the text {value!r}: it has a null character. Rename it.")
    return "'" + value.replace("'", "''") + "'"


def sql_category(column: ColumnSchema) -> str:
    """The category in a column; NULL is the category of empty cells if the column has one."""
    missing = missing_category(column)
    name = sql_name(column.name)
    return name if missing is None else f"COALESCE({name}, {sql_text(missing)})"
