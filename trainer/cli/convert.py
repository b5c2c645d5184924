"""`convert SOURCE --output MODEL.json`: write another program's tree as a model file."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainer.cli.command import CommandError, Options
from trainer.cli.interrupts import Cancelled, Interrupts
from trainer.cli.reading_flags import add_reading_flags, given_of, reading_of_file, unknown_policies
from trainer.convert import FORMS, ConvertedTree, convert, count_rows, fitted_to, form_of, rival, uncounted
from trainer.convert.source import MOST_BYTES
from trainer.data.formats.raw import RawTable
from trainer.data.formats.read_file import read_table
from trainer.data.parsing import ColumnParsing
from trainer.data.reader import reading_of
from trainer.errors import ConversionError, ParameterError
from trainer.evaluate.verdict import training_base_words
from trainer.table import with_unknown
from trainer.tree.describe import rules_text
from trainer.tree.file import write

HELP = (
    "Convert a tree of another program into a model file that claims nothing: a LightGBM model of one tree (the text of "
    "save_model or the JSON of dump_model), a TreeModel of PMML 4, or a model file of octweb without its claims. scikit-learn's trees are converted from Python: "
    "trainer.convert.from_sklearn."
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="the file of the other program")
    parser.add_argument("--from", dest="form", choices=FORMS, help="what SOURCE is; detected if it is not given")
    parser.add_argument("--output", metavar="MODEL.json", help="where to write the model")
    parser.add_argument(
        "--data", metavar="TABLE", help="CSV (also .gz), .xlsx, Parquet or Arrow: rows on which the tree is counted"
    )
    parser.add_argument("--target", metavar="COLUMN", help="the column of the classes; PMML names it itself")
    parser.add_argument(
        "--classes", metavar="A,B", help="the names of the classes in the order of the source, such as no,yes"
    )
    parser.add_argument("--name", default="", help="a name, stored in the model file")
    parser.add_argument(
        "--compare",
        action="store_true",
        help="search for a better tree with as many leaves and the same depth, over all thresholds; needs --data",
    )
    parser.add_argument(
        "--time-limit", type=float, default=60.0, metavar="SECONDS", help="the longest time of --compare (60)"
    )
    add_reading_flags(parser)
    parser.add_argument("--json", action="store_true", help="the last line of standard output is one JSON object")


def run(options: Options) -> int:
    interrupts = Interrupts()
    try:
        _convert(options, interrupts)
    except Cancelled as error:
        raise CommandError("cancelled") from error
    except MemoryError as error:
        raise CommandError("out of memory. Give fewer rows") from error
    return 0


def _convert(options: Options, interrupts: Interrupts) -> None:
    if options["compare"] and not options["data"]:
        raise ParameterError({"compare": "needs --data, the rows on which trees are compared."})
    if options["time_limit"] <= 0:
        raise ParameterError({"time-limit": "must be more than 0 seconds."})
    source = _read_source(options)
    if not options["data"]:
        model = uncounted(source, target=options["target"] or "", name=options["name"])
        record: dict[str, Any] = {"counted": False}
    else:
        if source.form == "lightgbm" and not options["target"]:
            raise ParameterError(
                {"target": "LightGBM does not store it. Name the column of --data that has the classes."}
            )
        raw, reading = _read_rows(options)
        model = count_rows(source, raw, reading, target=options["target"] or "", name=options["name"])
        counts = model.certificate
        record = {"counted": True, "n": counts["n"], "correct": counts["correct"]}
        record["train_accuracy"] = counts["objective"]
    tree = replace(model.tree, schema=with_unknown(model.tree.schema, unknown_policies(options)))
    model = replace(model, tree=tree)
    record |= {"leaves": model.tree.n_leaves, "depth": model.tree.depth, "classes": list(model.tree.classes)}
    if options["output"]:
        write(model, options["output"])
    print(rules_text(model.tree), end="")
    if record["counted"]:
        print(f"{record['correct']} of {record['n']} rows correct, {record['leaves']} leaves")
        print(training_base_words(model.tree))
    if options["compare"]:
        tree, table, labels = fitted_to(source.tree, raw, reading, model.target)
        best = rival(tree, table, labels, time_limit=options["time_limit"], on_start=interrupts.on_start)
        print(best.words)
        record["compare"] = best.to_json() | {"stopped": interrupts.cancelled and not best.settled}
    if options["json"]:
        print(json.dumps(record, allow_nan=False))


def _read_source(options: Options) -> ConvertedTree:
    path = Path(options["source"])
    if path.stat().st_size > MOST_BYTES:
        raise ConversionError(
            f"The file '{path}' is larger than the limit of {MOST_BYTES // 10**6} MB. Give a model of one smaller tree."
        )
    content = path.read_bytes()
    classes = [name.strip() for name in options["classes"].split(",")] if options["classes"] else None
    return convert(content, options["form"] or form_of(content), classes=classes)


def _read_rows(options: Options) -> tuple[RawTable, ColumnParsing]:
    """Return the rows of --data, and the parsing of their cells."""
    choices = given_of(options)
    raw = read_table(options["data"], **choices.structure)
    return raw, reading_of_file(options) or reading_of(raw, choices)
