"""Cells that a spreadsheet would take for formulas, in CSV files that people open with one.

A text that begins with = + - @ or a tab is run by spreadsheets, and may fetch or send what it likes; an apostrophe before it makes it
stay text (OWASP, CSV injection). Numbers are left as they are.
"""

from __future__ import annotations

import re

FORMULA = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def as_text(cell: str) -> str:
    """The cell as it is, or with an apostrophe before it if a spreadsheet would not take it for text."""
    return "'" + cell if cell.startswith(FORMULA) and not NUMBER.fullmatch(cell) else cell
