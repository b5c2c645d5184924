"""Extract the visible text of a page."""

from __future__ import annotations

import html
import re


def visible(page: str) -> str:
    """Return the text of a page without tags and scripts, with single spaces."""
    text = re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(text).replace("\u202f", " ").split())
