"""Parse stored rows for a model into arrays, without Django."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trainer.data.dependence import read_groups
from trainer.data.folds import training_rows, unseen_rows
from trainer.data.formats.staged import lines_in
from trainer.data.parsing import ColumnParsing
from trainer.data.reader import read_for_model, rows_for_model
from trainer.errors import DataError
from trainer.table import fingerprint
from trainer.tree.file import ModelFile


def arrays_of(path: Path, model: ModelFile) -> tuple[dict[str, np.ndarray], bool]:
    """Return arrays by name, and whether the rows match the model's fingerprint (true if it has none).

    `matrix` is float64 (n, columns). `codes` (n,) are the classes, and `numbers` (n,) the row numbers in the file from
    1. `training` and `unseen` are positions of training and held-out rows. If known, `lines` (n,) are line numbers in
    the uploaded file, and `weights` and `groups` are (n,). Raises DataError.
    """
    tree = model.tree
    reading = ColumnParsing.from_json(model.reading)
    raw = read_for_model(path, reading, {column.name for column in tree.schema})
    read = rows_for_model(raw, tree.schema, target=model.target, classes=tree.classes, reading=reading)
    if read.labels is None:
        raise DataError(
            f"The file has no column '{model.target}', which this model predicts. Use the file of its training."
        )
    keep = np.flatnonzero(read.usable & (read.labels.codes >= 0))
    table = read.table.take(keep)
    labels = read.labels.take(keep)
    training = training_rows(labels.codes, model.rows, model.parameters)
    same = not model.fingerprint or model.fingerprint == fingerprint(table.take(training), labels.take(training))
    arrays: dict[str, np.ndarray] = {
        "matrix": table.matrix(),
        "codes": labels.codes,
        "numbers": np.arange(1, len(read.usable) + 1)[keep],
        "training": training,
        "unseen": unseen_rows(training, len(labels.codes), model.rows),
    }
    row_record = model.rows or {}
    if len(row_record.get("weights") or ()) == len(keep):
        arrays["weights"] = np.array(row_record["weights"], np.int64)
    if row_record.get("group") and row_record["group"]["column"] in raw.names:
        arrays["groups"] = read_groups(raw, row_record["group"]["column"], keep).codes
    lines = lines_in(path, len(read.usable))
    return arrays | ({} if lines is None else {"lines": lines[keep]}), same
