"""Hash and verify records of the chain, without a database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

START = "0" * 64  # the first record has no predecessor, so its `before` is this constant
FIELDS = ("number", "at", "by", "what", "subject", "subject_id", "name", "details", "before")


def moment(at: datetime) -> str:
    """Format a time as the chain stores it: UTC with microseconds."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def digest(record: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a record without its member `digest`.

    The hashed text is UTF-8 JSON with sorted names and no spaces.
    """
    text = json.dumps(
        {name: record[name] for name in FIELDS}, sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def problems(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the problems of a chain in words, in order, or [] if the chain is intact."""
    sentences = []
    before = START
    expected = 1
    for record in records:
        place = f"record {record['number']}"
        if record["number"] != expected:
            sentences.append(f"{place}: record {expected} is missing before it.")
        elif record["before"] != before:
            sentences.append(f"{place}: the record before it is not the one that was there when this was written.")
        if digest(record) != record["digest"]:
            sentences.append(f"{place}: its content was changed.")
        before = record["digest"]
        expected = record["number"] + 1
    return sentences
