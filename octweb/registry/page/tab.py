"""Define and register tabs of the inspector.

This module imports little, because every command loads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from octweb.registry.page.scene import ModelScene


@dataclass(frozen=True, kw_only=True)
class Tab:
    """A tab of the inspector.

    `context` returns its template context, `shown` whether to show it, and `count` the number next to its name.
    """

    id: str
    label: str
    template: str
    context: Callable[[ModelScene], dict[str, Any]]
    shown: Callable[[ModelScene], bool] = lambda scene: True
    count: Callable[[ModelScene], int | None] = lambda scene: None


added_tabs: list[str] = []


def register_tab(name: str) -> None:
    """Register a tab by its dotted name. It precedes the last tab. Apps call this in `ready`."""
    if name not in added_tabs:
        added_tabs.append(name)
