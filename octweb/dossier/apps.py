"""Django app of dossiers of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from octweb.registry.models import TreeModel
    from octweb.registry.review.checklist import ChecklistItem, ReviewedModel


class DossierConfig(AppConfig):
    name = "octweb.dossier"

    def ready(self) -> None:
        from octweb.registry.hooks import register_item, register_preparation

        register_item("dossier", _item)
        register_preparation(_start)


def _item(reviewed: ReviewedModel) -> ChecklistItem:
    from octweb.dossier.review import read_item

    return read_item(reviewed)


def _start(model: TreeModel) -> None:
    from octweb.dossier.review import start_dossier

    start_dossier(model)
