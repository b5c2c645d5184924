"""Django app of workbenches, which edit trees by constraints and explore all good trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

if TYPE_CHECKING:
    from octweb.registry.models import TreeModel

TAB = "octweb.workbench.alternatives.TAB"


class WorkbenchConfig(AppConfig):
    name = "octweb.workbench"

    def ready(self) -> None:
        from octweb.registry.hooks import register_agreement
        from octweb.registry.page.tab import register_tab

        register_tab(TAB)
        register_agreement(_agreement)


def _agreement(model: TreeModel) -> dict[str, Any] | None:
    from octweb.workbench.agreement import agreement

    return agreement(model)
