"""Parse column prices such as 'lab_test=12.5'.

Each row pays a price once if its path uses the column.
"""

from __future__ import annotations

import json
from fractions import Fraction

from trainer.data.cost_text import NUMBER
from trainer.errors import ParameterError

FORM = "Write 'lab_test=12.5; scan=40', or a JSON object of numbers by column"


def read_column_prices(text: str, columns: tuple[str, ...]) -> dict[int, Fraction]:
    """Return exact prices by column index; raise ParameterError if the text cannot be read or names an unknown column."""
    text = text.strip()
    pairs = _from_json(text) if text.startswith("{") else [_pair(item, columns) for item in _items(text)]
    prices: dict[int, Fraction] = {}
    for name, value in pairs:
        if name not in columns:
            raise ParameterError({"column_price": f"'{name[:80]}' is not a column. {FORM}."})
        if not NUMBER.fullmatch(value):
            raise ParameterError(
                {
                    "column_price": f"'{name}={value[:60]}' has no price. Write a number that is not negative, such as 12.5."
                }
            )
        if columns.index(name) in prices:
            raise ParameterError({"column_price": f"'{name}' is named twice. Remove one of the two."})
        prices[columns.index(name)] = Fraction(value)
    return prices


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(";") if item.strip()]


def _pair(item: str, columns: tuple[str, ...]) -> tuple[str, str]:
    name, sign, value = item.rpartition("=")
    if not sign:
        raise ParameterError({"column_price": f"'{item[:80]}' does not name a column and a price. {FORM}."})
    return name.strip(), value.strip()


def _from_json(text: str) -> list[tuple[str, str]]:
    try:
        # a list of pairs instead of a dict, which would hide a column that is named twice
        pairs = json.loads(text, parse_float=str, parse_int=str, object_pairs_hook=list)
    except (ValueError, RecursionError) as error:
        raise ParameterError({"column_price": f"this is not JSON: {error}. {FORM}."}) from None
    return [(name, str(value).strip()) for name, value in pairs]
