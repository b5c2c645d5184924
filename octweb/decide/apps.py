"""Decisions: one answer explained, asked by a questionnaire, and open to the public where the owner wants it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

if TYPE_CHECKING:
    from octweb.registry.models import TreeModel


class DecideConfig(AppConfig):
    name = "octweb.decide"

    def ready(self) -> None:
        from octweb.decide.mode import MODE
        from octweb.registry import hooks
        from octweb.registry.page.mode import register_mode

        hooks.register_column_permissions(_marks_of)
        register_mode(MODE, after="performance")


def _marks_of(model: TreeModel) -> Mapping[str, Any]:
    """Return the permitted changes; imports at the first call, not in every command."""
    from octweb.decide.actions import marks_of

    return marks_of(model)
