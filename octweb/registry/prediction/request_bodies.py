"""Predict rows of request bodies in JSON columns, Arrow and CSV.

JSON columns follow the rules of JSON rows; Arrow and CSV follow those of files. An empty cell that the tree needs is an
error that names the row, because a response has one prediction per row.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from django.conf import settings
from rest_framework.exceptions import ParseError, ValidationError

from octweb.core.parsers import BodyTooLarge
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from octweb.registry.prediction.predictions import Predictions, predict_rows
from trainer.data.formats.csv_file import read_csv
from trainer.data.formats.file_bytes import ReadLimits
from trainer.data.formats.parquet_file import PARQUET
from trainer.data.formats.raw import RawTable
from trainer.data.parsing import ColumnParsing
from trainer.data.reader import ModelRows, rows_for_model
from trainer.errors import Refusal, RowError
from trainer.prediction.form_report import report_forms
from trainer.table import ColumnSchema

ARROW_STREAM = "application/vnd.apache.arrow.stream"
ARROW_FILE = "application/vnd.apache.arrow.file"
CSV = "text/csv"
TYPES = (
    pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal,
    pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
)  # fmt: skip
MAX_LINE_BYTES = (
    1_000_000  # bytes of one CSV line; the cells of a longer line would take far more memory than their text
)


def predict_columns(model: TreeModel, columns: Any) -> Predictions:
    """Predict `{"name": [values], ...}` like rows, with the same errors.

    Also raises ValidationError and BodyTooLarge.
    """
    return predict_rows(model, records_of_columns(columns))


def records_of_columns(columns: Any) -> list[dict[str, Any]]:
    """Return the rows of `{"name": [values], ...}`. Raises ValidationError and BodyTooLarge."""
    if not isinstance(columns, dict) or not columns:
        raise ValidationError(
            {"columns": "This is not an object, or it is empty. Send one member per column: name → list of values."}
        )
    for name, cells in columns.items():
        if not isinstance(cells, list):
            raise ValidationError({f"columns.{name[:60]}": "This is not a list. Send one value per row."})
    lengths = {name: len(cells) for name, cells in columns.items()}
    n = max(lengths.values())
    if short := [name for name, length in lengths.items() if length != n]:
        text = f"The columns differ in length: {n:,} values in one, {lengths[short[0]]:,} in '{short[0][:60]}'. Send one value per row in each."
        raise ValidationError({"columns": text})
    check_rows(n)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def check_rows(n: int) -> None:
    """Raise BodyTooLarge if a call has too many rows."""
    if n > settings.MAX_PREDICT_ROWS:
        raise BodyTooLarge(
            f"{n:,} rows are too many; {settings.MAX_PREDICT_ROWS:,} is the limit of one call. Send them in several calls."
        )


def predict_csv(model: TreeModel, content: bytes) -> Predictions:
    """Predict the rows of a CSV text with a header line. Raises DataError, with line numbers, and BodyTooLarge."""
    check_rows(max(content.count(b"\n"), content.count(b"\r")) - 1)
    if _longest_line(content) > MAX_LINE_BYTES:
        raise BodyTooLarge(
            f"A line of the CSV text is longer than {MAX_LINE_BYTES:,} bytes. Check its quotes and line ends."
        )
    limits = ReadLimits(rows=settings.MAX_PREDICT_ROWS, columns=settings.MAX_COLUMNS)
    return _predict(model, read_csv(content, limits=limits))


def _longest_line(content: bytes) -> int:
    """Return the length of the longest line in bytes, without creating an object per line."""
    text = np.frombuffer(content, np.uint8)
    ends = np.flatnonzero((text == ord("\n")) | (text == ord("\r")))
    return int(np.diff(ends, prepend=-1, append=len(text)).max()) - 1


def predict_arrow(model: TreeModel, content: bytes) -> Predictions:
    """Predict the rows of an Arrow stream or file. Raises ParseError, BodyTooLarge and DataError."""
    try:
        table = _arrow_table(content)
    except (pa.ArrowException, OSError, ValueError, IndexError, struct.error) as error:
        raise ParseError(f"The body is not a valid Arrow stream or file: {str(error)[:200]}.") from error
    names = tuple(str(name) for name in table.column_names)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ParseError(f"The Arrow body has two columns '{twice[:60]}'. Rename or remove one.")
    cells = tuple(_decode_column(name, column) for name, column in zip(names, table.columns, strict=True))
    lines = np.arange(1, table.num_rows + 1)
    return _predict(model, RawTable(names=names, columns=cells, line_numbers=lines, detected=PARQUET))


def _predict(model: TreeModel, raw: RawTable) -> Predictions:
    file = model_file(model)
    tree = file.tree
    reading = ColumnParsing.from_json(file.reading)

    def read(schema: Sequence[ColumnSchema]) -> ModelRows:
        return rows_for_model(
            raw,
            schema,
            target=file.target,
            classes=tree.classes,
            used=tree.used_columns,
            refused=tree.refused_columns,
            only_used=True,
            reading=reading,
        )

    rows = read(tree.schema)
    matrix = rows.table.matrix()
    if not rows.usable.all():
        i = int(np.flatnonzero(~rows.usable)[0])
        j = next(j for j in tree.refused_columns if np.isnan(matrix[i, j]))
        where = f"{raw.place} {raw.line_numbers[i]}: column '{tree.schema[j].name}'"
        words = f"{where} has no value, and the tree needs one. Fill it in."
        raise RowError(words, row=i, column=tree.schema[j].name, reason=Refusal.EMPTY)
    predictions = Predictions(tree=tree, matrix=matrix, leaves=tree.apply(matrix), notes=rows.notes)
    return predictions.with_forms(
        report_forms(
            tree, matrix, rows.unknown_words, lambda schema: read(schema).table.matrix(), respelled=rows.respelled
        )
    )


def _arrow_table(content: bytes) -> pa.Table:
    """Return the table of a body.

    Raises ValueError for compressed buffers, so that the table is no larger than the body.
    """
    if content[:6] == b"ARROW1":
        content = content[8:]  # an Arrow file is a stream between two magic strings; this skips the first
    batches = []
    rows = 0
    schema = None
    for message in pa.ipc.MessageReader.open_stream(pa.BufferReader(content)):
        if message.type in ("record batch", "dictionary") and _is_compressed(message.metadata.to_pybytes()):
            raise ValueError(
                "its buffers are compressed; send them uncompressed, and compress the body with Content-Encoding"
            )
    with pa.ipc.open_stream(pa.BufferReader(content)) as reader:
        schema = reader.schema
        if len(schema) > settings.MAX_COLUMNS:
            raise BodyTooLarge(
                f"{len(schema):,} columns are too many; {settings.MAX_COLUMNS:,} is the limit. Send those that the model needs."
            )
        for batch in reader:
            rows += batch.num_rows
            check_rows(rows)
            batch.validate(full=True)
            batches.append(batch)
    return pa.Table.from_batches(batches, schema=schema)


def _is_compressed(metadata: bytes) -> bool:
    """Return whether a message's record batch has the member `compression` (layout: Arrow's Message.fbs)."""
    message = _read_int(metadata, 0)
    kind = metadata[_member_offset(metadata, message, 1)]
    header = _follow_reference(metadata, message, 2)
    if kind == 2:  # the member `data` of a DictionaryBatch is the record batch
        header = _follow_reference(metadata, header, 1)
    return _member_offset(metadata, header, 3) != 0


def _read_int(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<i", data, at)[0])


def _member_offset(data: bytes, table: int, number: int) -> int:
    """Return the offset of a member of a flatbuffers table, or 0 if it is absent."""
    where = table - _read_int(data, table)
    size = struct.unpack_from("<H", data, where)[0]
    offset = struct.unpack_from("<H", data, where + 4 + 2 * number)[0] if 4 + 2 * number < size else 0
    return table + offset if offset else 0


def _follow_reference(data: bytes, table: int, number: int) -> int:
    at = _member_offset(data, table, number)
    return at + _read_int(data, at)


def _decode_column(name: str, column: pa.ChunkedArray) -> pa.Array:
    """Return a column as files represent it, with dictionary-encoded texts decoded.

    Raises ParseError, and BodyTooLarge above the memory limit.
    """
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), pa.float64())
    # check the type before unpacking anything, because lists may share memory, too
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not any(test(kind) for test in TYPES):
        raise ParseError(f"Column '{name[:60]}' has the Arrow type {column.type}; send numbers, booleans or texts.")
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if not pa.types.is_dictionary(array.type):
        return _decode_texts(name, array)
    words = _decode_texts(name, array.dictionary)
    _check_unpacked_size(name, max((len(str(v)) for v in words.to_pylist()), default=0) * len(array))
    return words.take(array.indices)


def _decode_texts(name: str, array: pa.Array) -> pa.Array:
    """Convert all text types and decimals to strings. Return numbers unchanged.

    Raises BodyTooLarge for string views above the memory limit.
    """
    if pa.types.is_string_view(array.type):
        # a view takes 16 bytes, and its first four are the length of the text (Arrow columnar format)
        lengths = np.frombuffer(array.buffers()[1], np.int32)[::4][array.offset : array.offset + len(array)]
        _check_unpacked_size(name, int(lengths[np.asarray(array.is_valid())].sum(dtype=np.int64)))
    elif not (pa.types.is_large_string(array.type) or pa.types.is_decimal(array.type)):
        return array
    return array.cast(pa.string())


def _check_unpacked_size(name: str, size: int) -> None:
    if size > settings.MAX_PREDICT_BYTES:
        raise BodyTooLarge(
            f"Column '{name[:60]}' unpacks to more than {settings.MAX_PREDICT_BYTES // 10**6} MB. Send the rows in several calls."
        )
