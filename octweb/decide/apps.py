"""Django app of decisions: explanation of one answer, questionnaire, and public page."""

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
        hooks.register_wording(_questions_of)
        hooks.register_preparation(_adopt_words)
        register_mode(MODE, after="performance")


def _marks_of(model: TreeModel) -> Mapping[str, Any]:
    """Return the permitted changes. The import is delayed, so that commands start without it."""
    from octweb.decide.actions import marks_of

    return marks_of(model)


def _questions_of(model: TreeModel) -> list[dict[str, Any]]:
    from octweb.decide.wording import questions_of

    return questions_of(model)


def _adopt_words(model: TreeModel) -> None:
    from octweb.decide.wording import adopt_words

    adopt_words(model)
