"""Cells that a spreadsheet would take for formulas, in CSV files that people open with one.

A text that begins with = + - @ (also in their wide form) or a tab is run by spreadsheets, and may fetch or send what it likes; an
apostrophe before it makes it stay text (OWASP, CSV injection). Some programs drop spaces and line breaks before such a sign, so these
are passed over. Numbers are left as they are.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Any

FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
BREAKS = ("\t", "\r", "\n", "\0")  # before any other character
BEFORE = "\ufeff\u200b\0"  # what is passed over besides spaces, breaks and tabs
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def as_text(cell: str) -> str:
    """The cell as it is, or with an apostrophe before it if a spreadsheet would not take it for text."""
    begin = cell.lstrip().lstrip(BEFORE).lstrip()
    runs = cell.startswith(BREAKS) or begin.startswith(FORMULA)
    return "'" + cell if runs and not NUMBER.fullmatch(cell.strip()) else cell


def csv_line(cells: Iterable[Any]) -> str:
    """One line of a CSV file."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def text_line(cells: Iterable[Any]) -> str:
    """One line of a CSV file that people open: its texts stay text."""
    return csv_line([as_text(c) if isinstance(c, str) else c for c in cells])
