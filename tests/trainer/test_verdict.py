"""The verdict on a tree: each branch of docs/verdict.md, from counts and from trainings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from trainer import Tree
from trainer.data.problem import Problem
from trainer.evaluate.verdict import PROOF_WORDS, Kind, base_rate, leaking_column, read_verdict
from trainer.sklearn_api.estimators import make_classifier
from trainer.table import ColumnKind, ColumnSchema, Labels, numeric_table
from trainer.training.run import TrainRequest, train
from trainer.training.single_question import best_question
from trainer.tree.file import ModelFile
from trainer.tree.nodes import tree_from_json

SCHEMA = (ColumnSchema(name="age", kind=ColumnKind.NUMERIC),)
OPTIMAL = {"status": "optimal", "guarantee": "tree", "objective": 0.9, "bound": 0.9, "gap": 0.0, "n": 100}


def stump() -> Tree:
    """Return a tree for 60 rows of class a and 40 of class b; it classifies 90 of them correctly."""
    nodes: list[dict[str, Any]] = [
        {
            "id": 0,
            "counts": [60, 40],
            "split": {"kind": "threshold", "feature": "age", "threshold": 1.0},
            "left": 1,
            "right": 2,
        },
        {"id": 1, "counts": [55, 5], "class": "a"},
        {"id": 2, "counts": [5, 35], "class": "b"},
    ]
    return tree_from_json(nodes, schema=SCHEMA, classes=("a", "b"))


def idle_on_training_rows(**more: Any) -> ModelFile:
    """Return a model whose split makes no more training rows right than one answer."""
    nodes: list[dict[str, Any]] = [
        {"id": 0, "counts": [60, 40], "split": {"kind": "threshold", "feature": "age", "threshold": 1.0}, "left": 1, "right": 2},
        {"id": 1, "counts": [40, 20], "class": "a"},
        {"id": 2, "counts": [20, 20], "class": "b"},
    ]  # fmt: skip
    return replace(model(None, **more), tree=tree_from_json(nodes, schema=SCHEMA, classes=("a", "b")))


def model(confusion: list[list[int]] | None, *, train: float = 0.9, **more: Any) -> ModelFile:
    """Return the stump with counts of unseen rows, by actual class and answer."""
    metrics: dict[str, Any] = {"train": {"n": 100, "correct": round(100 * train), "accuracy": train}}
    if confusion is not None:
        counts = np.array(confusion)
        n = int(counts.sum())
        right = int(np.trace(counts))
        metrics["test"] = {"n": n, "correct": right, "accuracy": right / n, "confusion": confusion}
    return ModelFile(tree=stump(), metrics=metrics, **{"certificate": OPTIMAL, "parameters": {"depth": 3}} | more)


COSTS = {"unit": "EUR", "best_constant": {"answer": "a", "cost": 40.0}}


def with_single_question(correct: int) -> ModelFile:
    """Return a model of three leaves with 45 of 50 unseen rows right, and a single question with `correct` of them."""
    nodes: list[dict[str, Any]] = [
        {"id": 0, "counts": [60, 40], "split": {"kind": "threshold", "feature": "age", "threshold": 1.0}, "left": 1, "right": 2},
        {"id": 1, "counts": [55, 5], "class": "a"},
        {"id": 2, "counts": [5, 35], "split": {"kind": "threshold", "feature": "age", "threshold": 2.0}, "left": 3, "right": 4},
        {"id": 3, "counts": [5, 0], "class": "a"},
        {"id": 4, "counts": [0, 35], "class": "b"},
    ]  # fmt: skip
    found = model([[27, 3], [2, 18]], certificate=OPTIMAL | {"single_question": {"correct": correct, "n": 50}})
    return replace(found, tree=tree_from_json(nodes, schema=SCHEMA, classes=("a", "b")))


def with_leak(test: list[list[int]], **more: Any) -> ModelFile:
    """Return a model whose two questions about age alone give the class of 99 of 100 training rows."""
    nodes: list[dict[str, Any]] = [
        {"id": 0, "counts": [60, 40], "split": {"kind": "threshold", "feature": "age", "threshold": 1.0}, "left": 1, "right": 2},
        {"id": 1, "counts": [55, 0], "class": "a"},
        {"id": 2, "counts": [5, 40], "split": {"kind": "threshold", "feature": "age", "threshold": 2.0}, "left": 3, "right": 4},
        {"id": 3, "counts": [1, 40], "class": "b"},
        {"id": 4, "counts": [4, 0], "class": "a"},
    ]  # fmt: skip
    return replace(model(test, **more), tree=tree_from_json(nodes, schema=SCHEMA, classes=("a", "b")))


def with_costs(cost: float) -> ModelFile:
    found = model([[27, 3], [2, 18]], certificate=OPTIMAL | {"costs": COSTS})
    test = found.metrics["test"] | {"cost": cost, "constant_cost": 40.0}
    return replace(found, metrics=dict(found.metrics) | {"test": test})


@pytest.mark.parametrize(
    ("more", "kind", "words"),
    [
        ({}, "worse", "60.0\u202f% of its training rows; always answering “a” is right for 60.0\u202f%. The tree is no better than this"),
        ({"parameters": {"class_weight": "balanced"}}, "other_aim", "trained for something else"),
    ],
)  # fmt: skip
def test_tree_no_better_on_training_rows_is_reported(more: dict[str, Any], kind: str, words: str) -> None:
    """The proof is about the same rows, so the sentence does not mention it."""
    verdict = read_verdict(idle_on_training_rows(**more))
    assert verdict.kind == kind
    assert words in verdict.sentence
    assert PROOF_WORDS not in verdict.sentence
    assert verdict.warns
    assert verdict.no_better == (kind == "worse")


@pytest.mark.parametrize(
    ("given", "kind", "words", "settings"),
    [
        (model(None), "unknown", "Nothing is known about new rows", {}),
        (model([[20, 10], [10, 10]], train=0.6), "worse", "60.0\u202f% of new rows; always answering “a” is right for 60.0", {}),
        (model([[20, 10], [12, 8]]), "worse", "no better than this one answer", {"depth": 2}),
        (model([[28, 2], [16, 4]], train=0.64), "chance", "may be chance", {}),
        (model([[52, 8], [8, 32]], train=1.0), "noise", "16.0 points more often", {"depth": 2}),
        (model([[27, 3], [2, 18]]), "good", "90.0\u202f% of new rows; always answering “a” is right for 60.0", {}),
        (model([[20, 10], [8, 12]], parameters={"class_weight": "balanced"}), "other_aim", "all classes alike", {}),
        (model([[20, 10], [8, 12]], parameters={"recall": "b: 0.5"}), "other_aim", "trained for something else: recall of b ≥ 0.5", {}),
        (model([[27, 3], [2, 18]], certificate=OPTIMAL | {"status": "time_limit", "bound": 0.95, "gap": 0.05}), "open", "A better tree may exist", {}),
        (with_leak([[30, 0], [1, 19]]), "leak", "“age” alone gives the class of 99.0\u202f% of its training rows", {}),
        (with_single_question(45), "single", "One question does as well: the best one alone is right for 90.0\u202f%", {"depth": 1}),
        (with_single_question(44), "good", "90.0\u202f% of new rows", {}),
        (with_costs(40.0), "worse", "cost 0.8\u202fEUR for each new row; always answering “a” costs 0.8\u202fEUR", {"depth": 2}),
        (with_costs(10.0), "good", "cost 0.2\u202fEUR for each new row", {}),
    ],
)  # fmt: skip
def test_verdict_of_each_branch(given: ModelFile, kind: str, words: str, settings: dict[str, Any]) -> None:
    verdict = read_verdict(given)
    assert (verdict.kind, verdict.settings) == (kind, settings)
    assert words in verdict.sentence
    assert verdict.good == (kind == "good")
    assert (PROOF_WORDS in verdict.sentence) == (kind in ("other_aim", "worse", "chance", "leak", "single", "noise"))


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        (model([[52, 8], [8, 32]], train=1.0, parameters={"depth": None, "leaf_penalty": 0.01}), {"leaf_penalty": 0.05}),
        (model([[52, 8], [8, 32]], train=1.0, parameters={"depth": None, "leaf_penalty": 0.5}), {"leaf_penalty": 0.999}),
        (model([[52, 8], [8, 32]], train=1.0, parameters={"leaf_penalty": "auto"}), {}),
        (replace(with_single_question(45), parameters={"depth": None, "leaf_penalty": 0.01}), {"depth": 1}),
    ],
)  # fmt: skip
def test_smaller_tree_is_named_without_limit_of_depth(given: ModelFile, settings: dict[str, Any]) -> None:
    assert read_verdict(given).settings == settings


def test_verdict_of_unproved_tree_has_no_word_on_a_proof() -> None:
    given = model(
        [[28, 2], [16, 4]], train=0.64, certificate=OPTIMAL | {"status": "time_limit", "bound": 0.95, "gap": 0.05}
    )
    assert PROOF_WORDS not in read_verdict(given).sentence


@pytest.mark.parametrize(
    ("given", "settings", "step"),
    [
        ({"leaf_penalty": 0.9}, {"leaf_penalty": 0.18}, "Allow a larger tree, for example leaf penalty 0.18."),
        ({}, {"depth": 3}, "Allow a larger tree, for example depth 3."),
        ({"min_leaf": 3}, {}, "Change this setting."),
    ],
)
def test_verdict_of_one_leaf_names_setting(given: dict[str, Any], settings: dict[str, Any], step: str) -> None:
    X = np.array([[1.0], [2.0], [2.0], [2.0]])
    y = np.array(["a", "a", "a", "b"])
    found = make_classifier("exact", depth=2, **given).fit(X, y).verdict_
    assert (found.kind, found.settings, found.next) == ("constant", settings, step)
    assert "always answers “a”" in found.sentence
    assert "right for 75.0\u202f% of its training rows" in found.sentence


def test_verdict_of_one_leaf_says_its_cost() -> None:
    X = np.array([[1.0], [2.0], [2.0], [2.0]])
    y = np.array(["a", "a", "a", "b"])
    costs = {"costs": "b>a=5", "cost_unit": "EUR", "leaf_penalty": 0.9}
    found = make_classifier("exact", depth=2, **costs).fit(X, y).verdict_
    assert "always answers “b”, which costs 0.75\u202fEUR for each training row" in found.sentence
    assert "right for" not in found.sentence


def test_verdict_of_one_leaf_with_wishes_names_them() -> None:
    leaf = tree_from_json([{"id": 0, "counts": [60, 40], "class": "a"}], schema=SCHEMA, classes=("a", "b"))
    given = replace(model(None, certificate=OPTIMAL | {"wishes": [{"wish": "forbid root age"}]}), tree=leaf)
    found = read_verdict(given)
    assert "No tree that keeps the wishes gets more training rows right than a single leaf." in found.sentence
    assert (found.settings, found.next) == ({}, "Take a wish back.")


def test_verdict_of_one_class_proposes_no_setting() -> None:
    found = make_classifier("cart", depth=2).fit(np.array([[1.0], [2.0]]), np.array(["a", "a"])).verdict_
    assert (found.kind, found.settings) == ("constant", {})


def test_base_rate_counts_unseen_rows_of_training_class() -> None:
    # Class b is more frequent among the unseen rows, but a tree for new rows cannot know that.
    found = base_rate(model([[9, 1], [5, 35]]))
    assert found is not None
    assert found.to_json() == {"class": "a", "share": 0.2, "rows": "unseen"}


@pytest.mark.slow
@pytest.mark.parametrize("evaluation", [{"test_share": 0.4}, {"folds": 4}])
def test_single_question_is_judged_on_the_same_unseen_rows(evaluation: dict[str, Any]) -> None:
    """The class is whether x exceeds 0, with noise, which a tree of depth 3 learns."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(240, 4))
    codes = ((X[:, 0] > 0) ^ (rng.random(240) < 0.15)).astype(np.int32)
    labels = Labels(name="class", classes=("a", "b"), codes=codes)
    result = train(
        TrainRequest(
            table=numeric_table(X),
            labels=labels,
            method="exact",
            parameters={"depth": 3, "leaf_penalty": 0},
            **evaluation,
        )
    )
    metrics = result.model.metrics["cross_validation" if "folds" in evaluation else "test"]
    single = result.model.certificate["single_question"]
    assert single["n"] == metrics["n"]
    assert single["correct"] >= metrics["correct"]
    assert read_verdict(result.model).kind == "single"


