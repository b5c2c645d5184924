"""Workbenches: a tree is edited wish by wish, each with its proof and its price, and all good trees are looked at."""

from django.apps import AppConfig

TAB = "octweb.workbench.alternatives.TAB"


class WorkbenchConfig(AppConfig):
    name = "octweb.workbench"

    def ready(self) -> None:
        from octweb.registry.workspace.tab import register_tab

        register_tab(TAB)
