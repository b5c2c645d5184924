"""Escape CSV cells that a spreadsheet would run as formulas.

Spreadsheets run a text that begins with = + - @ (also full-width) or a tab, and it may fetch or send data. An
apostrophe before it keeps it text (OWASP, CSV injection). Some programs drop spaces and line breaks before such a sign,
so these are skipped. Numbers do not change.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Any

FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
BREAKS = ("\t", "\r", "\n", "\0")  # characters that are escaped at the beginning of a cell
BEFORE = "\ufeff\u200b\0"  # characters that spreadsheets skip before a formula, besides spaces, breaks and tabs
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def as_text(cell: str) -> str:
    """Return the cell, with an apostrophe before it if a spreadsheet would run it as a formula."""
    begin = cell.lstrip().lstrip(BEFORE).lstrip()
    runs = cell.startswith(BREAKS) or begin.startswith(FORMULA)
    return "'" + cell if runs and not NUMBER.fullmatch(cell.strip()) else cell


def csv_line(cells: Iterable[Any]) -> str:
    """Return one line of a CSV file."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def text_line(cells: Iterable[Any]) -> str:
    """Return one line of a CSV file for spreadsheets, with formulas escaped."""
    return csv_line([as_text(c) if isinstance(c, str) else c for c in cells])
