"""Write the predictions of a file as CSV or Parquet, piece by piece.

The columns of a result, in this order: those of the file if wanted, `row`, `label`, the share of each class, `leaf`, and those that
a caller adds.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trainer.data.formats.spreadsheet import as_text, csv_line
from trainer.dtypes import BoolArray, CodeArray, FloatArray
from trainer.tree.nodes import Tree

PIECE = 50_000  # rows that are read, predicted and written at a time, unless further columns need fewer


class MoreColumns(Protocol):
    """Further columns of a result, computed for `piece` rows at a time, so that memory stays bounded."""

    fields: tuple[tuple[str, pa.DataType], ...]
    piece: int

    def of(self, matrix: FloatArray, usable: BoolArray) -> list[list[Any]]:
        """Return n values of each field for rows, float64 of shape (n, columns); None for rows that are not `usable`."""

    def notes(self) -> list[str]:
        """Return sentences on all pieces."""


class Piece(NamedTuple):
    """Rows of a result from number `first` on."""

    first: int
    leaves: CodeArray  # int32 (n,), leaf of each row
    usable: BoolArray  # bool (n,), whether a row has a prediction
    more: Sequence[list[Any]] = ()  # further columns, such as explanations
    file_columns: pa.RecordBatch | None = None  # columns of the input file to copy


class Writer(Protocol):
    """Writes pieces of a result."""

    def write(self, piece: Piece) -> None:
        """Write a piece. Either all pieces have the columns of the file, or none does."""

    def close(self) -> None:
        """Write the rest; the header alone if there was no piece."""


class CsvWriter:
    """Writer of CSV; rows of the same leaf share one text.

    `for_spreadsheets` keeps texts from being read as formulas.
    """

    def __init__(
        self, tree: Tree, stream: Any, *, for_spreadsheets: bool = False, more: MoreColumns | None = None
    ) -> None:
        self.text = label = as_text if for_spreadsheets else str
        self.stream = stream
        self.names = [*_names(tree), *(name for name, _ in more.fields)] if more else _names(tree)
        self.begun = False
        self.cells: list[list[Any]] = [
            [label(tree.classes[int(tree.labels[v.id])]), *map(repr, tree.probabilities[v.id].tolist()), v.id]
            for v in tree.nodes
        ]
        self.cells.append([""] * (len(tree.classes) + 2))  # the last entry serves rows without a prediction
        self.answers = ["," + csv_line(cells) for cells in self.cells]

    def write(self, piece: Piece) -> None:
        first, leaves, usable, more, file_columns = piece
        self._begin(file_columns.schema.names if file_columns is not None else ())
        codes = np.where(usable, leaves, len(self.answers) - 1).tolist()
        if not more and file_columns is None:
            self.stream.write("".join([f"{i}{self.answers[leaf]}" for i, leaf in enumerate(codes, first)]))
            return
        before = (
            zip(*map(self._file_cells, file_columns.columns), strict=True)
            if file_columns is not None
            else ((),) * len(codes)
        )
        after = ([self._cell(v) for v in row] for row in zip(*more, strict=True)) if more else ((),) * len(codes)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(
            [*old, i, *self.cells[leaf], *new]
            for i, (leaf, old, new) in enumerate(zip(codes, before, after, strict=True), first)
        )
        self.stream.write(text.getvalue())

    def _begin(self, file_names: Sequence[str]) -> None:
        if not self.begun:
            self.stream.write(csv_line([*map(self.text, file_names), *_answer_names(self.names, file_names)]))
            self.begun = True

    def _file_cells(self, column: pa.Array) -> list[Any]:
        return ["" if value is None else self._cell(value) for value in column.to_pylist()]

    def _cell(self, value: Any) -> Any:
        if isinstance(value, bool):
            return "true" if value else "false"
        return self.text(value) if isinstance(value, str) else value

    def close(self) -> None:
        self._begin(())
        self.stream.flush()


class ParquetWriter:
    """Writer of Parquet: row (int64), label (text), one share (double) per class, leaf (int32).

    Columns of the file keep their types.
    """

    def __init__(self, tree: Tree, stream: Any, *, more: MoreColumns | None = None) -> None:
        self.labels = pa.array([tree.classes[int(k)] for k in tree.labels], pa.string())
        self.shares = [pa.array(tree.probabilities[:, k]) for k in range(len(tree.classes))]
        types = [pa.int64(), pa.string(), *(pa.float64() for _ in tree.classes), pa.int32()]
        self.fields = [*zip(_names(tree), types, strict=True), *(more.fields if more else ())]
        self.stream = stream
        self.writer: pq.ParquetWriter | None = None

    def write(self, piece: Piece) -> None:
        first, leaves, usable, more, file_columns = piece
        writer = self._begin(file_columns.schema if file_columns is not None else pa.schema([]))
        codes = pa.array(leaves, pa.int32(), mask=~usable)
        rows = pa.array(np.arange(first, first + len(leaves)))
        columns = [rows, self.labels.take(codes), *(share.take(codes) for share in self.shares), codes]
        columns += [pa.array(v, t) for v, (_, t) in zip(more, self.fields[len(columns) :], strict=True)]
        columns = [*(file_columns.columns if file_columns is not None else ()), *columns]
        writer.write_batch(pa.record_batch(columns, schema=writer.schema))

    def _begin(self, file_schema: pa.Schema) -> pq.ParquetWriter:
        if self.writer is None:
            names = _answer_names([name for name, _ in self.fields], file_schema.names)
            answers = [pa.field(name, t) for name, (_, t) in zip(names, self.fields, strict=True)]
            schema = pa.schema([*(field.remove_metadata() for field in file_schema), *answers])
            self.writer = pq.ParquetWriter(self.stream, schema, compression="zstd")
        return self.writer

    def close(self) -> None:
        self._begin(pa.schema([])).close()


def _names(tree: Tree) -> list[str]:
    return ["row", "label", *(f"probability {c}" for c in tree.classes), "leaf"]


def _answer_names(names: Sequence[str], file_names: Collection[str]) -> list[str]:
    """Return the names of the answer columns, prefixed with "predicted" where the file has the same name."""
    used_names = set(file_names)
    answer_names = []
    for name in names:
        while name in used_names:
            name = f"predicted {name}"
        used_names.add(name)
        answer_names.append(name)
    return answer_names
