"""Define arguments, checks and error handling of commands that train."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from trainer.cli.command import CommandError, Options, error_text, note
from trainer.cli.interrupts import Cancelled, Interrupts
from trainer.cli.parameters import INFEASIBLE, add_parameter_flags, flag_parameters, parameters_of
from trainer.cli.reading_flags import (
    add_reading_flags,
    given_of,
    policies_of,
    policy_of,
    reading_of_file,
    unknown_policies,
)
from trainer.counts.folder import Counts, read_counts
from trainer.counts.train import METHOD as COUNTED
from trainer.data.parsing.codes import parse_codes, parse_meanings
from trainer.data.reader import LoadReport, load
from trainer.dtypes import FloatArray
from trainer.errors import InfeasibleError, ModelFileError, ParameterError
from trainer.methods.base import Method
from trainer.table import ColumnSchema, Labels, Table, UnknownPolicy
from trainer.training.rewarded import as_costs
from trainer.training.run import TrainRequest
from trainer.tree.describe import number_text
from trainer.tree.nodes import tree_from_json

Train = Callable[[Options, Interrupts], None]


class TrainingData(NamedTuple):
    """The rows of a file, and the report of what was changed or left out."""

    table: Table
    labels: Labels
    report: LoadReport


# options of commands that also take counts
NEED_ROWS = (
    "test_share", "folds", "schema", "warm_start", "sha256", "killed", "progress", "group", "time", "weight", "ignore", "special",
)  # fmt: skip


def add_training_arguments(
    parser: ArgumentParser, *, target_help: str = "the column to predict", target_required: bool = True
) -> None:
    """Add DATA, --target, --ignore, --json, and the options of the methods and of reading a table."""
    parser.add_argument("data", metavar="DATA", help="CSV (also .gz), .xlsx, Parquet or Arrow")
    parser.add_argument("--target", required=target_required, metavar="COLUMN", help=target_help)
    add_parameter_flags(parser)
    add_reading_flags(parser)
    parser.add_argument(
        "--special",
        action="append",
        default=[],
        metavar="COLUMN=VALUES",
        help="values of a numeric column that are codes, as in income=-7,-8,999: each becomes a separate question",
    )
    parser.add_argument("--ignore", action="append", default=[], metavar="COLUMN", help="a column to leave out")
    parser.add_argument("--json", action="store_true", help="the last line of standard output is one JSON object")


def run_training(train: Train, options: Options) -> int:
    """Train with signal handlers and return the exit status; raise CommandError.

    SIGTERM and SIGINT end the search, and `train` prints its incumbent.
    """
    try:
        train(options, Interrupts())
    except InfeasibleError as error:
        if options["json"]:
            record = {"status": INFEASIBLE, "reason": error_text(error), "best": error.best, "best_of": error.of}
            print(json.dumps(record, allow_nan=False))
        raise
    except Cancelled as error:
        raise CommandError("cancelled before a tree was found") from error
    except MemoryError as error:
        raise CommandError("out of memory. Set a lower memory limit or a smaller depth") from error
    return 0


def checked_parameters(method: Method, options: Options, **fixed: Any) -> dict[str, Any]:
    """Return the parameters of the method from the options, overridden by `fixed`; note each flag without
    effect.

    Raise ParameterError for bad parameters and for an --output that cannot be written, before a large file is read.
    """
    raw, unused = parameters_of(method, options)
    for name in unused:
        note(f"--{name.replace('_', '-')} has no effect on the method '{method.id}'")
    raw |= fixed
    method.settings(raw)
    if options.get("output"):
        _check_folder(options["output"])
    return raw


def counts_of(options: Options) -> Counts:
    """Read the folder of counts that DATA names; raise ParameterError for a method or options that need rows."""
    if options["method"] != COUNTED:
        raise ParameterError(
            {
                "method": f"'{options['method']}' needs rows, and a folder of counts has none. Choose '{COUNTED}', or use the table."
            }
        )
    if options_of_rows := [name for name in NEED_ROWS if options.get(name)]:
        raise ParameterError(
            {options_of_rows[0]: "needs rows, and a folder of counts has none. Leave it out, or use the table."}
        )
    counts = read_counts(options["data"])
    if options["target"] not in (None, counts.questions.target):
        raise ParameterError(
            {
                "target": f"the counts are for the target '{counts.questions.target}'. Use that target, or leave --target out."
            }
        )
    return counts


def editing_request(
    options: Options, table: Table, labels: Labels, parameters: dict[str, Any]
) -> tuple[TrainRequest, FloatArray | None]:
    """Return the training whose tree is edited, with rewards as costs, and the rewards, as `as_costs` does."""
    return as_costs(
        TrainRequest(
            table=table,
            labels=labels,
            method=options["method"],
            parameters=parameters,
            test_share=options["test_share"],
            name=options["name"],
        )
    )


def read_data(options: Options) -> TrainingData:
    """Read the file and note what was left out or changed; raise DataError or ParameterError."""
    table, labels, report = load(options["data"], **_reading(options))
    for text in report.notes:
        note(text)
    return TrainingData(table, labels, report)


def _reading(options: Options) -> dict[str, Any]:
    """Return the arguments of `trainer.data.reader.load`; those of --schema take precedence over guesses."""
    reading = {
        "target": options["target"],
        "ignore": list(options["ignore"]),
        "default_missing": policy_of(options),
        "missing": policies_of(options),
        "unknown": unknown_policies(options),
        "special": _special(options["special"]),
        "meanings": _meanings(options["special"]),
        "given": given_of(options),
        "reading": reading_of_file(options),
        "mentions": _mentions(options),
        "group": options.get("group", ""),
        "time": options.get("time", ""),
        "weight": options.get("weight", ""),
    }
    return with_schema(reading, options["schema"]) if options.get("schema") else reading


def add_dependence_flags(parser: ArgumentParser) -> None:
    """Add --group, --time and --weight."""
    parser.add_argument(
        "--group",
        metavar="COLUMN",
        default="",
        help="rows with the same value belong together: they are held out together and in one fold; no question asks the column",
    )
    parser.add_argument(
        "--time",
        metavar="COLUMN",
        default="",
        help="dates or numbers that order the rows: the last rows are held out, and folds train on earlier rows only",
    )
    add_weight_flag(parser)


def add_weight_flag(parser: ArgumentParser) -> None:
    """Add --weight."""
    parser.add_argument(
        "--weight",
        metavar="COLUMN",
        default="",
        help="how much each row counts, a number that is not negative: objective and shares are of weights; no question asks the column",
    )


def weight_record(table: Table) -> dict[str, Any]:
    """Return the member "weight" of a record that counts weights: column, weight of one unit, and rows; {} without weights."""
    weights = table.weights
    if weights is None:
        return {}
    return {"weight": {"column": weights.column, "step": str(weights.step), "rows": len(table)}}


def with_rows(points: list[dict[str, Any]], table: Table, labels: Labels) -> list[dict[str, Any]]:
    """Return points of a frontier, with the number of correct rows if the rows are weighted."""
    if table.weights is None:
        return points
    matrix = table.matrix()
    trees = [tree_from_json(point["tree"], schema=table.schema, classes=labels.classes) for point in points]
    correct = [int((tree.predict(matrix) == labels.codes).sum()) for tree in trees]
    return [point | {"correct_rows": rows} for point, rows in zip(points, correct, strict=True)]


def weighed_text(count: int, table: Table) -> str:
    """Format a count of a frontier as a weight; without weights, as the plain count."""
    return str(count) if table.weights is None else number_text(float(table.weights.step * count), 4)


def with_schema(reading: dict[str, Any], path: str) -> dict[str, Any]:
    """Return `reading` with the kinds, missing policies, units and roles of a schema file; raise ModelFileError."""
    try:
        records = json.loads(Path(path).read_text(encoding="utf-8"))
        columns = [(ColumnSchema.from_json(record), record.get("role", "feature")) for record in records]
        meanings = {str(record["name"]): dict(record["meanings"]) for record in records if record.get("meanings")}
        unknown = {str(record["name"]): UnknownPolicy(record["unknown"]) for record in records if record.get("unknown")}
    except (ValueError, TypeError, AttributeError) as error:
        raise ModelFileError(
            f"The file of --schema is not a JSON list of columns: {str(error).rstrip('.')}. Write objects with name, kind, missing, unit and role."
        ) from error
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


def _mentions(options: Options) -> str:
    """Return the options in which a user may name columns, as one text."""
    names = (*flag_parameters(), "extra", "wishes", "must", "without")
    return " ".join(str(options[name]) for name in names if options.get(name))


def _special(items: list[str]) -> dict[str, tuple[float, ...]]:
    """Return the special values by column; raise ParameterError or DataError unless they look like income=-7,-8."""
    codes: dict[str, tuple[float, ...]] = {}
    for item in items:
        name, text = _column_and_codes(item)
        if not name:
            raise ParameterError(
                {"special": f"'{item[:80]}' does not look like COLUMN=VALUES, as in income=-7,-8,999."}
            )
        codes[name] = parse_codes(text, name)
    return codes


def _meanings(items: list[str]) -> dict[str, dict[str, str]]:
    """Return the meanings of the special values by column."""
    pairs = (_column_and_codes(item) for item in items)
    return {name: meanings for name, text in pairs if (meanings := parse_meanings(text))}


def _column_and_codes(item: str) -> tuple[str, str]:
    """Split "income=-7: no answer"; the meaning and the name of the column may contain '='."""
    head, colon, meaning = item.partition(":")
    name, _, codes = head.rpartition("=")
    return name, codes + colon + meaning


def _check_folder(output: str) -> None:
    folder = Path(output).resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ParameterError(
            {
                "output": f"the folder of '{output}' does not exist or cannot be written to. Create it, or choose another path."
            }
        )
