"""Reading a table from a file: CSV (also .gz) and Parquet become a RawTable of untouched cells, or a DataError.

The structure of a CSV file (quotes, records, ragged rows, line numbers) is checked here, since the fast parser is silent
about unclosed quotes and repeated names; the parser then cuts the cells, every column as text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from trainer.data import layout as layouts
from trainer.data.csv_scan import Excess, Scan, Sniffed, scan, sniff
from trainer.data.file_bytes import PARQUET_MAGIC, ReadLimits, decode, read_bytes, refuse_other_formats
from trainer.errors import DataError

DELIMITER_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
LISTED = 20
FIRST_LINE = "The first line of the file says so."
BY_TABLE = "It cuts the lines of the table into as many values as the header."
SOMETHING = re.compile(rb"\S")
BLOCK = 1 << 21  # bytes that the parser takes at a time, for which it reserves as much for every column
TYPED = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)


@dataclass(frozen=True, kw_only=True)
class Detected:
    """How a file was read, and why: `*_reason` is a sentence, `delimiter_sure` and `header_sure` are in [0, 1].

    `top` and `bottom` are the lines above and below the table, as pairs of line number and text.
    """

    format: str  # "csv" or "parquet"
    encoding: str
    encoding_reason: str
    delimiter: str
    delimiter_sure: float
    delimiter_reason: str
    header: bool
    header_sure: float
    header_reason: str
    top: tuple[layouts.Line, ...] = ()
    bottom: tuple[layouts.Line, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As a dictionary, without lines around the table if there are none."""
        record = {own.name: getattr(self, own.name) for own in fields(self)}
        return {name: value for name, value in record.items() if name not in ("top", "bottom") or value}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Detected:
        """The inverse of `to_json`; raises TypeError or ValueError."""
        around = {name: tuple((int(n), str(text)) for n, text in record.get(name, ())) for name in ("top", "bottom")}
        return cls(**record | around)


@dataclass(frozen=True, kw_only=True)
class RawTable:
    """Column names and cells as they are in the file.

    `columns` are pyarrow arrays of equal length: strings for CSV; strings, integers, floating-point numbers or booleans for
    Parquet. `line_numbers`, int64 (n,), are the line where a CSV row starts, or the row number of a Parquet file, from 1.
    """

    names: tuple[str, ...]
    columns: tuple[pa.Array, ...]
    line_numbers: np.ndarray
    detected: Detected

    def __len__(self) -> int:
        return len(self.line_numbers)

    @property
    def place(self) -> str:
        """The word before a line number in messages."""
        return "Row" if self.detected.format == "parquet" else "Line"

    def column(self, name: str) -> pa.Array:
        """The cells of the column called `name`; raises KeyError."""
        try:
            return self.columns[self.names.index(name)]
        except ValueError:
            raise KeyError(name) from None


def read(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool = True,
    limits: ReadLimits | None = None,
    skip_top: int | None = None,
    skip_bottom: int | None = None,
) -> RawTable:
    """Read a CSV file (also gzipped) or a Parquet file; what is not given is detected.

    `skip_top` and `skip_bottom` are lines of a CSV file that are not part of the table; None looks for titles and footers. Raises
    DataError, whose `problems` list every place that was found (at most 20 of a kind), for anything that is not a table.
    """
    limits = limits or ReadLimits()
    path = Path(path)
    if is_parquet(path):
        return _read_parquet(path, limits)
    # handed over without a name here, so that the bytes are given back as soon as they are decoded
    return read_csv(
        read_bytes(path, limits), delimiter=delimiter, encoding=encoding, header=header, limits=limits,
        skip_top=skip_top, skip_bottom=skip_bottom,
    )  # fmt: skip


def read_csv(
    content: bytes,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool = True,
    limits: ReadLimits | None = None,
    skip_top: int | None = None,
    skip_bottom: int | None = None,
) -> RawTable:
    """The same for the bytes of an uncompressed CSV file."""
    limits = limits or ReadLimits()
    refuse_other_formats(content)
    body, name, why = decode(content, encoding)
    del content
    body = _plain_breaks(body)
    if not SOMETHING.search(body):
        raise DataError("The file is empty. Choose a file with a header line and rows.")
    cut = _Cut(body, delimiter, encoding=(name, why), header=header, limits=limits)
    del body
    if skip_top is not None or skip_bottom is not None:
        return cut.table(layouts.skipped(cut.body, skip_top or 0, skip_bottom or 0), look=skip_bottom is None)
    said = layouts.sep_line(cut.body)
    refusal = None
    try:
        found = cut.table(said)
    except DataError as error:
        refusal = error.with_traceback(None)  # what was made of the file is given back before it is looked at again
    if refusal is not None:
        around = _around(cut, said)
        if around is None:
            raise refusal
        return cut.table(around)
    if said is not None:
        return found
    if header and len(found.names) == 1 and (around := layouts.find(cut.body, delimiter)) is not None:
        return cut.table(around)
    return found


