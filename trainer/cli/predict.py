"""`predict MODEL.json DATA`: write the tree's answer for each row of a file."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
import threading
import time
from argparse import ArgumentParser
from types import FrameType
from typing import Any, TextIO, cast

from trainer.cli.command import USAGE, CommandError, Options, error_text, note
from trainer.cli.orphans import exit_with_parent
from trainer.cli.reading_flags import OWN_FILES, add_file_flags, file_options
from trainer.data.formats.file_bytes import ReadLimits
from trainer.data.training_set import TrainingSet, read_training_set
from trainer.errors import DataError, TrainerError
from trainer.prediction.predict_file import PredictionSummary, Report, predict_file
from trainer.tree.file import ModelFile, read_model

REPORT_SECONDS = 0.5

HELP = "Predict the rows of a CSV (also .gz), .xlsx, Parquet or Arrow file with a model file."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.json")
    parser.add_argument("data", metavar="DATA", help="CSV (also .gz), .xlsx, Parquet or Arrow")
    add_file_flags(parser)
    parser.add_argument(
        "--output", metavar="OUT", help="a name that ends in .parquet, or CSV; default: standard output"
    )
    parser.add_argument(
        "--keep-columns", action="store_true", help="write all columns of the file, too, before the answers"
    )
    parser.add_argument("--progress", metavar="FILE", help="append one JSON line for each event")
    parser.add_argument(
        "--for-spreadsheets",
        action="store_true",
        help="write texts such as =1+1 with an apostrophe, so that a spreadsheet takes them for text",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="add the path, and the smallest change that gives another answer, as columns; takes some milliseconds per row",
    )
    parser.add_argument(
        "--units-from", metavar="DATA", help="the file that trained the model, on which changes are measured"
    )
    parser.add_argument(
        "--training-data",
        metavar="DATA",
        help="the file that trained the model, with which the result says how many rows equal training rows",
    )
    parser.add_argument(
        "--change",
        action="append",
        default=[],
        metavar="COLUMN=free|up|down|whole|never",
        help="how a column may change in explanations, as for explain",
    )
    parser.add_argument(
        "--cost",
        action="append",
        default=[],
        metavar="COLUMN=NUMBER",
        help="what a change of 1 in a column of numbers costs, as for explain",
    )
    parser.add_argument(
        "--least",
        metavar="columns|total",
        help="which change is the smallest: fewest columns first (the default), or the smallest total, as for explain",
    )
    parser.add_argument(
        "--explain-with",
        metavar="FILE.json",
        help="what a server says about units, permissions and time; implies --explain",
    )
    parser.add_argument(
        "--record-rows",
        nargs=2,
        metavar=("FILE", "PREFIX"),
        help="for servers: add the column decision with ids that begin with PREFIX, and write what is recorded of each row to FILE",
    )
    parser.add_argument("--max-rows", type=int, metavar="N", help="refuse a file with more rows")
    parser.add_argument("--max-unpacked", type=int, metavar="MB", help="refuse a file that unpacks to more")
    parser.add_argument("--max-columns", type=int, metavar="N", help="refuse a file with more columns")
    parser.add_argument(
        "--json", action="store_true", help="the last line of standard output is one JSON object; needs --output"
    )


def run(options: Options) -> int:
    _check_usage(options)
    if threading.current_thread() is threading.main_thread():
        # the handler raises an exception, so that the incomplete output file is removed
        signal.signal(signal.SIGTERM, _on_signal)
    exit_with_parent()
    try:
        summary = _predict(options)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (TrainerError, OSError) as error:
        if options["json"]:
            problems = list(error.problems) if isinstance(error, DataError) else []
            print(json.dumps({"error": error_text(error), "problems": problems}))
        raise CommandError(error_text(error)) from error
    except MemoryError as error:
        raise CommandError("out of memory. Split the rows into several files, or use Parquet") from error
    for text in summary.notes:
        note(text)
    if summary.known:
        note(
            f"{summary.correct} of {summary.known} rows with a known class are correct. "
            f"Always the most frequent class of the training: {summary.base_correct}."
        )
    if options["json"]:
        print(json.dumps(summary.to_json()))
    return 0


def _check_usage(options: Options) -> None:
    if options["json"] and not options["output"]:
        raise CommandError("--json needs --output, because both would go to standard output. Add --output FILE", USAGE)
    if options["explain"]:
        return
    if any(options[name] for name in ("change", "cost", "least", "units_from")):
        raise CommandError("--change, --cost, --least and --units-from only affect explanations. Add --explain", USAGE)


def _predict(options: Options) -> PredictionSummary:
    model = read_model(options["model"])
    limits = ReadLimits(
        bytes=OWN_FILES.bytes,
        unpacked_bytes=(options["max_unpacked"] or 0) * 10**6 or OWN_FILES.unpacked_bytes,
        rows=options["max_rows"] or OWN_FILES.rows,
        columns=options["max_columns"] or OWN_FILES.columns,
        cells=OWN_FILES.cells,
    )
    output = options["output"] or cast(io.TextIOBase, sys.stdout)
    arguments: dict[str, Any] = {
        "limits": limits,
        "for_spreadsheets": options["for_spreadsheets"],
        "keep_columns": options["keep_columns"],
        **file_options(options),
        "training": _training_rows(model, options["training_data"]),
    }
    if options["explain"] or options["explain_with"]:
        # import here, so that plain predictions need not load it
        from trainer.cli.explained_columns import explained_columns

        arguments["more"] = explained_columns(model, options, limits)
    with contextlib.ExitStack() as stack:
        if options["record_rows"]:
            from trainer.prediction.recorded_rows import RecordedColumns  # plain predictions never load it

            path, prefix = options["record_rows"]
            stream = stack.enter_context(open(path, "wb"))
            arguments["more"] = RecordedColumns(model.tree, stream, prefix, arguments.get("more"))
        if options["progress"]:
            arguments["report"] = _reporter(stack.enter_context(open(options["progress"], "a", encoding="utf-8")))
        return predict_file(model, options["data"], output, **arguments)


def _training_rows(model: ModelFile, path: str | None) -> TrainingSet | None:
    """Return the training rows, or None and a note if the file is not the one that trained the model."""
    if path is None:
        return None
    name = os.path.basename(path)
    try:
        rows = read_training_set(model, path, limits=OWN_FILES)
    except (DataError, OSError) as error:
        note(f"{name} was not compared: {error_text(error)}")
        return None
    if rows is None:
        note(f"{name} is not the file that trained the model, so its rows were not compared.")
    return rows


def _reporter(stream: TextIO) -> Report:
    """Return a callback that appends a JSON line at the beginning, at the end, and every half second between them."""
    start = time.monotonic()
    last_report = -REPORT_SECONDS

    def write(phase: str, done: int, total: int) -> None:
        nonlocal last_report
        t = time.monotonic() - start
        if t - last_report < REPORT_SECONDS and done != total:
            return
        last_report = t
        stream.write(json.dumps({"t": round(t, 3), "phase": phase, "rows": done, "of": total}) + "\n")
        stream.flush()

    return write


def _on_signal(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
