"""The tree size that 'auto' chooses: by inner folds, as an explicit leaf penalty, verified from the file."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets

from trainer import make_classifier
from trainer.check.recount import verdict, verify
from trainer.data.reader import load
from trainer.methods.base import SizedDraft
from trainer.methods.monitor import Monitor
from trainer.registry import get
from trainer.training import size_choice
from trainer.training.run import TrainRequest, TrainResult, save, train
from trainer.training.size_choice import simplest_within_error

EXACT = get("exact")
FEW = {"bins": 5, "depth": 2}


def noisy_rows(seed: int, n: int = 160, noise: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose class depends on two of their four columns. Some classes are inverted."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(1)
    return X, (((X[:, 0] > 0) & (X[:, 1] > -0.5)) ^ (rng.random(n) < noise)).astype(int)


def trained_file(folder: Path, X: np.ndarray, y: np.ndarray, **request: Any) -> TrainResult:
    """Train on a CSV file of the rows, and save the model and its proof in the same folder."""
    rows = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    rows["class"] = np.where(y == 1, "yes", "no")
    rows.to_csv(folder / "rows.csv", index=False)
    table, labels, _ = load(folder / "rows.csv", target="class", ignore=[])
    result = train(TrainRequest(table=table, labels=labels, method="exact", proof=folder / "proof.jsonl.gz", **request))
    save(result.model, folder / "model.json")
    return result


def refuted_claims(folder: Path) -> list[str]:
    findings = verify(folder / "model.json", folder / "rows.csv", folder / "proof.jsonl.gz")
    return [f.claim for f in findings if f.verdict == "refuted"]


def test_default_on_pure_noise_keeps_one_leaf():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5))
    y = (rng.random(150) < 0.3).astype(int)
    assert make_classifier("exact", leaf_penalty=0).fit(X, y).get_n_leaves() > 4
    chosen = make_classifier("exact").fit(X, y)
    assert chosen.get_n_leaves() == 1
    assert chosen.certificate_.status == "optimal"


def test_slow_size_choice_uses_at_most_half_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A choice that took all the time once left a tree of one leaf."""

    def search_until_stopped(method: object, problem: object, settings: object, monitor: Monitor) -> list[SizedDraft]:
        while not monitor.stopped():
            time.sleep(0.01)
        return []

    monkeypatch.setattr(size_choice, "_best", search_until_stopped)
    X, y = noisy_rows(3)
    result = trained_file(tmp_path, X, y, parameters=FEW | {"time_limit": 1.0})
    assert result.model.sizes["reason"].startswith("Half of the time limit was over")
    assert result.certificate.status == "optimal"
    assert result.tree.n_leaves > 1
    assert not refuted_claims(tmp_path)


@pytest.mark.parametrize(("ended", "judged"), [(2, 1), (3, 2), (4, 3), (6, 5), (7, 5), (12, 10)])
def test_choice_out_of_time_uses_the_folds_that_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: int, judged: int
):
    """It once fell back to a penalty of 0. The first search is that of all rows, and repetitions are used as a whole."""
    searches = 0
    search = size_choice._best

    def search_until_over(method: object, problem: object, settings: object, monitor: Monitor) -> list[SizedDraft]:
        nonlocal searches
        searches += 1
        if searches <= ended:
            return search(method, problem, settings, monitor)
        monitor._stage_end = 0.0
        return []

    monkeypatch.setattr(size_choice, "_best", search_until_over)
    X, y = noisy_rows(3)
    result = trained_file(tmp_path, X, y, parameters=FEW)
    sizes = result.model.sizes
    if judged < size_choice.FEWEST_FOLDS:
        assert sizes["reason"].startswith("Half of the time limit was over")
    else:
        assert sizes["folds"] * sizes["repeats"] == judged
        assert sum(size["chosen"] for size in sizes["tried"]) == 1
    assert not refuted_claims(tmp_path)


def test_default_on_iris_asks_what_helps():
    X, y = datasets.load_iris(return_X_y=True)
    assert make_classifier("exact").fit(X, y).get_n_leaves() in (3, 4)


