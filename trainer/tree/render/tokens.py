"""Define the light theme's colours for paper, notebooks and files.

`static/tokens.css` has the same values; a test compares them.
"""

from __future__ import annotations

import re
from typing import Any

CLASSES = ("#1f6fc4", "#d9661f", "#21481c", "#ab3572", "#855819", "#760a90", "#2e97c4", "#b2707b")
LIGHT = {
    "card": "#ffffff",
    "panel": "#ffffff",
    "line": "#dfe3e8",
    "line-strong": "#87909b",
    "grid": "#e8ebef",
    "ink": "#15191e",
    "ink-2": "#4a535e",
    "c-other": "#87909b",
    **{f"c{k + 1}": colour for k, colour in enumerate(CLASSES)},
}
VARIABLE = re.compile(r"var\(--([a-z0-9-]+)\)")


def resolve_tokens(figure: Any) -> Any:
    """Replace the colour variables in a figure by the light theme's colours; raise KeyError for an unknown variable."""
    if isinstance(figure, dict):
        return {key: resolve_tokens(value) for key, value in figure.items()}
    if isinstance(figure, (list, tuple)):
        return [resolve_tokens(value) for value in figure]
    return VARIABLE.sub(lambda found: LIGHT[found[1]], figure) if isinstance(figure, str) else figure
