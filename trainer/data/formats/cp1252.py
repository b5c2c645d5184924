"""Detect cp1252 text, the encoding of older Western European programs.

Excel saves CSV in cp1252 in much of Europe. Almost any bytes decode as cp1252. In genuine cp1252 text, the bytes beyond
ASCII are accented letters and a few signs. Decoded as cp1252, other encodings show signs inside words ("f”r"), capitals
after small letters ("fŸr"), or whole words of accented letters (Cyrillic, Greek). If more than 2 % of the places look
like that, nothing is guessed.
"""

from __future__ import annotations

import re

import numpy as np

ENCODING = "cp1252"
SURE = 0.9
MAX_ODD_SHARE = 0.02  # largest share of non-ASCII characters that may look wrong
MOST_PLACES = 200_000
BETWEEN = "’‘·–—\u00ad"  # characters that occur between letters, as in l’eau and col·legi
OTHER, SMALL, CAPITAL, SIGN = range(4)
WORD = re.compile(r"[^\s,;|\"\t]*[^\x00-\x7f][^\s,;|\"\t]*")


def _kinds() -> np.ndarray:
    """Return the kind of character of each of the 256 bytes in cp1252."""
    out = np.full(256, OTHER, np.int8)
    for code in range(256):
        sign = bytes([code]).decode(ENCODING, errors="replace")
        if sign.isalpha() and sign not in "ªº":
            out[code] = SMALL if sign.islower() else CAPITAL
        elif code >= 128 and sign not in BETWEEN:
            out[code] = SIGN
    return out


KINDS = _kinds()


def example(content: bytes) -> tuple[str, int] | None:
    """Return a non-ASCII word and its line if the content reads well as cp1252; else None."""
    raw = np.frombuffer(content, np.uint8)
    places = np.flatnonzero(raw >= 128)
    if not len(places) or _odd(raw, places[:MOST_PLACES]) > MAX_ODD_SHARE:
        return None
    try:
        content.decode(ENCODING)
    except UnicodeDecodeError:
        return None
    first = int(places[0])
    start = content.rfind(b"\n", 0, first) + 1
    line = content[start : start + 10_000].split(b"\n", 1)[0].decode(ENCODING)
    match = WORD.search(line)
    return (match.group()[:30] if match else line[:30]), content.count(b"\n", 0, first) + 1


def _odd(raw: np.ndarray, places: np.ndarray) -> float:
    """Return the share of places that cp1252 text hardly ever has."""
    kind = KINDS[raw[places]]
    before = _surrounding_text(raw, places - 1)
    after = _surrounding_text(raw, places + 1)
    letter = (kind == SMALL) | (kind == CAPITAL)
    inside = (kind == SIGN) & _letters(before) & _letters(after)
    capital = (kind == CAPITAL) & (before == SMALL)
    accents = letter & _is_accented_letter(raw, places - 1) & _is_accented_letter(raw, places + 1)
    return float(np.mean(inside | capital | accents))


def _surrounding_text(raw: np.ndarray, at: np.ndarray) -> np.ndarray:
    there = (at >= 0) & (at < len(raw))
    return np.where(there, KINDS[raw[np.clip(at, 0, len(raw) - 1)]], OTHER)


def _letters(kinds: np.ndarray) -> np.ndarray:
    return (kinds == SMALL) | (kinds == CAPITAL)


def _is_accented_letter(raw: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return whether the bytes are letters beyond ASCII."""
    return _letters(_surrounding_text(raw, at)) & (raw[np.clip(at, 0, len(raw) - 1)] >= 128)
