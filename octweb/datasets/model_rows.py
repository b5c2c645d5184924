"""The rows of a stored file as a model reads them: arrays for the pages about the model. Nothing here knows of Django."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trainer.data.folds import training_rows, unseen_rows
from trainer.data.formats.staged import lines_in
from trainer.data.reader import load_for_model
from trainer.errors import DataError
from trainer.table import fingerprint
from trainer.tree.file import ModelFile


def arrays_of(path: Path, model: ModelFile) -> tuple[dict[str, np.ndarray], bool]:
    """Arrays by name, and whether the model was trained on these rows (its fingerprint is theirs).

    `matrix` float64 (n, columns), `codes` (n,) of the classes, `numbers` (n,) of the rows in the file from 1 on, `training`
    and `unseen`: positions of the rows that it was trained and judged on, `lines` (n,) of the uploaded file where they are known. Raises DataError.
    """
    tree = model.tree
    read = load_for_model(path, tree.schema, target=model.target, classes=tree.classes, reading=model.reading)
    if read.labels is None:
        raise DataError(f"The target '{model.target}' is not in the file.")
    keep = np.flatnonzero(read.usable & (read.labels.codes >= 0))
    table = read.table.take(keep)
    labels = read.labels.take(keep)
    training = training_rows(labels.codes, model.rows, model.parameters)
    same = not model.fingerprint or model.fingerprint == fingerprint(table.take(training), labels.take(training))
    found: dict[str, np.ndarray] = {
        "matrix": table.matrix(),
        "codes": labels.codes,
        "numbers": np.arange(1, len(read.usable) + 1)[keep],
        "training": training,
        "unseen": unseen_rows(training, len(labels.codes), model.rows),
    }
    lines = lines_in(path, len(read.usable))
    return found | ({} if lines is None else {"lines": lines[keep]}), same
