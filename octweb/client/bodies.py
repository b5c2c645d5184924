"""Read what a user passes: files, data frames and rows."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Any

from octweb.client.connection import OpenFile


def is_frame(value: Any) -> bool:
    """Return whether a value is a data frame of pandas or polars."""
    return hasattr(value, "columns") and (hasattr(value, "to_csv") or hasattr(value, "write_csv"))


def open_file(source: Any, name: str = "") -> OpenFile:
    """Return the file of an upload: a path, a binary stream, bytes, or a data frame (sent as CSV).

    Raises
    ------
    FileNotFoundError
        If the path does not exist.
    TypeError
        If `source` is none of these.
    """
    if isinstance(source, str | PathLike):
        path = Path(source)
        if not path.is_file():
            raise FileNotFoundError(f"'{path}' is not a file. Pass the path of a CSV, Excel, Parquet or Arrow file.")
        return name or path.name, lambda: path.open("rb")
    if is_frame(source):
        content = _csv(source)
    elif isinstance(source, bytes):
        content = source
    elif hasattr(source, "read"):
        content = source.read()
        name = name or Path(str(getattr(source, "name", ""))).name
        if isinstance(content, str):
            raise TypeError("The stream gives text. Open the file in binary mode: open(path, 'rb').")
    else:
        raise TypeError(f"{type(source).__name__} is no path, binary stream, bytes or data frame.")
    return name or "table.csv", lambda: nullcontext(io.BytesIO(content))


def _csv(frame: Any) -> bytes:
    if hasattr(frame, "to_csv"):
        return str(frame.to_csv(index=False)).encode()
    return str(frame.write_csv()).encode()


def rows_of(source: Any) -> list[dict[str, Any]]:
    """Return rows as dicts of plain values: of a dict, a sequence of dicts, or a data frame. An empty cell is None."""
    if is_frame(source):
        records = source.to_dicts() if hasattr(source, "to_dicts") else source.to_dict("records")
    elif isinstance(source, Mapping):
        records = [source]
    else:
        records = list(source)
    for record in records:
        if not isinstance(record, Mapping):
            raise TypeError(f"A row is a mapping of column to value, not {type(record).__name__}: {record!r:.60}")
    return [{str(name): plain(value) for name, value in record.items()} for record in records]


def plain(value: Any) -> Any:
    """Return a cell as JSON has it: NumPy numbers as numbers, empty cells as None, dates as text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if hasattr(value, "isoformat"):
        text = str(value.isoformat())
        return None if text == "NaT" else text
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else _not_finite(value)
    if isinstance(value, str | bool | int):
        return value
    # pandas.NA has no type that can be imported without pandas
    return None if type(value).__name__ == "NAType" else str(value)


def _not_finite(value: float) -> None:
    if math.isinf(value):
        raise ValueError("A value is infinite. Remove it, or leave the cell empty (None).")


def batches(rows: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Yield consecutive parts of `rows` with at most `size` rows; of no rows, one empty part."""
    for start in range(0, max(1, len(rows)), size):
        yield rows[start : start + size]
