"""Costs per row: `fit(X, y, costs=array)`."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from trainer import make_classifier
from trainer.certificate import Guarantee
from trainer.check.recount import verdict, verify
from trainer.errors import ModelFileError
from trainer.methods.capabilities import Asks
from trainer.registry import METHODS, get

WITH_COSTS = [m.id for m in METHODS if m.parameter("costs")]
EXACT = ["exact", "exact-numeric"]


def random_rows(seed, *, n=24, classes=3):
    """Return yes/no columns (n, 3), labels with all classes, and costs (n, classes).

    Ties, zeros and decimals occur.
    """
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 3)).astype(float)
    y = np.array(list("abcd"))[np.concatenate((np.arange(classes), rng.integers(0, classes, n - classes)))]
    costs = np.where(rng.random((n, classes)) < 0.3, 1.0, rng.integers(0, 40, (n, classes)) / 10)
    return X, y, costs


def least_cost(X, costs, depth):
    """Return the least cost of all trees over yes/no columns."""
    found = costs.sum(axis=0).min() if len(costs) else 0.0
    for x in X.T if depth else ():
        yes = x > 0.5
        found = min(found, least_cost(X[yes], costs[yes], depth - 1) + least_cost(X[~yes], costs[~yes], depth - 1))
    return found


def cost_of(model, X, costs):
    codes = np.searchsorted(model.classes_, model.predict(X))
    return costs[np.arange(len(X)), codes].sum()


@pytest.mark.slow
@pytest.mark.parametrize("method", WITH_COSTS)
def test_row_costs_are_searched_and_counted(method):
    X, y, costs = random_rows(1, classes=2)
    model = make_classifier(method, depth=2, time_limit=20).fit(X, y, costs=costs)
    stated = model.certificate_.costs
    assert stated["cost"] == pytest.approx(cost_of(model, X, costs))
    assert stated["costs"] == {}
    if get(method).guarantee is not Guarantee.TREE:
        return
    assert stated["least"] == pytest.approx(stated["cost"])
    if get(method).asks is Asks.MANY:  # trees with splits on one column are among those of this method
        assert stated["cost"] <= least_cost(X, costs, 2) + 1e-9
    else:
        assert stated["cost"] == pytest.approx(least_cost(X, costs, 2))


@pytest.mark.parametrize("method", EXACT)
def test_row_costs_give_the_least_cost_of_all_trees(method, count):
    for seed in range(6 * count):
        X, y, costs = random_rows(seed, classes=2 + seed % 3)
        model = make_classifier(method, depth=2).fit(X, y, costs=costs)
        assert cost_of(model, X, costs) == pytest.approx(least_cost(X, costs, 2)), seed
        assert model.certificate_.proved_optimal
        assert model.certificate_.costs["floor"] == pytest.approx(costs.min(axis=1).sum())


def test_row_costs_that_repeat_a_matrix_give_its_tree():
    X, y, _ = random_rows(2)
    matrix = np.array([[0, 5, 2], [1, 0, 1], [3, 1, 0]], float)
    by_row = make_classifier("exact", depth=2).fit(X, y, costs=matrix[np.searchsorted(["a", "b", "c"], y)])
    by_text = make_classifier("exact", depth=2).fit(X, y, costs="a>b=5; a>c=2; c>a=3")
    assert by_row.tree_.to_json() == by_text.tree_.to_json()
    assert by_row.certificate_.bound == by_text.certificate_.bound


def test_row_costs_follow_rows_that_are_left_out():
    X, y, costs = random_rows(3)
    weights = np.arange(len(y)) % 3
    kept = weights > 0
    costs[~kept] = 1000.0
    X[5, 0] = np.nan
    estimator = make_classifier("exact", depth=2, missing="drop").fit(X, y, weights, costs=costs)
    kept &= ~np.isnan(X).any(axis=1)
    part = make_classifier("exact", depth=2, missing="drop").fit(X[kept], y[kept], weights[kept], costs=costs[kept])
    assert estimator.tree_.to_json() == part.tree_.to_json()
    assert estimator.certificate_.costs == part.certificate_.costs


def test_class_without_rows_left_may_be_the_answer():
    X, y, costs = random_rows(4)
    costs[:, 2] = 0.0
    model = make_classifier("exact", depth=2).fit(X, y, np.where(y == "c", 0, 1), costs=costs)
    assert set(model.predict(X)) == {"c"}
    assert model.certificate_.costs["cost"] == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c[:-1], "has the shape"),
        (lambda c: c[:, :2], "a column for each of a, b, c"),
        (lambda c: -c, "not negative"),
        (lambda c: c * np.nan, "not negative"),
        (lambda c: "a>b=2; a>b=3", "named twice"),
        (lambda c: [["dear"]], "array of numbers"),
        (lambda c: c * 0, "all answers cost the same"),
    ],
)
def test_row_costs_that_cannot_be_used_are_refused(change, words):
    X, y, costs = random_rows(5)
    with pytest.raises(ValueError, match=words):
        make_classifier("exact", depth=2).fit(X, y, costs=change(costs))


def test_costs_given_twice_are_refused():
    X, y, costs = random_rows(5)
    with pytest.raises(ValueError, match="both fit and the constructor have costs"):
        make_classifier("exact", depth=2, costs="a>b=2").fit(X, y, costs=costs)


def test_text_for_array_is_refused_without_array():
    X, y, _ = random_rows(5)
    with pytest.raises(ValueError, match="needs an array"):
        make_classifier("exact", depth=2, costs="rows").fit(X, y)


def saved(tmp_path, seed=6):
    """Return the paths of the model file, the proof and the table of a training with row costs."""
    X, y, costs = random_rows(seed, n=40)
    frame = pd.DataFrame(X.astype(int), columns=["p", "q", "r"])
    model = make_classifier("exact", depth=2).fit(frame, pd.Series(y, name="y"), costs=costs * 1.7)
    model.save(tmp_path / "model.json", proof=True)
    frame.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "model.json", tmp_path / "model.proof.jsonl.gz", tmp_path / "rows.csv"


def test_verify_proves_a_tree_with_row_costs(tmp_path):
    model, proof, rows = saved(tmp_path)
    findings = verify(model, rows, proof)
    assert verdict(findings) == "proved"
    assert any(f.claim == "optimal" and f.verdict == "proved" for f in findings)
    assert any(f.claim == "costs" for f in findings)


def verdict_of(model, rows):
    """Return the verdict on a file. One that cannot be read counts as refuted."""
    try:
        return verdict(verify(model, rows))
    except ModelFileError:
        return "refuted"


@pytest.mark.parametrize(
    "lie",
    [
        lambda m: m["rows"]["costs"][3].__setitem__(0, 99.5),
        lambda m: m["certificate"]["costs"].update(cost=m["certificate"]["costs"]["cost"] - 1),
        lambda m: m["rows"].pop("costs"),
        lambda m: m["rows"]["costs"].pop(),
        lambda m: m["parameters"].update(costs="a>b=2"),
    ],
)
def test_verify_refutes_lies_about_row_costs(tmp_path, lie):
    model, _, rows = saved(tmp_path)
    record = json.loads(model.read_text())
    lie(record)
    model.write_text(json.dumps(record))
    assert verdict_of(model, rows) == "refuted"
