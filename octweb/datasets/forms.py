"""Forms of data sets: the upload, and the choice of kinds, roles and target."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from octweb.datasets.choice import Choice, Reading
from trainer.data.codes import parse_codes
from trainer.table import Kind, MissingPolicy

DELIMITERS = {"": "detected", ",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
ENCODINGS = ("", "utf-8", "cp1252", "latin-1", "utf-16", "cp1250", "mac-roman", "shift_jis", "gb18030")


def reading_of(data: QueryDict | dict[str, Any]) -> Reading:
    """How to read the file, from the preview form; unknown values count as detected."""
    delimiter, encoding = data.get("delimiter", ""), data.get("encoding", "")
    return Reading(
        delimiter=delimiter if delimiter in DELIMITERS and delimiter else None,
        encoding=encoding if encoding in ENCODINGS and encoding else None,
        header=data.get("header", "yes") != "no",
    )


def as_query(reading: Reading) -> str:
    """The options as the query of an address; empty where all is detected."""
    options = {"delimiter": reading.delimiter, "encoding": reading.encoding, "header": "" if reading.header else "no"}
    chosen = {name: value for name, value in options.items() if value}
    return f"?{urlencode(chosen)}" if chosen else ""


def seen_mark(reading: Reading, names: list[str]) -> str:
    """A mark of the columns that a page showed, so that a choice made for them is not taken for others."""
    text = json.dumps([reading.to_json(), names])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def choice_of(data: QueryDict, names: list[str], current: dict[str, str] | None = None) -> Choice:
    """Kinds, roles, missing policies, units, special values and target; column i has the fields kind-i, role-i, missing-i, unit-i, special-i.

    Raises DataError for special values that are not numbers.
    """
    kinds: dict[str, Kind] = {}
    missing: dict[str, MissingPolicy] = {}
    units: dict[str, str] = {}
    special: dict[str, tuple[float, ...]] = {}
    ignore = []
    target = data.get("target") or None
    for i, name in enumerate(names):
        if data.get(f"role-{i}") == "ignored":
            ignore.append(name)
            continue
        kind, policy = data.get(f"kind-{i}", ""), data.get(f"missing-{i}", "")
        if kind in list(Kind):
            kinds[name] = Kind(kind)
        if policy in list(MissingPolicy):
            # a category for the missing exists in categorical columns only
            allowed = policy != MissingPolicy.CATEGORY or kinds.get(name) is Kind.CATEGORICAL
            missing[name] = MissingPolicy(policy) if allowed else MissingPolicy.DROP
        units[name] = data.get(f"unit-{i}", "").strip()[:40]
        if f"special-{i}" in data:
            special[name] = parse_codes(data[f"special-{i}"], name)
    return Choice(target=target, kinds=kinds, missing=missing, units=units, special=special, ignore=ignore)