@pytest.mark.parametrize("seed", range(6))
def test_each_listed_penalty_gives_its_number_of_leaves(seed):
    X, y = noisy_rows(seed)
    chosen = make_classifier("exact", **FEW).fit(X, y)
    assert [one["leaves"] for one in chosen.sizes_ if one["chosen"]] == [chosen.get_n_leaves()]
    assert len(chosen.sizes_) > 1
    for one in chosen.sizes_:
        explicit = make_classifier("exact", leaf_penalty=one["leaf_penalty"], **FEW).fit(X, y)
        assert explicit.get_n_leaves() == one["leaves"]
        assert explicit.sizes_ == []
        if one["chosen"]:
            assert explicit.tree_ == chosen.tree_
            assert explicit.certificate_.objective == chosen.certificate_.objective


@pytest.mark.parametrize(
    ("losses", "errors", "index"),
    [([0.4, 0.2, 0.1], [0, 0, 0.1], 2), ([0.4, 0.14, 0.1], [0, 0, 0.1], 1), ([0.1, 0.1, 0.1], [0, 0, 0], 0)],
)
def test_rule_takes_first_size_within_half_an_error(losses, errors, index):
    assert simplest_within_error(np.array(losses), np.array(errors)) == index


def test_choice_repeated_or_with_more_threads_is_the_same():
    X, y = noisy_rows(1)
    first = make_classifier("exact", depth=3).fit(X, y)
    again = make_classifier("exact", depth=3, threads=2).fit(X, y)
    assert first.sizes_ == again.sizes_
    assert first.tree_ == again.tree_


def test_choice_reads_no_row_that_is_held_out(tmp_path):
    X, y = noisy_rows(2)
    before = trained_file(tmp_path, X, y, parameters=FEW, test_share=0.25)
    held_out = np.array(list(before.model.rows["held_out"])) == "1"
    assert 30 < held_out.sum() < 50
    X[held_out] = X[held_out][::-1]
    after = trained_file(tmp_path, X, y, parameters=FEW, test_share=0.25)
    assert after.model.sizes == before.model.sizes


def test_choice_within_groups_judges_other_groups():
    """Rows of a group are copies with one random class. Only a fold that splits groups finds good trees."""
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(30), 8)
    X = rng.normal(size=(30, 3))[groups]
    y = (rng.random(30) < 0.5).astype(int)[groups]
    best = [
        max(one["unseen"] for one in make_classifier("exact").fit(X, y, groups=own).sizes_) for own in (None, groups)
    ]
    assert best[0] > best[1] + 0.15


@pytest.mark.parametrize(
    ("parameters", "measure"),
    [({"costs": "yes>no=5; no>yes=1"}, "cost_per_row"), ({"class_weight": "balanced"}, "accuracy"), ({"min_leaf": 9}, "accuracy")],
)  # fmt: skip
def test_choice_counts_what_the_training_counts(tmp_path, parameters, measure):
    X, y = noisy_rows(3)
    result = trained_file(tmp_path, X, y, parameters=FEW | parameters)
    sizes = result.model.sizes
    assert sizes["measure"] == measure
    assert [one["leaf_penalty"] for one in sizes["tried"] if one["chosen"]] == [result.model.parameters["leaf_penalty"]]
    assert [one["leaves"] for one in sizes["tried"] if one["chosen"]] == [result.tree.n_leaves]
    assert refuted_claims(tmp_path) == []


def test_balanced_choice_counts_a_rare_class_as_much():
    X, y = noisy_rows(4, noise=0.0)
    y &= np.random.default_rng(4).random(len(y)) < 0.4
    balanced = make_classifier("exact", class_weight="balanced", **FEW).fit(X, y)
    assert balanced.sizes_[0]["unseen"] == pytest.approx(0.5, abs=0.02)  # balanced accuracy of a single leaf
    plain = make_classifier("exact", **FEW).fit(X, y)
    assert plain.sizes_[0]["unseen"] == pytest.approx(1 - y.mean())


