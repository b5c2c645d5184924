"""Find words of a column that are spellings of one value."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

UNSEEN = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufe0e\ufe0f\ufeff"))
# a text processor writes these dashes, the minus sign and these apostrophes for "-" and "'"
TYPED = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212"), "-") | dict.fromkeys(
    map(ord, "\u2018\u2019\u02bc"), "'"
)
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
# a number with a leading zero, such as 007, is a code that differs from 7
LEADING_ZERO = re.compile(r"[+-]?0[0-9]", re.ASCII)
TRUTH = {"1": "true", "0": "false"}


def spelling_key(word: str) -> str:
    """Return the key of a word; words that differ in form only have equal keys.

    Case, blanks, marks without width, Unicode composition, dashes, apostrophes, the dot of an i (the capital of the Turkish i is İ, that
    of ı is I), and the form of a number (1, 1.0, 1e0) make no difference.
    """
    text = " ".join(unicodedata.normalize("NFKC", word).translate(UNSEEN | TYPED).casefold().split())
    text = unicodedata.normalize("NFKC", text).replace("i\u0307", "i").replace("ı", "i")
    if NUMBER.fullmatch(text) and not LEADING_ZERO.match(text):
        return repr(float(text) + 0.0).removesuffix(".0")
    return text


class Spellings:
    """Map the spellings of a column's categories to category codes.

    Parameters
    ----------
    categories : sequence of str
        The categories in the order of their codes.
    """

    def __init__(self, categories: Sequence[str]) -> None:
        self._categories = categories

    @cached_property
    def _codes(self) -> dict[str, int]:
        places: dict[str, list[int]] = {}
        for code, word in enumerate(self._categories):
            places.setdefault(spelling_key(word), []).append(code)
        return {key: codes[0] for key, codes in places.items() if len(codes) == 1}

    @cached_property
    def _truths(self) -> dict[str, str]:
        return TRUTH if {"true", "false"} & self._codes.keys() else {word: key for key, word in TRUTH.items()}

    def code(self, word: str) -> int | None:
        """Return the code of the one category that `word` is a spelling of; None if there is no such category, or several."""
        key = spelling_key(word)
        return self._codes.get(key, self._codes.get(self._truths.get(key, key)))


def alike_groups(counts: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Return the groups of words that look alike, each with its most frequent word first.

    Parameters
    ----------
    counts : mapping from str to int
        The words of a column and how many rows each has. 1 and 0 belong to true and false if the column has these words.
    """
    keys = keys_of(counts)
    groups: dict[str, list[str]] = {}
    for word in counts:
        groups.setdefault(keys[word], []).append(word)
    return [tuple(sorted(group, key=lambda w: (-counts[w], w))) for group in groups.values() if len(group) > 1]


def keys_of(words: Iterable[str]) -> dict[str, str]:
    """Return the spelling key of each word; 1 and 0 get the keys of true and false if the column has these words."""
    keys = {word: spelling_key(word) for word in words}
    if not {"true", "false"} & set(keys.values()):
        return keys
    return {word: TRUTH.get(key, key) for word, key in keys.items()}


def merged_spellings(counts: Mapping[str, int]) -> dict[str, str]:
    """Map each word that looks like a more frequent one to that word."""
    return {word: first for first, *others in alike_groups(counts) for word in others}
