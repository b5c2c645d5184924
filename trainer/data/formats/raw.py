"""Represent the untouched cells of a file, with its detected format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trainer.data.formats import layout as layouts

MAX_NAME_CHARACTERS = 1000  # limit on the characters of a column's name, since every tree, answer and page repeats it
# fields that are left out of the JSON if they are unset, as in most files
RARE = ("top", "bottom", "sheet", "sheets", "index", "remarks")
TYPED = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)


def too_long(names: Sequence[str]) -> list[str]:
    """Return a message for each column name that is too long."""
    return [
        f"the name of column {place:,} has {len(name):,} characters, but at most {MAX_NAME_CHARACTERS:,} are possible. Shorten it."
        for place, name in enumerate(names, 1)
        if len(name) > MAX_NAME_CHARACTERS
    ]


@dataclass(frozen=True, kw_only=True)
class DetectedFormat:
    """The detected format of a file, with reasons; `encoding_sure`, `delimiter_sure` and `header_sure` are in [0, 1].

    `top` and `bottom` are the lines above and below the table, as pairs of line number and text. `sheet` is the worksheet that was
    read, one of `sheets`. `index` is the column that names the rows by the form of the file: R row names, a pandas index. `remarks` are sentences on cells that were read in a special way.
    """

    format: str  # "csv", "parquet", "arrow" or "xlsx"
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
    encoding_sure: float = 1.0
    sheet: str = ""
    sheets: tuple[str, ...] = ()
    index: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the format that a user should check."""
        return self.remarks if self.encoding_sure == 1 else (self.encoding_reason, *self.remarks)

    def to_json(self) -> dict[str, Any]:
        """Return the format as a dictionary, without empty fields that only some files have."""
        record = {member.name: getattr(self, member.name) for member in fields(self)}
        return {name: value for name, value in record.items() if name not in RARE or value}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> DetectedFormat:
        """Build the format from the dictionary of `to_json`; raise TypeError or ValueError if it is damaged."""
        around: dict[str, Any] = {
            name: tuple((int(n), str(text)) for n, text in record.get(name, ())) for name in ("top", "bottom")
        }
        around |= {name: tuple(map(str, record.get(name, ()))) for name in ("sheets", "remarks")}
        return cls(**record | around)


@dataclass(frozen=True, kw_only=True)
class RawTable:
    """Column names and cells as they are in the file.

    `columns` are pyarrow arrays of equal length: strings for CSV; strings, integers, floating-point numbers or booleans for
    other files. A dictionary of strings is a column of categories that the file declares. `line_numbers`, int64 (n,), are the line where a CSV row starts, or the row number in another file, from 1.
    """

    names: tuple[str, ...]
    columns: tuple[pa.Array, ...]
    line_numbers: np.ndarray
    detected: DetectedFormat

    def __len__(self) -> int:
        return len(self.line_numbers)

    @property
    def place(self) -> str:
        """The word before a line number in messages."""
        return "Line" if self.detected.format == "csv" else "Row"

    def column(self, name: str) -> pa.Array:
        """Return the cells of the column called `name`.

        Parameters
        ----------
        name : str

        Returns
        -------
        pyarrow.Array
            One cell per row.

        Raises
        ------
        KeyError
            If the table has no such column.
        """
        return self.columns[self._places[name]]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}


def flat(column: pa.ChunkedArray) -> pa.Array:
    """Return the chunks of a column as one array."""
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def as_text(column: pa.Array) -> pa.Array:
    """Return a column as text without surrounding spaces; whole floats lose '.0', other floats have the shortest form."""
    if pa.types.is_string(column.type):
        return pc.utf8_trim_whitespace(column)
    if pa.types.is_floating(column.type):
        encoded = column.dictionary_encode()
        words = pa.array([repr(v).removesuffix(".0") for v in encoded.dictionary.to_pylist()], pa.string())
        return words.take(encoded.indices)
    return column.cast(pa.string())


def first_of(problems: list[str]) -> str:
    """Return the first problem, with the number of problems if there are several."""
    more = f" ({len(problems)} places in all.)" if len(problems) > 1 else ""
    return problems[0] + more
