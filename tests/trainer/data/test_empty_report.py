"""The report of empty cells: by combination of columns and by class."""

from __future__ import annotations

import numpy as np

from trainer.data.empty_report import empty_report
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, MissingPolicy, Table


def table_of(**columns: list[float]) -> Table:
    made = tuple(
        Column(schema=ColumnSchema(name=name, kind=ColumnKind.NUMERIC, missing=MissingPolicy.LEARN), cells=np.array(v))
        for name, v in columns.items()
    )
    return Table(columns=made, row_numbers=np.arange(1, len(made[0].values) + 1))


def test_report_counts_rows_columns_and_patterns():
    gap = np.nan
    table = table_of(a=[1, gap, gap, gap, 2], b=[1, gap, gap, 3, 4], c=[0, 1, 2, 3, 4])
    labels = Labels(name="y", classes=("p", "q"), codes=np.array([0, 0, 1, 1, 1], np.int32))
    report = empty_report(table, labels)
    assert (report.rows, report.rows_with_empty, report.other_rows) == (5, 3, 0)
    assert [(c.name, c.empty, c.classes_empty, c.classes_present) for c in report.columns] == [
        ("a", 3, (1, 2), (1, 1)),
        ("b", 2, (1, 1), (1, 2)),
    ]
    assert report.patterns == (((0, 1), 2), ((0,), 1))
    assert not any(c.telling for c in report.columns)


def test_report_of_a_complete_table_is_empty():
    labels = Labels(name="y", classes=("p", "q"), codes=np.array([0, 1], np.int32))
    assert empty_report(table_of(a=[1, 2]), labels).columns == ()


def test_emptiness_is_telling_only_beyond_chance():
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 3, 300).astype(np.int32)
    labels = Labels(name="y", classes=("p", "q", "r"), codes=codes)
    telling = np.where((codes == 1) & (rng.random(300) < 0.6), np.nan, 1.0)
    chance = np.where(rng.random(300) < 0.3, np.nan, 1.0)
    every = np.full(300, np.nan)
    report = empty_report(table_of(telling=telling, chance=chance, every=every), labels)
    assert {c.name: c.telling for c in report.columns} == {"telling": True, "chance": False, "every": False}
    assert report.columns[0].name == "every", "most empty cells first"


def test_categories_of_empty_cells_are_counted():
    schema = ColumnSchema(
        name="k", kind=ColumnKind.CATEGORICAL, categories=("a", "(missing)"), missing=MissingPolicy.LEARN
    )
    table = Table(columns=(Column(schema=schema, cells=np.array([0.0, 1.0, 1.0])),), row_numbers=np.arange(1, 4))
    labels = Labels(name="y", classes=("p", "q"), codes=np.array([0, 1, 1], np.int32))
    assert empty_report(table, labels).rows_with_empty == 2
