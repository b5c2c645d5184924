"""Read a Parquet file, whole or in pieces, or a whole Arrow file."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trainer.data.formats.file_bytes import ARROW_MAGIC, PARQUET_MAGIC, ReadLimits
from trainer.data.formats.raw import TYPED, DetectedFormat, RawTable, as_text, first_of, flat, too_long
from trainer.errors import DataError

UNREADABLE = (pa.types.is_nested, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_interval)
NUMBER_LIKE = r"^[+-]?[0-9]|^(?i:true|false)$"
PARQUET = DetectedFormat(
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


ARROW = replace(
    PARQUET,
    format="arrow",
    encoding_reason="Arrow text is always UTF-8.",
    delimiter_reason="Arrow has no delimiter.",
    header_reason="Arrow keeps the names of the columns.",
)


@contextmanager
def _damaged_file(kind: str = "Parquet") -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError, MemoryError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"The {kind} file is damaged: {error}. Write it again.") from error


def _check_parquet(file: pq.ParquetFile, limits: ReadLimits) -> None:
    _check_shape(file.metadata.num_rows, len(file.schema_arrow.names), limits)
    size = sum(file.metadata.row_group(g).total_byte_size for g in range(file.metadata.num_row_groups))
    if size > limits.unpacked_bytes:
        raise DataError(
            f"The file unpacks to {size:,} bytes, but at most {limits.unpacked_bytes:,} are read. Leave rows or columns out."
        )


def _check_shape(rows: int, width: int, limits: ReadLimits) -> None:
    if rows > limits.rows or width > limits.columns or rows * width > limits.cells:
        raise DataError(
            f"The file has {rows:,} rows and {width:,} columns, but at most {limits.rows:,} rows, {limits.columns:,} columns and "
            f"{limits.cells:,} cells are read. Leave rows or columns out."
        )


def is_parquet(path: Path) -> bool:
    """Return whether the file begins like a Parquet file; raise DataError if it cannot be read."""
    return _begins_with(path, PARQUET_MAGIC)


def is_arrow(path: Path) -> bool:
    """Return whether the file begins like an Arrow file (Feather version 2 included); raise DataError if it cannot be read."""
    return _begins_with(path, ARROW_MAGIC)


def _begins_with(path: Path, magic: bytes) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(len(magic)) == magic
    except OSError as error:
        raise DataError(f"The file '{path.name}' cannot be read: {error.strerror or error}.") from error


def read_parquet(path: Path, limits: ReadLimits) -> RawTable:
    """Read a whole Parquet file; raise DataError if it is damaged or too large."""
    if path.stat().st_size > limits.bytes:
        raise DataError(f"The file is larger than {limits.bytes:,} bytes. Leave rows or columns out.")
    with _damaged_file(), pq.ParquetFile(path, pre_buffer=False) as file:
        _check_parquet(file, limits)
        return _raw_table(_with_categories(file.read(use_threads=False), file), PARQUET)


def _with_categories(table: pa.Table, file: pq.ParquetFile) -> pa.Table:
    """Return the table with the categories that its writer declared; Parquet itself stores only text categories."""
    declared = _declared_categories(file)
    for place, field in enumerate(table.schema):
        if field.name in declared and not pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, table.column(place).dictionary_encode())
    return table


def _declared_categories(file: pq.ParquetFile) -> frozenset[str]:
    """Return the names of the columns that the writer of a file declared as categories."""
    packed = (file.metadata.metadata or {}).get(b"ARROW:schema")
    if packed is None:
        return frozenset()
    declared = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(packed)))
    return frozenset(field.name for field in declared if pa.types.is_dictionary(field.type))


def read_arrow(path: Path, limits: ReadLimits) -> RawTable:
    """Read an Arrow file (Feather version 2); raise DataError if it is damaged or too large."""
    if path.stat().st_size > limits.bytes:
        raise DataError(f"The file is larger than {limits.bytes:,} bytes. Leave rows or columns out.")
    batches = []
    rows = 0
    size = 0
    with _damaged_file("Arrow"), pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as file:
        for i in range(file.num_record_batches):
            batch = file.get_batch(i)
            # a damaged file may have offsets beyond its buffers, which would crash later reads
            batch.validate(full=True)
            rows += batch.num_rows
            size += batch.nbytes
            _check_shape(rows, len(file.schema.names), limits)
            if size > limits.unpacked_bytes:
                raise DataError(
                    f"The file unpacks to more than {limits.unpacked_bytes:,} bytes, the limit. Leave rows or columns out."
                )
            batches.append(batch)
        return _raw_table(pa.Table.from_batches(batches, file.schema), ARROW)


def _raw_table(table: pa.Table, detected: DetectedFormat) -> RawTable:
    problems = _schema_problems(table.schema, table.num_rows)
    if problems:
        raise DataError(first_of(problems), problems=tuple(problems))
    return RawTable(
        names=tuple(str(name) for name in table.column_names),
        columns=tuple(parquet_column(column) for column in table.columns),
        line_numbers=np.arange(1, table.num_rows + 1),
        detected=replace(detected, index=pandas_index(table.schema)),
    )


def pandas_index(schema: pa.Schema) -> str:
    """Return the column in which pandas stored a frame's index; "" if there is none, or if it has several levels."""
    try:
        columns = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
    except (KeyError, TypeError, ValueError):
        return ""
    text_names = [name for name in columns if isinstance(name, str)] if isinstance(columns, list) else []
    return text_names[0] if len(text_names) == 1 and text_names[0] in schema.names else ""


