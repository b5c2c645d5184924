"""The guessed kind of a column, its reason, and the guessed target."""

from __future__ import annotations

import math
import random
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trainer.data.build import build
from trainer.data.formats.csv_file import read_csv
from trainer.data.formats.read_file import read_table
from trainer.data.parsing.cells import MARKS, NUMBER, Cells
from trainer.data.parsing.infer import guess_target, infer
from trainer.errors import DataError
from trainer.table import ColumnKind


def raw_of(**columns):
    names = list(columns)
    lines = [",".join(names), *(",".join(row) for row in zip(*columns.values(), strict=True))]
    return read_csv(("\n".join(lines) + "\n").encode(), delimiter=",")


def guess(*cells):
    return infer(raw_of(a=cells, z=["1"] * len(cells)))[0]


@pytest.mark.parametrize(
    ("cells", "kind", "reason", "missing"),
    [
        (("1.5", "2", "-3e2", "+.5"), ColumnKind.NUMERIC, "all 4 values are numbers", 0),
        (("0", "1", "1", "0"), ColumnKind.BINARY, "only 0 and 1", 0),
        (("true", "FALSE", "", "True"), ColumnKind.BINARY, "true is 1; 1 cell is empty", 1),
        (("00123", "123", "5", "6"), ColumnKind.CATEGORICAL, "leading zeros such as 00123", 0),
        (("9007199254740993", "1", "1", "2"), ColumnKind.CATEGORICAL, "2^53", 0),
        (("9007199254740992", "1", "1", "2"), ColumnKind.NUMERIC, "numbers", 0),
        (("1", "2", "3", "1"), ColumnKind.NUMERIC, "only 3 values (1, 2, 3)", 0),
        (("1.5", "NA", "?", "7.25"), ColumnKind.NUMERIC, "2 cells are empty or 'NA' or '?'", 2),
        (("DE", "NA", "FR", "DE"), ColumnKind.CATEGORICAL, "kept as a value", 0),
        (("yes", "NA", "no", "no"), ColumnKind.CATEGORICAL, "1 cell is empty or 'NA'", 1),
        (("2020-01-02", "2020-01-03", "2020-01-03", ""), ColumnKind.CATEGORICAL, "text with 2", 1),
        (("1", "2", "x", "4"), ColumnKind.CATEGORICAL, "such as 'x' are not", 0),
    ],
)
def test_kind_is_guessed(cells, kind, reason, missing):
    column = guess(*cells)
    assert column.schema.kind is kind
    assert reason in column.reason
    assert column.missing == missing


def test_flags():
    assert guess("a", "b", "c").identifier
    assert guess("a", "a", "a").constant
    assert guess(*map(str, range(1, 30))).identifier
    assert guess("", "", "").distinct == 0
    assert "Line 3" in guess("1.5", "inf", "2").problems[0]


def test_target():
    assert guess_target(infer(raw_of(Diagnosis=["M", "B"], x=["1", "2"]))) == (
        "Diagnosis",
        "the column is called 'Diagnosis'",
    )
    assert guess_target(infer(raw_of(a=["M", "B"], x=["1", "2"]))) == ("x", "it is the last column")


def test_build_sorts_categories_and_classes():
    raw = raw_of(k=["10", "9", "2.5", "9"], t=["b", "B", "a", "b"], y=["10", "9", "1.0", "1"])
    table, labels, _ = build(raw, target="y", kinds={"k": ColumnKind.CATEGORICAL})
    assert table.columns[0].schema.categories == ("2.5", "9", "10")
    assert table.columns[1].schema.categories == ("B", "a", "b")
    assert labels.classes == ("1", "1.0", "9", "10")
    assert [labels.classes[c] for c in labels.codes] == ["10", "9", "1.0", "1"]
    assert table.columns[0].values.tolist() == [2, 1, 0, 1]


def test_build_reports_what_it_leaves_out():
    raw = raw_of(
        a=["1", "2", "3"], b=["1", "2", "3"], c=["5", "5", "5"], n=["x", "y", "z"], e=["", "", ""], y=list("pqp")
    )
    table, _, report = build(raw, target="y")
    assert table.names == ("a", "b", "c")
    assert report.constant_columns == ("c",)
    assert report.duplicate_columns == (("b", "a"),)
    assert set(report.left_out) == {"n", "e"}
    assert build(raw, target="y", kinds={"n": ColumnKind.CATEGORICAL}, ignore=["b"])[0].names == ("a", "c", "n")


def test_numbers_are_read_as_python_reads_them():
    rng = np.random.default_rng(0)
    cells = [repr(float(v)) for v in rng.normal(size=500) * 10.0 ** rng.integers(-300, 300, 500)]
    cells += ["5.", ".5", "+7", "-0.0", "1E5", "123456789.123456789"]
    table, _, _ = build(raw_of(x=cells, y=["p", "q"] * (len(cells) // 2)), target="y")
    assert table.columns[0].values.tolist() == [float(c) for c in cells]


def test_invalid_utf8_makes_a_parquet_file_damaged(tmp_path):
    words = pa.StringArray.from_buffers(2, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"\xffa"))
    pq.write_table(pa.table({"a": words, "b": [1, 2]}), tmp_path / "odd.parquet")
    with pytest.raises(DataError, match="damaged"):
        read_table(tmp_path / "odd.parquet")


def test_quick_reading_of_numbers_equals_the_pattern():
    """The quick way for plain numbers finds the same words and values as the pattern of numbers."""
    rng = random.Random(0)
    parts = [
        "0",
        "1",
        "9",
        ".",
        "-",
        "+",
        "e",
        "E",
        "5",
        "inf",
        "nan",
        "x",
        "1e5",
        "0x1",
        "e000001",
        "1e400",
        "\u0663",
        "1,5",
        "NA",
        "",
    ]
    for _ in range(1000):
        words = ["".join(rng.choices(parts, k=rng.randint(0, 4))) for _ in range(rng.randint(1, 4))]
        cells = Cells.of(pa.array(words))
        expected = [re.search(NUMBER, word) is not None and math.isfinite(float(word)) for word in cells.words]
        assert cells.numbers.tolist() == expected, words
        assert [v for v, own in zip(cells.floats(), expected, strict=True) if own] == [
            float(word) for word, own in zip(cells.words, expected, strict=True) if own
        ]
        assert cells.marks.tolist() == [word in ("", *MARKS) for word in cells.words]
