"""Split lists in text parameters, for constraints and other modules."""

from __future__ import annotations


def split_items(text: str | None) -> list[str]:
    """Return the parts between semicolons."""
    return [item.strip() for item in (text or "").split(";") if item.strip()]
