"""Read the stored rows of a data set."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from django.db.models.fields.files import FieldFile

from octweb.core import files
from octweb.core.problems import Unprocessable
from octweb.datasets.choice import choice_of
from octweb.datasets.intake import OWN_FILES, build_with
from octweb.datasets.models import Dataset
from trainer.counts.folder import NUMBERS, RECORD
from trainer.data.build import LoadReport
from trainer.data.formats.parquet_file import PARQUET
from trainer.data.formats.raw import RawTable, flat
from trainer.data.formats.read_file import read_table
from trainer.data.formats.spreadsheet import as_text
from trainer.data.formats.staged import lines_in
from trainer.data.parsing import ColumnParsing
from trainer.errors import DataError
from trainer.table import ColumnSchema, Labels, Table

STREAMED_ROWS = 10_000
GONE = "The stored file is missing or damaged. Upload it again."
ERASED = "The rows of this version were erased. Use a version without the erased rows."
COUNTED = (
    "This data set has counts of a source, and no rows. Train it with 'exact', or upload the rows for anything else."
)
CHANGED = "The stored file of this data set was changed outside octweb. Upload it again."


def path_of(file: FieldFile) -> Path:
    """Return a local path of a stored file. Raises DataError if it is gone."""
    if not file:
        raise DataError(_absence(file.instance))
    try:
        path = files.local_path(file)
    except FileNotFoundError as error:
        raise DataError(GONE) from error
    if not path.is_file():
        raise DataError(GONE)
    return path


def refuse_without_rows(dataset: Dataset) -> None:
    """Raise Unprocessable if the rows were erased, or if there are only counts."""
    if not dataset.file:
        raise Unprocessable(_absence(dataset))


def _absence(owner: Any) -> str:
    return COUNTED if getattr(owner, "counts", None) else ERASED


def unpack_counts(dataset: Dataset, folder: Path) -> Path:
    """Unpack the counts of a data set below `folder`, and return their folder. Raises FileNotFoundError."""
    packed = files.place_in(dataset.counts, folder / "counts.zip")
    target = folder / "counts"
    target.mkdir()
    with zipfile.ZipFile(packed) as archive:
        for name in (RECORD, NUMBERS):
            with archive.open(name) as source, (target / name).open("wb") as out:
                shutil.copyfileobj(source, out)
    return target


def counted_names(dataset: Dataset) -> tuple[tuple[ColumnSchema, ...], tuple[str, ...]]:
    """Return the columns and classes of the counts of a data set. Raises DataError."""
    with zipfile.ZipFile(path_of(dataset.counts)) as archive:
        record = json.loads(archive.read(RECORD))
    return tuple(ColumnSchema.from_json(column) for column in record["columns"]), tuple(record["classes"])


def load(dataset: Dataset) -> tuple[Table, Labels]:
    """Return the table and labels that a run trains on. Raises DataError."""
    table, labels, _ = load_with_report(dataset)
    return table, labels


def load_with_report(dataset: Dataset) -> tuple[Table, Labels, LoadReport]:
    """Return table, labels and a report on dropped rows. Raises DataError if the stored file has changed."""
    columns = json.dumps(dataset.columns, sort_keys=True)
    reading = json.dumps(dataset.reading)
    return _load(str(path_of(dataset.file)), dataset.sha256, dataset.target, columns, reading)


@lru_cache(maxsize=4)
def _load(path: str, sha256: str, target: str, columns: str, reading: str) -> tuple[Table, Labels, LoadReport]:
    try:
        changed = digest(Path(path)) != sha256
    except FileNotFoundError as error:
        raise DataError(GONE) from error
    if changed:
        raise DataError(CHANGED)
    raw = read_table(path, limits=OWN_FILES)
    return build_with(raw, target, choice_of(json.loads(columns), target), ColumnParsing.from_json(json.loads(reading)))


def first_rows(dataset: Dataset, count: int) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the column names and the first `count` rows. Only the pages of the file that contain them are read."""
    return first_of(path_of(dataset.file), count)


def first_of(path: Path, count: int) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the column names and the first `count` rows of a Parquet file."""
    names, batches = _batches(path, max(1, count))
    rows = next(batches, [])
    batches.close()
    return names, rows[:count]


def raw_columns(dataset: Dataset, names: Iterable[str]) -> RawTable:
    """Return some columns of the stored rows, with line numbers of the uploaded file if known.

    Raises DataError if the stored file is gone or damaged.
    """
    path = path_of(dataset.file)
    columns = list(names)
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            table = file.read(columns=columns, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise DataError(GONE) from error
    lines = lines_in(path, len(table))
    return RawTable(
        names=tuple(columns),
        columns=tuple(flat(table.column(name)) for name in columns),
        line_numbers=np.arange(1, len(table) + 1) if lines is None else lines,
        detected=PARQUET if lines is None else replace(PARQUET, format="csv"),
    )


def first_lines(dataset: Dataset, count: int) -> list[int] | None:
    """Return the line numbers of the first `count` rows in the uploaded file, or None if unknown."""
    path = path_of(dataset.file)
    lines = lines_in(path, pq.read_metadata(path).num_rows)
    return None if lines is None else lines[:count].tolist()


def csv_lines(dataset: Dataset, *, for_spreadsheets: bool = False) -> Iterator[str]:
    """Yield the rows as pieces of a CSV file. Only one piece is in memory at a time.

    `for_spreadsheets` puts an apostrophe before texts that a spreadsheet would execute as formulas.
    """
    names, batches = _batches(path_of(dataset.file), STREAMED_ROWS)
    yield _csv([names], for_spreadsheets)
    for rows in batches:
        yield _csv(rows, for_spreadsheets)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def refuse_changed(dataset: Dataset, path: Path) -> None:
    """Raise DataError if the file at `path` is not the stored one."""
    if digest(path) != dataset.sha256:
        raise DataError(CHANGED)


def _batches(path: Path, size: int) -> tuple[tuple[str, ...], Generator[list[tuple[Any, ...]]]]:
    """Return column names and an iterator over lists of `size` rows.

    Raises DataError if the file is gone or damaged.
    """
    try:
        file = pq.ParquetFile(path, pre_buffer=False)
    except (OSError, pa.ArrowException) as error:
        raise DataError(GONE) from error

    def batches() -> Generator[list[tuple[Any, ...]]]:
        with file:
            try:
                for batch in file.iter_batches(batch_size=size, use_threads=False):
                    yield list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
            except (OSError, pa.ArrowException) as error:
                raise DataError(GONE) from error

    return tuple(file.schema_arrow.names), batches()


def _csv(rows: Iterable[Sequence[Any]], for_spreadsheets: bool) -> str:
    text = io.StringIO()
    if for_spreadsheets:
        rows = ([as_text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    csv.writer(text).writerows(rows)
    return text.getvalue()