def _around(cut: _Cut, said: layouts.Layout | None) -> layouts.Layout | None:
    """Where the table is in a file that also has other lines."""
    if not cut.header:
        return None
    return layouts.find(cut.body, cut.delimiter) if said is None else layouts.inside(cut.body, said, cut.delimiter)


@dataclass(frozen=True)
class _Cut:
    """The bytes of a file, and how they are cut into a table."""

    body: bytes
    delimiter: str | None
    encoding: tuple[str, str]
    header: bool
    limits: ReadLimits

    def table(self, around: layouts.Layout | None, *, look: bool = True) -> RawTable:
        """The table of the whole file, or of the part that a layout gives; footers in the shape of rows are cut if `look` says so."""
        body, header, limits = self.body, self.header, self.limits
        before = 0
        if around is not None:
            before = body.count(b"\n", 0, around.start)
            body = body[around.start : around.end]
        guess = _delimiter(body, self.delimiter or (around.delimiter if around is not None else None))
        if around is not None and around.delimiter and self.delimiter is None:
            told = around.top[:1] and around.top[0][1].startswith("sep=")
            guess = replace(guess, reason=FIRST_LINE if told else BY_TABLE)
        found = scan(
            body, guess.delimiter.encode(), most_records=limits.rows + int(header), most_bytes=limits.line_bytes
        )
        found = _moved(found, before)
        names = _check(body, found, guess, header, limits)
        columns = _cells(body, found, guess.delimiter, len(names), header)
        lines = found.lines[1:] if header else found.lines
        top = around.top if around is not None else ()
        bottom = around.bottom if around is not None else ()
        if look and header and (more := layouts.footers(names, columns, lines, found.quoted_breaks)):
            kept = len(lines) - more
            cells = [[str(c[i].as_py()) for c in columns] for i in range(kept, len(lines))]
            own = tuple((int(n), guess.delimiter.join(row)[:200]) for n, row in zip(lines[kept:], cells, strict=True))
            columns, lines, bottom = tuple(c.slice(0, kept) for c in columns), lines[:kept], (*own, *bottom)
        sure, reason = _header_guess(body, found, guess.delimiter, header, columns)
        detected = Detected(
            format="csv",
            encoding=self.encoding[0],
            encoding_reason=self.encoding[1],
            delimiter=guess.delimiter,
            delimiter_sure=guess.sure,
            delimiter_reason=guess.reason,
            header=header,
            header_sure=sure,
            header_reason=reason,
            top=top,
            bottom=bottom,
        )
        return RawTable(names=names, columns=columns, line_numbers=lines, detected=detected)


def _moved(found: Scan, before: int) -> Scan:
    """The scan of a part of a file with the lines of the file."""
    if not before:
        return found
    excess = found.excess
    return replace(
        found,
        lines=found.lines + before,
        unclosed=None if found.unclosed is None else found.unclosed + before,
        after_quote=tuple(line + before for line in found.after_quote),
        excess=None if excess is None else replace(excess, line=excess.line + before if excess.line else 0),
    )


def _plain_breaks(body: bytes) -> bytes:
    """A line break is one byte from here on; the parser takes a lone carriage return for a line break, too."""
    if b"\r\n" in body:
        body = body.replace(b"\r\n", b"\n")
    return body.replace(b"\r", b"\n") if b"\r" in body else body


def _delimiter(body: bytes, delimiter: str | None) -> Sniffed:
    if delimiter is None:
        return sniff(body)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\n\r':
        raise DataError(
            f"The delimiter {delimiter!r} cannot be used: give one ASCII character, such as ',', ';' or a tab."
        )
    return Sniffed(delimiter=delimiter, sure=1.0, reason="The delimiter was given.")


