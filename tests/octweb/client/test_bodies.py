"""Rows, files and options are sent as the server reads them."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from octweb.batch.api import NewBatchPredictionSerializer
from octweb.client import bodies, datasets, models
from octweb.datasets.serializers import NewDatasetSerializer
from tests.octweb.client.answers import DATASET, RUN, model_of, ok

CELLS = {"a": 1.5, "b": None, "c": "x", "d": 3}


@pytest.mark.parametrize(
    "rows",
    [
        CELLS,
        [CELLS],
        ({"a": np.float64(1.5), "b": float("nan"), "c": np.str_("x"), "d": np.int64(3)} for _ in range(1)),
        pd.DataFrame({"a": [1.5], "b": [np.nan], "c": ["x"], "d": [3]}),
        pd.DataFrame({"a": [1.5], "b": [pd.NA], "c": ["x"], "d": [3]}).convert_dtypes(),
        pl.DataFrame({"a": [1.5], "b": [None], "c": ["x"], "d": [3]}),
    ],
    ids=["dict", "list", "numpy", "pandas", "nullable", "polars"],
)
def test_rows_of_every_form_are_sent_alike(rows):
    assert json.dumps(bodies.rows_of(rows)) == json.dumps([CELLS])


def test_dates_and_flags_are_sent_as_the_server_reads_them():
    frame = pd.DataFrame({"when": [pd.Timestamp("2026-11-02"), pd.NaT], "flag": [True, False]})
    assert bodies.rows_of(frame) == [{"when": "2026-11-02", "flag": True}, {"when": None, "flag": False}]
    frame["when"] = [pd.Timestamp("2026-11-02"), pd.Timestamp("2026-11-02 13:30")]
    assert [row["when"] for row in bodies.rows_of(frame)] == ["2026-11-02T00:00:00", "2026-11-02T13:30:00"]
    assert bodies.rows_of({"when": pd.Timestamp("2026-11-02")}) == [{"when": "2026-11-02T00:00:00"}]


def test_frame_with_equal_names_is_refused():
    with pytest.raises(ValueError, match="2 columns 'a'"):
        bodies.rows_of(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_values_that_are_no_row_are_refused():
    with pytest.raises(TypeError, match="mapping of column to value, not list"):
        bodies.rows_of([[1, 2]])
    with pytest.raises(ValueError, match="infinite"):
        bodies.rows_of({"a": float("inf")})


@pytest.mark.parametrize("source", ["missing.csv", io.StringIO("a\n1\n"), 7])
def test_values_that_are_no_file_are_refused(source):
    with pytest.raises((FileNotFoundError, TypeError), match=r"missing.csv|binary mode|int is not a path"):
        bodies.open_file(source)


@pytest.mark.parametrize(
    ("known", "serializer", "own", "send"),
    [
        (
            datasets.READ_OPTIONS,
            NewDatasetSerializer,
            {"file", "name", "target", "team"},
            lambda client: client.datasets.upload(b"a\n1\n", sep=";"),
        ),
        (
            models.FILE_OPTIONS,
            NewBatchPredictionSerializer,
            {"file", "model"},
            lambda client: model_of(client).predict_file(b"a\n1\n", sep=";"),
        ),
    ],
)
def test_options_of_a_file_are_those_of_the_api(played, known, serializer, own, send):
    assert {*known} == serializer().fields.keys() - own
    client, calls = played()
    with pytest.raises(TypeError, match=f"'sep' is not an option. The options are {known[0]}"):
        send(client)
    assert calls == []


def test_numbers_of_numpy_are_sent_as_parameters(played):
    client, calls = played(ok(DATASET), ok(RUN, 201))
    costs = {"a": {"b": np.float64(2.5)}}
    client.train(client.datasets.get("d1"), depth=np.int64(3), forbidden=np.array(["x"]), costs=costs)
    assert json.loads(calls[1].content)["parameters"] == {"depth": 3, "forbidden": ["x"], "costs": {"a": {"b": 2.5}}}
