"""Predict recorded rows again and compare bit for bit: `manage.py replay`."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management import CommandParser
from django.core.management.base import BaseCommand

from octweb.decisions.replaying import replay


class Command(BaseCommand):
    help = (
        "Answer recorded rows again and compare leaf, class and the bits of the shares. Exit status 1 if one differs."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--model", default="", help="the name under which it is served; all if left out")
        parser.add_argument("--since", default="", help="a day such as 2026-03-31")
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--sample", type=int, default=1000, help="so many records at random (1000)")
        which.add_argument("--all", action="store_true")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        report = replay(options["model"], options["since"], None if options["all"] else options["sample"])
        if options["json"]:
            self.stdout.write(json.dumps(report._asdict()))
        else:
            self.stdout.write(f"{report.same} answered again: same. {len(report.different)} differ.")
            for key in report.different:
                self.stderr.write(key)
        if report.different:
            sys.exit(1)
