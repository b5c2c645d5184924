"""Read the rows of a model, and check its claim on them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from octweb.core.files import local_path
from octweb.core.problems import Busy
from octweb.datasets import reader
from octweb.datasets.model_rows import arrays_of
from octweb.registry.document.model_files import document_of, model_file
from octweb.registry.models import TreeModel
from trainer.data.column_prices import read_column_prices
from trainer.data.cost_text import read_costs
from trainer.data.costs import EACH_ROW
from trainer.data.problem import SettingNames, class_weighted
from trainer.dtypes import CodeArray, FloatArray
from trainer.errors import TrainerError
from trainer.goal import Goal
from trainer.table import ColumnKind, Labels
from trainer.tree.describe import counted_words, weight_step
from trainer.tree.file import ModelFile
from trainer.tree.numbers import number_text

TOLERANCE = 1e-9
MAX_CELLS = 20_000_000  # rows times columns; larger data sets are not read
# bytes; larger files are read in another process
READ_HERE = 20_000_000


@dataclass(frozen=True, kw_only=True)
class DatasetRows:
    """Rows of the data set that the model can predict.

    `matrix` is (n, columns). `codes` (n,) are the classes, and `numbers` (n,) the row numbers from 1. `training` and
    `unseen` are positions of training and held-out rows. `same` says whether the fingerprint of the training rows is
    that of the model. `lines` (n,) are lines of the uploaded file, or None if unknown. `weights` and `groups`, int64
    (n,), are those of the training, or None.
    """

    matrix: FloatArray
    codes: CodeArray
    numbers: np.ndarray
    training: np.ndarray
    unseen: np.ndarray
    same: bool
    lines: np.ndarray | None = None
    weights: np.ndarray | None = None
    groups: np.ndarray | None = None

    def weights_of(self, at: np.ndarray) -> np.ndarray:
        """Return the weights of the rows at some positions, int64. The default weight is 1."""
        return np.ones(len(at), np.int64) if self.weights is None else self.weights[at]

    @property
    def called(self) -> str:
        """Word for a row's label: line of the uploaded file, or row if lines are unknown."""
        return "row" if self.lines is None else "line"

    @property
    def shown(self) -> np.ndarray:
        """Label of each row, int64 (n,): its line, or its number if lines are unknown."""
        return self.numbers if self.lines is None else self.lines

    def position(self, number: int) -> int | None:
        """Return the position of the row with this number, or None."""
        positions = np.flatnonzero(self.numbers == number)
        return int(positions[0]) if len(positions) else None

    def at_line(self, line: int) -> int | None:
        """Return the position of the row on this line, or with this number if lines are unknown."""
        positions = np.flatnonzero(self.shown == line)
        return int(positions[0]) if len(positions) else None


@dataclass(frozen=True, kw_only=True)
class Check:
    """Result of applying the tree to its training rows again."""

    agrees: bool
    sentence: str
    correct: int = 0
    n: int = 0
    objective: float | None = None


def rows_of(model: TreeModel) -> DatasetRows | None:
    """Return the rows of the model's data set.

    None if they are deleted, too many, or unreadable under the model's schema.
    """
    dataset = model.dataset
    if dataset is None or not dataset.file or dataset.rows * max(1, len(dataset.columns)) > MAX_CELLS:
        return None
    try:
        return _read_rows(str(local_path(dataset.file)), dataset.sha256, model.sha256, _Document(model))
    except (TrainerError, Busy, OSError, ValueError):
        return None


def absence_words(model: TreeModel) -> str:
    """Return why rows are not available for a model, as a clause."""
    if model.dataset is not None and model.dataset.counts:
        return "the model was trained on counts, without rows; the independent check counts it again"
    return "the rows are gone, too many to read here, or no longer match"


class _Document:
    """Wrapper that passes the model to a cached function without becoming part of the cache key."""

    def __init__(self, model: TreeModel) -> None:
        self.model = model

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Document)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=4)
def _read_rows(path: str, data_sha256: str, model_sha256: str, document: _Document) -> DatasetRows:
    model = document.model
    file = model_file(model)
    if _row_bytes(model) <= READ_HERE:
        arrays, same = arrays_of(Path(path), file)
    else:
        arrays, same = reader.model_rows(Path(path), document_of(model))
    return DatasetRows(**arrays, same=same)