def _check(body: bytes, found: Scan, guess: Sniffed, header: bool, limits: ReadLimits) -> tuple[str, ...]:
    """Refuse what is not a table, with every place; the column names otherwise."""
    name = DELIMITER_NAMES.get(guess.delimiter, guess.delimiter)
    if found.excess is not None:
        raise _excess(found.excess, limits)
    if found.unclosed is not None:
        raise DataError(
            f"Line {found.unclosed}: the quote that opens here is never closed. Close it, or double it if it belongs to the value.",
            problems=(f"Line {found.unclosed}: a quote is opened and never closed.",),
        )
    if found.after_quote:
        places = [f"Line {line}: text follows a closing quote." for line in found.after_quote]
        raise DataError(
            _first(places) + " Write a quote inside a quoted value twice, or remove the quotes.",
            problems=_some(places),
        )
    if not len(found.starts):
        raise DataError("The file is empty. Choose a file with a header line and rows.")
    width = int(found.fields[0])
    rows = len(found.starts) - int(header)
    if width > limits.columns:
        raise DataError(f"The file has {width} columns; at most {limits.columns} are read. Leave columns out.")
    if rows > limits.rows:
        raise DataError(f"The file has {rows} rows; at most {limits.rows} are read. Take a sample of the rows.")
    if rows * width > limits.cells:
        raise DataError(
            f"The file has {rows * width} cells; at most {limits.cells} are read. Leave rows or columns out."
        )
    problems: list[str] = []
    names = _header_names(body, found, guess.delimiter, problems) if header else _numbered(width)
    if header and rows == 0:
        problems.append(f"Line {found.lines[0]} is the only line: there is a header but no row.")
    first = f"the header has {width}" if header else f"line {found.lines[0]} has {width}"
    ragged = np.flatnonzero(found.fields != width)
    places = [
        f"Line {found.lines[i]} has {found.fields[i]} {_values(found.fields[i])}; {first}." for i in ragged[:LISTED]
    ]
    if len(ragged) > LISTED:
        places.append(f"... and {len(ragged) - LISTED} more rows of another length.")
    problems += places
    if problems:
        advice = (
            f" Read with the delimiter '{name}'; quote values that contain it, or choose another delimiter."
            if places
            else ""
        )
        more = f" ({len(ragged) or len(problems)} places in all.)" if len(problems) > 1 else ""
        raise DataError(problems[0] + more + advice, problems=tuple(problems))
    return names


def _excess(excess: Excess, limits: ReadLimits) -> DataError:
    if excess.records:
        return DataError(
            f"The file has more than {limits.rows} rows; at most {limits.rows} are read. Take a sample of the rows."
        )
    why = "a quote opens in it and is not closed" if excess.quoted else "is it a table of rows at all?"
    return DataError(
        f"Line {excess.line} is longer than {limits.line_bytes} bytes, which is the limit: {why}.",
        problems=(f"Line {excess.line}: longer than {limits.line_bytes} bytes.",),
    )


def _header_names(body: bytes, found: Scan, delimiter: str, problems: list[str]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in _record(body, found, 0, delimiter))
    line = found.lines[0]
    for place, name in enumerate(names, 1):
        if not name:
            problems.append(f"Line {line}: the header of column {place} is empty. Give the column a name.")
    for name, times in Counter(names).items():
        if name and times > 1:
            places = ", ".join(str(j) for j, other in enumerate(names, 1) if other == name)
            problems.append(
                f"Line {line}: the header '{name}' appears {times} times (columns {places}). Rename all but one."
            )
    return names


def _numbered(width: int) -> tuple[str, ...]:
    return tuple(f"column {j}" for j in range(1, width + 1))


def _record(body: bytes, found: Scan, record: int, delimiter: str) -> list[str]:
    """The cells of one record, for the header line."""
    line = body[found.starts[record] : found.ends[record]]
    columns = _parse(line + b"\n", delimiter, int(found.fields[record]), newlines=True)
    return [column[0].as_py() for column in columns]


def _cells(body: bytes, found: Scan, delimiter: str, width: int, header: bool) -> tuple[pa.Array, ...]:
    first = int(header)
    rows = len(found.starts) - first
    if found.blank:
        # a line of spaces is blank to a person, but a row to the parser
        view = memoryview(body)
        pieces = [view[found.starts[i] : found.ends[i]] for i in range(first, len(found.starts))]
        part: bytes | memoryview = b"\n".join(pieces) + b"\n"
    else:
        part = memoryview(body)[found.starts[first] :]  # no copy
    longest = int((found.ends - found.starts).max())
    columns = _parse(part, delimiter, width, newlines=found.quoted_breaks, block=max(BLOCK, 2 * longest))
    if len(columns[0]) != rows:
        raise DataError(
            f"The parser found {len(columns[0])} rows where {rows} were counted; check the quotes of the file."
        )
    return columns


