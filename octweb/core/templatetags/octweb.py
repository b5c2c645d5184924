"""Template tags and filters that every page uses: numbers with units, percentages, durations."""

from __future__ import annotations

import itertools
from typing import Any

from django import template

from octweb.core.navigation import places
from octweb.core.words import sentence
from trainer.tree.describe import number_text

register = template.Library()
NARROW = "\u202f"


@register.filter
def percent(value: Any, digits: int = 1) -> str:
    """0.9332 → 93.3 %; a missing value is said in words."""
    if value is None or value == "":
        return "not evaluated"
    return f"{100 * float(value):.{digits}f}{NARROW}%".replace("-", "−")


@register.filter
def points(value: Any, digits: int = 1) -> str:
    """0.9332 → 93.3: a share among others whose unit stands beside them."""
    return f"{100 * float(value):.{digits}f}".replace("-", "−")


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
    return number_text(float(value), int(digits))


@register.simple_tag
def navigation(path: str) -> list[dict[str, Any]]:
    """The places of the navigation with their addresses; the one that `path` lies in is marked."""
    return places(path)


_count = itertools.count()
_BADGES: dict[str, tuple[str, str, str, str]] = {
    # kind: (style, icon, words, tip)
    "heuristic": (
        "heur", "dashed", "Heuristic",
        "Built step by step. Nothing is claimed about how close the whole tree is to the best one.",
    ),
    "can_prove": ("proved", "check", "Can prove the whole tree", "Run to its end, this method proves that no tree of its search space is better."),
    "can_prove_splits": (
        "heur", "check", "Proves each split",
        "Each split is the best possible for the rows that reach it. That does not make the whole tree optimal.",
    ),
    "queued": ("plain", "", "Queued", "Waits for a free worker."),
    "running": ("run", "pulse", "Running", "The best tree so far is kept if you stop."),
    "succeeded": ("plain", "check", "Finished", "The run has ended and its model is stored."),
    "failed": ("bad", "", "Failed", "The run ended without a tree; the reason is on its page."),
    "unreachable": (
        "gap", "check", "Not reachable",
        "Proved: no tree of the search space keeps these constraints. The page of the run says what can be reached instead.",
    ),
    "cancelled": ("plain", "", "Stopped", "Stopped by request; the best tree found by then, if any, is kept."),
    "draft": ("plain", "", "Draft", "Not approved yet: only its owner and administrators can call it."),
    "in_review": ("run", "", "In review", "Waits for an administrator."),
    "approved": ("proved", "check", "Approved", "Everyone with a token can call it."),
    "rejected": ("bad", "", "Rejected", "An administrator gave a reason; see the history."),
    "retired": ("plain", "", "Retired", "Not served any more."),
}  # fmt: skip


@register.simple_tag
def badge(kind: str = "", gap: Any = "", proved: Any = "", total: Any = "", scope: Any = "") -> dict[str, str]:
    """What a badge shows: style, icon, words, the sentence of its popover, and an id."""
    name = f"badge-{next(_count)}"
    if kind == "proved":
        tip = "No tree of the search space has a better objective: bound and objective agree. This speaks of the training rows, not of new ones."
        return {
            "id": name,
            "style": "proved",
            "icon": "check",
            "words": "Proved optimal",
            "tip": f"{tip} Searched: {scope}." if scope else tip,
        }
    if kind == "gap":
        tip = "The search ended, or is still going, before the proof was complete. A better tree may exist, but not better than the bound."
        words = f"Gap {percent(gap)}" if gap not in ("", None) else "No bound"
        return {"id": name, "style": "gap", "icon": "half", "words": words, "tip": tip}
    if kind == "splits":
        tip = "Each split is the best possible for the rows that reach it. That does not make the whole tree optimal."
        style = "proved" if proved == total else "gap"
        return {
            "id": name,
            "style": style,
            "icon": "check" if proved == total else "half",
            "words": f"{proved} of {total} splits proved",
            "tip": tip,
        }
    style, icon, words, tip = _BADGES.get(str(kind), ("plain", "", str(kind), ""))
    return {"id": name, "style": style, "icon": icon, "words": words, "tip": tip}


@register.inclusion_tag("_term.html")
def term(word: str, shown: str = "") -> dict[str, str]:
    """A dotted word whose sentence opens by mouse, finger and keyboard; `shown` is how it stands in the text."""
    return {
        "word": shown or word,
        "sentence": sentence(word),
        "id": f"term-{next(_count)}",
        "anchor": word.replace(" ", "-"),
    }
