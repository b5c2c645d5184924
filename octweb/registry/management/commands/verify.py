"""`manage.py verify MODEL.json DATA`: recompute what a model file claims, with code that shares nothing with the training."""

from __future__ import annotations

import json
import sys

from django.core.management.base import BaseCommand, CommandError

from trainer.errors import TrainerError
from trainer.verify import refuted, verify


class Command(BaseCommand):
    help = "Check every claim of a model file against the rows it was trained on; exit status 1 if one is refuted."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
        parser.add_argument("model", metavar="MODEL.json")
        parser.add_argument("data", metavar="DATA", help="CSV (also .gz) or Parquet: the rows of the training")
        parser.add_argument("--json", action="store_true", help="one JSON object as the last line")

    def handle(self, *args, **options):
        try:
            findings = verify(options["model"], options["data"])
        except (TrainerError, OSError) as error:
            raise CommandError(" ".join(str(error).split())) from error
        for finding in findings:
            self.stdout.write(f"{finding.verdict:12s} {finding.claim}: {finding.detail}")
        failed = refuted(findings)
        if options["json"]:
            record = {"verdict": "refuted" if failed else "passed", "findings": [f.to_json() for f in findings]}
            self.stdout.write(json.dumps(record))
        if failed:
            sys.exit(1)
