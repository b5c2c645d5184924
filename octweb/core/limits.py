"""The server's own limits on one training, by the name of the setting of the method that they bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings

UNITS = {"time_limit": "s", "memory_limit": "MB", "threads": "threads"}


def server_limits() -> dict[str, int]:
    """The largest value of each bounded setting, read from the environment when the server started."""
    return {
        "time_limit": settings.MAX_TRAINING_SECONDS,
        "memory_limit": settings.MAX_TRAINING_MB,
        "threads": settings.MAX_TRAINING_THREADS,
    }


def allowed(parameters: Mapping[str, Any], name: str) -> float:
    """What a job may take: the value that it asked for, or the server's limit if it asked for none."""
    return float(parameters.get(name) or server_limits()[name])
