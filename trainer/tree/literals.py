"""Write columns and categories as literals of Python and standard SQL."""

from __future__ import annotations

import math

from trainer.errors import DataError
from trainer.table import MISSING_CATEGORY, ColumnKind, ColumnSchema


def missing_category(column: ColumnSchema) -> str | None:
    """Return the category of an empty cell of the column, or None."""
    return None if column.missing_code is None else MISSING_CATEGORY


def python_text(value: str) -> str:
    """Return a Python literal of a text, in ASCII."""
    return ascii(value)


def python_number(value: float) -> str:
    """Return a Python literal of a number, which may be infinite."""
    return f'float("{value}")' if math.isinf(value) else repr(value)


def python_value(column: ColumnSchema) -> str:
    """Return the expression of the number in a column of `row`; raise DataError for a categorical column."""
    if column.kind is ColumnKind.CATEGORICAL:
        raise DataError(
            f"The model file is damaged: a linear split reads the categorical column '{column.name}' as a number."
        )
    return f"number(row, {python_text(column.name)})"


def python_category(column: ColumnSchema) -> str:
    """Return the expression of the category in a column of `row`."""
    missing = missing_category(column)
    return f"text(row, {python_text(column.name)}{'' if missing is None else ', ' + python_text(missing)})"


def sql_name(name: str) -> str:
    """Return a quoted column; raise DataError for a name that SQL cannot quote."""
    if not name or "\x00" in name:
        raise DataError(f"SQL cannot name the column {name!r}: it is empty or has a null character. Rename it.")
    return '"' + name.replace('"', '""') + '"'


def sql_text(value: str) -> str:
    """Return a quoted text; raise DataError for a text with a null character."""
    if "\x00" in value:
        raise DataError(f"SQL cannot write the text {value!r}: it has a null character. Rename it.")
    return "'" + value.replace("'", "''") + "'"


def sql_category(column: ColumnSchema) -> str:
    """Return the expression of the category in a column; NULL becomes the category of empty cells, if there is one."""
    missing = missing_category(column)
    name = sql_name(column.name)
    return name if missing is None else f"COALESCE({name}, {sql_text(missing)})"