def _row_bytes(model: TreeModel) -> int:
    """Return the size of the rows in memory in bytes. An estimate for old data sets without a count."""
    dataset = model.dataset
    if dataset is None:
        return 0
    return int(dataset.profile.get("read_bytes") or 20 * dataset.rows * max(1, len(dataset.columns)))


def check_claim(model: TreeModel) -> Check | None:
    """Apply the stored tree to its training rows, and compare the result with the file. Return None without rows."""
    rows = rows_of(model)
    if rows is None:
        return None
    file = model_file(model)
    codes = rows.codes[rows.training]
    weights = _training_weights(file, rows)
    correct = int(weights[file.tree.predict(rows.matrix[rows.training]) == codes].sum())
    n = int(weights.sum())
    predicted = file.tree.predict(rows.matrix[rows.training])
    objective: float | None = _objective(model, file.tree.n_leaves, rows, predicted)
    cost = _check_cost(file, rows, predicted)
    right = f"{correct:,} of {n:,} {counted_words(file.certificate)} correct"
    result_words = f"{right}, objective {objective:.6g}"
    # the objective counts the weights of copies, so it is not in the unit of the costs
    if file.certificate.get("costs"):
        objective = None
        result_words = right + ("" if cost is None else f", {cost[1]}")
    if not rows.same:
        return Check(
            agrees=False,
            correct=correct,
            n=n,
            objective=objective,
            sentence=f"no: {result_words}, but the fingerprint of the rows is another one",
        )
    claimed = file.metrics.get("train") or {}
    if (claimed.get("correct", correct), claimed.get("n", n)) != (correct, n):
        claim_words = f"the file says {claimed['correct']:,} of {claimed['n']:,} correct"
        return Check(
            agrees=False,
            correct=correct,
            n=n,
            objective=objective,
            sentence=f"no: {claim_words}, running its tree gives {correct:,} of {n:,}",
        )
    if cost is not None and not cost[0]:
        reason = f"the file says {number_text(file.certificate['costs']['cost'])}"
        return Check(
            agrees=False, correct=correct, n=n, objective=objective, sentence=f"no: {result_words}, but {reason}"
        )
    if objective is not None and not math.isclose(objective, model.objective, abs_tol=TOLERANCE):
        reason = f"the file says {model.objective:.6g}"
        return Check(
            agrees=False, correct=correct, n=n, objective=objective, sentence=f"no: {result_words}, but {reason}"
        )
    return Check(agrees=True, correct=correct, n=n, objective=objective, sentence=f"yes, {result_words}")


def _training_weights(file: ModelFile, rows: DatasetRows) -> np.ndarray:
    """Return the weights of the training rows in the objective, int64.

    They are balanced by class if the parameters say so.
    """
    row_weights = rows.weights_of(rows.training)
    labels = Labels(name=file.target, classes=tuple(file.tree.classes), codes=rows.codes[rows.training])
    weighted = class_weighted({"class_weight": file.parameters.get("class_weight")}, labels, row_weights)
    return row_weights if weighted is None else weighted


def answer_costs(file: ModelFile, rows: DatasetRows, at: np.ndarray) -> FloatArray | None:
    """Return the weighted cost of each answer in the rows `at`, float64 (rows, classes).

    None for a model without costs, and if the file lists costs for other rows.
    """
    if not file.certificate.get("costs"):
        return None
    weights = rows.weights_of(at)[:, None] * weight_step(file.certificate)
    if file.parameters.get("costs") == EACH_ROW:
        listed = np.array((file.rows or {}).get("costs") or (), np.float64)
        return listed[at] * weights if len(listed) == len(rows.codes) else None
    names = tuple(column.name for column in file.tree.schema)
    table = read_costs(file.parameters, SettingNames(columns=names, classes=tuple(file.tree.classes)))
    if table is None:
        return None
    row_costs = np.empty((len(at), len(table.classes)))
    for true, terms in enumerate(table.terms):
        of_class = rows.codes[at] == true
        for answer, term in enumerate(terms):
            cells = 1.0 if term.column is None else rows.matrix[at[of_class], names.index(term.column)]
            row_costs[of_class, answer] = float(term.factor) * cells
    return row_costs * weights


