"""`manage.py predict MODEL.json DATA`: the tree's answer for every row of a file, as CSV or Parquet."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from octweb.core.orphans import exit_with_parent
from octweb.datasets.reading_flags import add_file_flags, file_options
from trainer.cli.command import error_text
from trainer.data.formats.file_bytes import ReadLimits
from trainer.data.training_set import TrainingSet, read_training_set
from trainer.errors import DataError, TrainerError
from trainer.prediction.predict_file import PredictionSummary, Report, predict_file
from trainer.tree.file import ModelFile, read_model

OWN_FILES = ReadLimits(bytes=10**11, unpacked_bytes=10**11, rows=10**9, columns=10**5, cells=10**11)
NEWS_SECONDS = 0.5


class Command(BaseCommand):
    help = "Predict the rows of a CSV (also .gz), .xlsx, Parquet or Arrow file with a model file."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
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
            "--change", action="append", default=[], metavar="COLUMN=free|up|down|whole|never",
            help="how a column may change in explanations, as for explain",
        )  # fmt: skip
        parser.add_argument(
            "--cost", action="append", default=[], metavar="COLUMN=NUMBER",
            help="what a change of 1 in a column of numbers costs, as for explain",
        )  # fmt: skip
        parser.add_argument(
            "--least", metavar="columns|total",
            help="which change is the smallest: fewest columns first (the default), or the smallest total, as for explain",
        )  # fmt: skip
        parser.add_argument(
            "--explain-with",
            metavar="FILE.json",
            help="what a server says about units, permissions and time; implies --explain",
        )
        parser.add_argument("--max-rows", type=int, metavar="N", help="refuse a file with more rows")
        parser.add_argument("--max-unpacked", type=int, metavar="MB", help="refuse a file that unpacks to more")
        parser.add_argument("--max-columns", type=int, metavar="N", help="refuse a file with more columns")
        parser.add_argument(
            "--json", action="store_true", help="the last line of standard output is one JSON object; needs --output"
        )

    def handle(self, *args, **options):
        if options["json"] and not options["output"]:
            raise CommandError(
                "--json needs --output, because the predictions go to standard output otherwise", returncode=2
            )
        explain_options = any(options[name] for name in ("change", "cost", "least", "units_from"))
        if explain_options and not options["explain"]:
            raise CommandError(
                "--change, --cost, --least and --units-from say how rows are explained: add --explain", returncode=2
            )
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, _on_signal)  # as an exception, so that nothing half-written stays
        exit_with_parent()
        try:
            summary = self._predict(options)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
        except (TrainerError, OSError) as error:
            if options["json"]:
                problems = list(error.problems) if isinstance(error, DataError) else []
                self.stdout.write(json.dumps({"error": error_text(error), "problems": problems}))
            raise CommandError(error_text(error)) from error
        except MemoryError as error:
            raise CommandError("out of memory; predict the rows in several files, or send Parquet") from error
        for note in summary.notes:
            self.stderr.write(f"note: {note}")
        if summary.known:
            self.stderr.write(
                f"note: {summary.correct} of {summary.known} rows with a known class are correct. "
                f"Always the most frequent class of the training: {summary.base_correct}."
            )
        if options["json"]:
            self.stdout.write(json.dumps(summary.to_json()))

    def _predict(self, options: dict[str, Any]) -> PredictionSummary:
        model = read_model(options["model"])
        limits = ReadLimits(
            bytes=OWN_FILES.bytes,
            unpacked_bytes=(options["max_unpacked"] or 0) * 10**6 or OWN_FILES.unpacked_bytes,
            rows=options["max_rows"] or OWN_FILES.rows,
            columns=options["max_columns"] or OWN_FILES.columns,
            cells=OWN_FILES.cells,
        )
        output = options["output"] or _Standard(self.stdout)
        arguments: dict[str, Any] = {
            "limits": limits,
            "for_spreadsheets": options["for_spreadsheets"],
            "keep_columns": options["keep_columns"],
            **file_options(options),
            "training": self._training(model, options["training_data"]),
        }
        if options["explain"] or options["explain_with"]:
            from octweb.registry.prediction.explained_columns import explained_columns

            arguments["more"] = explained_columns(model, options, limits)
        if not options["progress"]:
            return predict_file(model, options["data"], output, **arguments)
        with open(options["progress"], "a", encoding="utf-8") as stream:
            return predict_file(model, options["data"], output, report=_news(stream), **arguments)

    def _training(self, model: ModelFile, path: str | None) -> TrainingSet | None:
        """The training rows, or None and a note if the file is not the one that trained the model."""
        if path is None:
            return None
        name = os.path.basename(path)
        try:
            training_set = read_training_set(model, path, limits=OWN_FILES)
        except (DataError, OSError) as error:
            self.stderr.write(f"note: {name} was not compared: {error_text(error)}")
            return None
        if training_set is None:
            self.stderr.write(f"note: {name} is not the file that trained the model.")
        return training_set


class _Standard(io.TextIOBase):
    """Django's wrapper of standard output as a text stream: it would add a line break to each piece."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(text, ending="")
        return len(text)

    def flush(self) -> None:
        self.stream.flush()


def _news(stream: Any) -> Report:
    """Append a JSON line at the beginning, at the end, and every half second between them."""
    start = time.monotonic()
    last = [-NEWS_SECONDS]

    def write(phase: str, rows: int, total: int) -> None:
        t = time.monotonic() - start
        if t - last[0] < NEWS_SECONDS and rows != total:
            return
        last[0] = t
        stream.write(json.dumps({"t": round(t, 3), "phase": phase, "rows": rows, "of": total}) + "\n")
        stream.flush()

    return write


def _on_signal(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)
