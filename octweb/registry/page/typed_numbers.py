"""A number as a person types it into a form: with a decimal comma, separators of thousands or the unit of its column.

What can be read in two ways stays text, so that predicting refuses it instead of taking a tenth for a ten.
"""

from __future__ import annotations

import math

from trainer.data.parsing.numbers import NumberForm

PAGES = NumberForm(decimal=".", thousands=",")  # as pages write numbers
COMMA = NumberForm(decimal=",")
FORMS = (PAGES, *(NumberForm(decimal=d, thousands=t) for d in (",", ".") for t in (".", " ", "'") if d != t))


def typed_number(text: str, *, unit: str = "", decimal_comma: bool = False) -> float | int | str:
    """The number that `text` says, or `text` itself; `decimal_comma` says that the file of the training had such numbers."""
    word = text.strip().removesuffix(unit.strip()).strip()
    if decimal_comma and PAGES.plain(word) != COMMA.plain(word) and None not in (PAGES.plain(word), COMMA.plain(word)):
        return text  # "2,610": more than two thousand on the pages, less than three in the file
    plain = next((found for form in FORMS if (found := form.plain(word)) is not None), None)
    if plain is None or not math.isfinite(value := float(plain)):
        return text
    return int(value) if value.is_integer() and abs(value) < 1e15 else value
