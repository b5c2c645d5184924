"""Compute the hashes of the chain of decisions, without a database.

`checker/check_decisions.py` computes the same hashes independently.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

import orjson

LEAF = b"\x00"  # prefix of a hashed record, as in RFC 9162
NODE = b"\x01"  # prefix of two child hashes when they are hashed
FOUR_BYTES = re.compile(rb"[\xf0-\xff]")  # characters that UTF-16 sorts differently from UTF-8


def canonical(record: dict[str, Any]) -> str:
    """Return canonical JSON (RFC 8785) of strings, integers, lists and objects. Floats must be passed as bits."""
    try:
        encoded = orjson.dumps(record, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer of more than 64 bits, or half of a surrogate pair
        return _canonical_of_any(record)
    if not encoded.isascii() and FOUR_BYTES.search(encoded):
        return _canonical_of_any(record)
    return encoded.decode()


def _canonical_of_any(record: dict[str, Any]) -> str:
    return json.dumps(_sort_names(record), ensure_ascii=False, separators=(",", ":"))


def _sort_names(value: Any) -> Any:
    """Return the value with object names sorted by UTF-16 code units."""
    if isinstance(value, dict):
        return {name: _sort_names(value[name]) for name in sorted(value, key=utf16)}
    if isinstance(value, list):
        return [_sort_names(item) for item in value]
    return value


def utf16(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def commitment(salt: str, payload: str) -> str:
    """Return the salted hash of a record. `salt` is 16 random bytes in hexadecimal."""
    return hashlib.sha256(LEAF + bytes.fromhex(salt) + payload.encode("utf-8", "surrogatepass")).hexdigest()


def merkle_root(commitments: Sequence[str]) -> str:
    """Return the Merkle root of leaf hashes (RFC 9162, section 2.1.1)."""
    return _root([bytes.fromhex(text) for text in commitments]).hex()


def _root(hashes: Sequence[bytes]) -> bytes:
    """Return the root of a tree whose left half is the largest power of two.

    Level by level it has the same nodes: pairs are joined from the left, and a single last node goes up unchanged.
    """
    while len(hashes) > 1:
        pairs = zip(hashes[::2], hashes[1::2], strict=False)
        last = hashes[-1:] if len(hashes) % 2 else ()
        hashes = [*[hashlib.sha256(NODE + left + right).digest() for left, right in pairs], *last]
    return hashes[0]


def inclusion(commitments: Sequence[str], place: int) -> list[str]:
    """Return the hashes that lead from a record to the root, nearest first (RFC 9162, section 2.1.3)."""
    hashes = [bytes.fromhex(text) for text in commitments]
    path: list[bytes] = []
    while len(hashes) > 1:
        half = 1 << (len(hashes) - 1).bit_length() - 1
        if place < half:
            path.append(_root(hashes[half:]))
            hashes = hashes[:half]
        else:
            path.append(_root(hashes[:half]))
            hashes = hashes[half:]
            place -= half
    return [digest.hex() for digest in reversed(path)]


def header_digest(header: str) -> str:
    return hashlib.sha256(header.encode()).hexdigest()
