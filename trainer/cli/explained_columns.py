"""Build the columns of `predict --explain` from options or a server's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trainer.data.column_statistics import is_described
from trainer.data.formats.file_bytes import ReadLimits
from trainer.errors import DataError
from trainer.explain.columns import ExplainedColumns, ExplainOptions, explain_options
from trainer.explain.least import COLUMNS
from trainer.explain.permission import split_argument
from trainer.explain.rows import rows_to_explain
from trainer.explain.statistics import OF_FILE, split_cost, statistics_of_model
from trainer.tree.file import ModelFile

UNITS_OF_TREE = "units of 1 and steps of the tree's thresholds: --units-from names the file that trained the model"


def explained_columns(model: ModelFile, options: dict[str, Any], limits: ReadLimits) -> ExplainedColumns:
    """Return the columns that the options request; raise DataError, ParameterError or OSError."""
    if options["explain_with"]:
        record = json.loads(Path(options["explain_with"]).read_text(encoding="utf-8"))
        return ExplainedColumns(model.tree, ExplainOptions.from_json(record))
    change = dict(split_argument(text, model.tree.schema) for text in options["change"])
    statistics = statistics_of_model(model.tree)
    source = OF_FILE if is_described(model.tree) else UNITS_OF_TREE
    if options["units_from"]:
        rows = rows_to_explain(model, options["units_from"], limits=limits)
        if not rows.trained:
            raise DataError(
                f"The file '{Path(options['units_from']).name}' is not the one that trained the model. Give that file to --units-from, or leave the option out."
            )
        statistics = rows.statistics
        source = rows.source
    cost = dict(split_cost(text) for text in options["cost"])
    least = options["least"] or COLUMNS
    explain = explain_options(model.tree, statistics, source, change=change, cost=cost, least=least)
    return ExplainedColumns(model.tree, explain)
