"""Restore a backup: `manage.py restore FOLDER`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import CommandParser, call_command
from django.core.management.base import BaseCommand, CommandError

from octweb.core.backup import read_backup, restore_backup
from octweb.core.faults import BackupError


class Command(BaseCommand):
    help = "Verify a backup and restore it into an empty place. Stop web server and workers first."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", metavar="FOLDER", type=Path, help="a folder that `backup` wrote")
        parser.add_argument(
            "--overwrite", action="store_true", help="replace the database, files and secrets that exist"
        )
        parser.add_argument("--check", action="store_true", help="only verify the backup")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            backup = read_backup(options["folder"].absolute())
            made = f"octweb {backup.manifest['octweb']}, {backup.manifest['created']}"
            if options["check"]:
                self.stdout.write(f"The backup is complete ({made}).")
                return
            restore_backup(backup, overwrite=options["overwrite"])
        except BackupError as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            place = error.filename2 or error.filename or "the data folder"
            raise CommandError(
                f"The restore stopped at '{place}': {error.strerror or error}. "
                "Mend this, then run it again with --overwrite."
            ) from error
        call_command("migrate", interactive=False, verbosity=0)
        self.stdout.write(f"Restored ({made}). Start the web server and the workers.")
        if backup.manifest["files"] != "included":
            self.stdout.write(f"Uploads were in {backup.manifest['files']} and are not part of the backup.")
        if settings.ERASURES.exists():
            self.stdout.write(f"Decisions that {settings.ERASURES} lists are erased again.")
            call_command("decisions", "erase", "--replay", stdout=self.stdout)
