"""Describe the limits of use: training ranges and answers for unusual values."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from trainer.dossier.rows import DossierRows
from trainer.errors import list_names
from trainer.table import ColumnKind, EmptySide, MissingPolicy
from trainer.tree.describe import number_text
from trainer.tree.nodes import Tree
from trainer.tree.numbers import column_value

LISTED = 200  # limit on the categories that are listed for a column
EMPTY = {
    MissingPolicy.LEARN: "learned: each question sends empty cells to one side",
    MissingPolicy.DROP: "such a row was left out of the training and gets no answer",
    MissingPolicy.CATEGORY: "an empty cell is a category of its own",
    MissingPolicy.REFUSE: "such a row is refused",
}
SIDES = {EmptySide.LEFT: "yes", EmptySide.RIGHT: "no", EmptySide.FILL: "filled", EmptySide.REFUSE: "no answer"}


def declared(tree: Tree, j: int) -> dict[str, Any]:
    """Return what the model file says of column `j`: name, kind, categories or codes, and what an empty cell means."""
    column = tree.schema[j]
    record: dict[str, Any] = {
        "name": column.name,
        "kind": str(column.kind),
        "unit": column.unit,
        "asked": j in tree.used_columns,
        "empty": EMPTY[column.missing],
    }
    if column.kind is ColumnKind.CATEGORICAL:
        record["categories"] = list(column.categories[:LISTED])
        record["categories_left_out"] = max(0, len(column.categories) - LISTED)
    else:
        record["codes"] = [number_text(code, full=True) for code in column.special]
    return record


def columns(rows: DossierRows) -> list[dict[str, Any]]:
    """Return a record for each column of the model: its training values, and its empty cells in the file."""
    tree = rows.model.tree
    records = []
    for j, column in enumerate(tree.schema):
        record = declared(tree, j) | {"empty_cells": int(rows.missing.get(column.name, 0))}
        values = rows.matrix[rows.training, j]
        if column.missing is MissingPolicy.LEARN:
            record["empty_training_cells"] = int(np.isnan(values).sum())
            record["empty_sides"] = _sides(tree, j)
            record["empty"] = _learned_words(record["empty_training_cells"], record["empty_sides"])
        if column.kind is not ColumnKind.CATEGORICAL:
            finite = values[np.isfinite(values)]
            record["smallest"] = column_value(column, float(finite.min())) if len(finite) else None
            record["largest"] = column_value(column, float(finite.max())) if len(finite) else None
        records.append(record)
    return records


def _sides(tree: Tree, j: int) -> dict[str, int]:
    """Count the splits on column `j` by the side of empty cells: 'yes', 'no', 'filled', 'no answer'.

    'unseen' counts the splits among them that no empty cell reached in training.
    """
    counts: Counter[str] = Counter()
    for v in tree.branches:
        if v.split is None or j not in v.split.used:
            continue
        refuses = v.split.missing is EmptySide.REFUSE
        # a split that neither has a side for empty cells nor refuses them tests whether the cell is empty
        counts["yes" if refuses and j not in v.split.refused else SIDES[v.split.missing]] += 1
        counts["unseen"] += not v.split.missing_seen
    return {side: n for side, n in counts.items() if n}


def _learned_words(cells: int, sides: dict[str, int]) -> str:
    """Describe what happens to the empty cells of a column that learns from them."""
    words = f"learned: {cells:,} training {'cell was' if cells == 1 else 'cells were'} empty"
    sides_text = ", ".join(f"{sides[side]} to {side}" for side in ("yes", "no") if side in sides)
    if sides_text:
        words += f"; questions that send empty cells on: {sides_text}"
    if "filled" in sides:
        words += f"; sums that fill them with a value: {sides['filled']}"
    if "no answer" in sides:
        words += f"; questions that give no answer: {sides['no answer']}"
    if "unseen" in sides:
        words += f"; {sides['unseen']} of them follow most training rows, as none of these had an empty cell there"
    return words


def _names(tree: Tree) -> str:
    """Return the names of the columns in which an empty cell gets no answer, as text."""
    return list_names([tree.schema[j].name for j in tree.refused_columns])


def count_outside(rows: DossierRows) -> dict[str, Any]:
    """Count the unseen rows with a value outside the training range of a used column, by column and in all."""
    tree = rows.model.tree
    unseen = rows.unseen
    anywhere = np.zeros(len(unseen), bool)
    by_column = {}
    for j in tree.used_columns:
        if tree.schema[j].kind is ColumnKind.CATEGORICAL:
            continue
        trained = rows.matrix[rows.training, j]
        trained = trained[np.isfinite(trained)]
        values = rows.matrix[unseen, j]
        beyond = (values < trained.min()) | (values > trained.max()) if len(trained) else np.zeros(len(unseen), bool)
        by_column[tree.schema[j].name] = int(beyond.sum())
        anywhere |= beyond
    return {"unseen_rows": len(unseen), "rows_outside": int(anywhere.sum()), "by_column": by_column}


def limit_sentences(tree: Tree) -> list[str]:
    """Return sentences on the answers of the model for values unlike those of its training rows."""
    sentences = [
        "The tree also answers for values outside the range of the training rows. No row of the training says whether that is right.",
    ]
    if any(tree.schema[j].missing is MissingPolicy.LEARN for j in tree.used_columns):
        sentences.append(
            "In columns whose empty cells were learned, each question sends an empty cell to one side. Where no training row with an "
            "empty cell reached the question, that is the side with more training rows, or there is no answer."
        )
    if tree.refused_columns and set(tree.refused_columns) == set(tree.used_columns):
        sentences.append("A row with an empty cell in a column that the tree asks about gets no answer.")
    elif tree.refused_columns:
        sentences.append(f"A row with an empty cell in one of these columns gets no answer: {_names(tree)}.")
    if any(tree.schema[j].missing is MissingPolicy.CATEGORY for j in tree.used_columns):
        sentences.append(
            "In categorical columns where empty cells are a category of their own, the tree answers for an empty cell, too."
        )
    if any(tree.schema[j].kind is ColumnKind.CATEGORICAL for j in tree.used_columns):
        sentences.append(
            "A category that was not in the training belongs to no set of a question, so the row goes to the side of “no”."
        )
    if any(tree.schema[j].special for j in tree.used_columns):
        sentences.append("Codes are numbers for every comparison; the questions about codes name them.")
    return sentences
