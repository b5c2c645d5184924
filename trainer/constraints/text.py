"""Lists as people write them."""

from __future__ import annotations


def items(text: str | None) -> list[str]:
    """The parts between semicolons."""
    return [item.strip() for item in (text or "").split(";") if item.strip()]
