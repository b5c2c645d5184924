"""Server limits on a training, by parameter name; shared by four apps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings

UNITS = {"time_limit": "s", "memory_limit": "MB", "threads": "threads"}


def server_limits() -> dict[str, int]:
    """Return the server's limit of each bounded parameter."""
    return {
        "time_limit": settings.MAX_TRAINING_SECONDS,
        "memory_limit": settings.MAX_TRAINING_MB,
        "threads": settings.MAX_TRAINING_THREADS,
    }


def allowed(parameters: Mapping[str, Any], name: str) -> float:
    """Return the requested value of a parameter, or the server's limit if none was requested."""
    return float(parameters.get(name) or server_limits()[name])