def test_best_question_has_the_fewest_errors_of_all_thresholds() -> None:
    rng = np.random.default_rng(5)
    for _ in range(10):
        X = rng.integers(0, 8, (40, 3)).astype(float)
        codes = rng.integers(0, 3, 40).astype(np.int32)
        problem = Problem(table=numeric_table(X), labels=Labels(name="class", classes=("a", "b", "c"), codes=codes))
        tree = best_question(problem)
        assert tree is not None
        cuts = [(j, cut) for j in range(3) for cut in np.unique(X[:, j])]
        sides = [(X[:, j] <= cut, X[:, j] > cut) for j, cut in cuts]
        most = max(sum(np.bincount(codes[side], minlength=3).max() for side in pair) for pair in sides)
        assert problem.correct(tree) == most


def test_difference_within_interval_over_groups_may_be_chance() -> None:
    given = model([[27, 3], [2, 18]], train=0.95)
    test = dict(given.metrics["test"]) | {"interval": [0.55, 0.99], "groups": 5}
    verdict = read_verdict(replace(given, metrics=dict(given.metrics) | {"test": test}))
    assert verdict.kind == "chance"


def test_next_step_of_folds_proposes_no_folds() -> None:
    held_out = model([[28, 2], [16, 4]], train=0.64)
    folds = dict(held_out.metrics["test"]) | {"folds": 2, "accuracies": [0.64, 0.64]}
    crossed = replace(held_out, metrics={"train": held_out.metrics["train"], "cross_validation": folds})
    assert read_verdict(held_out).next.startswith("Cross-validate")
    assert "ross-validat" not in read_verdict(crossed).next
    assert read_verdict(crossed).kind == "chance"


