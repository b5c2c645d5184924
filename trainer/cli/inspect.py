"""`inspect`: print the intake report of a table, before training."""

from __future__ import annotations

import json
from argparse import ArgumentParser

from trainer.cli.command import Options
from trainer.cli.reading_flags import (
    add_reading_flags,
    flags_of,
    given_of,
    policies_of,
    policy_of,
    reading_of_file,
    unknown_policies,
)
from trainer.data.formats.read_file import read_table
from trainer.data.inspect_table import inspect_raw
from trainer.data.inspection import IntakeFinding
from trainer.data.parsing import reading_of
from trainer.tree.numbers import count_words

HELP = "Report what may be wrong with a table, worst first, before training."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", help="CSV (also .gz), .xlsx, Parquet or Arrow")
    parser.add_argument("--target", required=True, metavar="COLUMN", help="the column to predict")
    add_reading_flags(parser)
    parser.add_argument("--ignore", action="append", default=[], metavar="COLUMN", help="a column to leave out")
    parser.add_argument("--json", action="store_true", help="the last line of standard output is one JSON list")


def run(options: Options) -> int:
    findings = _inspect(options)
    if options["json"]:
        print(json.dumps([finding.to_json() for finding in findings], allow_nan=False))
        return 0
    print(f"{count_words(len(findings), 'finding')} in {options['data']}")
    for finding in findings:
        print(_text(finding))
    return 0


def _inspect(options: Options) -> tuple[IntakeFinding, ...]:
    choices = given_of(options)
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
    if remedy:
        lines.append(f"    To change: {remedy}")
    return "\n".join(lines)
