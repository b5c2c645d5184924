"""Prediction rows: exact values, notes on unknown categories, and errors by row and column."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest

from tests.seeds import seeds
from trainer.data.formats.csv_file import read_csv
from trainer.data.formats.parquet_file import PARQUET
from trainer.data.formats.raw import RawTable
from trainer.data.reader import rows_for_model
from trainer.data.rows import UNKNOWN_CODE, parse_rows
from trainer.errors import DataError, RowError
from trainer.table import ColumnKind, ColumnSchema, MissingPolicy

SCHEMA = (
    ColumnSchema(name="worst area", kind=ColumnKind.NUMERIC),
    ColumnSchema(name="flag", kind=ColumnKind.BINARY),
    ColumnSchema(
        name="k", kind=ColumnKind.CATEGORICAL, categories=("1", "2.0", "x", "(missing)"), missing=MissingPolicy.CATEGORY
    ),
    ColumnSchema(name="s", kind=ColumnKind.CATEGORICAL, categories=("a", "b")),
)
GOOD = {"worst area": 1.5, "flag": 1, "k": "x", "s": "b"}


def test_values_and_notes():
    rows = [
        GOOD,
        GOOD | {"flag": True, "k": 1},
        GOOD | {"k": 2.0, "s": "new"},
        GOOD | {"k": None},
        {"s": "a", "flag": 0, "worst area": 2},
    ]
    parsed = parse_rows(SCHEMA, range(4), rows)
    assert parsed.matrix.tolist() == [
        [1.5, 1, 2, 1], [1.5, 1, 0, 1], [1.5, 1, 1, UNKNOWN_CODE], [1.5, 1, 3, 1], [2, 0, 3, 0]
    ]  # fmt: skip
    assert [(note.row, note.column, note.value) for note in parsed.notes] == [(2, "s", "new")]


def test_unused_columns_may_be_absent():
    matrix = parse_rows(SCHEMA, [1], [{"flag": 1}]).matrix
    assert matrix[0, 1] == 1
    assert math.isnan(matrix[0, 0])
    assert math.isnan(matrix[0, 3])


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            {"worst_area": 1},
            ["rows[1]: column 'worst_area' is not known", "Did you mean 'worst area'?", "needs 4 columns"],
        ),
        (GOOD | {"worst area": "12 m"}, ["rows[1]", "'worst area'", "the text '12 m'"]),
        (GOOD | {"worst area": "9007199254740993"}, ["needs a number, but has the text"]),
        (GOOD | {"worst area": "\ud800"}, ["needs a number"]),
        (GOOD | {"worst area": " NA "}, ["has no value"]),
        (GOOD | {"worst area": None}, ["has no value"]),
        (GOOD | {"worst area": 10**400}, ["2^53"]),
        (GOOD | {"worst area": 2**53 + 1}, ["2^53"]),
        (GOOD | {"worst area": math.nan}, ["finite"]),
        (GOOD | {"worst area": math.inf}, ["finite"]),
        (GOOD | {"worst area": [1]}, ["a list"]),
        (GOOD | {"flag": 10**400}, ["2^53"]),
        (GOOD | {"s": {"a": 1}}, ["an object"]),
        (GOOD | {"s": ["a"]}, ["a list"]),
        (GOOD | {"s": None}, ["has no value"]),
        (GOOD | {"s": 10**5000}, ["digits"]),
        (GOOD | {"s": math.nan}, ["not finite"]),
        ([1], ["rows[1] must be an object"]),
        (None, ["null"]),
        (GOOD | {7: 1}, ["column '7'"]),
    ],
)
def test_errors_are_named(row, words):
    with pytest.raises(RowError) as caught:
        parse_rows(SCHEMA, range(4), [GOOD, row])
    assert caught.value.row == 1
    for word in words:
        assert word in str(caught.value)


@seeds(300)
def test_any_json_gives_a_matrix_or_a_row_error(seed):
    rng = random.Random(seed)
    values = [
        None,
        True,
        0,
        1,
        -1.5,
        "",
        "x",
        "a",
        [],
        [[1]],
        {},
        10**400,
        -(10**5000),
        math.nan,
        -math.inf,
        "\ud800",
        1e308,
    ]
    names = [s.name for s in SCHEMA] + ["other", ""]
    rows = [
        {rng.choice(names): rng.choice(values) for _ in range(4)}
        if rng.random() < 0.3
        else GOOD | {rng.choice(names[:4]): rng.choice(values)}
        for _ in range(3)
    ]
    try:
        parsed = parse_rows(SCHEMA, rng.sample(range(4), 2), rows)
    except RowError:
        return
    assert parsed.matrix.shape == (3, 4)
    assert not np.isinf(parsed.matrix).any()


@pytest.mark.parametrize("word", ["", " ", "NA", "?", "null"])
def test_words_for_missing_mean_the_same_in_a_call_as_in_a_file(word):
    own = ColumnSchema(
        name="c", kind=ColumnKind.CATEGORICAL, categories=("(missing)", "a"), missing=MissingPolicy.CATEGORY
    )
    assert parse_rows([own], [0], [{"c": word}]).matrix.tolist() == [[0.0]]
    raw = read_csv(f'c,d\n"{word}",1\na,2\n'.encode())
    assert rows_for_model(raw, [own]).table.matrix().tolist() == [[0.0], [1.0]]
    known = ColumnSchema(name="c", kind=ColumnKind.CATEGORICAL, categories=("NA", "DE"))
    assert parse_rows([known], [0], [{"c": "NA"}]).matrix.tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("categories", "cells", "expected"),
    [
        (("1", "2", "3"), ["1", 1, 1.0, "1.0", " 2 ", "2e0", 3], [0, 0, 0, 0, 1, 1, 2]),
        (("1.0", "2.5"), ["1", 1, 1.0, 2.5, "2.50"], [0, 0, 0, 1, 1]),
        (("false", "true"), [True, "True", "TRUE", 1, "0", False], [1, 1, 1, 1, 0, 0]),
        (("0", "1"), [True, "true", False], [1, 1, 0]),
        (("N", "É"), ["n", "e\u0301", "n\u200b"], [0, 1, 0]),
        (("Yes", "yes"), ["YES", "Yes", "yes"], [-1, 0, 1]),
        (("007", "7"), ["07", 7, 7.0], [-1, 1, 1]),
    ],
)
def test_differently_written_value_is_known_in_every_interface(categories, cells, expected):
    schema = (ColumnSchema(name="c", kind=ColumnKind.CATEGORICAL, categories=categories),)
    found = parse_rows(schema, (0,), [{"c": cell} for cell in cells])
    assert found.matrix[:, 0].tolist() == expected
    assert len(found.notes) == expected.count(-1)
    words = [str(cell).lower() if isinstance(cell, bool) else str(cell) for cell in cells]
    raw = RawTable(names=("c",), columns=(pa.array(words),), line_numbers=np.arange(len(words)) + 1, detected=PARQUET)
    rows = rows_for_model(raw, schema)
    assert rows.table.columns[0].values.tolist() == expected
    assert rows.unknown == ({"c": expected.count(-1)} if -1 in expected else {})


@pytest.mark.parametrize("word", ["1.5", " 2 ", "+3", "1e2", ".5", "true", "FALSE", "NA", "", "?", "1"])
@pytest.mark.parametrize("kind", [ColumnKind.NUMERIC, ColumnKind.BINARY])
def test_text_means_the_same_number_in_json_and_files(word, kind):
    schema = (ColumnSchema(name="a", kind=kind, missing=MissingPolicy.LEARN),)
    raw = read_csv(f'a,y\n"{word}",p\n'.encode())
    try:
        expected = rows_for_model(raw, schema).table.columns[0].values.tolist()
    except DataError:
        with pytest.raises(RowError):
            parse_rows(schema, [0], [{"a": word}])
        return
    found = parse_rows(schema, [0], [{"a": word}]).matrix[:, 0].tolist()
    assert np.array_equal(found, expected, equal_nan=True)


def test_truth_is_a_number_in_json_as_in_files():
    assert parse_rows(SCHEMA, range(4), [GOOD | {"worst area": True}]).matrix[0, 0] == 1.0
