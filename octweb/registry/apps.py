"""Django app of trained models: versions, review, predictions, pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from octweb.registry.models import TreeModel


class RegistryConfig(AppConfig):
    name = "octweb.registry"

    def ready(self) -> None:
        from octweb.registry.hooks import register_open_points

        register_open_points(_open_points)


def _open_points(model: TreeModel) -> list[str]:
    from octweb.registry.review.checklist import open_titles

    return open_titles(model)
