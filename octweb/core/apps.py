"""Shared pieces of the application: ownership, problem details, pages, permissions."""

import gc

from django.apps import AppConfig


class CoreConfig(AppConfig):
    name = "octweb.core"

    def ready(self) -> None:
        """Disable garbage collection during imports and exempt imported objects from it: programs start a fifth faster."""
        gc.freeze()
        gc.enable()
