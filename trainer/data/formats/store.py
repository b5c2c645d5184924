"""Store an accepted table and its content hash as one Parquet file.

Values are float64; the metadata has the schema as JSON, and the hash.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trainer.dtypes import CODE
from trainer.errors import DataError
from trainer.table import ClassType, Column, ColumnSchema, Labels, Table, fingerprint, narrow
from trainer.tree.file import write_atomically

FORMAT = b"octweb-table"
FORMAT_VERSION = 1
KEY = b"octweb"
# fixed field names; a column is stored under its index, because its own name could equal one of these
ROWS = "row"
LABELS = "label"


def save_parquet(table: Table, labels: Labels | None, path: str | Path) -> str:
    """Write table and labels and return their content hash, SHA-256 as hexadecimal text; NaN marks missing cells."""
    digest = fingerprint(table, labels)
    record = {
        "format_version": FORMAT_VERSION,
        "columns": [schema.to_json() for schema in table.schema],
        "fingerprint": digest,
        "labels": None if labels is None else _labels_record(labels),
    }
    arrays = {str(j): pa.array(np.ascontiguousarray(column.values)) for j, column in enumerate(table.columns)}
    arrays[ROWS] = pa.array(table.row_numbers.astype(np.int64))
    if labels is not None:
        arrays[LABELS] = pa.array(labels.codes.astype(CODE))
    stored = pa.table(arrays).replace_schema_metadata({KEY: json.dumps(record, ensure_ascii=False).encode()})
    sink = pa.BufferOutputStream()
    pq.write_table(stored, sink, compression="zstd")
    write_atomically(Path(path), sink.getvalue().to_pybytes())
    return digest


def _labels_record(labels: Labels) -> dict[str, Any]:
    record: dict[str, Any] = {"name": labels.name, "classes": list(labels.classes)}
    return record if labels.type is None else record | {"type": str(labels.type)}


def load_parquet(path: str | Path) -> tuple[Table, Labels | None]:
    """Read table and labels that `save_parquet` wrote; raise DataError unless their content has the stored hash."""
    try:
        stored = pq.read_table(Path(path))
        record = json.loads((stored.schema.metadata or {})[KEY])
        if record["format_version"] != FORMAT_VERSION:
            raise DataError(
                f"The stored table has format {record['format_version']}, which this version of octweb cannot read. Upload the file again."
            )
        columns = tuple(
            Column(schema=ColumnSchema.from_json(column_record), cells=narrow(_array(stored, str(j), np.float64)))
            for j, column_record in enumerate(record["columns"])
        )
        table = Table(columns=columns, row_numbers=_array(stored, ROWS, np.int64))
        column_record = record["labels"]
        labels = None
        if column_record is not None:
            type_name = column_record.get("type")
            labels = Labels(
                name=column_record["name"],
                classes=tuple(column_record["classes"]),
                codes=_array(stored, LABELS, CODE),
                type=None if type_name is None else ClassType(type_name),
            )
        expected = record["fingerprint"]
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"The stored table is damaged: {error}. Upload the file again.") from error
    if fingerprint(table, labels) != expected:
        raise DataError(
            "The stored table was changed: its content does not match its fingerprint. Upload the file again."
        )
    return table, labels


def _array(stored: pa.Table, name: str, dtype: type) -> np.ndarray:
    return np.ascontiguousarray(stored.column(name).to_numpy(), dtype=dtype)
