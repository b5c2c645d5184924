"""What a mode of a model page is, and those that other apps add; light, because apps are loaded by every command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from octweb.registry.page.scene import ModelScene


@dataclass(frozen=True, kw_only=True)
class Mode:
    """A mode: its template below the name and the facts, the function of what it shows, and whether it is shown."""

    id: str
    label: str
    template: str
    context: Callable[[ModelScene], dict[str, Any]]
    page: str = ""  # the name of an address: the mode is a page of its own
    shown: Callable[[ModelScene], bool] = lambda scene: True
    count: Callable[[ModelScene], int | None] = lambda scene: None


added_modes: list[tuple[str, Mode]] = []


def register_mode(mode: Mode, *, after: str) -> None:
    """Add a mode behind the one with the id `after`; apps call this in `ready`."""
    if (after, mode) not in added_modes:
        added_modes.append((after, mode))
