"""How a record of the chain is hashed; knows no database, so that a chain written as JSON can be checked by itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

START = "0" * 64  # what the first record has in place of the hash of a previous one
FIELDS = ("number", "at", "by", "what", "subject", "subject_id", "name", "details", "before")


def moment(at: datetime) -> str:
    """A time as the chain writes it: UTC to the microsecond."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def digest(record: Mapping[str, Any]) -> str:
    """SHA-256 of the members of a record but its own `digest`: JSON in UTF-8, names in order, no spaces."""
    text = json.dumps(
        {name: record[name] for name in FIELDS}, sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def problems(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """Where a whole chain is broken, in words, first place first; empty if every record fits the previous one."""
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
