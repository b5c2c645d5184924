"""Read the rows to explain, and statistics of the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainer.data.column_statistics import ColumnStatistics, is_described
from trainer.data.parsing import ColumnParsing
from trainer.data.reader import ReadLimits, read_for_model, rows_for_model
from trainer.data.training_set import training_part
from trainer.dtypes import FloatArray
from trainer.errors import DataError
from trainer.explain.statistics import OF_FILE, statistics_of_model
from trainer.tree.file import ModelFile


@dataclass(frozen=True, kw_only=True)
class ExplainedRows:
    """Rows to explain: `matrix`, float64 (n, columns), NaN for empty cells, with statistics and their source in words.

    `trained` is True if the file holds the training rows of the model; the statistics are then theirs. `notes` are sentences
    on unusual cells.
    """

    matrix: FloatArray
    statistics: tuple[ColumnStatistics, ...]
    source: str
    trained: bool
    notes: tuple[str, ...] = ()


def rows_to_explain(
    model: ModelFile,
    data: str | Path,
    *,
    limits: ReadLimits | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    sheet: str | None = None,
) -> ExplainedRows:
    """Read a file of rows to explain as the training file was read.

    Raises DataError if the file lacks a column that the tree uses, and OSError if it cannot be opened.
    """
    tree = model.tree
    reading = ColumnParsing.from_json(model.reading)
    raw = read_for_model(
        data,
        reading,
        tree.used_names,
        target=model.target,
        delimiter=delimiter,
        encoding=encoding,
        header=header,
        sheet=sheet,
        limits=limits,
    )
    rows = rows_for_model(
        raw,
        tree.schema,
        target=model.target,
        classes=tree.classes,
        used=tree.used_columns,
        refused=tree.refused_columns,
        reading=reading,
    )
    matrix = rows.table.matrix()
    try:
        trained = training_part(model, raw)
    except DataError:  # the table lacks a column that the tree does not use, or has an invalid one
        trained = None
    if trained is not None:
        table, _ = trained
        column_statistics = statistics_of_model(tree, table.matrix())
        source = f"the {len(table):,} training rows of this file"
    elif is_described(tree):
        column_statistics = statistics_of_model(tree)
        source = OF_FILE
    else:
        column_statistics = statistics_of_model(tree, matrix)
        source = (
            f"all {len(matrix):,} rows of this file: it is not the file that trained the model, "
            "and the model file does not keep the units of its columns"
        )
    return ExplainedRows(
        matrix=matrix, statistics=column_statistics, source=source, trained=trained is not None, notes=rows.notes
    )