def _parse(
    part: bytes | memoryview, delimiter: str, width: int, *, newlines: bool, block: int = 1 << 25
) -> tuple[pa.Array, ...]:
    names = [str(j) for j in range(width)]
    try:
        table = pacsv.read_csv(
            pa.BufferReader(pa.py_buffer(part)),
            # One record must fit into a block. Without threads: they gain nothing here, and may abort a process that ends at once.
            read_options=pacsv.ReadOptions(column_names=names, use_threads=False, block_size=min(len(part) + 1, block)),
            parse_options=pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=newlines),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, null_values=[]
            ),
        )
    except MemoryError:
        raise
    except pa.ArrowException as error:
        raise DataError(f"The file cannot be cut into cells: {error}. Check its quotes and its delimiter.") from error
    pieces, columns = table.columns[::-1], []
    del table
    while pieces:  # one after the other: the pieces of a column are given back when it is in one
        columns.append(_flat(pieces.pop()))
    return tuple(columns)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _header_guess(
    body: bytes, found: Scan, delimiter: str, header: bool, columns: tuple[pa.Array, ...]
) -> tuple[float, str]:
    """How sure it is that the first line is (or is not) a header, and why."""
    first = _record(body, found, 0, delimiter)
    numbers = [_is_number(cell) for cell in first]
    below = [_is_number(column[0].as_py()) for column in columns]
    like_header = not any(numbers)
    if header:
        if like_header and any(below):
            return 1.0, "The first line has no number, but the lines below have numbers."
        if like_header:
            return 0.7, "Neither the first line nor the second has a number."
        share = sum(numbers) / len(numbers)
        return round(
            0.5 * (1 - share), 2
        ), f"{sum(numbers)} of {len(numbers)} names look like numbers: is there a header at all?"
    if like_header and any(_is_number(c[1].as_py()) for c in columns if len(c) > 1):
        return 0.1, "The first line has no number, but the lines below have numbers: it looks like a header."
    return (
        (0.9, "The first line has numbers.")
        if any(numbers)
        else (0.5, "The lines do not show whether the first one is a header.")
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


PARQUET = Detected(
    format="parquet",
    encoding="utf-8",
    encoding_reason="Parquet text is always UTF-8.",
    delimiter="",
    delimiter_sure=1.0,
    delimiter_reason="Parquet has no delimiter.",
    header=True,
    header_sure=1.0,
    header_reason="Parquet keeps the names of the columns.",
)


@contextmanager
def _damaged_parquet() -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError, MemoryError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"The Parquet file is damaged: {error}. Write it again.") from error


def _check_parquet(file: pq.ParquetFile, limits: ReadLimits) -> None:
    rows, width = file.metadata.num_rows, len(file.schema_arrow.names)
    if rows > limits.rows or width > limits.columns or rows * width > limits.cells:
        raise DataError(
            f"The file has {rows} rows and {width} columns; at most {limits.rows} rows, {limits.columns} columns and "
            f"{limits.cells} cells are read. Leave rows or columns out."
        )
    size = sum(file.metadata.row_group(g).total_byte_size for g in range(file.metadata.num_row_groups))
    if size > limits.unpacked_bytes:
        raise DataError(f"The file unpacks to {size} bytes; at most {limits.unpacked_bytes} are read.")


