"""A raw table kept as a Parquet file, with what the reading found out: it is parsed once and read back as it was."""

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
ROW_GROUP = 50_000  # rows; whoever shows twenty reads one group at most


def write_raw(raw: RawTable, path: str | Path) -> None:
    """Write `raw` as Parquet; line numbers and `detected` go into the metadata of the file."""
    steps = np.diff(raw.line_numbers, prepend=0).astype("<i8")  # mostly ones, and so very short when packed
    record = {"detected": raw.detected.to_json(), "lines": base64.b64encode(zlib.compress(steps.tobytes())).decode()}
    table = pa.table(list(raw.columns), names=list(raw.names)).replace_schema_metadata({KEY: json.dumps(record)})
    pq.write_table(table, path, compression="zstd", row_group_size=ROW_GROUP)


def read_raw(path: str | Path) -> RawTable:
    """The table that `write_raw` wrote; raises DataError for another or a damaged file."""
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
    """The line of the uploaded file on which each of the `n` rows began, int64 (n,); None for files that do not keep them.

    A Parquet file that was uploaded has no lines.
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
    """The table that was read from a file, with the lines of the uploaded file as its row numbers where the file keeps them."""
    try:
        lines = lines_in(path, pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError):
        return table
    return table if lines is None else replace(table, row_numbers=lines[table.row_numbers - 1])