def test_row_weights_count_in_the_choice():
    X, y = noisy_rows(6)
    weights = np.where(y == 1, 3, 1)
    chosen = make_classifier("exact", **FEW).fit(X, y, sample_weight=weights)
    share = max(weights[y == k].sum() for k in (0, 1)) / weights.sum()
    assert chosen.sizes_[0]["unseen"] == pytest.approx(share)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "parameters", "reason"),
    [
        (40, {}, "at least 50"),
        (160, {"depth": 0}, "depths from 1 to 5"),
        (160, {"depth": 6}, "depths from 1 to 5"),
        (160, {"recall": "yes: 0.5"}, "not searched with recall"),
        (160, {"goal": "f1"}, "not by F1"),
        (160, {"time_limit": 0}, "within half of the time limit of 0 s"),
        (160, {"time_limit": 0.001}, "within half of the time limit of 0.001 s"),
    ],
)
def test_choice_that_is_impossible_allows_every_leaf(tmp_path, rows, parameters, reason):
    X, y = noisy_rows(7, rows)
    result = trained_file(tmp_path, X, y, parameters=FEW | parameters)
    assert reason in result.model.sizes["reason"]
    assert result.model.sizes["tried"] == []
    assert result.model.parameters["leaf_penalty"] == 0
    assert refuted_claims(tmp_path) == []


def test_size_choice_for_one_class_is_explained():
    X, _ = noisy_rows(8)
    chosen = make_classifier("exact").fit(X, np.zeros(len(X), int))
    assert "one class" in chosen._fitted.sizes["reason"]


def test_most_leaves_bind_the_choice():
    X, y = noisy_rows(9)
    chosen = make_classifier("exact", max_leaves=2).fit(X, y)
    assert {one["leaves"] for one in chosen.sizes_} <= {1, 2}


def test_each_fold_chooses_its_size_and_is_checked(tmp_path):
    X, y = noisy_rows(10, 200, 0.3)
    result = trained_file(tmp_path, X, y, parameters={"depth": 2}, folds=4)
    chosen = [one["leaf_penalty"] for one in result.model.rows["fold_questions"]]
    assert len(set(chosen)) > 1  # each fold chooses a penalty by its own rows
    findings = verify(tmp_path / "model.json", tmp_path / "rows.csv", tmp_path / "proof.jsonl.gz")
    assert verdict(findings) == "proved", [f for f in findings if f.verdict == "refuted"]


def pick_other(document: dict[str, Any]) -> None:
    tried = document["sizes"]["tried"]
    k = next(k for k, one in enumerate(tried) if one["chosen"])
    tried[k]["chosen"] = False
    tried[k - 1]["chosen"] = True


def praise_other(document: dict[str, Any]) -> None:
    other = next(one for one in document["sizes"]["tried"] if not one["chosen"])
    other["unseen"] = 0.999


def invent_reason(document: dict[str, Any]) -> None:
    document["sizes"]["reason"] = "There were few rows."


def misname_penalty(document: dict[str, Any]) -> None:
    chosen = next(one for one in document["sizes"]["tried"] if one["chosen"])
    chosen["leaf_penalty"] += 1e-6


def misname_measure(document: dict[str, Any]) -> None:
    document["sizes"]["measure"] = "cost_per_row"


def exchange_leaves(document: dict[str, Any]) -> None:
    tried = document["sizes"]["tried"]
    tried[0]["leaves"] = tried[1]["leaves"]


LIES: list[Callable[[dict[str, Any]], None]] = [
    pick_other, praise_other, invent_reason, misname_penalty, misname_measure, exchange_leaves,
]  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_lie_about_the_sizes_is_refuted(tmp_path, lie):
    X, y = noisy_rows(1, noise=0.1)
    trained_file(tmp_path, X, y, parameters=FEW)
    assert refuted_claims(tmp_path) == []
    document = json.loads((tmp_path / "model.json").read_text())
    assert len(document["sizes"]["tried"]) > 1
    lie(document)
    (tmp_path / "model.json").write_text(json.dumps(document))
    assert refuted_claims(tmp_path) == ["sizes"]


def test_fold_with_a_penalty_of_its_own_needs_a_choice(tmp_path):
    X, y = noisy_rows(1)
    trained_file(tmp_path, X, y, parameters=FEW, folds=2)
    document = json.loads((tmp_path / "model.json").read_text())
    del document["sizes"]
    (tmp_path / "model.json").write_text(json.dumps(document))
    with pytest.raises(Exception, match="lists leaf_penalty if and only if the file has 'sizes'"):
        refuted_claims(tmp_path)
