"""Collect, export or erase recorded decisions: `manage.py decisions collect|export|erase`."""

from __future__ import annotations

import logging
import signal
import threading
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import CommandParser
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from rest_framework.exceptions import ValidationError

from octweb.core.problems import Busy
from octweb.decisions import collecting, erasing, erasure_list
from octweb.decisions.erasure_list import DamagedList
from octweb.decisions.exporting import export_chain
from octweb.decisions.replaying import replay_daily
from octweb.private_files import protect_new_files

log = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Collect, export or erase records of decisions. manage.py audit --decisions checks them."

    def add_arguments(self, parser: CommandParser) -> None:
        steps = parser.add_subparsers(dest="step", required=True)
        collect = steps.add_parser(
            "collect", help="move the frames of this host into the database and seal what is due"
        )
        collect.add_argument(
            "--every",
            type=float,
            metavar="SECONDS",
            help="go on until SIGTERM: for a web host without a worker, such as a container",
        )
        export = steps.add_parser("export", help="write the chain as JSON lines, which check_decisions.py checks")
        export.add_argument("file", type=Path)
        erase = steps.add_parser("erase", help="erase records; their commitments stay, so the chain stays whole")
        which = erase.add_mutually_exclusive_group(required=True)
        which.add_argument("--id", action="append", default=[], help="a decision; may be repeated")
        which.add_argument("--subject", help="your own reference to a person")
        which.add_argument("--old", action="store_true", help="all that are older than the days of their model")
        which.add_argument(
            "--replay",
            nargs="*",
            type=Path,
            metavar="FILE",
            help="all in these lists of erasures, after a restore; without a FILE in that of this host",
        )
        erase.add_argument("--why", choices=erasing.REASONS, default="request")

    def handle(self, *args: Any, **options: Any) -> None:
        if options.get("every") is not None:
            self._collect_until_stopped(options["every"])
            return
        collecting.collect_due()
        if options["step"] == "export":
            with options["file"].open("w", encoding="utf-8") as stream:
                records = export_chain(stream)
            self.stdout.write(f"Records: {records:,}. Check them: python check_decisions.py {options['file']}")
        elif options["step"] == "erase":
            self.stdout.write(f"Erased decisions: {self._erase(options):,}.")

    def _collect_until_stopped(self, seconds: float) -> None:
        """Collect every few seconds until SIGTERM or SIGINT. A database that is away for a while does not end this."""
        if not seconds > 0:
            raise CommandError(f"--every {seconds:g}: the number of seconds must be above 0.")
        protect_new_files()
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        while not stopping.is_set():
            try:
                collecting.collect_due()
                replay_daily(datetime.now(UTC))
            except DatabaseError as error:
                log.warning("The database does not answer: %s", error)
                connection.close()
            stopping.wait(seconds)
        collecting.collect_due()  # what the web server wrote before it stopped

    def _erase(self, options: dict[str, Any]) -> int:
        by = "manage.py"
        try:
            if options["replay"] is not None:
                return _replay(options["replay"] or [settings.ERASURES])
            if options["old"]:
                return erasing.erase_old(datetime.now(UTC))
            if options["subject"] is not None:
                return len(erasing.erase_subject(options["subject"], by=by, why=options["why"]))
            keys = [uuid.UUID(text) for text in options["id"]]
            return len(erasing.erase_decisions(keys, by=by, why=options["why"]))
        except (ValidationError, Busy) as error:
            raise CommandError(str(error.detail)) from error
        except DamagedList as error:
            raise CommandError(str(error)) from error
        except ValueError as error:
            raise CommandError(f"An id is a UUID, as answers have it in `decision`: {error}") from error


def _replay(lists: list[Path]) -> int:
    """Erase what lists of earlier erasures name, and return how many decisions were still there."""
    count = 0
    for path in lists:
        try:
            by_reason = erasure_list.read_list(path)
        except OSError as error:
            raise CommandError(f"The list of erasures '{path}' cannot be read: {error.strerror}.") from error
        for why, keys in by_reason.items():
            count += len(erasing.erase_decisions(keys, by="manage.py", why=why, is_listed=False))
    return count