class ParquetPieces:
    """A Parquet file that is read in pieces, so that it is never in memory as a whole; a context manager.

    `names` are all its columns, `text_names` those of texts, and `rows` its number of rows. A damaged or too large file
    raises DataError.
    """

    def __init__(self, file: Path | pa.NativeFile, limits: ReadLimits | None = None) -> None:
        limits = limits or ReadLimits()
        size = file.stat().st_size if isinstance(file, Path) else file.size()
        if size > limits.bytes:
            raise DataError(
                f"The file has {size:,} bytes, but at most {limits.bytes:,} are read. Leave rows or columns out."
            )
        with _damaged_file():
            self._file = pq.ParquetFile(file, pre_buffer=False)
            try:
                _check_parquet(self._file, limits)
                self.names = tuple(str(name) for name in self._file.schema_arrow.names)
                self.text_names = frozenset(
                    str(field.name) for field in self._file.schema_arrow if _is_text(field.type)
                )
                self.rows = int(self._file.metadata.num_rows)
            except BaseException:
                self._file.close(force=True)
                raise

    def __enter__(self) -> ParquetPieces:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close(force=True)

    def read(self, column_names: Collection[str], size: int) -> Iterator[RawTable]:
        """Yield pieces of at most `size` rows with the columns `column_names`, each with its row numbers in the file."""
        present = [name for name in self.names if name in column_names]
        self._refuse(column_names)
        if not present:  # without columns, only the number of rows is needed
            numbers = np.arange(1, self.rows + 1)
            for start in range(0, self.rows, size):
                yield RawTable(names=(), columns=(), line_numbers=numbers[start : start + size], detected=PARQUET)
            return
        for before, batch in self._batches(present, size):
            yield _piece(_with_categories(pa.Table.from_batches([batch]), self._file), present, before)

    def read_all(self, column_names: Collection[str], size: int) -> Iterator[tuple[RawTable, pa.RecordBatch]]:
        """Yield the same pieces, each with all columns of its rows as stored in the file."""
        present = [name for name in self.names if name in column_names]
        self._refuse(column_names)
        for before, batch in self._batches(list(self.names), size):
            part = _with_categories(pa.Table.from_batches([batch]).select(present), self._file)
            yield _piece(part, present, before), batch

    def _refuse(self, column_names: Collection[str]) -> None:
        """Raise DataError for a file without rows, and for columns of `column_names` that cannot be read."""
        if self.rows == 0:
            raise DataError("The file has no row. Choose a file with rows.")
        fields = [field for field in self._file.schema_arrow if field.name in column_names]
        if problems := _schema_problems(pa.schema(fields), self.rows) if fields else []:
            raise DataError(first_of(problems), problems=tuple(problems))

    def _batches(self, names: list[str], size: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches of these columns, each with the number of rows before it."""
        before = 0
        with _damaged_file():
            for batch in self._file.iter_batches(batch_size=size, columns=names, use_threads=False):
                yield before, batch
                before += batch.num_rows


def _is_text(kind: pa.DataType) -> bool:
    own = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(own) or pa.types.is_large_string(own) or pa.types.is_string_view(own)


def arrow_pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[RawTable]:
    """Yield batches of one schema as pieces with their row numbers; raise DataError for columns that cannot be read."""
    before = 0
    for batch in batches:
        if problems := _schema_problems(batch.schema, batch.num_rows):
            raise DataError(first_of(problems), problems=tuple(problems))
        yield replace(_piece(pa.Table.from_batches([batch]), batch.schema.names, before), detected=ARROW)
        before += batch.num_rows


def _piece(part: pa.Table, names: Collection[str], before: int) -> RawTable:
    return RawTable(
        names=tuple(names),
        columns=tuple(parquet_column(column) for column in part.columns),
        line_numbers=np.arange(before + 1, before + part.num_rows + 1),
        detected=PARQUET,
    )


def _schema_problems(schema: pa.Schema, rows: int) -> list[str]:
    problems = [f"{words[0].upper()}{words[1:]}" for words in too_long(schema.names)]
    if problems:
        return problems
    if len(schema) == 0 or rows == 0:
        problems.append(
            f"The file has {len(schema)} columns and {rows} rows: there is nothing to learn from. Choose a file with rows and columns."
        )
    for place, name in enumerate(schema.names, 1):
        if not name.strip():
            problems.append(f"The name of column {place} is empty. Give the column a name.")
    for name, times in Counter(schema.names).items():
        if times > 1:
            problems.append(f"The name '{name}' appears {times} times. Rename all but one.")
    for field in schema:
        inner = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if any(test(inner) for test in UNREADABLE):
            problems.append(
                f"Column '{field.name}' has the type {field.type}, which is neither number nor text. Leave it out."
            )
    return problems


def declared_order(column: pa.ChunkedArray | pa.Array) -> tuple[str, ...]:
    """Return the texts of ordered categories in their order.

    Return () for other columns, if two categories have the same text, and if no chunk states the order of all.
    """
    if not pa.types.is_dictionary(column.type) or not column.type.ordered:
        return ()
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    orders = {tuple(as_text(chunk.dictionary).to_pylist()) for chunk in chunks}
    order = max(orders, key=len, default=())
    places = {word: place for place, word in enumerate(order)}
    if len(places) < len(order) or None in places:
        return ()
    ranks = ([places.get(word, -1) for word in words] for words in orders)
    return order if all(-1 not in own and own == sorted(own) for own in ranks) else ()


def parquet_column(column: pa.ChunkedArray) -> pa.Array:
    """Convert a stored column: numbers and booleans stay, everything else becomes text.

    Declared categories become text. If one looks like a number, they stay a dictionary of texts, so that they are not
    read as numbers. Ordered categories stay a dictionary in their order. Raise ArrowInvalid for text that is not UTF-8.
    """
    if pa.types.is_dictionary(column.type):
        words = as_text(parquet_column(column.cast(column.type.value_type)))
        if column.type.ordered and (order := declared_order(column)):
            return pa.DictionaryArray.from_arrays(pc.index_in(words, pa.array(order)), pa.array(order), ordered=True)
        is_number = pc.match_substring_regex(words, NUMBER_LIKE)
        return words.dictionary_encode() if pc.any(is_number).as_py() else words
    if pa.types.is_float16(column.type) or pa.types.is_float32(column.type):
        column = column.cast(pa.float64())
    if not any(test(column.type) for test in TYPED):
        column = column.cast(pa.string())
    if pa.types.is_string(column.type):
        column.validate(full=True)  # a damaged file may hold bytes that are not UTF-8
    return flat(column)
