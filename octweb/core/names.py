"""Names that people give: at least one character that can be seen, none that changes the direction of the text around it."""

from __future__ import annotations

import unicodedata
from pathlib import PurePosixPath

from octweb.core.problems import Unprocessable

# control and format characters, marks of direction, marks on another letter, spaces and breaks
HIDDEN = ("C", "M", "Z")
# fillers of Hangul and the empty Braille cell, which Unicode counts as letters and signs
BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def checked_name(text: str, *, most: int) -> str:
    """The name in one line without spaces around it, cut to `most` characters; empty stays empty.

    Raises Unprocessable for an invisible name, and for marks of direction, which can make one name look like another.
    """
    if not text:
        return ""
    if not can_be_seen(text):
        raise Unprocessable("Nothing of this name can be seen. Give it letters or digits, or leave it empty.")
    if TURNING & set(text):
        raise Unprocessable("This name has marks that change the direction of writing. Write it without them.")
    return " ".join(text.split())[:most].strip()


def can_be_seen(text: str) -> bool:
    return any(c not in BLANK and unicodedata.category(c)[0] not in HIDDEN for c in text)


def file_name(text: str) -> str:
    """The last part of the name of an uploaded file, for display only; it is never used as a path.

    It cannot be refused, as nobody chose it for octweb: marks of direction are left out.
    """
    last = PurePosixPath(text.replace("\\", "/")).name
    last = "".join(c for c in last if c not in TURNING)[:255]
    return last if can_be_seen(last) else "file"


def name_of_file(text: str, *, most: int) -> str:
    """The name of an uploaded file without its endings; empty if nothing of that can be seen."""
    stem = PurePosixPath(file_name(text)).name.split(".")[0]
    return " ".join(stem.split())[:most].strip() if can_be_seen(stem) else ""
