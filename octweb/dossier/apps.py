"""Django app of dossiers of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

if TYPE_CHECKING:
    from octweb.registry.models import ReviewEvent, TreeModel
    from octweb.registry.review.checklist import ChecklistItem, ReviewedModel


class DossierConfig(AppConfig):
    name = "octweb.dossier"

    def ready(self) -> None:
        from django.core import checks

        from octweb.registry.hooks import register_approval, register_item, register_obstacles, register_preparation

        checks.register(_check_clauses)
        register_item("dossier", _item)
        register_obstacles(_obstacles)
        register_preparation(_start)
        register_approval(evidence=_evidence, start=_start_for_approval)


def _item(reviewed: ReviewedModel) -> ChecklistItem:
    from octweb.dossier.review import read_item

    return read_item(reviewed)


def _obstacles(model: TreeModel) -> list[str]:
    from octweb.dossier.review import unwritten_sentences

    return unwritten_sentences(model)


def _check_clauses(app_configs: Any, **_: Any) -> list[Any]:
    """Return an error for each unknown table in OCTWEB_REQUIRED_CLAUSES. A system check."""
    from django.conf import settings
    from django.core.checks import Error

    from octweb.dossier.clauses import KEYS

    unknown = [key for key in settings.REQUIRED_CLAUSES if key not in KEYS]
    words = f"OCTWEB_REQUIRED_CLAUSES knows {', '.join(KEYS)}."
    return [Error(f"'{key}' is not a table of clauses.", hint=words, id="octweb.E301") for key in unknown]


def _evidence(model: TreeModel) -> dict[str, str]:
    from octweb.dossier.review import reviewed_digest

    return reviewed_digest(model)


def _start_for_approval(event: ReviewEvent) -> None:
    from octweb.dossier.actions import start_for_approval

    start_for_approval(event)


def _start(model: TreeModel) -> None:
    from octweb.dossier.review import start_dossier

    start_dossier(model)
