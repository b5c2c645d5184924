"""Create the data folder, then run Django's `migrate`.

SQLite does not create the folder of its file.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.commands import migrate


class Command(migrate.Command):
    def execute(self, *args: Any, **options: Any) -> Any:
        settings.DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
        return super().execute(*args, **options)