def sized(chosen: int, *tried: int) -> dict[str, Any]:
    """Return a choice of sizes as a training states it."""
    return {
        "reason": "",
        "tried": [
            {"leaves": n, "leaf_penalty": 0.1 / n, "unseen": 0.9, "error": 0.01, "chosen": n == chosen} for n in tried
        ],
    }


@pytest.mark.parametrize(
    ("given", "sizes", "kind", "words"),
    [
        (with_single_question(46), sized(3, 1, 2, 3, 4), "single", "smaller trees that the training tried"),
        (with_single_question(46), sized(3, 1, 3, 4), "single", "Add rows"),
        (with_single_question(46), {"reason": "too few rows", "tried": []}, "single", "Try a smaller tree"),
        (model([[50, 10], [10, 30]], train=0.99), sized(4, 2, 4), "noise", "Add rows"),
        (model([[55, 5], [5, 35]]), sized(2, 1, 2), "good", "Ask for approval"),
    ],
)
def test_a_chosen_size_changes_the_next_step(given: ModelFile, sizes: dict[str, Any], kind: str, words: str) -> None:
    verdict = read_verdict(replace(given, sizes=sizes))
    assert verdict.kind == kind
    assert words in verdict.next
    assert bool(verdict.settings) is (words == "Try a smaller tree")


def test_chosen_leaf_asks_for_columns_after_larger_trees() -> None:
    leaf = tree_from_json([{"id": 0, "counts": [60, 40], "class": "a"}], schema=SCHEMA, classes=("a", "b"))
    given = replace(model([[30, 0], [20, 0]], parameters={"depth": 3, "leaf_penalty": 0.1}), tree=leaf)
    assert "leaf penalty" in read_verdict(given).next
    assert "Add columns" in read_verdict(replace(given, sizes=sized(1, 1, 2, 3))).next
    assert "leaf penalty" in read_verdict(replace(given, sizes=sized(1, 1))).next


def test_leak_replaces_the_next_step() -> None:
    assert read_verdict(with_leak([[30, 0], [1, 19]])).next.startswith("Look at “age”: was it known before")
    assert read_verdict(with_leak([[10, 20], [10, 10]])).kind == "worse"
    assert leaking_column(with_single_question(45).tree) == ""


def test_every_kind_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "verdict.md").read_text(encoding="utf-8")
    assert [kind for kind in get_args(Kind) if f"| `{kind}` |" not in text] == []
