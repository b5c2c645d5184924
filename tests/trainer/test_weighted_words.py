"""With weights or costs, no text calls a sum of weights a number of rows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.octweb.small_models import trained
from trainer.evaluate.verdict import training_base_words
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table
from trainer.training.claims import saving_sentence
from trainer.training.run import TrainRequest
from trainer.tree.describe import rules_text
from trainer.tree.file import from_json
from trainer.workbench.requests import WorkbenchSession

WEIGHTS = {"weights": {"column": "w", "step": "1", "rows": 7, "correct_rows": 5}}


@pytest.fixture
def tree():
    return from_json(trained("cart", depth=2)).tree


@pytest.mark.parametrize(("step", "words"), [("1", "(weight "), ("1/2", " steps of weight 0.5)")])
def test_rules_call_counts_of_weighted_rows_weight(tree, step, words):
    text = rules_text(tree, {"weights": WEIGHTS["weights"] | {"step": step}})
    assert text.count(words) == tree.n_leaves
    assert " rows)" not in text
    assert " rows)" in rules_text(tree, {})


def test_base_rate_of_weighted_rows_is_a_share_of_weight(tree):
    words = training_base_words(tree, WEIGHTS)
    root = tree.nodes[0]
    assert "of the weight of the training rows is right" in words
    assert f"{100 * max(root.counts) / root.rows:.1f}" in words
    assert f"{max(root.counts)} of {root.rows} training rows" in training_base_words(tree)


def test_saving_counts_rows_and_not_their_weight():
    costs = {"cost": 3.0, "unit": "EUR", "best_constant": {"answer": "yes", "cost": 10.0}, "leaf_price": 0.0}
    assert "on the 7 training rows" in saving_sentence({"n": 20, "costs": costs} | WEIGHTS)
    assert "on the 20 training rows" in saving_sentence({"n": 20, "costs": costs})


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "the 4 rows that arrive"),
        ({"weights": np.array([3, 1, 2, 5])}, "the rows that arrive"),
        ({"parameters": {"costs": "a>b=7"}}, "the rows that arrive"),
    ],
)
def test_conflict_counts_neither_weights_nor_copies_as_rows(more, words):
    columns = tuple(
        Column(schema=ColumnSchema(name=name, kind=ColumnKind.BINARY), values=np.array(values))
        for name, values in (("x", [0.0, 0.0, 0.0, 0.0]), ("z", [0.0, 1.0, 0.0, 1.0]))
    )
    table = Table(columns=columns, row_numbers=np.arange(4))
    labels = Labels(name="y", classes=("a", "b"), codes=np.array([0, 1, 0, 1], np.int32))
    parameters = {"depth": 1} | more.get("parameters", {})
    session = WorkbenchSession(
        TrainRequest(table=table, labels=labels, method="exact", weights=more.get("weights"), parameters=parameters)
    )
    assert words in session.complete(["ask root x"], session.monitor()).reason
