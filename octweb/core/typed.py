"""Numbers as people type them into a field."""

import re

THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?(e[+-]?\d+)?", re.I)


def plain_number(text: str) -> str:
    """The text without thousands commas and with a plain minus, as programs read numbers; any other comma stays."""
    word = text.strip().replace("−", "-")
    return word.replace(",", "") if THOUSANDS.fullmatch(word) else word
