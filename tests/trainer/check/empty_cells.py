"""Model files, proofs and rows of random tables with empty cells, for tests of the checkers."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.trainer.oracles.missing import random_table, rows_of
from trainer.check.recount import Finding, verdict, verify
from trainer.registry import get
from trainer.table import Labels, Table
from trainer.training.run import TrainRequest, save, train


@dataclass(frozen=True)
class EmptyCellFiles:
    """Model file, its proof or None, and the file of its rows."""

    model: Path
    proof: Path | None
    rows: Path

    @property
    def document(self) -> dict[str, Any]:
        """New copy of the model document."""
        return copy.deepcopy(json.loads(self.model.read_text()))

    def check(self, document: dict[str, Any] | None = None, proof: Path | None = None) -> tuple[str, list[Finding]]:
        """Return the verdict and the findings on a document.

        By default it is the document of the file, with its proof.
        """
        path = self.model
        if document is not None:
            path = self.model.with_name("changed.json")
            path.write_text(json.dumps(document))
        findings = verify(path, self.rows, proof or self.proof)
        return verdict(findings), findings


def csv_text(table: Table, labels: Labels) -> str:
    """Return the table as CSV, in which empty cells are empty texts."""
    lines = [",".join([*table.names, labels.name])]
    for row, code in zip(rows_of(table), labels.codes, strict=True):
        cells = ["" if cell is None else cell if isinstance(cell, str) else f"{cell:g}" for cell in row.values()]
        lines.append(",".join([*cells, labels.classes[code]]))
    return "\n".join(lines) + "\n"


def trained_files(
    folder: Path, rng: np.random.Generator, method: str, *, weighted: bool = False, **parameters: Any
) -> EmptyCellFiles:
    """Train a method on a random table with empty cells, and write model, proof and rows."""
    table, labels = random_table(rng)
    return files_of(folder, table, labels, method, rng.integers(1, 4, len(table)) if weighted else None, **parameters)


def files_of(
    folder: Path, table: Table, labels: Labels, method: str, weights: np.ndarray | None = None, **parameters: Any
) -> EmptyCellFiles:
    """Train a method on a table, and write model, proof and rows."""
    names = {p.name for p in get(method).parameters}
    folds = parameters.pop("folds", 0)
    wanted = {name: value for name, value in parameters.items() if name in names}
    proof = folder / "model.proof.jsonl.gz"
    request = TrainRequest(
        table=table, labels=labels, method=method, weights=weights, parameters=wanted, folds=folds, proof=proof
    )
    model = folder / "model.json"
    save(train(request).model, model)
    rows = folder / "rows.csv"
    rows.write_text(csv_text(table, labels))
    return EmptyCellFiles(model, proof if proof.exists() else None, rows)
