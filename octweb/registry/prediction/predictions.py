"""Predict rows with a stored model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from octweb.core.tally import ROWS, ModelTally
from octweb.registry.document.model_files import model_file
from octweb.registry.models import State, TreeModel
from octweb.registry.prediction.silent import queue_of
from trainer.data.changed_form import ChangedForm
from trainer.data.parsing.values import plain_values, sources_named
from trainer.data.rows import ParsedRows, parse_rows
from trainer.dtypes import BoolArray, CodeArray, FloatArray
from trainer.errors import list_names
from trainer.prediction.form_report import FormReport, report_forms
from trainer.table import ColumnSchema
from trainer.tree.describe import path_in_words
from trainer.tree.nodes import Tree

if TYPE_CHECKING:
    from octweb.registry.prediction.recording import RecordedCall

MAX_NOTES = 100
MISSING = "missing"  # member of an answer: columns with empty cells
UNSEEN = "unseen_missing"
DECISION = "decision"
OUTSIDE = "out_of_range"  # member of an answer: columns with values outside the training range


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """Predictions for rows: the parsed matrix, the leaf of each row, and notes on unusual values.

    `proposals` are parsings under which a column fits the training data better. The notes describe them.
    """

    tree: Tree
    matrix: FloatArray
    leaves: CodeArray
    notes: tuple[str, ...] = ()
    proposals: tuple[ChangedForm, ...] = ()
    decisions: tuple[str, ...] = ()  # record ids, if answers are recorded

    def recorded(self, call: RecordedCall | None) -> Predictions:
        """Record the answers, and return them with their record ids. Without a call, return them unchanged.

        Raises SpoolFull.
        """
        ids = None if call is None else call.record(self.matrix, self.leaves)
        return self if ids is None else replace(self, decisions=tuple(ids.texts()))

    def with_forms(self, report: FormReport) -> Predictions:
        """Return the answers with the report on changed forms. Its notes come first."""
        return replace(self, notes=(*report.notes, *self.notes), proposals=report.proposals)

    @cached_property
    def marks(self) -> tuple[dict[str, list[str]], ...]:
        """Columns of unusual cells by kind, for each row. () if no row has one.

        The kinds are empty cells on the row's path, those of them without training examples, and values outside the
        training range in columns that the tree tests.
        """
        names = [column.name for column in self.tree.schema]
        used_names = [names[j] for j in self.tree.used_columns]
        kinds = [(OUTSIDE, used_names, self.tree.outside(self.matrix))]
        empty = self._empty_cells()
        if empty.any():
            kinds = [(MISSING, names, empty), (UNSEEN, names, self.tree.unseen_empty(self.matrix)), *kinds]
        if not any(cells.any() for _, _, cells in kinds):
            return ()
        return tuple(
            {key: [own[j] for j in np.flatnonzero(cells[i])] for key, own, cells in kinds if cells[i].any()}
            for i in range(len(self.leaves))
        )

    @property
    def unseen(self) -> int:
        """Number of answers that rely on an empty cell at a split without empty training cells."""
        return sum(UNSEEN in mark for mark in self.marks)

    @cached_property
    def _has_empty(self) -> bool:
        return bool(self.tree.has_empty(self.matrix).any())

    def _empty_cells(self) -> BoolArray:
        """Return the empty cells on the paths. Walk the tree only if a cell is empty."""
        if not self._has_empty:
            return np.zeros((0, 0), bool)
        return self.tree.empty_cells(self.matrix)

    def unusual_cells(self) -> dict[str, dict[str, int]]:
        """Count empty, unknown, below-range and above-range cells by column. {} if all cells are ordinary."""
        if self._has_empty or self.notes or self.marks:
            return self.tree.unusual_cells(self.matrix)
        return {}

    def life_counts(self) -> dict[str, dict[str, int]]:
        """Return the counts of a call for the database: rows by leaf, and unusual cells."""
        return {ROWS: rows_by_leaf(self.leaves)} | self.unusual_cells()

    def records(self, *, explain: bool = False) -> list[dict[str, Any]]:
        """Return a record per row. Without marks and ids, rows of a leaf share their record."""
        answers = {int(leaf): leaf_answer(self.tree, int(leaf)) for leaf in set(self.leaves.tolist())}
        records = [answers[leaf] for leaf in self.leaves.tolist()]
        if self.marks:
            records = [record | mark for record, mark in zip(records, self.marks, strict=True)]
        if self.decisions:
            records = [record | {DECISION: key} for record, key in zip(records, self.decisions, strict=True)]
        if not explain:
            return records
        return [record | {"path": path} for record, path in zip(records, self.paths(), strict=True)]

    def label_counts(self) -> dict[str, int]:
        """Count rows by predicted class."""
        counts = np.bincount(self.tree.labels[self.leaves], minlength=len(self.tree.classes))
        return dict(zip(self.tree.classes, counts.tolist(), strict=True))

    def paths(self) -> list[list[str]]:
        """Return the path of each row in words."""
        return [path_in_words(self.tree, int(leaf), self.matrix[i]) for i, leaf in enumerate(self.leaves)]


def rows_by_leaf(leaves: CodeArray) -> dict[str, int]:
    """Count rows by the number of their leaf."""
    counts = np.bincount(leaves)
    return {str(leaf): int(counts[leaf]) for leaf in np.flatnonzero(counts).tolist()}


def tally_of(model: TreeModel, api: str) -> ModelTally | None:
    """Return the counter of an approved model's answers, or None for other models."""
    if model.state != State.APPROVED:
        return None
    return ModelTally(str(model.pk), api, queue_of(model, api))


