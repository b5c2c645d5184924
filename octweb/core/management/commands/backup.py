"""Back up database, files and secrets: `manage.py backup FOLDER`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import CommandParser
from django.core.management.base import BaseCommand, CommandError

from octweb.core.backup import write_backup
from octweb.core.faults import BackupError


class Command(BaseCommand):
    help = "Write database, files and secrets into a new folder, while octweb runs."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", metavar="FOLDER", type=Path, help="a new folder, readable by its owner only")

    def handle(self, *args: Any, **options: Any) -> None:
        folder = options["folder"].absolute()
        try:
            manifest = write_backup(folder)
        except BackupError as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            raise CommandError(
                f"The backup '{folder}' cannot be written: {error.strerror}. The unfinished folder was removed."
            ) from error
        total = sum(entry["bytes"] for entry in manifest["entries"].values())
        self.stdout.write(f"Backed up {len(manifest['entries'])} files, {total / 1e6:,.1f} MB, to {folder}")
        if manifest["files"] != "included":
            self.stdout.write(f"Uploads are in {manifest['files']}: back them up with the tools of the bucket.")
