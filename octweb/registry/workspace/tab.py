"""What a tab of the inspector is, and those that other apps add; light, because apps are loaded by every command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from octweb.registry.workspace.scene import Scene


@dataclass(frozen=True, kw_only=True)
class Tab:
    """A tab: `context` gives its template what it shows, `shown` says for which node, `count` what stands beside its name."""

    id: str
    label: str
    template: str
    context: Callable[[Scene], dict[str, Any]]
    shown: Callable[[Scene], bool] = lambda scene: True
    count: Callable[[Scene], int | None] = lambda scene: None


ADDED: list[
    str
] = []  # dotted names of tabs that stand before the last one; from `ready` of an app, loaded with the inspector
