"""`stability MODEL.json DATA`: how many training rows must change before another tree is as good."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser

import numpy as np

from trainer.cli.command import CommandError, Options
from trainer.data.formats.raw import RawTable
from trainer.data.parsing import ColumnParsing
from trainer.data.reader import read_for_model, rows_for_model
from trainer.data.training_set import training_part
from trainer.registry import get
from trainer.solver_common.problem_setup import pose
from trainer.table import Table
from trainer.tree.file import ModelFile, read_model
from trainer.workbench.stability import SCOPES, stability_of, stability_sentence

MOST_PRINTED = 20  # rows in the text; the record has all

HELP = (
    "How many training rows must be removed, or given another class, before another tree is as good as the optimal one: "
    "proved bounds, and rows that are enough. DATA is the file that trained the model."
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.json", help="an optimal tree of the method exact")
    parser.add_argument("data", metavar="DATA", help="CSV (also .gz), .xlsx, Parquet or Arrow")
    parser.add_argument(
        "--of", dest="scope", choices=SCOPES, default=SCOPES[0],
        help="what counts as another tree: another first question (root), or another answer for a training row (tree)",
    )  # fmt: skip
    parser.add_argument(
        "--row",
        type=int,
        metavar="N",
        help="instead: another answer for this row of the file, from 1 without the header",
    )
    parser.add_argument(
        "--change", choices=["remove", "relabel"], default="remove", help="whether rows are removed or relabelled"
    )
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")


def run(options: Options) -> int:
    model = read_model(options["model"])
    if not model.method:
        raise CommandError("no method of octweb trained this tree, so it is not proved optimal. Train it with 'exact'")
    method = get(model.method)
    reading = ColumnParsing.from_json(model.reading)
    names = {column.name for column in model.tree.schema}
    raw = read_for_model(options["data"], reading, names, target=model.target)
    part = training_part(model, raw)
    if part is None:
        raise CommandError("these are not the rows that trained the model. Give the file of the training")
    table, labels = part
    if (model.rows or {}).get("weights"):
        raise CommandError("stability counts rows, so they must not have weights. Train without weights")
    known = {parameter.name for parameter in method.parameters}
    settings = method.settings({name: value for name, value in model.parameters.items() if name in known})
    problem = pose(table, labels, settings)
    what = "another first question" if options["scope"] == "root" else "another answer for a training row"
    row = None
    if options["row"] is not None:
        row = _row(model, raw, options["row"])
        what = f"another answer for row {options['row']:,}"
    end = time.monotonic() + options["time_limit"]
    stability = stability_of(
        method, problem, settings, model.tree, scope=options["scope"], row=row, change=options["change"],
        stop=lambda: time.monotonic() > end,
    )  # fmt: skip
    # as `explain` numbers rows: from 1, without the header
    numbers = (1 + np.searchsorted(raw.line_numbers, table.row_numbers[list(stability.rows)])).tolist()
    classes = [model.tree.classes[label] for label in stability.labels]
    sentence = stability_sentence(stability, len(table), what)
    print(sentence)
    if numbers:
        named = [f"{n}" if not classes else f"{n} as {classes[k]}" for k, n in enumerate(numbers)]
        more = f" and {len(named) - MOST_PRINTED:,} more" if len(named) > MOST_PRINTED else ""
        print(f"Rows that are enough, from 1 without the header: {', '.join(named[:MOST_PRINTED])}{more}.")
    if options["json"]:
        record = {
            "scope": "row" if row is not None else options["scope"], "change": stability.change, "n": len(table),
            "lower": stability.lower, "upper": stability.upper, "exact": stability.exact,
            "rows": numbers, "classes": classes, "sentence": sentence,
        }  # fmt: skip
        print(json.dumps(record, ensure_ascii=False))
    return 0


def _row(model: ModelFile, raw: RawTable, number: int) -> Table:
    """Return one row of the file; raise CommandError if the file does not have it, or the model cannot read it."""
    rows = rows_for_model(raw, model.tree.schema, reading=ColumnParsing.from_json(model.reading))
    if not 1 <= number <= len(rows.usable):
        raise CommandError(
            f"there is no row {number}: the file has the rows 1 to {len(rows.usable)}. Choose --row among them"
        )
    if not rows.usable[number - 1]:
        raise CommandError(f"row {number} has an empty cell that the model refuses. Choose another --row")
    return rows.table.take(np.array([number - 1]))
