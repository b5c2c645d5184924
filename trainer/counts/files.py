"""Read files of a folder or an object store in pieces."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from trainer.counts.source import PIECE_ROWS, Source, SourcePiece
from trainer.counts.storage import Storage, storage_of
from trainer.data.formats.file_bytes import PARQUET_MAGIC, ReadLimits, is_gzip
from trainer.data.formats.parquet_file import ParquetPieces
from trainer.data.formats.raw import RawTable
from trainer.data.formats.read_file import read_table
from trainer.errors import DataError

TEXTS = (".csv", ".csv.gz", ".tsv", ".txt")
MAX_LINE_BYTES = 1 << 20  # in bytes; a longer line counts as two
LARGE = ReadLimits(bytes=10**13, unpacked_bytes=10**13, rows=10**11, columns=10**5, cells=10**13)
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # a folder's value for an empty cell


class FileSource(Source):
    """A file, or all tables below a folder in the order of their names; a CSV file is in memory as a whole while it is read.

    A Parquet or CSV file of a folder may have no rows, as the parts that a cluster writes sometimes do. A folder called `year=2024`
    gives the rows of its files a column `year`, unless they have one.
    `structure` states how CSV files are written, see `ParsingChoices.structure`; what it leaves open is detected in each file.
    """

    resumable = True
    origin: Mapping[str, str] = {"engine": f"pyarrow {pa.__version__}"}

    def __init__(self, place: Path | str, structure: Mapping[str, Any] | None = None) -> None:
        self._storage: Storage = storage_of(place)
        self._structure = dict(structure or {})
        self._digests: dict[int, str] = {}
        self._stamps: dict[int, str] = {}
        self.label = self._storage.label
        self.names = self._storage.names

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._storage.__exit__(*error)

    @cached_property
    def empty(self) -> frozenset[int]:
        """The indices of the files of a folder that have no rows; raises DataError if no file has one."""
        if len(self.names) == 1:  # an empty single file is not skipped, because reading it reports what is wrong
            return frozenset()
        empty_files = frozenset(part for part in range(len(self.names)) if self._has_no_rows(part))
        if len(empty_files) == len(self.names):
            raise DataError(f"No file of the folder '{self.label}' has a row. Give a folder with rows.")
        return empty_files

    def digest(self, part: int) -> str:
        if part not in self._digests:
            self._stamps[part] = self._storage.stamp(self.names[part])
            self._digests[part] = self._storage.digest(self.names[part])
        return self._digests[part]

    def changed(self, part: int) -> bool:
        self.digest(part)
        return self._storage.stamp(self.names[part]) != self._stamps[part]

    def pieces(
        self, column_names: Collection[str] | None = None, *, first: int = 0, start: int = 0
    ) -> Iterator[SourcePiece]:
        for part in range(first, len(self.names)):
            if part in self.empty:
                continue
            try:
                for piece in self._of_file(part, column_names):
                    if part > first or piece.start >= start:
                        yield piece
            except DataError as error:
                raise DataError(f"{self.names[part]}: {error}", problems=error.problems) from error

    def _of_file(self, part: int, column_names: Collection[str] | None) -> Iterator[SourcePiece]:
        folders = _folder_values(self.names[part])
        start = 0
        for rows in self._tables(part, column_names, folders):
            yield SourcePiece(part=part, start=start, rows=_with_folders(rows, column_names, folders))
            start += len(rows)

    def _tables(
        self, part: int, column_names: Collection[str] | None, folders: Mapping[str, str | None]
    ) -> Iterator[RawTable]:
        if self._is_parquet(part):
            with ParquetPieces(self._storage.open(self.names[part]), LARGE) as pieces:
                wanted = (
                    pieces.names
                    if column_names is None
                    else [c for c in column_names if c not in folders or c in pieces.names]
                )
                yield from pieces.read(wanted, PIECE_ROWS)
            return
        table = read_table(self._storage.local(self.names[part]), limits=LARGE, **self._structure)
        positions = [j for j, name in enumerate(table.names) if column_names is None or name in column_names]
        for start in range(0, len(table), PIECE_ROWS):
            yield RawTable(
                names=tuple(table.names[j] for j in positions),
                columns=tuple(table.columns[j].slice(start, PIECE_ROWS) for j in positions),
                line_numbers=table.line_numbers[start : start + PIECE_ROWS],
                detected=table.detected,
            )

    def _is_parquet(self, part: int) -> bool:
        with self._storage.open(self.names[part]) as stream:
            return bool(stream.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC)

    def _has_no_rows(self, part: int) -> bool:
        """Return whether a Parquet or CSV file has no row."""
        name = self.names[part]
        if self._is_parquet(part):
            with pq.ParquetFile(self._storage.open(name)) as file:
                return bool(file.metadata.num_rows == 0)
        if not name.lower().endswith(TEXTS):
            return False
        path = self._storage.local(name)
        with path.open("rb") as bare, gzip.open(bare) if is_gzip(path) else bare as stream:
            lines = (line for line in iter(lambda: stream.readline(MAX_LINE_BYTES), b"") if line.strip())
            first_lines = list(itertools.islice(lines, 2))
        return len(first_lines) < (1 if self._structure.get("header") is False else 2)


def _folder_values(name: str) -> dict[str, str | None]:
    """Return the columns that the folders of a file state, as in `year=2024/month=3/rows.parquet`."""
    pairs = (part.partition("=") for part in Path(name).parts[:-1])
    values = {unquote(column): unquote(value) for column, equals, value in pairs if equals}
    return {column: None if value == NO_VALUE else value for column, value in values.items()}


def _with_folders(rows: RawTable, column_names: Collection[str] | None, folders: Mapping[str, str | None]) -> RawTable:
    """Return the rows with the columns that their folders state, unless the file has them."""
    new = {
        column: pa.array([value] * len(rows), pa.string())
        for column, value in folders.items()
        if column not in rows.names and (column_names is None or column in column_names)
    }
    return replace(rows, names=(*rows.names, *new), columns=(*rows.columns, *new.values())) if new else rows
