"""The stated reason why a tree is a single leaf is true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trainer.certificate import Status
from trainer.registry import METHODS
from trainer.table import Labels, numeric_table
from trainer.training.run import TrainRequest, train
from trainer.training.single_leaf import reason


@pytest.mark.parametrize(
    ("method", "asked", "words"),
    [
        (
            "exact",
            {"min_leaf": 15},
            "min_leaf asks for 15 rows in every leaf: two leaves need 30 rows, and there are 20",
        ),
        ("cart", {"min_leaf": 15}, "min_leaf asks for 15 rows"),
        ("cart", {"min_node": 30}, "min_node"),
        ("exact", {"depth": 0}, "depth is 0"),
        ("exact", {"max_leaves": 1}, "max_leaves is 1"),
        (
            "exact",
            {"leaf_penalty": 0.6},
            "more rows right to pay for a second leaf: it must gain 60\u202f% of the rows (leaf_penalty 0.6)",
        ),
        ("exact", {"max_columns": 0}, "max_columns is 0"),
        ("exact", {"forbidden": "x0"}, "forbidden names every column"),
        ("exact", {"leaf_penalty": 0.6, "min_leaf": 4}, "settings (min_leaf: at least 4 rows in a leaf)"),
        ("exact", {"leaf_penalty": 0.6, "recall": "b: 0.0"}, "recall: "),
        ("cart", {"min_gain": 1.0}, "min_gain: each question lowering the impurity by at least 1.0 of the rows"),
        ("cart", {"pruning": "1"}, "pruning removed it (pruning 1)"),
        ("exact", {}, ""),
    ],
)
def test_the_setting_that_forbids_a_question_is_named(method, asked, words):
    X = np.arange(20.0).reshape(-1, 1)
    codes = np.array([0] * 10 + [1] * 10, np.int32)
    labels = Labels(name="y", classes=("a", "b"), codes=codes)
    request = TrainRequest(table=numeric_table(X), labels=labels, method=method, parameters=asked)
    found = reason(train(request).model)
    assert words in found
    assert bool(found) is bool(words)


@pytest.mark.parametrize("method", [m for m in METHODS if m.parameter("min_leaf")], ids=lambda m: m.id)
def test_every_method_with_the_setting_names_it(method):
    table = numeric_table(np.arange(20.0).reshape(-1, 1))
    labels = Labels(name="y", classes=("a", "b"), codes=np.array([0] * 10 + [1] * 10, np.int32))
    request = TrainRequest(table=table, labels=labels, method=method.id, parameters={"min_leaf": 15, "time_limit": 1.0})
    assert train(request).summary["single_leaf"].startswith("The setting min_leaf asks for 15 rows")


def test_one_class_leaves_nothing_to_ask():
    labels = Labels(name="y", classes=("a", "b"), codes=np.zeros(8, np.int32))
    request = TrainRequest(table=numeric_table(np.arange(8.0).reshape(-1, 1)), labels=labels, method="exact")
    assert "same class" in reason(train(request).model)


@pytest.mark.parametrize("method", ["bivariate", "exact"])
def test_interrupted_search_does_not_claim_no_question_helps(method):
    labels = Labels(name="y", classes=("a", "b"), codes=np.array([0] * 10 + [1] * 10, np.int32))
    request = TrainRequest(
        table=numeric_table(np.arange(20.0).reshape(-1, 1)), labels=labels, method=method, parameters={"depth": 0}
    )
    model = train(request).model
    cut_off = replace(
        model, parameters=model.parameters | {"depth": 2}, certificate=model.certificate | {"status": Status.TIME_LIMIT}
    )
    assert "ended before" in reason(cut_off)


@pytest.mark.parametrize(
    ("method", "asked", "weights", "words"),
    [
        ("exact", {}, None, "gets more training rows right"),
        ("exact", {"class_weight": "balanced"}, None, "rows do not all count alike"),
        ("exact", {}, np.array([1, 3] * 6), "rows do not all count alike"),
        ("odt", {"negative_weight": "5"}, None, "rows do not all count alike"),
    ],
)
def test_correct_rows_are_not_claimed_for_other_goals(method, asked, weights, words):
    X = np.array([[0.0, 1.0]] * 12)
    X[:2, 0] = 1.0  # a useless column: both values have both classes in equal shares
    codes = np.array([0, 1] * 6, np.int32)
    labels = Labels(name="y", classes=("a", "b"), codes=codes)
    request = TrainRequest(
        table=numeric_table(X), labels=labels, method=method, parameters={"depth": 1} | asked, weights=weights
    )
    assert words in reason(train(request).model)
