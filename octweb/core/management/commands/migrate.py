"""Create the data folder, then run Django's `migrate` with each migration and its record in one transaction.

SQLite does not create the folder of its file.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.commands import migrate
from django.db import transaction
from django.db.migrations.executor import MigrationExecutor


class WholeExecutor(MigrationExecutor):
    """Executor that a kill cannot stop between the changes of a migration and its record.

    Django records the parts of a squashed migration one by one after its changes. A kill between two of them left a
    database that no later `migrate` completed.
    """

    def apply_migration(self, state: Any, migration: Any, fake: bool = False, fake_initial: bool = False) -> Any:
        if not migration.atomic:
            return super().apply_migration(state, migration, fake, fake_initial)
        # SQLite cannot turn checks of foreign keys off within a transaction
        with self.connection.constraint_checks_disabled(), transaction.atomic(self.connection.alias):
            return super().apply_migration(state, migration, fake, fake_initial)


class Command(migrate.Command):
    def execute(self, *args: Any, **options: Any) -> Any:
        settings.DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
        migrate.MigrationExecutor = WholeExecutor
        return super().execute(*args, **options)
