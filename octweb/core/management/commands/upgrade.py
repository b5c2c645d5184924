"""Upgrade the data of an installation to this version: `manage.py upgrade --backup FOLDER`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import CommandParser, call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from octweb.core import unavailable
from octweb.core.database_copy import applied_migrations, has_tables
from octweb.core.walk import failing_addresses


class Command(BaseCommand):
    help = "Check the installation, back it up, migrate the database, and request the main pages."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        way = parser.add_mutually_exclusive_group(required=True)
        way.add_argument("--backup", metavar="FOLDER", type=Path, help="a new folder for the backup")
        way.add_argument("--no-backup", action="store_true", help="there is another backup")

    def handle(self, *args: Any, **options: Any) -> None:
        waiting = self._check()
        if options["backup"]:
            call_command("backup", options["backup"], stdout=self.stdout)
        self.stdout.write(f"Migrations to apply: {', '.join(waiting) or 'none'}")
        try:
            call_command("migrate", interactive=False, verbosity=0)
        except Exception as error:
            raise CommandError(f"The migration failed: {error}\n{self._way_back(options['backup'])}") from error
        call_command("collectstatic", interactive=False, verbosity=0)
        if failing := list(failing_addresses()):
            lines = "\n".join(f"  {address}: status {status}" for address, status in failing)
            raise CommandError(f"These pages fail after the upgrade:\n{lines}\n{self._way_back(options['backup'])}")
        self.stdout.write("The main pages answer. Restart the web server and all workers.")

    def _check(self) -> list[str]:
        """Check settings, database, disk and files. Return the migrations that wait, in order."""
        call_command("check", databases=["default"], stdout=self.stdout)
        if not has_tables():
            raise CommandError("There is no database to upgrade. Check OCTWEB_DATA_DIR or DATABASE_URL.")
        if bad := {name: state for name, state in unavailable.parts().items() if state != "ok"}:
            words = ", ".join(f"{name} ({state})" for name, state in bad.items())
            raise CommandError(f"Not ready: {words}. Nothing was changed.")
        executor = MigrationExecutor(connection)
        on_disk = executor.loader.disk_migrations
        if newer := [f"{app}.{name}" for app, name in applied_migrations() if (app, name) not in on_disk]:
            raise CommandError(
                f"The database is of another version: its migration '{newer[0]}' is unknown here. "
                "Install the version that made it, or a newer one. Nothing was changed."
            )
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]

    def _way_back(self, backup: Path | None) -> str:
        if backup is None:
            return "To go back, install the old version and restore your backup."
        return f"To go back, install the old version and run: restore {backup} --overwrite"
