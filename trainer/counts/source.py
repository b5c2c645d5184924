"""Read a source of rows, a file or a folder, in pieces."""

from __future__ import annotations

import gzip
import hashlib
import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from trainer.data.formats.file_bytes import ReadLimits, is_gzip
from trainer.data.formats.parquet_file import ParquetPieces, is_parquet
from trainer.data.formats.raw import RawTable
from trainer.data.formats.read_file import read_table
from trainer.errors import DataError

ENDINGS = (".parquet", ".csv", ".csv.gz", ".tsv", ".txt", ".xlsx", ".arrow", ".feather")
TEXTS = (".csv", ".csv.gz", ".tsv", ".txt")
LONGEST_LINE = 1 << 20  # in bytes; a longer line counts as two
PIECE = 1 << 18  # rows per piece
LARGE = ReadLimits(bytes=10**13, unpacked_bytes=10**13, rows=10**11, columns=10**5, cells=10**13)


@dataclass(frozen=True, kw_only=True)
class SourcePiece:
    """Some rows of a file: the index of the file, the index of their first row in it, and the cells."""

    file: int
    start: int
    rows: RawTable


@dataclass(frozen=True)
class Source:
    """A file, or all tables below a folder in the order of their names; a CSV file is in memory as a whole while it is read.

    A Parquet or CSV file of a folder may have no rows, as the parts that a cluster writes sometimes do.
    `structure` states how CSV files are written, see `ParsingChoices.structure`; what it leaves open is detected in each file.
    """

    path: Path
    structure: Mapping[str, Any] = field(default_factory=dict)
    limits: ReadLimits = LARGE

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """The files of the source, with or without rows; raises DataError if there is none."""
        if self.path.is_file():
            return (self.path,)
        if not self.path.is_dir():
            raise DataError(f"There is no file or folder '{self.path}'. Correct the path.")
        paths = sorted(p for p in self.path.rglob("*") if p.is_file() and p.name.lower().endswith(ENDINGS))
        visible = tuple(p for p in paths if not any(s.startswith((".", "_")) for s in p.relative_to(self.path).parts))
        if not visible:
            raise DataError(
                f"The folder '{self.path.name}' has no file that ends in {', '.join(ENDINGS)}. Give a folder with such files."
            )
        return visible

    @cached_property
    def empty(self) -> frozenset[int]:
        """The indices of the files of a folder that have no rows; raises DataError if no file has one."""
        if len(self.files) == 1:  # an empty single file is not skipped, because reading it reports what is wrong
            return frozenset()
        empty_files = frozenset(place for place, path in enumerate(self.files) if _has_no_rows(path, self.structure))
        if len(empty_files) == len(self.files):
            raise DataError(f"No file of the folder '{self.path.name}' has a row. Give a folder with rows.")
        return empty_files

    def digest(self, file: int) -> str:
        """Return the SHA-256 of a file."""
        with self.files[file].open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def name(self, file: int) -> str:
        """Return the name of a file below the folder."""
        path = self.files[file]
        return path.name if path == self.path else str(path.relative_to(self.path))

    def pieces(
        self, column_names: Collection[str] | None = None, *, first: int = 0, start: int = 0
    ) -> Iterator[SourcePiece]:
        """Yield the rows from row `start` of file `first` on, with the columns `column_names` (None: all); raise DataError or OSError."""
        for file in range(first, len(self.files)):
            if file in self.empty:
                continue
            try:
                for piece in self._of_file(file, column_names):
                    if file > first or piece.start >= start:
                        yield piece
            except DataError as error:
                raise DataError(f"{self.name(file)}: {error}", problems=error.problems) from error

    def _of_file(self, file: int, column_names: Collection[str] | None) -> Iterator[SourcePiece]:
        path = self.files[file]
        if is_parquet(path):
            with ParquetPieces(path, self.limits) as pieces:
                start = 0
                for rows in pieces.read(pieces.names if column_names is None else column_names, PIECE):
                    yield SourcePiece(file=file, start=start, rows=rows)
                    start += len(rows)
            return
        table = read_table(path, limits=self.limits, **self.structure)
        positions = [j for j, name in enumerate(table.names) if column_names is None or name in column_names]
        for start in range(0, len(table), PIECE):
            rows = RawTable(
                names=tuple(table.names[j] for j in positions),
                columns=tuple(table.columns[j].slice(start, PIECE) for j in positions),
                line_numbers=table.line_numbers[start : start + PIECE],
                detected=table.detected,
            )
            yield SourcePiece(file=file, start=start, rows=rows)


def _has_no_rows(path: Path, structure: Mapping[str, Any]) -> bool:
    """Return whether a Parquet or CSV file has no row."""
    if is_parquet(path):
        with pq.ParquetFile(path) as file:
            return bool(file.metadata.num_rows == 0)
    if not path.name.lower().endswith(TEXTS):
        return False
    with path.open("rb") as bare, gzip.open(bare) if is_gzip(path) else bare as stream:
        lines = (line for line in iter(lambda: stream.readline(LONGEST_LINE), b"") if line.strip())
        first_lines = list(itertools.islice(lines, 2))
    return len(first_lines) < (1 if structure.get("header") is False else 2)
