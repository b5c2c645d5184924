"""Descriptions of the difference between two trees."""

from __future__ import annotations

import numpy as np
import pytest

from tests.trainer.random_trees import random_draft, random_matrix, random_schema
from trainer.table import ColumnKind, ColumnSchema, EmptySide
from trainer.tree.changes import tree_changes
from trainer.tree.nodes import DraftBranch, DraftLeaf, grow
from trainer.tree.splits import Threshold

SCHEMA = tuple(ColumnSchema(name=name, kind=ColumnKind.NUMERIC) for name in ("age", "income", "visits"))
ROWS = np.arange(12.0).reshape(4, 3)
NO = DraftLeaf(label=0)
YES = DraftLeaf(label=1)


def ask(column, threshold, left, right):
    return DraftBranch(split=Threshold(feature=column, threshold=threshold), left=left, right=right)


def tree(draft, rows=ROWS):
    return grow(draft, rows, np.zeros(len(rows), np.int32), schema=SCHEMA, classes=("no", "yes"))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (ask(1, 5, NO, YES), ask(0, 5, NO, YES), ["asks age instead of income at the root"]),
        (ask(0, 5, NO, YES), ask(0, 7, NO, YES), ["asks “age ≤ 7” instead of “age ≤ 5” at the root"]),
        (ask(0, 5, NO, YES), NO, ["asks nothing: one answer for all rows", "has one leaf instead of two"]),
        (
            ask(0, 5, NO, YES),
            ask(0, 5, NO, ask(2, 1, NO, YES)),
            ["also asks visits", "has three leaves instead of two"],
        ),
        (
            ask(0, 5, NO, ask(2, 1, NO, YES)),
            ask(0, 5, NO, ask(2, 3, NO, YES)),
            ["has 1 of two questions that the version before did not ask"],
        ),
        (ask(0, 5, NO, YES), ask(0, 5, YES, NO), ["gives other answers to the same questions"]),
        (
            ask(0, 5, NO, ask(2, 1, NO, YES)),
            ask(0, 5, NO, YES),
            ["no longer asks visits", "has two leaves instead of three"],
        ),
    ],
)
def test_changes_name_columns_and_leaves(old, new, words):
    assert tree_changes(tree(old), tree(new)) == words


def test_counts_of_other_rows_are_no_change():
    assert tree_changes(tree(ask(0, 5, NO, YES)), tree(ask(0, 5, NO, YES), ROWS[:2])) == []


def test_another_side_of_empty_cells_is_a_change():
    refused, right = (
        tree(DraftBranch(split=Threshold(feature=0, threshold=5, missing=side), left=NO, right=YES))
        for side in (EmptySide.REFUSE, EmptySide.RIGHT)
    )
    assert tree_changes(refused, right) == ["treats empty cells in another way"]
    assert tree_changes(right, right) == []


def test_random_trees_with_other_answers_have_changes():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        schema = random_schema(rng, 4)
        matrix = random_matrix(rng, schema, 40, holes=False)
        drafts = [random_draft(rng, schema, matrix, 3, 2) for _ in range(2)]
        codes = rng.integers(0, 2, len(matrix)).astype(np.int32)
        old, new = (grow(draft, matrix, codes, schema=schema, classes=("no", "yes")) for draft in drafts)
        assert tree_changes(old, old) == []
        if (old.predict(matrix) != new.predict(matrix)).any():
            assert tree_changes(old, new)
