"""Store a raw table with its detected format as a Parquet file."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trainer.data.formats.raw import DetectedFormat, RawTable
from trainer.errors import DataError
from trainer.table import Table

KEY = b"octweb-raw"
ROW_GROUP_ROWS = 50_000  # rows per group, so that a page of twenty rows does not read the whole file


def write_raw(raw: RawTable, path: str | Path) -> None:
    """Write `raw` as Parquet; line numbers and `detected` go into the metadata of the file."""
    # differences of line numbers are mostly 1, so they compress well
    steps = np.diff(raw.line_numbers, prepend=0).astype("<i8")
    record = {"detected": raw.detected.to_json(), "lines": base64.b64encode(zlib.compress(steps.tobytes())).decode()}
    table = pa.table(list(raw.columns), names=list(raw.names)).replace_schema_metadata({KEY: json.dumps(record)})
    pq.write_table(table, path, compression="zstd", row_group_size=ROW_GROUP_ROWS)


def read_raw(path: str | Path) -> RawTable:
    """Read the table that `write_raw` wrote; raise DataError for another or a damaged file."""
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            table = file.read(use_threads=False)
        record = json.loads((table.schema.metadata or {})[KEY])
        steps = np.frombuffer(zlib.decompress(base64.b64decode(record["lines"])), "<i8")
        detected = DetectedFormat.from_json(record["detected"])
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError, zlib.error) as error:
        raise DataError(f"The stored rows are damaged: {error}. Upload the file again.") from error
    columns = tuple(pa.array([], c.type) if not c.num_chunks else c.combine_chunks() for c in table.columns)
    columns = tuple(c.chunk(0) if isinstance(c, pa.ChunkedArray) else c for c in columns)
    return RawTable(
        names=tuple(table.column_names),
        columns=columns,
        line_numbers=np.cumsum(steps).astype(np.int64),
        detected=detected,
    )


def lines_in(path: str | Path, n: int) -> np.ndarray | None:
    """Return the line of the uploaded file where each of the `n` rows began, int64 (n,); None if they are not stored.

    Rows of an uploaded Parquet or Arrow file have no lines.
    """
    try:
        record = json.loads((pq.read_schema(path).metadata or {})[KEY])
        if record["detected"]["format"] in ("parquet", "arrow"):
            return None
        steps = np.frombuffer(zlib.decompress(base64.b64decode(record["lines"])), "<i8")
    except (pa.ArrowException, KeyError, TypeError, ValueError, zlib.error):
        return None
    return np.cumsum(steps).astype(np.int64) if len(steps) == n else None


def by_lines(table: Table, path: str | Path) -> Table:
    """Return the table with the lines of the uploaded file as row numbers, if the stored file has them."""
    try:
        lines = lines_in(path, pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError):
        return table
    return table if lines is None else replace(table, row_numbers=lines[table.row_numbers - 1])
