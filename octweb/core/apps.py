"""Django app of the shared parts: ownership, problem details, pagination, permissions."""

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
