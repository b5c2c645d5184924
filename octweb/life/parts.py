"""Let apps above add parts to the page Life and to its record.

Imports little, since every command loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rest_framework.serializers import Serializer

    from octweb.registry.models import TreeModel
    from octweb.registry.page.scene import ModelScene


@dataclass(frozen=True, kw_only=True)
class LifePart:
    """A member `name` of the record with its serializer, and its template on the page with further context."""

    name: str
    template: str
    record: Callable[[TreeModel, datetime], Mapping[str, Any] | None]
    serializer: Callable[[], Serializer]
    context: Callable[[ModelScene], Mapping[str, Any]]


parts: list[LifePart] = []


def register_part(part: LifePart) -> None:
    """Add a part. Apps call this in `ready`."""
    if part not in parts:
        parts.append(part)
