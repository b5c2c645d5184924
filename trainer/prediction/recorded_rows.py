"""Add an id to each row of a prediction file, and record the rows."""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa

from trainer.dtypes import BoolArray, CodeArray, FloatArray
from trainer.prediction.output_file import PIECE, MoreColumns
from trainer.tree.nodes import Tree

COLUMN = "decision"


class RecordedPiece(NamedTuple):
    """Rows of a file: the cells that the tree tests, float64 (n, used columns), whether each row has an
    answer, and its leaf.
    """

    cells: FloatArray
    usable: BoolArray
    leaves: CodeArray


class RecordedColumns:
    """Further columns of a prediction file: those of `more`, and `decision` with the id of each row.

    Each piece is also appended to `stream`; `read_pieces` reads it back. The id of a row is `prefix` and its
    place in the file, from 0, in eight hexadecimal digits.
    """

    def __init__(self, tree: Tree, stream: IO[bytes], prefix: str, more: MoreColumns | None = None) -> None:
        self.fields: tuple[tuple[str, pa.DataType], ...] = (*(more.fields if more else ()), (COLUMN, pa.string()))
        self.piece = more.piece if more else PIECE
        self._tree = tree
        self._stream = stream
        self._prefix = prefix
        self._more = more
        self._rows = 0

    def of(self, matrix: FloatArray, usable: BoolArray) -> list[list[Any]]:
        """Return the columns of a piece, and append the piece to the stream."""
        for array in (matrix[:, list(self._tree.used_columns)], usable, self._tree.apply(matrix).astype(np.int32)):
            np.save(self._stream, np.ascontiguousarray(array), allow_pickle=False)
        first = self._rows
        self._rows += len(matrix)
        ids = [f"{self._prefix}{i:08x}" for i in range(first, self._rows)]
        return [*(self._more.of(matrix, usable) if self._more else ()), ids]

    def notes(self) -> list[str]:
        return self._more.notes() if self._more else []


def read_pieces(stream: BufferedReader) -> Iterator[RecordedPiece]:
    """Yield the pieces that `RecordedColumns` has written to a file."""
    while stream.peek(1):
        yield RecordedPiece(*(np.load(stream, allow_pickle=False) for _ in range(3)))
