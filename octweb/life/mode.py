"""Define the mode Life of the model page.

This module imports little, because every command loads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from octweb.registry.page.mode import Mode

if TYPE_CHECKING:
    from octweb.registry.page.scene import ModelScene


def _context(scene: ModelScene) -> dict[str, Any]:
    from octweb.life.page import page_context

    return page_context(scene)


def _open_alarms(scene: ModelScene) -> int | None:
    return scene.model.alarms.filter(closed_at=None).count() or None


MODE = Mode(
    id="life",
    label="Life",
    template="life/_life.html",
    context=_context,
    shown=lambda scene: scene.inside,
    count=_open_alarms,
)
