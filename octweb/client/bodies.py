"""Convert what users pass to the client: files, data frames and rows."""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime, time
from os import PathLike
from pathlib import Path
from typing import Any

from octweb.client.connection import OpenFile


def is_frame(value: Any) -> bool:
    """Return whether a value is a data frame of pandas or polars."""
    return hasattr(value, "columns") and (hasattr(value, "to_csv") or hasattr(value, "write_csv"))


def open_file(source: Any, name: str = "") -> OpenFile:
    """Return name and opener of a file to upload.

    `source` is a path, a binary stream, bytes, or a data frame, which is sent as CSV.

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
        raise TypeError(f"{type(source).__name__} is not a path, a binary stream, bytes or a data frame.")
    return name or "table.csv", lambda: nullcontext(io.BytesIO(content))


def _csv(frame: Any) -> bytes:
    if hasattr(frame, "to_csv"):
        return str(frame.to_csv(index=False)).encode()
    return str(frame.write_csv()).encode()


def rows_of(source: Any) -> list[dict[str, Any]]:
    """Convert a dict, a sequence of dicts, or a data frame to rows of JSON values. An empty cell is None.

    Raises
    ------
    TypeError
        If a row is not a mapping.
    ValueError
        If a data frame has two columns of one name, or a value is infinite.
    """
    days: set[Any] = set()
    if hasattr(source, "to_dicts"):
        records = source.to_dicts()
    elif is_frame(source):
        _refuse_equal_names(source)
        records = source.to_dict("records")
        days = _columns_of_days(records)
    elif isinstance(source, Mapping):
        records = [source]
    else:
        records = list(source)
    for record in records:
        if not isinstance(record, Mapping):
            raise TypeError(f"A row is a mapping of column to value, not {type(record).__name__}: {record!r:.60}")
    return [
        {str(name): json_cell(_day_of(value) if name in days else value) for name, value in record.items()}
        for record in records
    ]


def _refuse_equal_names(frame: Any) -> None:
    name, number = Counter(map(str, frame.columns)).most_common(1)[0] if len(frame.columns) else ("", 0)
    if number > 1:
        raise ValueError(f"The data frame has {number} columns '{name}'. Rename all but one.")


def _columns_of_days(records: Sequence[Mapping[Any, Any]]) -> set[Any]:
    """Return the columns whose moments are all at midnight: pandas writes those as days into the CSV file of an upload."""
    is_at_midnight: dict[Any, bool] = {}
    for record in records:
        for name, value in record.items():
            if isinstance(value, datetime) and value == value:  # NaT is not a moment
                midnight = value.tzinfo is None and value.time() == time.min
                is_at_midnight[name] = is_at_midnight.get(name, True) and midnight
    return {name for name, midnight in is_at_midnight.items() if midnight}


def _day_of(value: Any) -> Any:
    return value.date() if isinstance(value, datetime) and value == value else value


def json_value(value: Any) -> Any:
    """Return a value whose NumPy numbers and arrays, also in lists and mappings, are those of Python."""
    if isinstance(value, Mapping):
        return {str(name): json_value(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(member) for member in value]
    return value.tolist() if hasattr(value, "tolist") else value


def json_cell(value: Any) -> Any:
    """Convert a cell to a JSON value. NumPy numbers become numbers, empty cells None, and dates text."""
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


def form_of(options: Mapping[str, Any], known: Sequence[str]) -> dict[str, str]:
    """Return options as texts of a form. Raises TypeError for an unknown one, which the server would ignore."""
    for name in options:
        if name not in known:
            raise TypeError(f"'{name}' is not an option. The options are {', '.join(known)}.")
    return {
        name: value if isinstance(value, str) else json.dumps(json_value(value))
        for name, value in options.items()
        if value is not None
    }


def batches(rows: Sequence[Any], size: int) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield consecutive parts of `rows` with at most `size` rows, each with its first place; of no rows, one empty part."""
    if size < 1:
        raise ValueError(f"batch_size must be at least 1, not {size}.")
    for start in range(0, max(1, len(rows)), size):
        yield start, rows[start : start + size]
