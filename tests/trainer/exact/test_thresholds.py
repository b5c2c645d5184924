"""The thresholds that 'auto' chooses give a proved tree at least as good as CART on the training rows."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets

from trainer import make_classifier
from trainer.check.recount import verdict, verify
from trainer.data.encoding import Scheme
from trainer.data.reader import load
from trainer.errors import ParameterError
from trainer.methods.cost import ProblemSize
from trainer.registry import get
from trainer.solver_common.thresholds import LADDER, MOST_QUESTIONS, choose_bins
from trainer.training.run import TrainRequest, save, train

EXACT = get("exact")
SAMPLES = ("iris", "wine", "breast_cancer")
TABLES = ("banknote", "ecoli", "parkinsons", "seeds", "transfusion", "vehicle", "wpbc")
RANDOM = 30


def random_table(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of numbers, some with few distinct values, whose class depends on two of them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(60, 220))
    X = rng.normal(size=(n, int(rng.integers(2, 9))))
    X[:, 0] = X[:, 0].round(int(rng.integers(0, 3)))
    noise = rng.random(n) < 0.2
    return X, ((X[:, 0] + X[:, 1] ** 2 > 0.7) ^ noise).astype(int) + (X[:, -1] > 1.5) * int(rng.integers(0, 2))


def assert_at_least_cart(X: np.ndarray, y: np.ndarray, depth: int) -> None:
    tree = make_classifier("exact", depth=depth, leaf_penalty=0).fit(X, y)
    assert tree.certificate_.status == "optimal"
    assert tree.score(X, y) >= make_classifier("cart", depth=depth).fit(X, y).score(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(RANDOM))
def test_default_thresholds_on_random_rows_reach_cart(seed):
    assert_at_least_cart(*random_table(seed), 1 + seed % 3)


@pytest.mark.parametrize("name", SAMPLES)
def test_default_thresholds_on_samples_reach_cart(name):
    assert_at_least_cart(*getattr(datasets, f"load_{name}")(return_X_y=True), 2)


@pytest.mark.parametrize("name", TABLES)
def test_default_thresholds_on_shared_tables_reach_cart(name, data_folder):
    table = pd.read_csv(data_folder / f"{name}.csv").dropna()
    about = next(d for d in json.loads((data_folder / "manifest.json").read_text()) if d["name"] == name)
    X = table[about["numeric_features"]].to_numpy(float)
    (target,) = set(table) - {*about["numeric_features"], *about["categorical_features"]}
    assert_at_least_cart(X, table[target].astype(str).to_numpy(), 2)


def test_choice_takes_all_thresholds_then_the_ladder():
    size = ProblemSize(n=300, p=4, F=1, K=2, d=3)
    counts = {Scheme.ALL_THRESHOLDS: MOST_QUESTIONS, Scheme.QUANTILE_THRESHOLDS: 100}
    few = choose_bins(EXACT, {}, lambda scheme, bins: counts[scheme], size)
    assert few == (Scheme.ALL_THRESHOLDS, LADDER[-1], True)
    counts[Scheme.ALL_THRESHOLDS] += 1
    assert choose_bins(EXACT, {}, lambda scheme, bins: counts[scheme], size) == (
        Scheme.QUANTILE_THRESHOLDS,
        LADDER[0],
        True,
    )
    assert choose_bins(EXACT, {}, lambda scheme, bins: 10**6, size) == (Scheme.QUANTILE_THRESHOLDS, LADDER[-1], False)


@pytest.mark.parametrize("name", EXACT.cost.unmodelled)
def test_choice_with_a_limit_takes_few_thresholds(name):
    size = ProblemSize(n=50, p=2, F=1, K=2, d=2)
    assert choose_bins(EXACT, {name: 2}, lambda scheme, bins: 10, size).bins == LADDER[-1]
    assert choose_bins(EXACT, {name: 2}, lambda scheme, bins: 10, size).scheme is Scheme.QUANTILE_THRESHOLDS


def test_each_fold_chooses_its_thresholds_and_is_checked(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(260, 6))
    rows = pd.DataFrame(X, columns=[f"c{j}" for j in range(6)])
    rows["class"] = np.where(X[:, 0] * X[:, 1] + rng.normal(size=260) / 2 > 0, "a", "b")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    table, labels, _ = load(tmp_path / "rows.csv", target="class", ignore=[])
    result = train(TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 2}, folds=3))
    chosen = result.model.rows["fold_questions"]
    assert len({one["extra_thresholds"] for one in chosen}) == 3  # each fold chooses thresholds by its own rows
    save(result.model, tmp_path / "model.json")
    findings = verify(tmp_path / "model.json", tmp_path / "rows.csv")
    assert [f.detail for f in findings if f.verdict == "refuted"] == []
    document = json.loads((tmp_path / "model.json").read_text())
    document["rows"]["fold_questions"][0]["bins"] = 9
    document["rows"]["fold_questions"][0]["extra_thresholds"] = ""
    (tmp_path / "model.json").write_text(json.dumps(document))
    findings = verify(tmp_path / "model.json", tmp_path / "rows.csv")
    assert [f.claim for f in findings if f.verdict == "refuted"] == ["metrics cross_validation"]


def test_model_file_states_the_chosen_thresholds_and_is_checked(tmp_path):
    """A file with quantiles and thresholds of CART is checked from its rows. A second training gives the same tree."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(250, 6))
    rows = pd.DataFrame(X, columns=[f"c{j}" for j in range(6)])
    rows["class"] = np.where(X[:, 0] * X[:, 1] + rng.normal(size=250) / 2 > 0, "a", "b")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    table, labels, _ = load(tmp_path / "rows.csv", target="class", ignore=[])
    request = TrainRequest(
        table=table,
        labels=labels,
        method="exact",
        parameters={"depth": 2, "leaf_penalty": 0},
        proof=tmp_path / "proof.jsonl.gz",
    )
    result = train(request)
    parameters = result.model.parameters
    assert parameters["bins"] == LADDER[0]
    assert sum(map(len, json.loads(parameters["extra_thresholds"]).values())) > 0
    save(result.model, tmp_path / "model.json")
    findings = verify(tmp_path / "model.json", tmp_path / "rows.csv", tmp_path / "proof.jsonl.gz")
    assert verdict(findings) == "proved", [f for f in findings if f.verdict != "proved"]
    explicit = {name: value for name, value in parameters.items() if EXACT.parameter(name)}
    again = train(TrainRequest(table=table, labels=labels, method="exact", parameters=explicit))
    assert again.tree == result.tree
    assert again.certificate.scope == result.certificate.scope


@pytest.mark.parametrize("text", ['{"x0": "1"}', "[1]", "x0: 1", '{"x0": [NaN]}', '{"nobody": [1]}'])
def test_extra_thresholds_that_cannot_be_read_are_refused(text):
    X, y = random_table(0)
    with pytest.raises(ParameterError, match="extra_thresholds"):
        make_classifier("exact", bins=5, extra_thresholds=text).fit(X, y)


def test_extra_thresholds_with_buckets_are_refused():
    X, y = random_table(0)
    with pytest.raises(ParameterError, match="quantile-thresholds"):
        make_classifier("exact", bins=5, binarise="quantile-buckets", extra_thresholds='{"x0": [1]}').fit(X, y)
