"""What the commands that train have in common: the arguments of a data set, their checks, and how a run ends."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from abc import ABC, abstractmethod
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError

from octweb.datasets.reading_flags import (
    add_reading_flags,
    parsing_choices_of,
    policies_of,
    policy_of,
    reading_of_file,
    unknown_policies,
)
from octweb.runs.interrupts import Cancelled, Interrupts
from octweb.runs.options import INFEASIBLE, add_parameter_flags, flagged_options, parameters_of
from trainer.cli.command import error_text
from trainer.data.parsing.codes import parse_codes, parse_meanings
from trainer.data.reader import load
from trainer.errors import InfeasibleError, ModelFileError, ParameterError, TrainerError
from trainer.methods.base import Method
from trainer.table import ColumnSchema, Labels, Table, UnknownPolicy
from trainer.training.supervised_thread import compiler_runs
from trainer.tree.describe import number_text
from trainer.tree.nodes import tree_from_json

USAGE = 2
FAILED = 1


class TrainingCommand(BaseCommand, ABC):
    """A command that reads one data set and trains on it; `run` does that and prints. It never opens the database.

    SIGTERM and SIGINT end the search, and what it has found is kept. Errors in what was asked for end with code 2, others with 1.
    """

    requires_system_checks: ClassVar[tuple[str, ...]] = ()
    target_help = "the column to predict"
    target_required: ClassVar[bool] = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        """DATA, --target, the parameters of the methods, how the table is read, --ignore, --json."""
        parser.add_argument("data", metavar="DATA", help="CSV (also .gz), .xlsx, Parquet or Arrow")
        parser.add_argument("--target", required=self.target_required, metavar="COLUMN", help=self.target_help)
        add_parameter_flags(parser)
        add_reading_flags(parser)
        parser.add_argument(
            "--special", action="append", default=[], metavar="COLUMN=VALUES",
            help="values of a numeric column that are codes, as in income=-7,-8,999: each becomes a separate question",
        )  # fmt: skip
        parser.add_argument("--ignore", action="append", default=[], metavar="COLUMN", help="a column to leave out")
        parser.add_argument("--json", action="store_true", help="the last line of standard output is one JSON object")

    def run_from_argv(self, argv: list[str]) -> None:
        """As every command; a compiler that a run did not wait for ends with the process, and a crash says where it was."""
        faulthandler.enable()
        code: Any = 0
        try:
            super().run_from_argv(argv)
        except SystemExit as end:
            code = end.code
        if compiler_runs():
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code if isinstance(code, int) else FAILED)
        sys.exit(code)

    @abstractmethod
    def run(self, options: dict[str, Any]) -> None:
        """Train and print."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Run, with every error said in one line."""
        self.interrupts = Interrupts()
        try:
            self.run(options)
            self.stdout.flush()  # a process that dies while it ends would take the answer with it
        except ParameterError as error:
            raise CommandError(str(error), returncode=USAGE) from error
        except InfeasibleError as error:
            if options["json"]:
                record = {"status": INFEASIBLE, "reason": error_text(error), "best": error.best, "best_of": error.of}
                self.stdout.write(json.dumps(record, allow_nan=False))
            raise CommandError(error_text(error), returncode=FAILED) from error
        except (TrainerError, OSError) as error:
            raise CommandError(error_text(error), returncode=FAILED) from error
        except Cancelled as error:
            raise CommandError("cancelled before a tree was found", returncode=FAILED) from error
        except MemoryError as error:
            raise CommandError(
                "out of memory; set a lower memory limit or a smaller depth", returncode=FAILED
            ) from error

    def parameters(self, method: Method, options: dict[str, Any], **fixed: Any) -> dict[str, Any]:
        """The parameters of the method as they were given, with `fixed` ones; a flag that means nothing to it is noted.

        Bad parameters, and an --output that cannot be written, are refused here: before a large file is read.
        """
        raw, unused = parameters_of(method, options)
        for name in unused:
            self.stderr.write(f"note: --{name.replace('_', '-')} has no effect on the method '{method.id}'")
        raw |= fixed
        method.settings(raw)
        if options.get("output"):
            _check_folder(options["output"])
        return raw

    def data(self, options: dict[str, Any]) -> tuple[Table, Labels]:
        """The table and the labels of the file; what was left out or changed in reading it is noted."""
        table, labels, report = load(options["data"], **self.reading(options))
        for note in report.notes:
            self.stderr.write(f"note: {note}")
        self.rows_dropped = report.rows_dropped
        self.identifiers = report.identifiers
        return table, labels

    def reading(self, options: dict[str, Any]) -> dict[str, Any]:
        """How `trainer.data.reader.load` is to read the file."""
        return {
            "target": options["target"],
            "ignore": list(options["ignore"]),
            "default_missing": policy_of(options),
            "missing": policies_of(options),
            "unknown": unknown_policies(options),
            "special": _special(options["special"]),
            "meanings": _meanings(options["special"]),
            "given": parsing_choices_of(options),
            "reading": reading_of_file(options),
            "mentions": _mentions(options),
            "group": options.get("group", ""),
            "time": options.get("time", ""),
            "weight": options.get("weight", ""),
        }


