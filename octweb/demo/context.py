"""Add the demo to the template context of every page."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from octweb.demo.visits import visit_of


def demo(request: HttpRequest) -> dict[str, Any]:
    """Return `demo`, the limits shown to visitors (None without a demo), and `visit`, the user's visit."""
    limits = {
        "rows": settings.MAX_ROWS,
        "seconds": settings.MAX_TRAINING_SECONDS,
        "megabytes": settings.MAX_UPLOAD_BYTES // 10**6,
    }
    user = getattr(request, "user", None)
    return {"demo": limits if settings.DEMO else None, "visit": None if user is None else visit_of(user)}
