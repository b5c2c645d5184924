"""Let apps above add parts to the page Life and to its record.

This module imports little, because every command loads it.
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
    """A part of the Life page: a member `name` of the record with its serializer, and a template with further context.

    Parts with a smaller `place` come first.
    """

    name: str
    place: int
    template: str
    record: Callable[[TreeModel, datetime], Mapping[str, Any] | None]
    serializer: Callable[[], Serializer]
    context: Callable[[ModelScene], Mapping[str, Any]]


parts: list[LifePart] = []


def register_part(part: LifePart) -> None:
    """Register a part. Apps call this in `ready`."""
    if part not in parts:
        parts.append(part)
        parts.sort(key=lambda one: one.place)
