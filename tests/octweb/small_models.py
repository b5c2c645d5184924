"""Model documents for tests of octweb, trained on a small table."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from trainer.table import Column, ColumnKind, ColumnSchema, Labels, MissingPolicy, Table
from trainer.training.run import TrainRequest, train


def small_table(rows: int = 120, seed: int = 3) -> tuple[Table, Labels]:
    """Return a table of two numeric columns, a binary and a categorical one, and labels of three classes."""
    rng = np.random.default_rng(seed)
    width = rng.integers(0, 20, rows) / 2
    height = rng.normal(size=rows).round(2)
    flag = rng.integers(0, 2, rows).astype(float)
    colour = rng.integers(0, 3, rows).astype(float)
    codes = np.where(width > 5, np.where(colour == 1, 2, 1), (height > 0).astype(int)).astype(np.int32)
    columns = (
        Column(schema=ColumnSchema(name="width", kind=ColumnKind.NUMERIC, unit="mm"), cells=width),
        Column(schema=ColumnSchema(name="height", kind=ColumnKind.NUMERIC), cells=height),
        Column(schema=ColumnSchema(name="flag", kind=ColumnKind.BINARY), cells=flag),
        Column(
            schema=ColumnSchema(
                name="colour",
                kind=ColumnKind.CATEGORICAL,
                categories=("blue", "green", "red"),
                missing=MissingPolicy.DROP,
            ),
            cells=colour,
        ),
    )
    labels = Labels(name="kind", classes=("a", "b", "c"), codes=codes)
    return Table(columns=columns, row_numbers=np.arange(1, rows + 1)), labels


def small_table_with_gaps() -> tuple[Table, Labels]:
    """Return the small table, with an empty width in each seventh row, from which methods learn a side."""
    table, labels = small_table()
    width = table.columns[0]
    values = np.where(np.arange(len(table)) % 7 == 0, np.nan, width.values)
    learned = replace(width, schema=replace(width.schema, missing=MissingPolicy.LEARN), cells=values)
    return replace(table, columns=(learned, *table.columns[1:])), labels


def csv_of_small_table() -> str:
    """Return the rows of `small_table` as the text of a CSV file."""
    table, labels = small_table()
    lines = [",".join([*table.names, labels.name])]
    for i in range(len(table)):
        cells = []
        for column in table.columns:
            value = column.values[i]
            cells.append(column.schema.categories[int(value)] if column.schema.categories else f"{value:g}")
        lines.append(",".join([*cells, labels.classes[labels.codes[i]]]))
    return "\n".join(lines) + "\n"


@cache
def _trained(method: str, folds: int, parameters: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    table, labels = small_table()
    result = train(
        TrainRequest(table=table, labels=labels, method=method, parameters=dict(parameters), folds=folds, name="Small")
    )
    return result.model.to_json()


def trained(method: str, folds: int = 0, **parameters: Any) -> dict[str, Any]:
    """Return the document of a tree of `method` on the small table. It is a copy that the test may change."""
    return copy.deepcopy(_trained(method, folds, tuple(sorted(parameters.items()))))
