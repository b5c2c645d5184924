"""Shared pieces of the application: ownership, problem details, pages, permissions."""

import gc

from django.apps import AppConfig


class CoreConfig(AppConfig):
    name = "octweb.core"

    def ready(self) -> None:
        """Exempt imported objects from garbage collection, then enable it again.

        Commands disable it before the imports, so they start a fifth faster.
        """
        gc.freeze()
        gc.enable()
