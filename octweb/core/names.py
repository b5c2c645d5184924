"""Names that people give: at least one character that can be seen, none that changes the direction of the text around it."""

from __future__ import annotations

import unicodedata

from octweb.core.problems import Unprocessable

HIDDEN = ("C", "Z")  # control and format characters, marks of direction, spaces and breaks
TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def checked_name(text: str, *, most: int) -> str:
    """The name without spaces around it, cut to `most` characters; empty stays empty.

    Raises Unprocessable for an invisible name, and for marks of direction, which can make one name look like another.
    """
    if not text:
        return ""
    if all(unicodedata.category(c)[0] in HIDDEN for c in text):
        raise Unprocessable("Nothing of this name can be seen. Give it letters or digits, or leave it empty.")
    if TURNING & set(text):
        raise Unprocessable("This name has marks that change the direction of writing. Write it without them.")
    return text.strip()[:most]
