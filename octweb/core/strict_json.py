"""Parse JSON with `orjson`, but refuse duplicate names and too many values."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import numpy as np
import orjson
from django.conf import settings

# a body of the maximum size may have one value per 8 bytes; in a Python object, a value takes about 30 bytes
BYTES_A_VALUE = 8
# a body may have this many objects and lists a row, plus MORE_HOLDERS; each takes 60 to 250 bytes
HOLDERS_A_ROW = 2
MORE_HOLDERS = 50_000
MAX_NAMES = 100_000  # limit of the names in one object and of the rare names in a body; a row needs one name per column
SAMPLE = 20_000  # number of colons to sample; the names before them are compared
PIECE_BYTES = 1_000_000  # bytes that one search for colons covers
WINDOW_BYTES = 200  # bytes before a colon that are searched for its name
SPACES = b" \t\r\n"
CONSTANT = re.compile(rb"[\[:,\s](NaN|-?Infinity)\s*[,\]}]")
SHORT_BODY_BYTES = 1_000_000  # bytes; a shorter body cannot hold enough values to take much memory


class DuplicateName(ValueError):
    """A name appears twice in one object."""


class TooManyValues(ValueError):
    """The body has too many values. As Python objects, they would take many times its size."""


def loads(content: bytes | bytearray) -> Any:
    """Parse a JSON body.

    Raises ValueError (orjson's, DuplicateName or TooManyValues) for invalid JSON, and RecursionError for deep nesting.
    Every member of an object has a colon. If there are as many colons as parsed names, no name is duplicated. Otherwise
    there is a duplicate or a colon in a text. A slower parser, which sees every name, then parses the body again.
    """
    check_size(content)
    value = orjson.loads(content)
    if content.count(b":") > _members(value):
        json.loads(content, object_pairs_hook=object_of)
    return value


def constant_advice(content: bytes | bytearray) -> str:
    """Return advice about the first constant that JSON does not have, such as NaN. "" if there is none."""
    word = CONSTANT.search(content)
    return "" if word is None else f" JSON has no {word[1].decode()}: send null for an empty cell, and finite numbers."


def check_size(content: bytes | bytearray) -> None:
    """Raise TooManyValues if the body has too many values. Punctuation inside texts counts as well."""
    if len(content) < SHORT_BODY_BYTES:
        return
    most = settings.MAX_PREDICT_BYTES // BYTES_A_VALUE
    holders = HOLDERS_A_ROW * settings.MAX_PREDICT_ROWS + MORE_HOLDERS
    text = np.frombuffer(content, np.uint8)
    commas, lists, objects = (int(np.count_nonzero(text == ord(mark))) for mark in ",[{")
    if lists + objects > holders:
        raise TooManyValues(f"it has more than {holders:,} lists and objects; send the rows in several calls")
    if _estimate_names(content, text) > MAX_NAMES:
        raise TooManyValues(f"it has more than {MAX_NAMES:,} names that hardly repeat; send the rows in several calls")
    if commas > most:
        raise TooManyValues(f"it has more than {most:,} values; send the rows in several calls")


def _estimate_names(content: bytes | bytearray, text: np.ndarray) -> float:
    """Estimate without parsing how many names do not recur nearby.

    A parser stores one object for a name that all rows share, and a new object for each other name. The share of names
    that occur once in a random sample estimates the share of new names (Good and Turing).
    """
    colons = content.count(b":")
    if colons <= MAX_NAMES:
        return 0
    step = -(-colons // SAMPLE)
    random = np.random.default_rng()
    counts: Counter[bytes] = Counter()
    sampled = 0
    for start in range(0, len(text), PIECE_BYTES):
        sample = np.flatnonzero(text[start : start + PIECE_BYTES] == ord(":"))[random.integers(step) :: step]
        sampled += len(sample)
        counts.update(name for at in sample.tolist() if (name := _name_before(content, start + at)))
    once = sum(1 for count in counts.values() if count == 1)
    return colons * once / max(sampled, 1)


def _name_before(content: bytes | bytearray, colon: int) -> bytes:
    """Return the name before a colon, at most its last WINDOW_BYTES. b"" if the colon is part of a text."""
    begin = max(0, colon - WINDOW_BYTES)
    head = bytes(content[begin:colon]).rstrip(SPACES)
    if not head:
        return b"%d" % colon  # so many spaces are implausible, so the position serves as a unique name
    return head[head.rfind(b'"', 0, -1) + 1 :] if head.endswith(b'"') else b""


def _members(value: Any) -> int:
    """Count the names in all objects of a value. Raises TooManyValues if one object has too many."""
    count = 0
    left = [value]
    while left:
        value = left.pop()
        if type(value) is dict:
            if len(value) > MAX_NAMES:
                raise TooManyValues(f"an object in it has more than {MAX_NAMES:,} names; send fewer in one object")
            count += len(value)
            inner = value.values()
        elif type(value) is list:
            inner = value
        else:
            continue
        if not _HOLDERS.isdisjoint(map(type, inner)):
            left.extend([v for v in inner if type(v) in _HOLDERS])
    return count


_HOLDERS = frozenset((dict, list))  # types of values that hold other values


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from its members, for `json.loads`. Raises DuplicateName."""
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise DuplicateName(f"the name {twice[:60]!r} appears twice in one object; remove one of the two")
    return members
