"""`manage.py verify MODEL.json DATA`: recompute what a model file claims, with code that shares nothing with the training."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError
from threadpoolctl import threadpool_limits

from octweb.core.command_line import sentence
from trainer.check.recount import Finding, verdict, verify
from trainer.check.recount.findings import unjudged
from trainer.errors import TrainerError

PASSED = ("proved", "recounted")


class Command(BaseCommand):
    help = (
        "Check every claim of a model file against the rows it was trained on. Exit status 0 if the verdict is 'proved' or "
        "'recounted' (with --require proved only for the first), otherwise 1."
    )
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
        parser.add_argument("model", metavar="MODEL.json")
        parser.add_argument(
            "data",
            metavar="DATA",
            help="CSV (also .gz), .xlsx, Parquet or Arrow: the file that was uploaded; or the folder of counts",
        )
        parser.add_argument("--proof", metavar="FILE", help="the proof that goes with the model")
        parser.add_argument("--require", choices=["proved"], help="fail unless this is the verdict")
        parser.add_argument(
            "--report",
            metavar="FILE",
            help="write the JSON there; without --require any verdict then ends with status 0",
        )
        parser.add_argument("--json", action="store_true", help="one JSON object as the last line")

    def handle(self, *args, **options):
        try:
            with threadpool_limits(limits=1, user_api="blas"):  # small products; a forked job has NumPy loaded already
                findings = verify(options["model"], options["data"], options["proof"])
        except (TrainerError, OSError) as error:
            if options["json"]:
                self.stdout.write(_record([unjudged("files", sentence(error), "basis")]))
            raise CommandError(sentence(error)) from error
        for finding in findings:
            self.stdout.write(f"{finding.verdict:16s} {finding.claim}: {finding.detail}")
        found = verdict(findings)
        self.stdout.write(f"Verdict: {found}")
        record = _record(findings)
        if options["json"]:
            self.stdout.write(record)
        if options["report"]:
            Path(options["report"]).write_text(record, encoding="utf-8")
        passed = [options["require"]] if options["require"] else [found] if options["report"] else PASSED
        if found not in passed:
            sys.exit(1)


def _record(findings: list[Finding]) -> str:
    return json.dumps({"verdict": verdict(findings), "claims": [f.to_json() for f in findings]})
