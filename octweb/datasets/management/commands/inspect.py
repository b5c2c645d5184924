"""`manage.py inspect`: the intake report of a table, before training. It never opens the database."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from octweb.datasets.reading_flags import (
    add_reading_flags,
    flags_of,
    parsing_choices_of,
    policies_of,
    policy_of,
    reading_of_file,
    unknown_policies,
)
from trainer.cli.command import error_text
from trainer.data.formats.read_file import read_table
from trainer.data.inspect_table import inspect_raw
from trainer.data.inspection import IntakeFinding
from trainer.data.parsing import reading_of
from trainer.errors import ParameterError, TrainerError
from trainer.tree.numbers import count_words

USAGE = 2
FAILED = 1


class Command(BaseCommand):
    help = "Report what may be wrong with a table, worst first, before training."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
        parser.add_argument("data", metavar="DATA", help="CSV (also .gz), .xlsx, Parquet or Arrow")
        parser.add_argument("--target", required=True, metavar="COLUMN", help="the column to predict")
        add_reading_flags(parser)
        parser.add_argument("--ignore", action="append", default=[], metavar="COLUMN", help="a column to leave out")
        parser.add_argument("--json", action="store_true", help="the last line of standard output is one JSON list")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            findings = _inspect(options)
        except ParameterError as error:
            raise CommandError(str(error), returncode=USAGE) from error
        except (TrainerError, OSError) as error:
            raise CommandError(error_text(error), returncode=FAILED) from error
        if options["json"]:
            self.stdout.write(json.dumps([own.to_json() for own in findings], allow_nan=False))
            return
        self.stdout.write(f"{count_words(len(findings), 'finding')} in {options['data']}")
        for finding in findings:
            self.stdout.write(_text(finding))


def _inspect(options: dict[str, Any]) -> tuple[IntakeFinding, ...]:
    choices = parsing_choices_of(options)
    raw = read_table(options["data"], **choices.structure)
    return inspect_raw(
        raw,
        reading_of_file(options) or reading_of(raw, choices),
        target=options["target"],
        ignore=options["ignore"],
        default_missing=policy_of(options),
        missing=policies_of(options),
        unknown=unknown_policies(options),
    )


def _text(finding: IntakeFinding) -> str:
    remedy = flags_of(finding.mend)
    lines = [
        f"\n{finding.severity}: {finding.column or 'table'} ({finding.kind})",
        f"    {finding.figure}",
        f"    {finding.sentence}",
        f"    Otherwise: {finding.if_nothing}",
    ]
    return "\n".join([*lines, *([f"    To change: {remedy}"] if remedy else [])])
