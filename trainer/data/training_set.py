"""Read the training rows of a model and look rows up among them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trainer.data.folds import training_rows
from trainer.data.formats.file_bytes import ReadLimits
from trainer.data.formats.raw import RawTable
from trainer.data.parsing import ColumnParsing
from trainer.data.reader import read_for_model, rows_for_model
from trainer.dtypes import CodeArray, FloatArray
from trainer.errors import DataError
from trainer.table import Labels, Table, fingerprint
from trainer.tree.file import ModelFile
from trainer.tree.nodes import Tree


class TrainingSet:
    """The training rows in the columns that a tree uses, with their classes.

    The set lives in memory only: no file that leaves the server contains a digest of a row.

    Parameters
    ----------
    tree : Tree
        The tree, whose used columns count.
    matrix : float64 array of shape (n_rows, n_columns)
        The training rows.
    codes : int array of shape (n_rows,)
        Their classes.
    """

    def __init__(self, tree: Tree, matrix: FloatArray, codes: CodeArray) -> None:
        self.tree = tree
        self._keys = set(self._keys_of(matrix, codes))

    def count(self, matrix: FloatArray, codes: CodeArray) -> int:
        """Return how many of these rows equal a training row in the used columns and in the class."""
        return sum(key in self._keys for key in self._keys_of(matrix, codes))

    def _keys_of(self, matrix: FloatArray, codes: CodeArray) -> list[bytes]:
        # adding 0.0 turns -0.0 into 0.0, since both are the same number
        used = matrix[:, list(self.tree.used_columns)] + 0.0
        used[np.isnan(used)] = np.nan  # give every empty cell the same bit pattern, because keys compare bytes
        rows = np.column_stack([used, codes]).astype("<f8")
        return [row.tobytes() for row in rows]


def read_training_set(model: ModelFile, path: str | Path, *, limits: ReadLimits | None = None) -> TrainingSet | None:
    """Read the training rows of a model from the file that trained it.

    Returns
    -------
    TrainingSet or None
        None if this is not the file that trained the model.

    Raises
    ------
    DataError
        If the file cannot be read as a table.
    OSError
        If the file cannot be opened.
    """
    names = {column.name for column in model.tree.schema}
    raw = read_for_model(path, ColumnParsing.from_json(model.reading), names, target=model.target, limits=limits)
    try:
        part = training_part(model, raw)
    except DataError:  # the file lacks columns of the training
        return None
    if part is None:
        return None
    table, labels = part
    return TrainingSet(model.tree, table.matrix(), labels.codes)


def training_part(model: ModelFile, raw: RawTable) -> tuple[Table, Labels] | None:
    """Return the rows of a table that trained the model; None if their fingerprint is not the model's.

    Raise DataError if the table lacks columns of the model or has cells that do not fit them.
    """
    tree = model.tree
    rows = rows_for_model(
        raw, tree.schema, target=model.target, classes=tree.classes, reading=ColumnParsing.from_json(model.reading)
    )
    if rows.labels is None:
        return None
    keep = np.flatnonzero(rows.usable & (rows.labels.codes >= 0))
    if not len(keep):
        return None
    table = rows.table.take(keep)
    labels = rows.labels.take(keep)
    positions = training_rows(labels.codes, model.rows, model.parameters)
    table = table.take(positions)
    labels = labels.take(positions)
    if model.fingerprint != fingerprint(table, labels):
        return None
    return table, labels
