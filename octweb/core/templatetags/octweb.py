"""Template tags and filters that every page uses: numbers with units, percentages, durations."""

from __future__ import annotations

from typing import Any

from django import template

register = template.Library()
NARROW = "\u202f"


@register.filter
def percent(value: Any, digits: int = 1) -> str:
    """0.9332 → 93.3 %; a missing value is said in words."""
    if value is None or value == "":
        return "not evaluated"
    return f"{100 * float(value):.{digits}f}{NARROW}%".replace("-", "−")


@register.filter
def seconds(value: Any) -> str:
    """Durations as people say them: 0.83 s, 4:30 min, 2:05:00 h."""
    if value is None or value == "":
        return "not known"
    value = float(value)
    if value < 60:
        return f"{value:.3g}{NARROW}s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d}{NARROW}min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}{NARROW}h"


@register.filter
def whole(value: Any) -> str:
    """1372 → 1,372."""
    return "not known" if value is None or value == "" else f"{int(value):,}".replace("-", "−")


@register.filter
def significant(value: Any, digits: int = 4) -> str:
    """Numbers with `digits` significant digits, in words where missing."""
    if value is None or value == "":
        return "none"
    return f"{float(value):.{digits}g}".replace("-", "−")
