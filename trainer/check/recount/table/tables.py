"""Tables as text, read by the checker's own code: CSV in any of the usual encodings and delimiters (also .gz), and Parquet.

Nothing is guessed from the rows: a file is read in each way in which its header has the columns that the model names, and the
fingerprint tells which of them was used in the training. Files are read piece by piece.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from trainer.errors import DataError

DELIMITERS = ",;\t|:^~!#$%&*+-./=@\\_ "
PIECE = 5000
NUMBERED = re.compile(r"column [1-9][0-9]*")  # the names that columns without a header get
Piece = list[Sequence[str]]  # the cells of some rows, column by column


@dataclass(frozen=True)
class SkippedLines:
    """Lines of a file that were left out: how many, those with a value for every column, and the first one that is neither above
    nor below all rows (0: none)."""

    count: int
    rows: tuple[int, ...]
    apart: int


def readings(
    path: Path, wanted: Sequence[str], skipped: frozenset[int] = frozenset(), named: str = ""
) -> Iterator[tuple[Iterator[Piece], SkippedLines | None]]:
    """The ways in which the file can be read so that it has the `wanted` columns, each as pieces of these columns; first without
    the lines `skipped`, then with all lines, and first in the encoding that is `named`."""
    with path.open("rb") as stream:
        head = stream.read(4)
    if head == b"PAR1":
        yield _parquet(path, wanted), None
        return
    if not head:
        raise DataError("The file of rows is empty.")
    for without in [skipped, frozenset[int]()] if skipped else [skipped]:
        for encoding in [*([named] if named else []), *_encodings(head)]:
            for delimiter in DELIMITERS:
                try:
                    with _text(path, encoding) as lines:
                        header = next(_records(_drop_lines(lines, without), delimiter), [])
                        around = _around(path, encoding, delimiter, without, len(header)) if without else None
                except (UnicodeError, csv.Error):
                    break  # the encoding is another one, or there is no end of a quote
                names = [name.strip() for name in header]
                read = partial(_csv, path, encoding, delimiter, without)
                if set(wanted) <= set(names):
                    yield read([names.index(name) for name in wanted], skip=True), around
                elif not without and all(NUMBERED.fullmatch(name) and int(name[7:]) <= len(names) for name in wanted):
                    yield read([int(name[7:]) - 1 for name in wanted], skip=False), around


def _encodings(head: bytes) -> list[str]:
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return ["utf-16"]
    return ["utf-8-sig", "cp1252", "latin-1", "utf-16-le", "utf-16-be"]


def _text(path: Path, encoding: str) -> io.TextIOWrapper:
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    source: Any = gzip.open(path, "rb") if packed else path.open("rb")  # noqa: SIM115 (closed by what is returned)
    if packed and encoding == "utf-8-sig" and source.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    return io.TextIOWrapper(source, encoding=encoding, newline=None)  # every kind of line break is one line feed


def _drop_lines(lines: Iterable[str], skipped: frozenset[int]) -> Iterable[str]:
    return (line for number, line in enumerate(lines, 1) if number not in skipped) if skipped else lines


def _around(path: Path, encoding: str, delimiter: str, skipped: frozenset[int], width: int) -> SkippedLines:
    rows = []
    inside = False
    apart = 0
    last = 0
    with _text(path, encoding) as lines:
        for number, line in enumerate(lines, 1):
            if number in skipped:
                cells = next(csv.reader([line], delimiter=delimiter), [])
                if len(cells) >= max(2, width) and all(cell.strip() for cell in cells):
                    rows.append(number)
                last = last or (number if inside else 0)
            elif line.strip():
                inside = True
                apart = apart or last
    return SkippedLines(len(skipped), tuple(number for number in rows if number >= (last or number + 1)), apart)


def _records(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """The records; lines with nothing but spaces are left out."""
    csv.field_size_limit(sys.maxsize)
    for record in csv.reader(lines, delimiter=delimiter, strict=False):
        if record and not (len(record) == 1 and not record[0].strip()):
            yield record


def _csv(
    path: Path, encoding: str, delimiter: str, without: frozenset[int], places: list[int], *, skip: bool
) -> Iterator[Piece]:
    with _text(path, encoding) as lines:
        try:
            records = _records(_drop_lines(lines, without), delimiter)
            first = next(records)
            for piece in _pieces(records if skip else itertools.chain([first], records)):
                if wrong := next((r for r in piece if len(r) != len(first)), None):
                    raise DataError(f"A row of the file has {len(wrong)} values, the first one has {len(first)}.")
                yield [[record[j].strip() for record in piece] for j in places]
        except (UnicodeError, csv.Error, EOFError, gzip.BadGzipFile) as error:
            raise DataError(f"The file of rows cannot be read as {encoding}: {error}.") from error


def _pieces(records: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    while piece := list(itertools.islice(records, PIECE)):
        yield piece


def _parquet(path: Path, wanted: Sequence[str]) -> Iterator[Piece]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise DataError("Reading Parquet needs pyarrow. Install it, or give the rows as CSV.") from error
    file = parquet.ParquetFile(path)
    if absent := [name for name in wanted if name not in file.schema_arrow.names]:
        raise DataError(f"The file has no column '{absent[0]}'. Give the file that the model was trained on.")
    for batch in file.iter_batches(batch_size=PIECE, columns=list(dict.fromkeys(wanted)), use_threads=False):
        yield [_column_text(batch.column(batch.schema.names.index(name)), pa) for name in wanted]


def _column_text(column: Any, pa: Any) -> list[str]:
    """A column of Parquet as text: whole floating-point numbers without '.0', truth as true and false, dates as Arrow writes them."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_float16(column.type) or pa.types.is_float32(column.type):
        column = column.cast(pa.float64())
    if pa.types.is_floating(column.type):
        return ["" if v is None else repr(v).removesuffix(".0") for v in column.to_pylist()]
    return ["" if v is None else v.strip() for v in column.cast(pa.string()).to_pylist()]
