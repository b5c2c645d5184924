"""Decisions on record: collected, chained, audited, exported and erased."""

from typing import Any

from django.apps import AppConfig


class DecisionsConfig(AppConfig):
    name = "octweb.decisions"

    def ready(self) -> None:
        from octweb.decisions.mode import MODE
        from octweb.jobs.signals import beside
        from octweb.registry.page.mode import register_mode

        register_mode(MODE, after="life")
        beside.connect(_on_beside, dispatch_uid="decisions")


# Imported at the first signal, so that training processes, which send none, start faster.
def _on_beside(sender: Any, **_: Any) -> None:
    from octweb.decisions.collecting import collect_due

    collect_due()