def is_parquet(path: Path) -> bool:
    """Whether the file begins as a Parquet file; raises DataError if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
    except OSError as error:
        raise DataError(f"The file '{path.name}' cannot be read: {error.strerror or error}.") from error


def _read_parquet(path: Path, limits: ReadLimits) -> RawTable:
    if path.stat().st_size > limits.bytes:
        raise DataError(f"The file is larger than {limits.bytes} bytes. Leave rows or columns out.")
    with _damaged_parquet(), pq.ParquetFile(path, pre_buffer=False) as file:
        _check_parquet(file, limits)
        table = file.read(use_threads=False)
        problems = _parquet_problems(table.schema, table.num_rows)
        columns = () if problems else tuple(_parquet_column(column) for column in table.columns)
    if problems:
        raise DataError(_first(problems), problems=tuple(problems))
    names = tuple(str(name) for name in table.column_names)
    return RawTable(names=names, columns=columns, line_numbers=np.arange(1, table.num_rows + 1), detected=PARQUET)


class ParquetPieces:
    """A Parquet file read piece by piece, so a large one is never in memory as a whole; a context manager.

    `names` are all its columns and `rows` its number of rows. Raises DataError like `read`.
    """

    def __init__(self, path: Path, limits: ReadLimits | None = None) -> None:
        limits = limits or ReadLimits()
        if (size := path.stat().st_size) > limits.bytes:
            raise DataError(f"The file has {size} bytes; at most {limits.bytes} are read. Leave rows or columns out.")
        with _damaged_parquet():
            self._file = pq.ParquetFile(path, pre_buffer=False)
            try:
                _check_parquet(self._file, limits)
                self.names = tuple(str(name) for name in self._file.schema_arrow.names)
                self.rows = int(self._file.metadata.num_rows)
            except BaseException:
                self._file.close()
                raise

    def __enter__(self) -> ParquetPieces:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def read(self, wanted: Collection[str], size: int) -> Iterator[RawTable]:
        """Pieces of at most `size` rows with the columns `wanted` only, each knowing its row numbers in the file."""
        chosen = [name for name in self.names if name in wanted]
        if self.rows == 0:
            raise DataError("The file has no row. Choose a file with rows.")
        fields = [field for field in self._file.schema_arrow if field.name in wanted]
        if problems := _parquet_problems(pa.schema(fields), self.rows) if fields else []:
            raise DataError(_first(problems), problems=tuple(problems))
        if not chosen:  # nothing but the number of rows matters
            numbers = np.arange(1, self.rows + 1)
            for start in range(0, self.rows, size):
                yield RawTable(names=(), columns=(), line_numbers=numbers[start : start + size], detected=PARQUET)
            return
        before = 0
        with _damaged_parquet():
            for batch in self._file.iter_batches(batch_size=size, columns=chosen, use_threads=False):
                columns = tuple(_parquet_column(pa.chunked_array([column])) for column in batch.columns)
                yield RawTable(
                    names=tuple(chosen),
                    columns=columns,
                    line_numbers=np.arange(before + 1, before + batch.num_rows + 1),
                    detected=PARQUET,
                )
                before += batch.num_rows


def _parquet_problems(schema: pa.Schema, rows: int) -> list[str]:
    problems = []
    if len(schema) == 0 or rows == 0:
        problems.append(f"The file has {len(schema)} columns and {rows} rows: there is nothing to learn from.")
    for place, name in enumerate(schema.names, 1):
        if not name.strip():
            problems.append(f"The name of column {place} is empty. Give the column a name.")
    for name, times in Counter(schema.names).items():
        if times > 1:
            problems.append(f"The name '{name}' appears {times} times. Rename all but one.")
    for field in schema:
        inner = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_nested(inner) or pa.types.is_binary(inner) or pa.types.is_large_binary(inner):
            problems.append(
                f"Column '{field.name}' has the type {field.type}, which is neither number nor text. Leave it out."
            )
    return problems


def _parquet_column(column: pa.ChunkedArray) -> pa.Array:
    """Numbers and booleans as they are; dictionaries, dates and decimals as text. Raises ArrowInvalid for text that is not UTF-8."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_float16(column.type) or pa.types.is_float32(column.type):
        column = column.cast(pa.float64())
    if not any(test(column.type) for test in TYPED):
        column = column.cast(pa.string())
    if pa.types.is_string(column.type):
        column.validate(full=True)  # a damaged file may hold any bytes
    return _flat(column)


def as_text(column: pa.Array) -> pa.Array:
    """A column as text without surrounding spaces: whole floating-point numbers without '.0', the others in shortest form."""
    if pa.types.is_string(column.type):
        return pc.utf8_trim_whitespace(column)
    if pa.types.is_floating(column.type):
        encoded = column.dictionary_encode()
        words = pa.array([repr(v).removesuffix(".0") for v in encoded.dictionary.to_pylist()], pa.string())
        return words.take(encoded.indices)
    return column.cast(pa.string())


def _values(count: int) -> str:
    return "value" if count == 1 else "values"


def _first(problems: list[str]) -> str:
    more = f" ({len(problems)} places in all.)" if len(problems) > 1 else ""
    return problems[0] + more


def _some(problems: list[str]) -> tuple[str, ...]:
    if len(problems) <= LISTED:
        return tuple(problems)
    return (*problems[:LISTED], f"... and {len(problems) - LISTED} more.")
