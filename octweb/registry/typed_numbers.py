"""A number as a person types it into a form: with a decimal comma, separators of thousands or the unit of its column.

What can be read in two ways stays text, so that predicting refuses it instead of taking a tenth for a ten.
"""

from __future__ import annotations

import math
import re

POINTS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3}){2,}|[+-]?[1-9]\d{0,2}(\.\d{3})+,\d*")
COMMAS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
COMMA = re.compile(r"[+-]?\d*,\d+")
SPACES = re.compile(r"(?<=\d)[\s'](?=\d{3}(?!\d))")  # between thousands


def typed_number(text: str, *, unit: str = "", decimal_comma: bool = False) -> float | int | str:
    """The number that `text` says, or `text` itself; `decimal_comma` says that the file of the training had such numbers."""
    plain = SPACES.sub("", text.replace("−", "-").strip().removesuffix(unit.strip()).strip())
    if COMMAS.fullmatch(plain):
        if decimal_comma and COMMA.fullmatch(plain):
            return text  # "2,610": more than two thousand on the pages, less than three in the file
        plain = plain.replace(",", "")
    elif POINTS.fullmatch(plain):
        plain = plain.replace(".", "").replace(",", ".")
    elif COMMA.fullmatch(plain):
        plain = plain.replace(",", ".")
    try:
        value = float(plain)
    except ValueError:
        return text
    if "_" in plain or not math.isfinite(value):  # programs read these, people do not type them
        return text
    return int(value) if value.is_integer() and abs(value) < 1e15 else value
