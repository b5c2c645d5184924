"""Decisions on record: collected, chained, erased, and shown to those who answer for a model."""

from typing import Any

from django.apps import AppConfig


class DecisionsConfig(AppConfig):
    name = "octweb.decisions"

    def ready(self) -> None:
        from octweb.jobs.signals import beside

        beside.connect(_on_beside, dispatch_uid="decisions")


# Imported at the first signal: a child that trains sends none.
def _on_beside(sender: Any, **_: Any) -> None:
    from octweb.decisions.collecting import collect_due

    collect_due()
