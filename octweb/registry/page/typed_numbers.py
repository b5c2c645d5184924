"""Parse numbers typed into forms.

They may have a decimal comma, thousands separators, or the unit of their column. Ambiguous texts stay texts, so that
prediction refuses them instead of misreading them.
"""

from __future__ import annotations

import math

from trainer.data.parsing.numbers import NumberForm

PAGES = NumberForm(decimal=".", thousands=",")  # number format of pages
COMMA = NumberForm(decimal=",")
FORMS = (PAGES, *(NumberForm(decimal=d, thousands=t) for d in (",", ".") for t in (".", " ", "'") if d != t))


def typed_number(text: str, *, unit: str = "", decimal_comma: bool = False) -> float | int | str:
    """Return the number in `text`, or else `text`.

    `decimal_comma` says whether the training file used decimal commas.
    """
    word = text.strip().removesuffix(unit.strip()).strip()
    if decimal_comma and PAGES.plain(word) != COMMA.plain(word) and None not in (PAGES.plain(word), COMMA.plain(word)):
        return text  # "2,610" is ambiguous: 2610 in the format of pages, 2.61 in that of the file
    plain = next((found for form in FORMS if (found := form.plain(word)) is not None), None)
    if plain is None or not math.isfinite(value := float(plain)):
        return text
    return int(value) if value.is_integer() and abs(value) < 1e15 else value
