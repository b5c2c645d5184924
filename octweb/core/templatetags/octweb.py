"""Template tags and filters for all pages: numbers, badges, glossary words."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe

from octweb.core import badges
from octweb.core.badges import Badge
from octweb.core.methods import title_of
from octweb.core.names import split_name
from octweb.core.navigation import places
from octweb.core.words import sentence
from trainer.table import look_like_years
from trainer.training import claims
from trainer.tree.describe import number_text
from trainer.tree.numbers import column_number, duration_text, points_text

register = template.Library()
NARROW = "\u202f"
WORD_ENDS = re.compile(r"(?<=_)|(?<=[a-z])(?=[A-Z])")


@register.filter
def percent(value: Any, digits: int = 1) -> str:
    """Format a share as a percentage (0.9332 → 93.3 %), or a missing value as "not evaluated"."""
    return "not evaluated" if value is None or value == "" else f"{points_text(float(value), digits)}{NARROW}%"


@register.filter
def points(value: Any, digits: int = 1) -> str:
    """Format a share as a percentage without its sign: 0.9332 → 93.3."""
    return points_text(float(value), digits)


@register.filter
def seconds(value: Any) -> str:
    """Format a duration: 0.83 s, 4:30 min, 2:05:00 h."""
    if value is None or value == "":
        return "not known"
    return duration_text(float(value))


@register.filter
def whole(value: Any) -> str:
    """Format an integer: 1372 → 1,372."""
    return "not known" if value is None or value == "" else f"{int(value):,}".replace("-", "−")


@register.filter
def significant(value: Any, digits: int = 4) -> str:
    """Format a number with `digits` significant digits, or a missing value as "none"."""
    if value is None or value == "":
        return "none"
    return number_text(float(value), int(digits))


@register.filter
def of_column(value: Any, column: Mapping[str, Any]) -> str:
    """Format a value of a profiled column with three significant digits. Years keep all digits."""
    year = exact(value, column)
    return year if year != number_text(float(value), full=True) else number_text(float(value))


@register.filter
def exact(value: Any, column: Mapping[str, Any]) -> str:
    """Format a number with all digits, like a threshold of the profiled column."""
    ends = column["minimum"], column["maximum"]
    plain = None not in ends and look_like_years(*map(float, ends))
    return column_number(column["name"], float(value), plain=plain)


@register.filter
def method_title(value: Any) -> str:
    """Return the title of a method id."""
    return title_of(str(value))


@register.filter
def breakable(name: str) -> SafeString:
    """Allow line breaks in a name after underscores and before capitals of CamelCase."""
    return format_html_join(mark_safe("<wbr>"), "{}", ((piece,) for piece in WORD_ENDS.split(name)))


@register.filter
def beside(unit: str | None, label: str) -> str:
    """Return the unit to show beside a label, or "" if the label contains it ("Most leaves")."""
    return unit if unit and unit.casefold() not in label.casefold().split() else ""


def _name_parts(named: Any) -> tuple[str, str]:
    """Split the name of a model or run into the name and the settings that octweb added to it."""
    return split_name(str(getattr(named, "title", None) or named), title_of(named.method))


@register.filter
def plain_name(named: Any) -> str:
    """Return the name of a model or run without the settings that octweb added to it."""
    return _name_parts(named)[0]


@register.filter
def name_settings(named: Any) -> str:
    """Return the settings that octweb added to the name of a model or run, or ""."""
    return _name_parts(named)[1]


@register.inclusion_tag("_named.html")
def named_link(url: str, name: Any, method: str) -> dict[str, str]:
    """Render a link to a run or model. The settings in an automatic name are shown beside the link."""
    plain, settings = split_name(str(name), title_of(method))
    return {"url": url, "name": plain, "settings": settings}


@register.simple_tag
def navigation(path: str) -> list[dict[str, Any]]:
    """Return the links of the navigation, with the current one marked."""
    return places(path)


_count = itertools.count()


@register.simple_tag
def badge(kind: str = "", gap: Any = "") -> dict[str, str]:
    """Return the context of a badge: style, icon, text, tooltip and id."""
    return {"id": f"badge-{next(_count)}"} | asdict(_badge(str(kind), gap))


def _badge(kind: str, gap: Any) -> Badge:
    if kind == "gap":
        return badges.claim(kind, claims.gap_words(None if gap in ("", None) else float(gap)), badges.UNFINISHED_TIP)
    if kind == "heuristic":
        return badges.claim(kind, claims.HEURISTIC, badges.HEURISTIC_TIP)
    return badges.STATES.get(kind, Badge("plain", "", kind))


@register.simple_tag
def parts_words(guarantee: str, summary: Mapping[str, Any]) -> str:
    """State in words how many splits, or small subtrees, of a tree are proved. "" if the method does not prove parts."""
    parts = claims.parts_claim({**summary, "guarantee": guarantee})
    return "" if parts is None else parts.words


@register.inclusion_tag("_term.html")
def term(word: str, shown: str = "") -> dict[str, str]:
    """Render a glossary word with its popover. `shown` is the form of the word in the text."""
    return {
        "word": shown or word,
        "sentence": sentence(word),
        "id": f"term-{next(_count)}",
        "anchor": word.replace(" ", "-"),
    }
