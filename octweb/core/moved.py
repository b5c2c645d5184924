"""Redirect permanently from former page addresses; shared by the URLs of four apps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.views.generic import RedirectView


def moved_to(page: str) -> Callable[..., Any]:
    """Return a view that redirects to the named page and keeps the query string."""
    return RedirectView.as_view(pattern_name=page, permanent=True, query_string=True, http_method_names=["get", "head"])
