"""Prepare a model for fast prediction, once per document.

Rows of a leaf share their answer, so an answer is a lookup of encoded bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
import orjson

from octweb.registry.document.model_files import DocumentCache, model_file
from octweb.registry.models import TreeModel
from octweb.registry.prediction.predictions import leaf_answer
from octweb.registry.prediction.recording import ID_DIGITS, Ids
from trainer.data.parsing import ColumnParsing
from trainer.data.parsing.cells import LARGEST_EXACT
from trainer.data.rows import plain_matrix, plain_rows
from trainer.dtypes import BitArray, CodeArray, FloatArray
from trainer.table import ColumnKind
from trainer.tree.nodes import Tree

ID_CHARACTERS = 36
MEMBER = b',"decision":"' + ID_CHARACTERS * b"0" + b'"},'  # with the comma that follows the record
DIGITS_END = -len(b'"},')  # end of the row number in MEMBER
DIGITS_BEGIN = DIGITS_END - ID_DIGITS
ID_BEGIN = DIGITS_END - ID_CHARACTERS


def hexadecimal(n: int) -> BitArray:
    """Return the numbers from 0 to n − 1 as text: an array of shape (n, ID_DIGITS) with one character in each cell."""
    shifts = np.arange(4 * (ID_DIGITS - 1), -1, -4)
    return np.frombuffer(b"0123456789abcdef", np.uint8)[np.arange(n)[:, None] >> shifts & 0xF]


_NUMBERS = hexadecimal(2000)


@dataclass(frozen=True)
class CompiledModel:
    """A tree with precomputed values for fast prediction."""

    tree: Tree
    has_ranks: bool = False  # whether words of a column, numbers too, become ranks

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(c.name for c in self.tree.schema)

    @cached_property
    def numbers_only(self) -> bool:
        """Whether rows can be parsed directly into a matrix: two or more columns, none with categories or ranks."""
        return (
            len(self.names) > 1
            and not self.has_ranks
            and all(c.kind is not ColumnKind.CATEGORICAL for c in self.tree.schema)
        )

    @cached_property
    def cells(self) -> itemgetter[Any]:
        """Getter of all cells of a row, in the order of the schema."""
        return itemgetter(*self.names)

    @cached_property
    def records(self) -> list[bytes]:
        """Record of a prediction in `/api/v1/`, by node."""
        return [orjson.dumps(leaf_answer(self.tree, v.id)) for v in self.tree.nodes]

    @cached_property
    def _lines(self) -> BitArray:
        """The records with MEMBER, by node. JSON allows the spaces that make them equally long."""
        width = max(map(len, self.records))
        lines = [record[:-1].ljust(width) + MEMBER for record in self.records]
        return np.frombuffer(b"".join(lines), np.uint8).reshape(len(lines), -1)

    def recorded(self, leaves: CodeArray, ids: Ids) -> bytes:
        """Return the record of each row with its id as the member `decision`, separated by commas."""
        if ids.rows == 1:
            return self.records[int(leaves[0])][:-1] + b',"decision":"' + ids.first.encode() + b'"}'
        lines = self._lines.copy()
        lines[:, ID_BEGIN:DIGITS_BEGIN] = np.frombuffer(ids.prefix.encode(), np.uint8)
        text = lines.take(leaves, 0, None, "clip")  # nodes exist; the default mode checks them
        n = ids.rows
        text[:, DIGITS_BEGIN:DIGITS_END] = _NUMBERS[:n] if n <= len(_NUMBERS) else hexadecimal(n)
        return text.tobytes()[:-1]

    @cached_property
    def labels(self) -> list[bytes]:
        """Label as JSON text, by node."""
        return [orjson.dumps(self.tree.classes[int(k)]) for k in self.tree.labels]

    @cached_property
    def codes(self) -> list[int]:
        """Code of the label, by node."""
        return [int(k) for k in self.tree.labels]

    @cached_property
    def shares(self) -> list[bytes]:
        """Class shares separated by commas, by node."""
        return [orjson.dumps(row)[1:-1] for row in self.tree.probabilities.tolist()]

    @cached_property
    def numbers(self) -> list[bytes]:
        """Node numbers as bytes, by node."""
        return [b"%d" % v.id for v in self.tree.nodes]

    @cached_property
    def ordinary_range(self) -> tuple[FloatArray, FloatArray]:
        """Least and largest ordinary value of each column.

        Ordinary values are exact as doubles and, for columns with splits, in the training range.
        """
        largest = np.nextafter(LARGEST_EXACT, 0.0)
        low = np.full(len(self.names), -largest)
        high = -low
        for j in self.tree.used_columns:
            low[j], high[j] = self.tree.schema[j].range or (low[j], high[j])
        return np.clip(low, -largest, largest), np.clip(high, -largest, largest)

    def matrix_of(self, rows: Any) -> FloatArray | None:
        """Return the matrix of rows with ordinary numbers. None for other rows, which need full parsing or marks."""
        matrix = plain_rows(self.tree.schema, self.cells, rows) if self.numbers_only else None
        return None if matrix is None else self.checked(matrix)

    def checked(self, matrix: FloatArray) -> FloatArray | None:
        """Return `matrix` if its cells need no parsing and are in the training range, otherwise None.

        Answers to values outside the range must be marked.
        """
        if not self.numbers_only:
            return None
        low, high = self.ordinary_range
        # fmax replaces NaN with the lower limit, so NaN counts as different; comparing bytes takes a third of the time
        # of comparing cells
        if np.fmin(np.fmax(matrix, low), high).tobytes() == matrix.tobytes():
            return matrix
        plain = plain_matrix(matrix)
        return None if plain is None or self.tree.outside(plain).any() else plain


_compiled: DocumentCache[CompiledModel] = DocumentCache()


def compile_model(model: TreeModel) -> CompiledModel:
    """Return the compiled tree of a model. A deferred `document` is read only on a cache miss."""
    model_compiled = _compiled.get(model.sha256)
    if model_compiled is None:
        file = model_file(model)
        model_compiled = CompiledModel(file.tree, has_ranks=bool(ColumnParsing.from_json(file.reading).ranked))
        _compiled.put(model.sha256, model_compiled, len(model.document))
    return model_compiled
