"""Addresses that pages had before: a permanent redirect keeps links and bookmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.views.generic import RedirectView


def moved_to(page: str) -> Callable[..., Any]:
    """Return a view that sends a reader to the page of that name, with the query of the address."""
    return RedirectView.as_view(pattern_name=page, permanent=True, query_string=True, http_method_names=["get", "head"])
