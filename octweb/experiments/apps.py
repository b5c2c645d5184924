"""Django app of experiments: compare methods and sizes, and recommend the simplest good tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from octweb.registry.document.selection import Selection
    from octweb.registry.models import TreeModel


class ExperimentsConfig(AppConfig):
    name = "octweb.experiments"

    def ready(self) -> None:
        from octweb.experiments.listing import EXPERIMENTS
        from octweb.registry.document import selection
        from octweb.runs import listing

        selection.SELECTION = _selection_of
        listing.SOURCES.append(EXPERIMENTS)


def _selection_of(model: TreeModel) -> Selection | None:
    """Return how a model was selected. The import is delayed, so that commands start quickly."""
    from octweb.experiments.selection import selection_of

    return selection_of(model)
