"""Read the rows behind a model for its dossier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from trainer.data.dependence import read_groups
from trainer.data.folds import training_rows, unseen_rows
from trainer.data.formats.raw import RawTable
from trainer.data.parsing import ColumnParsing
from trainer.data.parsing.cells import Cells
from trainer.data.reader import ReadLimits, read_for_model, rows_for_model
from trainer.dtypes import CodeArray, CountArray, FloatArray
from trainer.errors import DataError
from trainer.evaluate.groups import group_rows
from trainer.table import ColumnKind, Table
from trainer.tree.file import ModelFile


@dataclass(frozen=True, kw_only=True)
class DossierRows:
    """The n rows of a file that the model can read: `table`, its `matrix` float64 (n, columns), and class codes `codes` (n,).

    `keep` (n,) holds their positions in the file; `training` holds the positions of the training rows among them. `missing` and
    `unknown` count cells of the whole file by column. `gaps` rows were left out for an empty cell, `no_class` rows for a missing or
    unknown class. `weights` and `group_codes`, int64 (n,), are those of the training; None if it had none.
    """

    model: ModelFile
    raw: RawTable
    table: Table
    matrix: FloatArray
    codes: CodeArray
    keep: np.ndarray
    training: np.ndarray
    missing: Mapping[str, int]
    unknown: Mapping[str, int]
    gaps: int
    no_class: int
    weights: CountArray | None = None
    group_codes: CountArray | None = None

    def weights_of(self, at: np.ndarray) -> CountArray:
        """Return the weights of the rows at positions `at`, int64; 1 without weights."""
        return np.ones(len(at), np.int64) if self.weights is None else self.weights[at]

    @cached_property
    def unseen(self) -> np.ndarray:
        """Positions of the held-out rows."""
        return unseen_rows(self.training, len(self.codes), self.model.rows)

    @cached_property
    def leaf_of(self) -> CodeArray:
        """The leaf of each row, (n,)."""
        return self.model.tree.apply(self.matrix)

    @cached_property
    def predicted(self) -> CodeArray:
        """The predicted class of each row, (n,)."""
        return self.model.tree.labels[self.leaf_of]

    def groups(self, column: str, at: np.ndarray) -> tuple[list[str], np.ndarray]:
        """Group the rows `at` by a column of the file; return the names of the groups, and the group of each row.

        Raises DataError if the file has no such column.
        """
        names = [c.name for c in self.model.tree.schema]
        if column in names:
            j = names.index(column)
            schema = self.model.tree.schema[j]
            values = self.matrix[at, j]
            if schema.kind is not ColumnKind.CATEGORICAL:
                return group_rows(values, schema.ranks)
            names_of_rows = [schema.categories[int(v)] if 0 <= v < len(schema.categories) else None for v in values]
            return group_rows(np.array(names_of_rows, dtype=object))
        if column not in self.raw.names:
            raise DataError(
                f"There is no column '{column}' to group the rows by. Columns: {', '.join(self.raw.names[:20])}."
            )
        cells = Cells.of(self.raw.column(column))
        words = cells.words
        index = cells.index[self.keep[at]]
        empty = cells.marks[index] | np.array([words[i] == "" for i in index], bool)
        numbers = cells.floats()[index]
        if np.isfinite(numbers[~empty]).all() and not empty.all():
            return group_rows(np.where(empty, np.nan, numbers))
        return group_rows(
            np.array([None if is_empty else words[i] for i, is_empty in zip(index, empty, strict=True)], dtype=object)
        )


def rows_of(model: ModelFile, data: str | Path, *, limits: ReadLimits | None = None) -> DossierRows:
    """Read the rows of the file that trained the model.

    Raises DataError if the file has no target or does not fit the model, and OSError.
    """
    tree = model.tree
    reading = ColumnParsing.from_json(model.reading)
    raw = read_for_model(data, reading, {c.name for c in tree.schema}, target=model.target, limits=limits)
    read = rows_for_model(raw, tree.schema, target=model.target, classes=tree.classes, reading=reading)
    if read.labels is None:
        raise DataError(f"The target '{model.target}' is not in the file. Give the file that trained the model.")
    has_class = read.labels.codes >= 0
    keep = np.flatnonzero(read.usable & has_class)
    codes = read.labels.codes[keep]
    table = read.table.take(keep)
    record = model.rows or {}
    weights = np.array(record.get("weights") or (), np.int64)
    group = (record.get("group") or {}).get("column")
    return DossierRows(
        model=model,
        raw=raw,
        table=table,
        matrix=table.matrix(),
        codes=codes,
        keep=keep,
        training=training_rows(codes, model.rows, model.parameters),
        missing=read.missing,
        unknown=read.unknown,
        gaps=int((~read.usable & has_class).sum()),
        no_class=int((~has_class).sum()),
        weights=weights if len(weights) == len(keep) else None,
        group_codes=read_groups(raw, group, keep).codes if group in raw.names else None,
    )
