"""Reading long cells takes time in proportion to their length."""

from __future__ import annotations

import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trainer.check.recount.table.rows import NUMBER
from trainer.data.formats.csv_file import read_csv
from trainer.data.formats.raw import MAX_NAME_CHARACTERS
from trainer.data.formats.spreadsheet import as_text
from trainer.data.parsing import reading_of
from trainer.data.reader import read_table
from trainer.errors import DataError

LENGTH = 60_000  # characters; linear reading takes a second for all tests, quadratic reading takes minutes
SECONDS = 15.0
PIECES = [
    "1",
    "1.",
    "1,",
    "1 ",
    "1'",
    "(",
    "(1",
    "-",
    "1-",
    "1-a",
    "a",
    " ",
    "\t",
    "e",
    "1e",
    "\u20ac",
    "kg ",
    "+",
    "x,",
    "T ",
    "2020-01-01 ",
]


def cells(head, end):
    return [head + piece * (LENGTH // len(piece)) + end for piece in PIECES]


@pytest.mark.parametrize("head", ["", "-", "(", "=1"])
def test_a_cell_of_a_download(head):
    start = time.process_time()
    for end in ("", "x", "-"):
        for cell in cells(head, end):
            assert as_text(cell) in (cell, f"'{cell}")
            NUMBER.fullmatch(cell)
    assert time.process_time() - start < SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("head", ["", "-", "(", "1"])
def test_a_cell_of_an_upload(head):
    for end in ("", "x", ")"):
        rows = [f'"{cell}";{"ab"[i % 2]}' for i, cell in enumerate(cells(head, end))]
        raw = read_csv(("x;class\n" + "\n".join(rows) + "\n").encode())
        start = time.process_time()
        reading = reading_of(raw).for_target("class")
        reading.ask(raw.names)
        reading.apply(raw, target="class")
        assert time.process_time() - start < SECONDS


def test_no_memory_for_a_thread_is_no_memory_and_not_a_bad_file(monkeypatch):
    def refuse(*arguments, **options):
        raise pa.ArrowException("Unknown error: Failed to launch worker thread: Resource temporarily unavailable")

    monkeypatch.setattr("trainer.data.formats.csv_file.pacsv.read_csv", refuse)
    with pytest.raises(MemoryError):
        read_csv(b"x,class\n1,a\n2,b\n")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_column_name_length_is_limited(tmp_path, kind):
    """It appears in every tree, answer and page."""

    def read_named(name: str):
        path = tmp_path / f"table.{kind}"
        if kind == "csv":
            path.write_text(f"a,{name},c\n1,2,3\n4,5,6\n")
        else:
            pq.write_table(pa.table({"a": [1, 4], name: [2, 5], "c": [3, 6]}), path)
        return read_table(path)

    assert len(read_named("b" * MAX_NAME_CHARACTERS).names[1]) == MAX_NAME_CHARACTERS
    with pytest.raises(DataError, match=r"name of column 2 has 5,000,000 characters, but at most 1,000") as error:
        read_named("b" * 5_000_000)
    assert len(str(error.value)) < 300
