"""`explain MODEL.json DATA`: print the path of each row and its counterfactual.

A counterfactual is the smallest change that gives another answer.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any, NamedTuple

from trainer.cli.command import Options, note
from trainer.cli.reading_flags import OWN_FILES, add_file_flags, file_options
from trainer.errors import DataError, ParameterError, closest
from trainer.explain.flip import Flipper
from trainer.explain.least import COLUMNS, ORDER_TEXTS, least_of
from trainer.explain.permission import permissions, split_argument
from trainer.explain.record import explain_row
from trainer.explain.rows import rows_to_explain
from trainer.explain.statistics import split_cost, with_costs
from trainer.explain.words import words_of
from trainer.tree.file import read_model

HELP = (
    "Explain the answers for rows of a file: the questions with their distances, and the smallest change that gives another "
    "answer. DATA should be the file that trained the model: the size of a change is measured on its training rows."
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.json")
    parser.add_argument("data", metavar="DATA", help="CSV (also .gz), .xlsx, Parquet or Arrow")
    add_file_flags(parser)
    parser.add_argument(
        "--row",
        type=int,
        nargs="+",
        action="extend",
        metavar="N",
        help="rows to explain, from 1 without the header; default: all",
    )
    parser.add_argument(
        "--change",
        action="append",
        default=[],
        metavar="COLUMN=free|up|down|whole|never",
        help="how a column may change; several words joined by commas, or the categories that are allowed: COLUMN=A|B",
    )
    parser.add_argument(
        "--cost",
        action="append",
        default=[],
        metavar="COLUMN=NUMBER",
        help="what a change of 1 in a column of numbers costs; default: 1 / unit",
    )
    parser.add_argument(
        "--least",
        default=COLUMNS,
        metavar="columns|total",
        help="which change is the smallest: fewest columns first (the default), or the smallest total of all changes",
    )
    parser.add_argument("--wanted", metavar="CLASS", help="the answer to reach; default: any other")
    parser.add_argument("--json", action="store_true", help="print a JSON list, one object per row")


def run(options: Options) -> int:
    records, source, notes = _explain(options)
    for sentence in notes:
        note(sentence)
    note(f"changes are measured on {source}; the smallest is {ORDER_TEXTS[options['least']]}.")
    if options["json"]:
        print(json.dumps(records, ensure_ascii=False))
        return 0
    for record in records:
        print("\n".join(words_of(record)))
    return 0


class _Explained(NamedTuple):
    records: list[dict[str, Any]]
    source: str
    notes: tuple[str, ...]


def _explain(options: Options) -> _Explained:
    model = read_model(options["model"])
    tree = model.tree
    least = least_of(options["least"])
    target = _class_code(options["wanted"], tree.classes)
    changes = dict(split_argument(text, tree.schema) for text in options["change"])
    allowed = permissions(tree.schema, changes)
    rows = rows_to_explain(model, options["data"], limits=OWN_FILES, **file_options(options))
    numbers = options["row"] or range(1, len(rows.matrix) + 1)
    if outside := [n for n in numbers if not 1 <= n <= len(rows.matrix)]:
        raise DataError(
            f"There is no row {outside[0]}: the file has the rows 1 to {len(rows.matrix)}. Choose --row among them."
        )
    costs = dict(split_cost(text) for text in options["cost"])
    flipper = Flipper(tree, with_costs(tree.schema, rows.statistics, costs), allowed, least=least)
    records = [explain_row(flipper, rows.matrix[n - 1], n, target) for n in numbers]
    return _Explained(records, rows.source, rows.notes)


def _class_code(name: str | None, classes: tuple[str, ...]) -> int | None:
    """Return the code of a class; raise ParameterError if the model has no class of this name."""
    if name is None:
        return None
    if name not in classes:
        raise ParameterError(
            {
                "wanted": f"the model has no class '{name[:60]}'.{closest(name, classes)} Its classes are: {', '.join(classes)}."
            }
        )
    return classes.index(name)
