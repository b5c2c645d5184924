"""Workbenches: a tree is edited wish by wish, each with its proof and its price, and all good trees are looked at."""

from django.apps import AppConfig


class WorkbenchConfig(AppConfig):
    name = "octweb.workbench"

    def ready(self) -> None:
        from octweb.registry.workspace.tabs import TABS
        from octweb.workbench.alternatives import TAB

        if TAB not in TABS:
            TABS.insert(-1, TAB)
