"""Explanation columns of batch predictions equal `explained`, and stop when time runs out."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from tests.octweb.small_models import small_table, trained
from trainer.data.column_statistics import statistics
from trainer.errors import ParameterError
from trainer.explain import columns as module
from trainer.explain.columns import ExplainedColumns, ExplainOptions
from trainer.explain.flip import Flipper
from trainer.explain.permission import permissions
from trainer.explain.record import explain_row
from trainer.explain.words import step_text
from trainer.prediction.predict_file import predict_file
from trainer.tree.file import from_json

MODEL = from_json(trained("cart", depth=3))
TABLE, _ = small_table()
KNOWN = statistics(MODEL.tree.schema, TABLE.matrix())
NAMES = [name for name, _ in ExplainedColumns.fields]


def data(tmp_path, gap: int | None = None):
    columns = {
        c.schema.name: pa.array([c.schema.categories[int(v)] for v in c.values] if c.schema.categories else c.values)
        for c in TABLE.columns
    }
    if gap is not None:
        name = MODEL.tree.schema[MODEL.tree.used_columns[0]].name
        columns[name] = pa.array([None if i == gap else v for i, v in enumerate(columns[name].to_pylist())])
    pacsv.write_csv(pa.table(columns), tmp_path / "in.csv")
    return tmp_path / "in.csv"


def columns_of(**wishes) -> ExplainedColumns:
    return ExplainedColumns(MODEL.tree, ExplainOptions(statistics=KNOWN, source="all rows", **wishes))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_each_row_says_what_its_record_says(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(ExplainedColumns, "piece", 17)
    out = tmp_path / f"out.{kind}"
    change = {"width": "up"}
    summary = predict_file(MODEL, data(tmp_path, gap=20), out, more=columns_of(change=change))
    plain = tmp_path / f"plain.{kind}"
    predict_file(MODEL, data(tmp_path, gap=20), plain)
    read = pq.read_table if kind == "parquet" else lambda p: pacsv.read_csv(p)
    rows = read(out).to_pylist()
    before = read(plain).to_pylist()
    assert [{k: v for k, v in row.items() if k not in NAMES} for row in rows] == before
    assert list(rows[0])[-len(NAMES) :] == NAMES
    assert not any(rows[20][name] for name in NAMES)
    flipper = Flipper(MODEL.tree, KNOWN, permissions(MODEL.tree.schema, change))
    flips = 0
    for i in (i for i in range(len(rows)) if i != 20):
        record = explain_row(flipper, TABLE.matrix()[i], 0)
        row = rows[i]
        assert row["path"] == "; ".join(step_text(step) for step in record["path"])
        flip = record["flip"]
        if flip is None:
            assert (row["flip"] or None, row["no_flip"]) == (None, record["no_flip"])
            continue
        flips += 1
        assert (row["flip_label"], row["flip_distance"]) == (flip["label"], flip["distance"])
        assert row["flip_proved"] is flip["proved"] is True
        assert all(f"{name} " in row["flip"] for name in flip["changes"])
        assert row["flip"].count(" -> ") == flip["columns"]
    assert flips > 50
    assert "The smallest changes are measured on all rows." in summary.notes


def test_no_more_rows_than_a_piece_are_explained_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(ExplainedColumns, "piece", 17)
    sizes = []
    more = columns_of()
    of = more.of
    monkeypatch.setattr(more, "of", lambda matrix, usable: sizes.append(len(matrix)) or of(matrix, usable))
    for path in (data(tmp_path), tmp_path / "in.parquet"):
        if path.suffix == ".parquet":
            pq.write_table(pacsv.read_csv(tmp_path / "in.csv"), path)
        sizes.clear()
        predict_file(MODEL, path, tmp_path / "out.csv", more=more)
        assert sum(sizes) == len(TABLE)
        assert max(sizes) == 17


def test_rows_after_time_limit_have_no_explanation(tmp_path, monkeypatch):
    more = columns_of(seconds=100)
    ticks = iter(range(1000))
    start = more.flipper.until - 100
    monkeypatch.setattr(module.time, "monotonic", lambda: start + 2.5 * next(ticks))
    summary = predict_file(MODEL, data(tmp_path), tmp_path / "out.csv", more=more)
    with (tmp_path / "out.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    done = [bool(row["path"]) for row in rows]
    assert done == sorted(done, reverse=True)
    late = done.count(False)
    assert 0 < late < len(rows)
    assert all(row["label"] for row in rows)
    assert f"{late} rows are predicted but not explained: the time for explanations was over." in summary.notes


def test_wishes_survive_json_and_unknown_columns_are_refused():
    wishes = ExplainOptions(statistics=KNOWN, source="rows", change={"colour": ["red"]}, seconds=2.5)
    assert ExplainOptions.from_json(json.loads(json.dumps(wishes.to_json()))) == wishes
    assert ExplainOptions.from_json(ExplainOptions(statistics=KNOWN, source="").to_json()).seconds == np.inf
    with pytest.raises(ParameterError, match="lenght"):
        columns_of(change={"lenght": "up"})


def test_words_that_a_spreadsheet_would_run_get_an_apostrophe(tmp_path):
    stream = io.StringIO()

    class Formula(ExplainedColumns):
        def of(self, matrix, usable):
            return [["=1+1"] * len(matrix), *([None] * len(matrix) for _ in NAMES[1:])]

    more = Formula(MODEL.tree, ExplainOptions(statistics=KNOWN, source="rows"))
    predict_file(MODEL, data(tmp_path), stream, more=more, for_spreadsheets=True)
    rows = list(csv.DictReader(io.StringIO(stream.getvalue())))
    assert {row["path"] for row in rows} == {"'=1+1"}


@pytest.mark.parametrize(
    ("op", "threshold", "words"),
    [
        ("<=", 40.5, "age is 31 (<= 40.5)"),
        ("between", [18.5, 40.5], "age is 31 (between 18.5 and 40.5)"),
        ("not between", [-8.5, -7.5], "age is 31 (not between −8.5 and −7.5)"),
        ("between", [None, 40.5], "age is 31 (<= 40.5)"),
        ("not between", [None, 18.5], "age is 31 (> 18.5)"),
        ("between", [18.5, None], "age is 31 (> 18.5)"),
        ("not between", [40.5, None], "age is 31 (<= 40.5)"),
        ("in", ["31", "rot, hell"], 'age is 31 (in 31, "rot, hell")'),
    ],
)
def test_step_states_the_compared_threshold(op, threshold, words):
    assert step_text({"column": "age", "value": 31, "op": op, "threshold": threshold, "distance": None}) == words
