"""Decisions: one answer explained, asked by a questionnaire, and open to the public where the owner wants it."""

from django.apps import AppConfig


class DecideConfig(AppConfig):
    name = "octweb.decide"

    def ready(self) -> None:
        from octweb.decide.actions import marks_of
        from octweb.decide.mode import MODE
        from octweb.registry import units
        from octweb.registry.workspace.mode import ADDED

        units.MARKS = marks_of
        if ("performance", MODE) not in ADDED:
            ADDED.append(("performance", MODE))
