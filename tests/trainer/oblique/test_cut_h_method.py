"""The methods CUT-H and CUT_w-H from table to certificate: settings, leaf prices and time limits."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.trainer.oblique.tables import rows_of, table
from tests.trainer.oracles.oblique import best_value
from trainer.check.recount import refuted, verify
from trainer.errors import DataError, ParameterError
from trainer.milo.lattice import Lattice, same_order, tie_price
from trainer.training.run import TrainRequest, save, train


@pytest.mark.parametrize("method", ["cut-h", "cutw-h"])
@pytest.mark.parametrize("first", range(0, 30, 10))
def test_method_returns_best_tree_and_verifiable_certificate(method, first, tmp_path, monkeypatch):
    for seed in range(first, first + 10):
        monkeypatch.setattr(
            "trainer.families.oblique.presolve.MAX_SET_POINTS", 200 * (seed % 4 < 2)
        )  # with 0, points in a plane are searched, too, instead of decomposed
        X, counts, depth, kappa, values, y = rows_of(seed)
        n = int(counts.sum())
        data, labels = table(values, y)
        parameters = {
            "depth": depth, "leaf_penalty": float(kappa / n), "first_trees": "none", "search_seconds": 0.0 if seed % 2 else 2.0,
            "solver": "scip", "hyperplanes": ("margin", "svm", "sparse")[seed % 3],
        }  # fmt: skip
        result = train(TrainRequest(table=data, labels=labels, method=method, parameters=parameters))
        best = float(best_value(X, counts, depth, kappa) / n)
        assert result.certificate.status == "optimal"
        assert result.certificate.objective == pytest.approx(best, abs=1e-9)
        model = tmp_path / f"{seed}.json"
        rows = tmp_path / f"{seed}.csv"
        save(result.model, model)
        lines = [",".join([*data.names, "class"])]
        lines += [",".join([*(repr(float(x)) for x in row), str(k)]) for row, k in zip(values, y, strict=True)]
        rows.write_text("\n".join(lines) + "\n")
        findings = {f.claim: f.verdict for f in verify(model, rows)}
        assert findings["counts"] == findings["objective"] == findings["correct"] == "recounted"
        if result.certificate.evidence[:1] and result.certificate.evidence[0]["kind"] == "bound-met":
            assert findings["bound"] == findings["optimal"] == "proved"
        assert findings["bound"] in {"proved", "cannot be judged"}
        record = json.loads(model.read_text())
        record["certificate"]["correct"] += 1
        model.write_text(json.dumps(record))
        assert refuted(verify(model, rows))


def test_then_fewest_leaves_proves_the_smaller_tree():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 2.0]])
    data, labels = table(X, np.array([0, 0, 1, 1, 1]))
    result = train(
        TrainRequest(table=data, labels=labels, method="cut-h", parameters={"depth": 2, "then_fewest": True})
    )
    assert result.tree.n_leaves == 2
    assert result.certificate.status == "optimal"
    assert result.certificate.objective == 1.0


@pytest.mark.parametrize("pareto", [False, True])
def test_limit_leaves_fewest_leaves_open_if_accuracy_is_proved(pareto):
    X = np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0], [0.1, 0.1]])
    data, labels = table(X, np.array([0, 1, 1, 0, 0]))
    perfect = train(TrainRequest(table=data, labels=labels, method="cart", parameters={"depth": 2}))
    assert perfect.certificate.correct == 5
    parameters = {"depth": 2, "time_limit": 0, "pareto": pareto}
    request = TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters, warm_start=perfect.tree)
    plain = train(request).certificate
    assert (plain.status, plain.gap, plain.unproved) == ("optimal", 0.0, "")
    both = train(replace(request, parameters=parameters | {"then_fewest": True}))
    assert both.certificate.gap == 0.0
    assert both.certificate.status == "time_limit"
    assert not both.certificate.proved_optimal
    assert "fewer leaves" in both.certificate.unproved
    assert both.summary["unproved"] == both.certificate.unproved


def test_settings_that_leave_each_other_no_meaning_are_refused():
    data, labels = table(np.array([[0.0], [1.0]]), np.array([0, 1]))
    pairs = [("pareto", {"balanced": True}), ("then_fewest", {"balanced": True}), ("then_fewest", {"mip_gap": 0.1})]
    priced = [("balanced", other) for other in ({"leaf_penalty": 0.01}, {"paper_lambda": 0.1}, {"max_leaves": 2})]
    for name, other in (*pairs, *priced):
        parameters = {"depth": 1, name: True} | other
        with pytest.raises(ParameterError, match=r"[Ll]eave"):
            train(TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters))


def test_searchable_price_orders_trees_like_requested_price():
    r = np.random.default_rng(6)
    fine = [
        Fraction(1, 10**7),
        Fraction("0.99999"),
        Fraction("2.6666664"),
        Fraction(3, 4) + Fraction(1, 10**9),
        Fraction("7e-9"),
    ]
    for kappa in (*fine, *(Fraction(int(r.integers(0, 10**6)), int(r.integers(1, 10**6))) for _ in range(200))):
        most = int(r.integers(1, 17))
        other = same_order(kappa, most)
        trees = [(c, t) for c in range(20) for t in range(1, most + 1)]
        before, after = ([c - price * t for c, t in trees] for price in (kappa, other))
        for i in range(len(trees)):
            j = int(r.integers(len(trees)))
            assert (before[i] > before[j], before[i] == before[j]) == (after[i] > after[j], after[i] == after[j])
        assert other == kappa or Lattice(kappa=other, leaves=most).step >= Fraction(1, 2 * most)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [1e-9, 1e-7, 0.1111111111, 0.3333333333])
@pytest.mark.parametrize("fewest", [False, True])
def test_prices_finer_than_a_solver_sees_are_kept_exactly(penalty, fewest):
    for seed in range(6):
        r = np.random.default_rng(seed)
        X = r.integers(0, 4, (8, 2)).astype(float)
        y = r.integers(0, 2, 8)
        points, group = np.unique(X, axis=0, return_inverse=True)
        counts = np.zeros((len(points), 2), np.int64)
        np.add.at(counts, (group.ravel(), y), 1)
        data, labels = table(X, y)
        parameters = {
            "depth": 2,
            "leaf_penalty": penalty,
            "then_fewest": fewest,
            "search_seconds": 0.1,
            "first_trees": "cart",
        }
        result = train(TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters)).certificate
        best = best_value(points.astype(int), counts, 2, Fraction(str(penalty)) * 8)
        assert result.status == "optimal"
        assert result.objective == pytest.approx(float(best / 8), abs=1e-12)


def test_given_start_tree_counts_without_other_first_trees():
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    data, labels = table(X, np.array([0, 0, 1, 1, 0, 0]))
    known = train(TrainRequest(table=data, labels=labels, method="cart", parameters={"depth": 2}))
    assert known.certificate.correct == 6
    parameters = {"depth": 2, "first_trees": "none", "time_limit": 0}
    request = TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters, warm_start=known.tree)
    assert train(request).certificate.correct == 6


def test_values_that_lie_too_far_apart_are_refused():
    data, labels = table(np.array([[-1.7e308], [1.7e308], [0.0]]), np.array([0, 1, 0]))
    with pytest.raises(DataError, match="too far apart"):
        train(TrainRequest(table=data, labels=labels, method="cut-h", parameters={"depth": 1}))


def test_leaf_price_orders_trees_by_value_then_leaves():
    r = np.random.default_rng(5)
    for _ in range(300):
        kappa = Fraction(int(r.integers(0, 30)), int(r.integers(1, 40)))
        most = int(r.integers(1, 9))
        price = tie_price(kappa, most)
        trees = [(c, t) for c in range(12) for t in range(1, most + 1)]
        paid = {tree: tree[0] - (kappa + price) * tree[1] for tree in trees}
        levels = {tree: (tree[0] - kappa * tree[1], -tree[1]) for tree in trees}
        assert sorted(trees, key=paid.__getitem__) == sorted(trees, key=levels.__getitem__), kappa
        if most > 1 and not all((kappa * s) % 1 for s in range(1, most)):
            assert len(set(paid.values())) == len(trees)


def test_time_is_up_before_the_first_tree():
    r = np.random.default_rng(1)
    data, labels = table(r.normal(size=(200, 3)), r.integers(0, 3, 200))
    result = train(TrainRequest(table=data, labels=labels, method="cut-h", parameters={"depth": 2, "time_limit": 0}))
    assert result.certificate.status == "time_limit"
    assert result.certificate.bound >= result.certificate.objective


def test_start_tree_is_the_first_incumbent():
    r = np.random.default_rng(2)
    X = r.integers(0, 6, (60, 3)).astype(float)
    data, labels = table(X, ((X[:, 0] > X[:, 1]) ^ (r.random(60) < 0.15)).astype(int))
    common = {"depth": 2, "time_limit": 0.5, "search_seconds": 0.2}
    known = train(TrainRequest(table=data, labels=labels, method="cut-h", parameters=common))
    again = train(
        TrainRequest(
            table=data, labels=labels, method="cut-h", parameters=common | {"time_limit": 0.3}, warm_start=known.tree
        )
    )
    assert again.certificate.warm_start_objective >= known.certificate.objective - 1e-9
    assert again.certificate.objective >= known.certificate.objective


@pytest.mark.parametrize("pareto", [False, True])
def test_a_tree_and_a_bound_are_shown_from_the_first_moment(pareto):
    """First the single leaf is shown, then the trees of the other methods as they are found."""
    r = np.random.default_rng(6)
    X = r.integers(0, 9, (60, 3)).astype(float)
    data, labels = table(X, (X[:, 0] * X[:, 1] > 14).astype(int))
    parameters = {"depth": 2, "pareto": pareto, "leaf_penalty": 0.01, "time_limit": 4.0, "search_seconds": 0.5}
    shown = []
    result = train(
        TrainRequest(table=data, labels=labels, method="cut-h", parameters=parameters),
        sink=lambda progress, _: shown.append((progress.phase, progress.leaves, progress.incumbent, progress.bound)),
    )
    first = [s for s in shown if s[0] == "first trees" and s[2] is not None]
    assert first[0][1] == 1
    assert all(bound is not None for *_, bound in first[1:])
    values = [value for _, _, value, _ in first]
    assert len(set(values)) > 1
    assert values == sorted(values)
    assert values[-1] <= result.certificate.objective + 1e-12
