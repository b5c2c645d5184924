"""What a mode of a model page is, and those that other apps add; light, because apps are loaded by every command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from octweb.registry.workspace.scene import Scene


@dataclass(frozen=True, kw_only=True)
class Mode:
    """A mode: its template below the name and the facts, the function of what it shows, and whether it is shown."""

    id: str
    label: str
    template: str
    context: Callable[[Scene], dict[str, Any]]
    page: str = ""  # the name of an address: the mode is a page of its own
    shown: Callable[[Scene], bool] = lambda scene: True
    count: Callable[[Scene], int | None] = lambda scene: None


ADDED: list[tuple[str, Mode]] = []  # the id of the mode before it, and the mode; from `ready` of an app
