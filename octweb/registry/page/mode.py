"""Define and register modes of the model page.

This module imports little, because every command loads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from octweb.registry.page.scene import ModelScene


@dataclass(frozen=True, kw_only=True)
class Mode:
    """A mode of the model page: template, function of its context, and condition for showing it."""

    id: str
    label: str
    template: str
    context: Callable[[ModelScene], dict[str, Any]]
    page: str = ""  # URL name, if the mode has a page of its own
    shown: Callable[[ModelScene], bool] = lambda scene: True
    count: Callable[[ModelScene], int | None] = lambda scene: None


added_modes: list[tuple[str, Mode]] = []


def register_mode(mode: Mode, *, after: str) -> None:
    """Register a mode, shown after the one with the id `after`. Apps call this in `ready`."""
    if (after, mode) not in added_modes:
        added_modes.append((after, mode))
