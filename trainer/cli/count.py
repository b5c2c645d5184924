"""`count`: count the rows of a source, to train trees without rows."""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from trainer.cli.command import CommandError, Options, note
from trainer.cli.orphans import exit_with_parent
from trainer.cli.reading_flags import add_reading_flags, given_of, policies_of, policy_of, unknown_policies
from trainer.counts.collect import CountRequest, Report, count
from trainer.counts.database import QueryGuard
from trainer.counts.folder import CountedQuestions, Counts, merge, read_counts, read_record, write_counts
from trainer.counts.opening import table_query
from trainer.data.encoding import Scheme
from trainer.data.parsing import ParsingChoices
from trainer.errors import DataError, ParameterError
from trainer.table import ColumnKind, MissingPolicy, UnknownPolicy
from trainer.tree.numbers import count_words

REPORT_SECONDS = 2.0
SOURCE_HELP = "a file or folder, s3://bucket/folder, or a database: duckdb:FILE, postgresql://user@host/name, ibis:URL"

HELP = (
    "Count a file, a folder of CSV and Parquet files, or a query of a database, so that `train FOLDER` finds the best tree without the rows. "
    "--merge adds folders of counts up."
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("source", nargs="?", metavar="SOURCE", help=SOURCE_HELP)
    add_query_flags(parser)
    parser.add_argument(
        "--merge", dest="folders", nargs="+", metavar="FOLDER", help="folders of counts to add up; takes no SOURCE"
    )
    parser.add_argument("--target", metavar="COLUMN", help="the column to predict")
    parser.add_argument("--depth", type=int, default=3, help="the greatest depth of trees, 1 to 3 (3)")
    parser.add_argument("--bins", type=int, default=5, help="quantiles of a numeric column (5)")
    parser.add_argument(
        "--binarise",
        choices=[str(scheme) for scheme in Scheme if scheme is not Scheme.ALL_THRESHOLDS],
        default=str(Scheme.QUANTILE_THRESHOLDS),
        help="how numeric columns become questions",
    )
    parser.add_argument("--questions", metavar="FILE", help="counts.json of earlier counts: ask their questions again")
    parser.add_argument("--folds", type=int, default=0, help="folds, for the accuracy on unseen rows")
    parser.add_argument(
        "--key", metavar="COLUMN", help="with --folds: rows with the same value of this column are in one fold"
    )
    parser.add_argument("--suppress", type=int, default=0, metavar="K", help="keep numbers from 1 to K − 1 secret")
    parser.add_argument("--ignore", action="append", default=[], metavar="COLUMN", help="a column to leave out")
    add_reading_flags(parser, merge="--merge-spellings")
    parser.add_argument("--threads", type=int, default=0, help="processor threads; default: all")
    parser.add_argument(
        "--request",
        metavar="FILE",
        help="JSON of source, choices and limits, as the web application writes it; takes no SOURCE",
    )
    parser.add_argument("--progress", metavar="FILE", help="append one JSON line for each event")
    parser.add_argument("--output", required=True, metavar="FOLDER", help="the folder of counts, a new one")
    parser.add_argument("--json", action="store_true", help="the last line of standard output is one JSON object")


def add_query_flags(parser: ArgumentParser) -> None:
    """Add the flags that choose the rows of a database."""
    rows = parser.add_mutually_exclusive_group()
    rows.add_argument("--query", metavar="SQL", help="the SELECT whose rows are read, for a database")
    rows.add_argument("--table", metavar="NAME", help="the table whose rows are read, for a database")


def query_of(options: Options) -> str | None:
    """Return the query of --query or --table, if given."""
    return table_query(options["table"]) if options["table"] else options["query"]


def run(options: Options) -> int:
    exit_with_parent()
    try:
        counts = _merge(options) if options["folders"] else _count(options)
    except MemoryError as error:
        raise CommandError("out of memory. Ask fewer questions, or split the CSV files") from error
    for reason, rows in counts.left_out.items():
        note(f"{count_words(rows, 'row')} left out: {reason}")
    for column, cells in counts.unknown.items():
        note(f"{count_words(cells, 'cell')} of '{column}' have a category that no question names")
    sample = counts.questions.asked
    if sample.get("from_rows") != sample.get("of_rows"):
        note(f"thresholds come from {sample['from_rows']:,} of {sample['of_rows']:,} rows; the counts are of all rows")
    print(
        f"{count_words(counts.rows, 'row')}, {count_words(len(counts.questions), 'question')}, depth {counts.depth}"
        + (f", {counts.folds} folds by '{counts.key}'" if counts.folds else "")
        + f"\nsha256 {counts.sha256}"
    )
    if options["json"]:
        print(json.dumps(_record(counts)))
    return 0


def _merge(options: Options) -> Counts:
    if options["source"] or options["suppress"]:
        raise ParameterError({"merge": "--merge adds up folders of counts. Leave SOURCE and --suppress out."})
    counts = merge([read_counts(folder) for folder in options["folders"]])
    write_counts(counts, Path(options["output"]))
    return counts


def _count(options: Options) -> Counts:
    request = read_request(options["request"]) if options["request"] else _request(options)
    return count(request, Path(options["output"]), _reporter(options["progress"]), note)


def _request(options: Options) -> CountRequest:
    if not options["source"]:
        raise ParameterError({"source": "name a file or a folder, or --merge and folders of counts."})
    questions = _questions(options)
    target = options["target"] or (questions.target if questions else None)
    if target is None:
        raise ParameterError({"target": "name the column to predict."})
    if questions is not None and target != questions.target:
        raise ParameterError(
            {
                "target": f"the questions predict '{questions.target}', not '{target}'. Use that target, or leave --target out."
            }
        )
    return CountRequest(
        source=str(options["source"]),
        target=target,
        query=query_of(options),
        depth=options["depth"],
        scheme=Scheme(options["binarise"]),
        bins=options["bins"],
        folds=options["folds"],
        key=options["key"],
        suppress=options["suppress"],
        questions=questions,
        given=given_of(options),
        options={
            "ignore": list(options["ignore"]),
            "default_missing": policy_of(options),
            "missing": policies_of(options),
            "unknown": unknown_policies(options),
        },
        threads=options["threads"],
    )


def read_request(path: str) -> CountRequest:
    """Read the request of a count that the web application wrote.

    A file keeps the address of the source, which may hold a password, out of the list of processes.
    """
    record = json.loads(Path(path).read_text(encoding="utf-8"))
    options = dict(record.pop("options"))
    for name, kind in (("kinds", ColumnKind), ("missing", MissingPolicy), ("unknown", UnknownPolicy)):
        options[name] = {column: kind(value) for column, value in options.get(name, {}).items()}
    seconds = record.pop("statement_seconds")
    return CountRequest(
        **record
        | {
            "scheme": Scheme(record["scheme"]),
            "given": ParsingChoices.from_json(record["given"]),
            "options": options,
            "guard": QueryGuard(seconds=seconds),
        }
    )


def _reporter(path: str | None) -> Report:
    """Return a callback that reports how many rows were counted: each piece to a file, or every two seconds to the user."""
    started = time.monotonic()
    last_report = started
    rows_read = 0

    def write(phase: str, rows: int) -> None:
        nonlocal last_report, rows_read
        if path:
            seconds = round(time.monotonic() - started, 3)
            rows_read = rows if phase == "questions" else rows_read
            record = {"t": seconds, "phase": phase, "rows": rows, "of": rows_read if phase == "counting" else 0}
            with open(path, "a", encoding="utf-8") as stream:
                stream.write(json.dumps(record) + "\n")
        elif time.monotonic() - last_report > REPORT_SECONDS:
            last_report = time.monotonic()
            print(f"{phase}: {rows:,} rows", file=sys.stderr)

    return write


def _questions(options: Options) -> CountedQuestions | None:
    """Return the questions of --questions, if given; raise DataError if the file is damaged."""
    if not options["questions"]:
        return None
    try:
        return CountedQuestions.from_json(read_record(options["questions"]))
    except (LookupError, TypeError, ValueError) as error:
        raise DataError(
            f"The file of --questions is damaged: {error}. Give the counts.json of an earlier count."
        ) from error


def _record(counts: Counts) -> dict[str, Any]:
    """Return the record of `count --json`."""
    record = counts.to_json()
    names = ("sha256", "source", "rows", "depth", "folds", "key", "suppress", "left_out", "unknown", "asked", "classes")
    return {name: record[name] for name in names} | {
        "questions": [question["name"] for question in record["questions"]],
        "parts": len(counts.parts),
        "class_rows": counts.total[0][:, 0].tolist(),
    }