def leaf_answer(tree: Tree, leaf: int) -> dict[str, Any]:
    """Return label, class shares and number of a leaf."""
    shares = tree.probabilities[leaf].tolist()
    return {
        "label": tree.classes[int(tree.labels[leaf])],
        "probabilities": dict(zip(tree.classes, shares, strict=True)),
        "leaf": leaf,
    }


def predict_rows(model: TreeModel, rows: Sequence[Any]) -> Predictions:
    """Predict records of column → value, with texts as in the training file.

    Raises RowError, which names row and column.
    """
    file = model_file(model)
    rows, notes = without_ignored(model, rows)
    with sources_named(file.reading):
        predictions = predict_plain(model, plain_values(file.reading, rows, file.tree.used_names))
    return replace(predictions, notes=(*notes, *predictions.notes)) if notes else predictions


def without_ignored(model: TreeModel, rows: Sequence[Any]) -> tuple[Sequence[Any], tuple[str, ...]]:
    """Drop the target, and columns that training did not use. Return the rows, and a note in a tuple."""
    file = model_file(model)
    aside = {*model.ignored, file.target} - {column.name for column in file.tree.schema}
    if not isinstance(rows, list | tuple):
        return rows, ()
    sent = {name for row in rows if type(row) is dict for name in aside & row.keys()}
    if not sent:
        return rows, ()
    model_rows = [{k: v for k, v in row.items() if k not in aside} if type(row) is dict else row for row in rows]
    return model_rows, (f"Columns that took no part in the training are ignored: {list_names(sorted(sent))}.",)


def predict_plain(model: TreeModel, rows: Sequence[Any]) -> Predictions:
    """Predict records with plain numbers, not in the file's number format.

    Raises RowError, which names row and column.
    """
    tree = model_file(model).tree

    def read(schema: Sequence[ColumnSchema]) -> ParsedRows:
        return parse_rows(schema, tree.used_columns, rows, refused=tree.refused_columns)

    parsed = read(tree.schema)
    notes = [str(note) for note in parsed.notes[:MAX_NOTES]]
    if len(parsed.notes) > MAX_NOTES:
        notes.append(f"and {len(parsed.notes) - MAX_NOTES:,} more unknown categories.")
    notes += parsed.odd.notes
    predictions = Predictions(tree=tree, matrix=parsed.matrix, leaves=tree.apply(parsed.matrix), notes=tuple(notes))
    return predictions.with_forms(
        report_forms(
            tree, parsed.matrix, parsed.unknown_words, lambda schema: read(schema).matrix, respelled=parsed.respelled
        )
    )


def predict_matrix(model: TreeModel, matrix: FloatArray, notes: tuple[str, ...] = ()) -> Predictions:
    """Predict a float64 matrix (n, columns of the model) with checked cells, and add notes on its cells."""
    tree = model_file(model).tree
    predictions = Predictions(tree=tree, matrix=matrix, leaves=tree.apply(matrix), notes=notes)
    return predictions.with_forms(report_forms(tree, matrix, {}))
