"""Experiments: many methods and sizes on one data set, and the simplest good tree."""

from django.apps import AppConfig


class ExperimentsConfig(AppConfig):
    name = "octweb.experiments"

    def ready(self) -> None:
        from octweb.experiments.listing import entries
        from octweb.runs import listing

        listing.SOURCES.append(entries)