def add_dependence_flags(parser: ArgumentParser) -> None:
    """Add --group, --time and --weight."""
    parser.add_argument(
        "--group", metavar="COLUMN", default="",
        help="rows with the same value belong together: they are held out together and in one fold; no question asks the column",
    )  # fmt: skip
    parser.add_argument(
        "--time", metavar="COLUMN", default="",
        help="dates or numbers that order the rows: the last rows are held out, and folds train on earlier rows only",
    )  # fmt: skip
    add_weight_flag(parser)


def add_weight_flag(parser: ArgumentParser) -> None:
    """Add --weight."""
    parser.add_argument(
        "--weight", metavar="COLUMN", default="",
        help="how much each row counts, a number that is not negative: objective and shares are of weights; no question asks the column",
    )  # fmt: skip


def weight_record(table: Table) -> dict[str, Any]:
    """Return the member "weight" of a record whose counts are of weight: column, weight of one unit, and rows; nothing without it."""
    weights = table.weights
    if weights is None:
        return {}
    return {"weight": {"column": weights.column, "step": str(weights.step), "rows": len(table)}}


def with_rows(points: list[dict[str, Any]], table: Table, labels: Labels) -> list[dict[str, Any]]:
    """Return points of a frontier with the number of rows that their trees have right, where a column weighs the rows."""
    if table.weights is None:
        return points
    matrix = table.matrix()
    trees = [tree_from_json(point["tree"], schema=table.schema, classes=labels.classes) for point in points]
    right = [int((tree.predict(matrix) == labels.codes).sum()) for tree in trees]
    return [point | {"correct_rows": rows} for point, rows in zip(points, right, strict=True)]


def weighed_text(count: int, table: Table) -> str:
    """Return a count of a frontier as its weight; the count itself without weights."""
    return str(count) if table.weights is None else number_text(float(table.weights.step * count), 4)


def with_schema(reading: dict[str, Any], path: str) -> dict[str, Any]:
    """`reading` with the kinds, missing policies, units and roles of a schema file; raises ModelFileError."""
    try:
        records = json.loads(Path(path).read_text(encoding="utf-8"))
        columns = [(ColumnSchema.from_json(record), record.get("role", "feature")) for record in records]
        meanings = {str(record["name"]): dict(record["meanings"]) for record in records if record.get("meanings")}
        unknown = {str(record["name"]): UnknownPolicy(record["unknown"]) for record in records if record.get("unknown")}
    except (ValueError, TypeError, AttributeError) as error:
        raise ModelFileError(f"The schema file is not a JSON list of columns: {error}.") from error
    features = [schema for schema, role in columns if role == "feature"]
    return reading | {
        "kinds": {c.name: c.kind for c in features},
        "missing": {c.name: c.missing for c in features} | dict(reading.get("missing") or {}),
        "unknown": {c.name: unknown[c.name] for c in features if c.name in unknown}
        | dict(reading.get("unknown") or {}),
        "units": {c.name: c.unit for c in features if c.unit},
        "special": {c.name: c.special for c in features if c.special} | dict(reading.get("special") or {}),
        "meanings": {c.name: meanings[c.name] for c in features if c.name in meanings}
        | dict(reading.get("meanings") or {}),
        "ignore": [*reading.get("ignore", ()), *(c.name for c, role in columns if role == "ignored")],
    }


def _mentions(options: dict[str, Any]) -> str:
    """Return the options in which a user may name columns, as one text."""
    option_names = (*flagged_options(), "extra", "wishes", "must", "without")
    return " ".join(str(options[name]) for name in option_names if options.get(name))


def _special(items: list[str]) -> dict[str, tuple[float, ...]]:
    """The special values by column; raises ParameterError or DataError if one is not written like income=-7,-8."""
    codes_by_column: dict[str, tuple[float, ...]] = {}
    for item in items:
        name, text = _column_and_codes(item)
        if not name:
            raise ParameterError(
                {"special": f"'{item[:80]}' does not look like COLUMN=VALUES, as in income=-7,-8,999."}
            )
        codes_by_column[name] = parse_codes(text, name)
    return codes_by_column


def _meanings(items: list[str]) -> dict[str, dict[str, str]]:
    """Return what the special values mean, by column."""
    pairs = (_column_and_codes(item) for item in items)
    return {name: found for name, text in pairs if (found := parse_meanings(text))}


def _column_and_codes(item: str) -> tuple[str, str]:
    """Split income=-7: no answer; a meaning may hold a further sign, and so may the name of a column."""
    head, colon, meaning = item.partition(":")
    name, _, codes = head.rpartition("=")
    return name, codes + colon + meaning


def _check_folder(output: str) -> None:
    folder = Path(output).resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ParameterError({"output": f"the folder of '{output}' does not exist or cannot be written to."})
