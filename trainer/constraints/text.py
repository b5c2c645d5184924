"""Split lists in text parameters, and write Python values as such texts, for constraints and other modules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def split_items(text: str | None) -> list[str]:
    """Return the parts between semicolons."""
    return [item.strip() for item in (text or "").split(";") if item.strip()]


def item_text(names: Iterable[Any]) -> str:
    """Return a list of names as text: ["age", "sex"] becomes 'age; sex'."""
    return "; ".join(map(str, names))


def pair_text(pairs: Iterable[Any]) -> str:
    """Return pairs of columns as text: [("age", "sex")] becomes 'age + sex'. Texts stay as they are."""
    return item_text(pair if isinstance(pair, str) else " + ".join(map(str, pair)) for pair in pairs)


def share_text(shares: Iterable[Any] | Mapping[Any, Any]) -> str:
    """Return shares of classes as text: {"yes": 0.9} becomes 'yes: 0.9'. Lists of texts stay as they are."""
    if isinstance(shares, Mapping):
        return item_text(f"{name}: {share}" for name, share in shares.items())
    return item_text(shares)


def direction_text(directions: Iterable[Any] | Mapping[Any, Any]) -> str:
    """Return directions of columns as text: {"age": 1, "price": -1} becomes 'age up; price down'. 0 leaves a column out."""
    if isinstance(directions, Mapping):
        words = {1: "up", -1: "down"}
        return item_text(f"{name} {words.get(way, way)}" for name, way in directions.items() if way != 0)
    return item_text(directions)
