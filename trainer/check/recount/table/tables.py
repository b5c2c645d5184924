"""Read tables as text: CSV (also .gz), .xlsx, Parquet and Arrow.

Nothing is guessed from the rows. The reader tries each encoding and delimiter for which the header has the columns of the model.
The fingerprint then shows which of them training used. Files are read piece by piece.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from trainer.errors import DataError

DELIMITERS = ",;\t|:^~!#$%&*+-./=@\\_ "
PIECE = 5000
NUMBERED = re.compile(r"column [1-9][0-9]*")  # training gives such names to columns without a header
PANDAS_INDEX = "Unnamed: 0"  # pandas writes this name above an index without a name
R_ROW_NAMES = "row names"  # R writes row names in a first column that has no field in the header
BREAK = "\ue00a"  # a private-use character that replaces a line break in a cell of a workbook
Piece = list[Sequence[str]]  # the cells of some rows, column by column
Opened = Callable[[], io.TextIOBase]  # opens the lines of a table, as often as needed


@dataclass(frozen=True)
class SkippedLines:
    """Lines of a file that were left out.

    `rows` are those with a value for every column. `apart` is the first one that stands between rows, 0 if none does.
    """

    count: int
    rows: tuple[int, ...]
    apart: int


def candidate_readings(
    path: Path, requested: Sequence[str], skipped: frozenset[int] = frozenset(), encoding_hint: str = ""
) -> Iterator[tuple[Iterator[Piece], SkippedLines | None]]:
    """Yield the ways in which the file has the `requested` columns, each as pieces of these columns and the skipped lines.

    The lines `skipped` are left out first, then included. The encoding `encoding_hint` is tried first.
    """
    with path.open("rb") as stream:
        head = stream.read(4)
    if head in (b"PAR1", b"ARRO"):
        yield _arrow_pieces(path, requested, arrow=head == b"ARRO"), None
        return
    if not head:
        raise DataError("The file of rows is empty. Give the file that the model was trained on.")
    for without in [skipped, frozenset[int]()] if skipped else [skipped]:
        for opened, delimiters in _sources(path, head, encoding_hint):
            for delimiter in delimiters:
                try:
                    with opened() as lines:
                        names, row_names = _read_header(_read_records(_drop_lines(lines, without), delimiter))
                        lines_skipped = _count_skipped(opened, delimiter, without, len(names)) if without else None
                except (UnicodeError, csv.Error):
                    break  # the encoding is wrong, or a quote is not closed
                read = partial(_csv_pieces, opened, delimiter, without)
                if set(requested) <= set(names):
                    yield read([names.index(name) for name in requested], skip=True, row_names=row_names), lines_skipped
                elif not without and all(
                    NUMBERED.fullmatch(name) and int(name[7:]) <= len(names) for name in requested
                ):
                    yield read([int(name[7:]) - 1 for name in requested], skip=False), lines_skipped


def _sources(path: Path, head: bytes, encoding_hint: str) -> Iterator[tuple[Opened, str]]:
    """Yield the texts that the file may hold, each with the delimiters to try."""
    if head == b"PK\x03\x04":
        for text in _sheets(path):
            yield partial(io.StringIO, text), ","
        return
    for encoding in [*([encoding_hint] if encoding_hint else []), *_encodings(head)]:
        yield partial(_open_text, path, encoding), DELIMITERS


def _sheets(path: Path) -> Iterator[str]:
    """Yield the worksheets of a workbook as CSV."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum
    except ImportError as error:
        raise DataError("Reading .xlsx needs python-calamine. Install it, or give the rows as CSV.") from error
    try:
        book = CalamineWorkbook.from_path(path)
        names = [sheet.name for sheet in book.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
        for name in names:
            sheet = book.get_sheet_by_name(name)
            rows = sheet.to_python(skip_empty_area=False)
            for (first, column), (last, _) in sheet.merged_cell_ranges or ():
                # a merged range stores its value in the first row only; give it to all rows
                for row in rows[first + 1 : last + 1]:
                    row[column] = rows[first][column]
            yield _sheet_text(rows)
    except CalamineError as error:
        raise DataError(f"The workbook cannot be read: {error}. Give the rows as CSV.") from error


def _sheet_text(rows: list[list[Any]]) -> str:
    start = min((j for row in rows for j, cell in enumerate(row) if cell != ""), default=0)
    kinds = [{type(row[j]) for row in rows if row[j] != ""} for j in range(len(rows[0]) if rows else 0)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in rows:
        cells = [_cell_text(cell, datetime in kind) for cell, kind in zip(row, kinds, strict=True)][start:]
        writer.writerow(cells if any(cells) else [])
    return out.getvalue()


def _cell_text(cell: Any, clock: bool) -> str:
    """Write a cell of a workbook as text; dates have a time of day if the column has any."""
    if isinstance(cell, str):
        return cell.replace("\r\n", "\n").replace("\n", BREAK)
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, timedelta):
        seconds = round(cell.total_seconds())
        return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    if isinstance(cell, date):
        return cell.isoformat(" ") if isinstance(cell, datetime) else cell.isoformat() + " 00:00:00" * clock
    return repr(cell).removesuffix(".0") if isinstance(cell, (int, float)) else str(cell.isoformat())


def _encodings(head: bytes) -> list[str]:
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return ["utf-16"]
    return ["utf-8-sig", "cp1252", "latin-1", "utf-16-le", "utf-16-be"]


def _open_text(path: Path, encoding: str) -> io.TextIOWrapper:
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    source: Any = gzip.open(path, "rb") if packed else path.open("rb")  # noqa: SIM115 (closed by what is returned)
    if packed and encoding == "utf-8-sig" and source.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    # newline=None turns every kind of line break into a line feed
    return io.TextIOWrapper(source, encoding=encoding, newline=None)


def _drop_lines(lines: Iterable[str], skipped: frozenset[int]) -> Iterable[str]:
    return (line for number, line in enumerate(lines, 1) if number not in skipped) if skipped else lines


def _count_skipped(opened: Opened, delimiter: str, skipped: frozenset[int], width: int) -> SkippedLines:
    rows = []
    inside = False
    apart = 0
    last = 0
    with opened() as lines:
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


def _read_records(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """Yield the records; blank lines are left out."""
    csv.field_size_limit(sys.maxsize)
    for record in csv.reader(lines, delimiter=delimiter, strict=False):
        if record and not (len(record) == 1 and not record[0].strip()):
            yield record


def _read_header(records: Iterator[list[str]]) -> tuple[list[str], bool]:
    """Return the names of the columns, and whether rows begin with a name that the header lacks, as R writes them."""
    names = [name.strip() for name in next(records, [])]
    if len(next(records, names)) == len(names) + 1:
        return [R_ROW_NAMES, *names], True
    return [PANDAS_INDEX, *names[1:]] if names and not names[0] else names, False


def _csv_pieces(
    opened: Opened, delimiter: str, without: frozenset[int], places: list[int], *, skip: bool, row_names: bool = False
) -> Iterator[Piece]:
    with opened() as lines:
        try:
            records = _read_records(_drop_lines(lines, without), delimiter)
            first = next(records)
            for piece in _pieces(records if skip else itertools.chain([first], records)):
                width = len(first) + row_names
                if wrong := next((r for r in piece if len(r) != width), None):
                    raise DataError(
                        f"A row of the file has {len(wrong)} values, the first one has {width}. Give the file as it was uploaded."
                    )
                yield [[record[j].replace(BREAK, "\n").strip() for record in piece] for j in places]
        except (UnicodeError, csv.Error, EOFError, gzip.BadGzipFile) as error:
            raise DataError(f"The file of rows cannot be read as text: {error}.") from error


def _pieces(records: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    while piece := list(itertools.islice(records, PIECE)):
        yield piece


def _arrow_pieces(path: Path, requested: Sequence[str], *, arrow: bool) -> Iterator[Piece]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise DataError("Reading Parquet and Arrow needs pyarrow. Install it, or give the rows as CSV.") from error
    file = pa.ipc.open_file(pa.OSFile(str(path))) if arrow else parquet.ParquetFile(path)
    names = file.schema.names if arrow else file.schema_arrow.names
    if absent := [name for name in requested if name not in names]:
        raise DataError(f"The file has no column '{absent[0]}'. Give the file that the model was trained on.")
    batches = (
        map(file.get_batch, range(file.num_record_batches))
        if arrow
        else file.iter_batches(batch_size=PIECE, columns=list(dict.fromkeys(requested)), use_threads=False)
    )
    for batch in batches:
        yield [_column_text(batch.column(batch.schema.names.index(name)), pa) for name in requested]


def _column_text(column: Any, pa: Any) -> list[str]:
    """Write a column of Parquet as text: integral floats without '.0', booleans as true and false, dates as in Arrow."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_float16(column.type) or pa.types.is_float32(column.type):
        column = column.cast(pa.float64())
    if pa.types.is_floating(column.type):
        return ["" if v is None else repr(v).removesuffix(".0") for v in column.to_pylist()]
    return ["" if v is None else v.strip() for v in column.cast(pa.string()).to_pylist()]