def _check_cost(file: ModelFile, rows: DatasetRows, predicted: CodeArray) -> tuple[bool, str] | None:
    """Compare the cost on the training rows with the file.

    Return whether they agree, and the cost in words. None if unknown.
    """
    values = answer_costs(file, rows, rows.training)
    if values is None:
        return None
    claimed = file.certificate["costs"]
    cost = float(values[np.arange(len(predicted)), predicted].sum())
    agrees = math.isclose(cost, claimed["cost"], rel_tol=TOLERANCE, abs_tol=TOLERANCE + claimed["rounding_error"])
    return agrees, f"cost {number_text(cost)} {claimed['unit']}".strip()


def _objective(model: TreeModel, leaves: int, rows: DatasetRows, predicted: CodeArray) -> float:
    file = model_file(model)
    codes = rows.codes[rows.training]
    weights = _training_weights(file, rows)
    try:
        penalty = Fraction(str(file.certificate.get("leaf_penalty", "0")))
    except (ValueError, ZeroDivisionError):
        penalty = Fraction(0)
    if file.certificate.get("goal"):
        goal = Goal.from_json(dict(file.certificate["goal"]))
        k = file.tree.classes.index(goal.positive)
        positive = codes == k
        tp = int(weights[positive & (predicted == k)].sum())
        tn = int(weights[~positive & (predicted != k)].sum())
        value = goal.value(tp, int(weights[positive].sum()), tn, int(weights[~positive].sum()))
        return float(value - penalty * leaves)
    charges = Fraction(str(file.certificate.get("coefficient_penalty") or 0)) * file.tree.n_coefficients
    total = max(1, int(weights.sum()))
    charges += _column_cost(file, rows, weights) / total
    return float(Fraction(int(weights[predicted == codes].sum()), total) - penalty * leaves - charges)


def _column_cost(file: ModelFile, rows: DatasetRows, weights: np.ndarray) -> Fraction:
    """Return the total column price that the training rows pay on their paths, in errors."""
    names = tuple(column.name for column in file.tree.schema)
    prices = read_column_prices(str(file.parameters.get("column_price") or ""), names)
    if not prices:
        return Fraction(0)
    is_asked = file.tree.asked_columns()[file.tree.apply(rows.matrix[rows.training])]
    return sum((price * int(weights[is_asked[:, j]].sum()) for j, price in prices.items()), Fraction(0))


def record_of(model: TreeModel, row: FloatArray) -> dict[str, Any]:
    """Return a row as a client sends it: the columns that the tree tests, without missing values."""
    tree = model_file(model).tree
    record: dict[str, Any] = {}
    for j in tree.used_columns or range(min(1, len(tree.schema))):
        column = tree.schema[j]
        value = float(row[j])
        if math.isnan(value):
            continue
        if column.kind is ColumnKind.CATEGORICAL:
            code = int(value)
            record[column.name] = column.categories[code] if 0 <= code < len(column.categories) else ""
        else:
            record[column.name] = int(value) if value.is_integer() and abs(value) < 1e15 else value
    return record


def example_row(model: TreeModel, *, inside: bool) -> dict[str, Any]:
    """Return an example row: the first of the data set if the user may see it, or else one built from the tree's thresholds."""
    rows = rows_of(model) if inside else None
    if rows is not None and len(rows.matrix):
        return record_of(model, rows.matrix[0])
    tree = model_file(model).tree
    row = np.zeros(len(tree.schema))
    for node in tree.branches:
        if node.split is not None and node.split.cut is not None:
            j, cut = node.split.cut
            row[j] = 0.0 if tree.schema[j].kind is ColumnKind.BINARY else cut
    return record_of(model, row)
