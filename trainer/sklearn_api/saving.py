"""Save a fitted estimator as a model file, with its proof beside it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trainer.certificate import Certificate
from trainer.counts.folder import Counts
from trainer.counts.train import train_counts
from trainer.data.column_statistics import describe_columns
from trainer.data.empty_report import is_empty
from trainer.data.folds import rows_record
from trainer.data.parsing.cells import MARKS
from trainer.data.problem import Problem
from trainer.methods.base import Method, Settings, Solution
from trainer.solver_common.problem_setup import file_parameters, searched_settings
from trainer.table import ColumnKind, Labels, Table, fingerprint
from trainer.training.metrics import metrics_of
from trainer.training.proof_file import ProofLimits, write_proof
from trainer.tree.file import ModelFile, write
from trainer.tree.nodes import Tree

PROOF_ENDING = "proof.jsonl.gz"


class ModelFileWarning(UserWarning):
    """A saved model file cannot be verified in full: its proof is missing, or no table can hold its rows."""


@dataclass(frozen=True, kw_only=True)
class FitRecord:
    """Input and solution of a `fit`, from which a proof is written."""

    method: Method
    problem: Problem
    settings: Settings
    solution: Solution


class CountedFit(NamedTuple):
    """Counts and parameters of a `fit_counts`, from which a proof is written."""

    counts: Counts
    parameters: dict[str, Any]


def target_name(name: Any, columns: Sequence[str]) -> str:
    """Return the name of the labels, or "class" with enough underscores to be unique among the columns."""
    if isinstance(name, str) and name and name not in columns:
        return name
    name = "class"
    while name in columns:
        name += "_"
    return name


def fitted_file(method: Method, tree: Tree, problem: Problem, settings: Settings, *, weighted: bool) -> ModelFile:
    """Return the model file of a fitted tree, without its certificate."""
    constant = 0 if problem.costs is None else problem.costs.best_constant
    weights = problem.quantile_weights if weighted and problem.quantile_weights is not None else problem.weights
    costs_by_row = None if problem.costs is None else problem.costs.given
    return ModelFile(
        tree=describe_columns(tree, problem.matrix),
        target=problem.labels.name,
        method=method.id,
        parameters=file_parameters(problem, settings) | {"test_share": 0.0, "folds": 0},
        metrics={"train": metrics_of(tree, problem.matrix, problem.y, problem.weights, problem.costs, constant)},
        fingerprint=fingerprint(problem.table, problem.labels),
        rows=rows_record(
            replace(problem.table, groups=None),  # groups did not choose any rows that the file lists
            np.arange(len(problem.table)),
            np.zeros(0, np.int64),
            None,
            weights if weighted else None,
            None,
            costs_by_row,
        ),
        class_type=problem.labels.type,
    )


def save_fitted(file: ModelFile, certificate: Certificate, path: Path, search: FitRecord | None) -> None:
    """Write a model file with its certificate, and the proof of `search` beside it.

    Warns
    -----
    ModelFileWarning
        If there is no proof, or if a table of rows cannot hold a category or class.
    """
    record = certificate.to_json()
    if search is not None:
        beside = path.with_name(f"{path.stem}.{PROOF_ENDING}")
        written = write_proof(
            beside,
            search.problem.searched,
            search.method,
            searched_settings(search.problem, search.settings),
            search.solution,
            ProofLimits(),
        )
        record["evidence"].append(written)
        if not written["made"]:
            _warn(f"No proof was written. {written['reason']}")
    _warn_of_unreadable(file.tree)
    write(replace(file, certificate=record), path)


def save_counted(fit: CountedFit, path: Path) -> None:
    """Write the model file of a fit to counts, and its proof beside it.

    Warns
    -----
    ModelFileWarning
        If there is no proof.
    """
    training = train_counts(fit.counts, fit.parameters, proof=path.with_name(f"{path.stem}.{PROOF_ENDING}"))
    written = training.certificate.evidence[-1]
    if not written["made"]:
        _warn(f"No proof was written. {written['reason']}")
    _warn_of_unreadable(training.model.tree)
    write(training.model, path)


def write_rows(table: Table, labels: Labels, path: Path) -> Path:
    """Write training rows as Parquet, for the checker, and return the path. Empty cells are null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {}
    for column in table.columns:
        empty = is_empty(column)
        cells: list[Any] = column.values.tolist()
        if column.kind is ColumnKind.CATEGORICAL:
            cells = [None if none else column.schema.categories[int(v)] for v, none in zip(cells, empty, strict=True)]
        kind = pa.string() if column.kind is ColumnKind.CATEGORICAL else pa.float64()
        columns[column.name] = pa.array([None if none else v for v, none in zip(cells, empty, strict=True)], kind)
    columns[labels.name] = pa.array([labels.classes[code] for code in labels.codes], pa.string())
    pq.write_table(pa.table(columns), path)
    return path


def _warn_of_unreadable(tree: Tree) -> None:
    """Warn about a category or class that table readers strip or read as an empty cell."""
    texts = [(column.name, category) for column in tree.schema for category in column.categories]
    texts += [("the target", label) for label in tree.classes]
    odd = [(name, text) for name, text in texts if text in ("", *MARKS) or text != text.strip()]
    if odd:
        name, text = odd[0]
        _warn(
            f"'{text}' of {name} cannot be read from a table of rows, so the file cannot be checked with one. "
            "Rename it before training."
        )


def _warn(words: str) -> None:
    warnings.warn(words, ModelFileWarning, stacklevel=4)
