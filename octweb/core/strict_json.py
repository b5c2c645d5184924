"""JSON in which no name stands twice in an object: what `orjson` reads, and an error instead of a silent choice between two values."""

from __future__ import annotations

import json
from typing import Any

import orjson


class DuplicateName(ValueError):
    """A name that stands twice in one object."""


def loads(content: bytes) -> Any:
    """The value; raises ValueError (orjson's, or DuplicateName) with a message for the caller, RecursionError for deep nesting.

    Every member of an object has a colon. So there are no more colons than names that were read, unless one stands twice or a text
    holds a colon: only then is the body read again, slowly, by a parser that sees every name.
    """
    value = orjson.loads(content)
    if content.count(b":") > _members(value):
        json.loads(content, object_pairs_hook=_object)
    return value


def _members(value: Any) -> int:
    """Names in all objects of a value."""
    count, left = 0, [value]
    while left:
        value = left.pop()
        if type(value) is dict:
            count += len(value)
            inner = value.values()
        elif type(value) is list:
            inner = value
        else:
            continue
        if not _HOLDERS.isdisjoint(map(type, inner)):
            left.extend([v for v in inner if type(v) in _HOLDERS])
    return count


_HOLDERS = frozenset((dict, list))  # types that hold others


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise DuplicateName(f"the name {twice[:60]!r} stands twice in one object")
    return found
