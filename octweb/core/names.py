"""Validate names and texts given by users."""

from __future__ import annotations

import unicodedata
from pathlib import PurePosixPath

from octweb.core.problems import Unprocessable

# these Unicode categories have no visible glyph: control and format characters, combining marks, spaces and breaks
HIDDEN = ("C", "M", "Z")
# invisible too, but Unicode classifies them as letters (Hangul fillers) or symbols (Braille)
BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def checked_name(text: str, *, most: int) -> str:
    """Return the name in one line, stripped and cut to `most` characters. "" stays "".

    Raises Unprocessable if the name is invisible or contains direction marks, which can make one name look like
    another.
    """
    if not text:
        return ""
    if not can_be_seen(text):
        raise Unprocessable("All characters of this name are invisible. Use letters or digits, or leave it empty.")
    if TURNING & set(text):
        raise Unprocessable(
            "This name contains invisible marks that change the direction of writing. Type it again, without them."
        )
    return " ".join(text.split())[:most].strip()


def can_be_seen(text: str) -> bool:
    return any(c not in BLANK and unicodedata.category(c)[0] not in HIDDEN for c in text)


def is_storable(text: str) -> bool:
    """Return whether every database stores the text unchanged: without null characters and surrogates."""
    return "\x00" not in text and not any("\ud800" <= c <= "\udfff" for c in text)


def file_name(text: str) -> str:
    """Return the last part of the name of an uploaded file. Use it only for display, never as a path.

    Direction marks are removed rather than refused, because the user did not choose the file name for octweb.
    """
    last = PurePosixPath(text.replace("\\", "/")).name
    last = "".join(c for c in last if c not in TURNING)[:255]
    return last if can_be_seen(last) else "file"


def name_of_file(text: str, *, most: int) -> str:
    """Return the name of an uploaded file without its extensions, or "" if nothing of it is visible."""
    stem = PurePosixPath(file_name(text)).name.split(".")[0]
    return " ".join(stem.split())[:most].strip() if can_be_seen(stem) else ""


def split_name(name: str, method: str) -> tuple[str, str]:
    """Split an automatic name, "data set, method title, settings", into the data set and the rest.

    A name that a user chose is returned whole, with "".
    """
    dataset, found, settings = name.partition(f", {method}")
    if not method or not dataset or not found or settings[:1] not in ("", ","):
        return name, ""
    return dataset, f"{method}{settings}"
