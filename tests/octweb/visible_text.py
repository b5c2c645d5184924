"""Extract the text that a reader sees on a page."""

from __future__ import annotations

import html
import re


def visible(page: str) -> str:
    """Return the text of a page without tags and scripts, in single spaces."""
    text = re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(text).replace("\u202f", " ").split())
