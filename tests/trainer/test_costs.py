"""Misclassification costs: every method equals enumeration, and its claims hold."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from tests.trainer.costs_cases import (
    OVER_QUESTIONS,
    WITH_COSTS,
    checked_case,
    has_choice,
    least_cost,
    questions_of,
    random_case,
    text_of,
    trained,
    weighted_costs,
)
from trainer import make_classifier
from trainer.certificate import Status
from trainer.data.costs import MOST_COPIES
from trainer.errors import ParameterError
from trainer.registry import editable_ids, get
from trainer.solver_common.problem_setup import pose
from trainer.table import Column, Table
from trainer.training.run import TrainRequest, train

# These parameters concern structure, time or the search, and mean the same if rows are replaced by copies.
FREE = {
    "depth", "leaf_penalty", "max_leaves", "max_columns", "forbidden", "forbidden_pairs", "monotone", "binarise", "bins", "extra_thresholds", "mip_gap",
    "impurity", "pruning", "pruning_folds", "costs", "cost_unit", "goal", "positive", "column_price", "time_limit", "memory_limit", "threads", "seed", "unseen_missing",
    "fairness_column", "fairness_class", "fairness_delta", "restarts", "jumps", "cycle",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact", "exact-numeric"])
def test_least_cost_of_all_trees_is_found_and_proved(method, count):
    for seed in range(12 * count):
        case = checked_case(method, seed)
        if case is None:
            continue
        result, own, price, least = case
        costs = result.certificate.costs
        leaf = result.tree.apply(random_case(seed)[0].matrix())
        answers = result.tree.labels[leaf]
        cost = sum(own[np.arange(len(own)), answers])
        assert cost + price * result.tree.n_leaves == least, seed
        assert result.certificate.status == Status.OPTIMAL
        assert costs["cost"] == float(cost)
        assert costs["least"] == pytest.approx(float(least), abs=1e-12)
        assert costs["floor"] == float(sum(own.min(axis=1)))
        assert costs["best_constant"]["cost"] == float(min(own.sum(axis=0)))
        assert costs["rounding_error"] == 0
        for node in result.tree.leaves:
            totals = own[leaf == node.id].sum(axis=0)
            assert node.label == list(totals).index(min(totals))


@pytest.mark.slow
def test_smallest_leaf_counts_rows_beside_costs(count):
    for seed in range(100, 100 + 12 * count):
        table, labels, weights, costs, parameters = random_case(seed)
        weighted = weighted_costs(table, labels, weights, costs)
        if not has_choice(weighted):
            continue
        parameters |= {"min_leaf": 2 + seed % 6, "leaf_penalty": [0, 0.02][seed % 2]}
        counts = np.ones(len(weighted), int) if weights is None else weights
        price = Fraction(str(parameters["leaf_penalty"])) * min(weighted.sum(axis=0))
        result = trained("exact", table, labels, weights, costs, **parameters)
        leaf = result.tree.apply(table.matrix())
        cost = sum(weighted[np.arange(len(weighted)), result.tree.labels[leaf]])
        answers = questions_of("exact", table, labels, weights, get("exact").settings({"depth": 1}))
        least = least_cost(answers, weighted, parameters["depth"], price, counts, parameters["min_leaf"])
        assert cost + price * result.tree.n_leaves == least, seed
        assert result.certificate.status == Status.OPTIMAL
        assert result.certificate.costs["least"] == pytest.approx(float(least), abs=1e-12)
        assert result.certificate.costs["leaf_price"] == pytest.approx(float(price), abs=1e-12)
        assert min(counts[leaf == node.id].sum() for node in result.tree.leaves) >= parameters["min_leaf"]


def test_errors_as_costs_with_min_leaf_give_the_tree_of_errors():
    for seed in range(6):
        table, labels, weights, _, parameters = random_case(seed)
        asked = {"depth": parameters["depth"], "min_leaf": 4}
        plain = train(TrainRequest(table=table, labels=labels, method="exact", weights=weights, parameters=asked))
        model = trained("exact", table, labels, weights, {("a", "b"): "1"}, **asked)
        assert model.certificate.correct == plain.certificate.correct
        assert model.tree.n_leaves == plain.tree.n_leaves


@pytest.mark.parametrize("method", sorted(set(OVER_QUESTIONS) - {"exact"}))
def test_models_agree_with_all_trees_for_two_answers(method, count):
    for seed in range(40, 40 + max(1, count // 3)):
        case = checked_case(method, seed, rows=14, two=True)
        if case is None:
            continue
        result, own, price, least = case
        answers = result.tree.predict(random_case(seed, rows=14, two=True)[0].matrix())
        assert sum(own[np.arange(len(own)), answers]) + price * result.tree.n_leaves == least
        assert result.certificate.status == Status.OPTIMAL


@pytest.mark.parametrize("method", ["cart", "oc1", "exact", "exact-numeric"])
def test_errors_as_costs_give_the_tree_of_errors(method):
    for seed in range(6):
        table, labels, weights, _, parameters = random_case(seed)
        depth = parameters["depth"]
        plain = train(
            TrainRequest(table=table, labels=labels, method=method, weights=weights, parameters={"depth": depth})
        )
        model = trained(method, table, labels, weights, {("a", "b"): "1"}, depth=depth)
        assert model.tree.to_json() == plain.tree.to_json()
        assert model.certificate.objective == plain.certificate.objective
        assert model.certificate.bound == plain.certificate.bound
        assert model.certificate.correct == plain.certificate.correct


@pytest.mark.slow
@pytest.mark.parametrize("method", ["cart", "oc1", "exact", "exact-numeric"])
def test_multiplied_costs_give_the_same_tree(method):
    def times(value):
        factor, star, column = value.partition("*")
        return f"{float(Fraction(factor) * 7):g}{star}{column}"

    for seed in range(6):
        table, labels, weights, costs, parameters = random_case(seed)
        costs["a", "b"] = "3"
        one = trained(method, table, labels, weights, costs, **parameters | {"leaf_penalty": 0})
        many = trained(
            method,
            table,
            labels,
            weights,
            {pair: times(v) for pair, v in costs.items()},
            **parameters | {"leaf_penalty": 0},
        )
        assert many.tree.to_json() == one.tree.to_json()
        assert many.certificate.costs["cost"] == pytest.approx(7 * one.certificate.costs["cost"])


@pytest.mark.parametrize("method", ["cart", "oc1", "exact", "exact-numeric"])
def test_counts_and_accuracy_are_those_of_the_rows(method):
    table, labels, weights, costs, parameters = random_case(3)
    result = trained(method, table, labels, weights, costs | {("a", "b"): "9"}, **parameters)
    counted = np.ones(len(labels.codes), int) if weights is None else weights
    assert result.certificate.n == counted.sum()
    assert result.certificate.correct == counted[result.tree.predict(table.matrix()) == labels.codes].sum()
    assert result.tree.nodes[0].counts == tuple(counted[labels.codes == k].sum() for k in range(len(labels.classes)))
    assert result.summary["train_accuracy"] == result.certificate.correct / result.certificate.n
    assert result.summary["cost"] == result.model.metrics["train"]["cost"]


def test_costs_with_many_digits_are_rounded_with_their_error():
    table, labels, _, _, _ = random_case(1, rows=60, two=True)
    amounts = np.random.default_rng(1).random(60) * 1e6
    columns = (*table.columns[:-1], Column(schema=table.columns[-1].schema, cells=amounts))
    table = Table(columns=columns, row_numbers=table.row_numbers)
    costs = {("a", "b"): "0.37*amount", ("b", "a"): "11"}
    result = trained("exact", table, labels, None, costs, depth=2)
    said = result.certificate.costs
    exact = weighted_costs(table, labels, None, {("a", "a"): "0", ("b", "b"): "0", **costs})
    answers = result.tree.predict(table.matrix())
    cost = sum(exact[np.arange(60), answers])
    assert 0 < said["rounding_error"] <= 60 * float(Fraction(said["step"])) / 2 * 1.000001
    assert abs(cost - Fraction(said["cost"])) <= Fraction(said["rounding_error"]) + Fraction(1, 10**6)
    problem = pose(table, labels, get("exact").settings({"costs": text_of(costs)}))
    assert MOST_COPIES / 20 < problem.searched.n <= MOST_COPIES


def test_json_and_text_say_the_same():
    table, labels, _, _, _ = random_case(5, two=True)
    record = {"unit": "EUR", "costs": {"a": {"b": 5}, "b": {"a": "0.2*amount"}}}
    by_text = pose(table, labels, get("exact").settings({"costs": "a>b=5; b>a=0.2 * amount", "cost_unit": "EUR"}))
    by_json = pose(table, labels, get("exact").settings({"costs": json.dumps(record)}))
    assert by_json.costs.matrix == by_text.costs.matrix
    assert by_json.costs.matrix.to_json() == {"a": {"a": "0", "b": "5"}, "b": {"a": "0.2*amount", "b": "0"}}
    assert by_json.costs.matrix.unit == "EUR"


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ("a>b", "does not name a true class, an answer and a cost"),
        ("a>z=1", "'z' is not a class"),
        ("a>b=-2", "cannot be negative"),
        ("a>b=cheap", "no cost that can be read"),
        ("a>b=2*price", "'price' is not a column"),
        ("a>b=1; a>b=2", "named twice"),
        ("a>b=0; b>a=0", "all answers cost the same"),
        ('{"a": 3}', "not an object of true classes"),
        ('{"a": ', "this is not JSON"),
        ("a>b=1e70", "larger unit"),
    ],
)
def test_costs_that_cannot_be_used_are_refused(costs, words):
    table, labels, _, _, _ = random_case(5, two=True)
    with pytest.raises(ParameterError, match=words):
        train(TrainRequest(table=table, labels=labels, method="exact", parameters={"costs": costs}))


def test_empty_cells_of_a_cost_column_are_named():
    table, labels, _, _, _ = random_case(5, two=True)
    values = table.columns[-1].values.copy()
    values[np.flatnonzero(labels.codes == 0)[:2]] = np.nan
    columns = (*table.columns[:-1], Column(schema=table.columns[-1].schema, cells=values))
    table = Table(columns=columns, row_numbers=table.row_numbers)
    request = TrainRequest(table=table, labels=labels, method="exact", parameters={"costs": "a>b=2*amount"})
    with pytest.raises(ParameterError, match="'amount' is empty in 2 rows"):
        train(request)


@pytest.mark.parametrize("method", WITH_COSTS)
def test_each_parameter_counts_rows_or_is_free_of_them(method):
    for parameter in get(method).parameters:
        free = FREE | (
            {"min_leaf"} if method in ("exact", "exact-numeric") else set()
        )  # here the weights of the copies count as rows
        if method in ("cart", "oc1", "exact", "exact-numeric") or parameter.counts_rows:
            assert parameter.counts_rows != (parameter.name in free), parameter.name


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [
        ("odt", "topology", "auto"), ("odt", "frontier", True), ("odt", "negative_weight", "2"), ("odt", "sensitivity", 0.5),
        ("cut-h", "pareto", True), ("cut-h", "then_fewest", True), ("cut-h", "min_leaf", 2), ("oct-h", "coefficient_penalty", 0.1),
        ("bivariate", "min_leaf", 2), ("cart", "min_leaf", 2), ("oc1", "min_leaf", 2), ("exact", "class_weight", "balanced"), ("exact", "optimal_trees", 1), ("exact", "recall", "a: 0.5"),
        ("cart", "min_node", 5), ("cart", "min_gain", 0.1), ("flowoct", "paper_lambda", 0.1),
    ],
)  # fmt: skip
def test_parameters_that_count_rows_are_refused(method, name, value):
    table, labels, _, _, _ = random_case(5, two=True)
    request = TrainRequest(
        table=table, labels=labels, method=method, parameters={"costs": "a>b=2", name: value, "time_limit": 5}
    )
    with pytest.raises(ParameterError, match=name):
        train(request)


def estimator_rows(seed=4, n=60):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (n, 3)).astype(float)
    y = np.where(X[:, 0] + rng.integers(0, 3, n) > 3, "bad", "good")
    return X, y


def test_estimator_takes_costs_and_counts_them(tmp_path):
    X, y = estimator_rows()
    costs = {"bad": {"good": 5}}
    model = make_classifier("exact", depth=2, leaf_penalty=0, costs=costs, cost_unit="EUR").fit(X, y)
    answers = model.predict(X)
    cost = 5 * ((y == "bad") & (answers == "good")).sum() + ((y == "good") & (answers == "bad")).sum()
    assert model.certificate_.costs["cost"] == cost
    assert model.certificate_.costs["least"] == cost
    assert model.get_params()["costs"] is costs
    plain = make_classifier("exact", depth=2).fit(X, y)
    assert plain.certificate_.costs is None
    model.save(tmp_path / "model.json")
    assert json.loads((tmp_path / "model.json").read_text())["metrics"]["train"]["cost"] == cost


def test_weights_scale_the_cost_of_an_estimator():
    X, y = estimator_rows()
    model = make_classifier("exact", depth=2, costs="bad>good=5")
    doubled = model.fit(X, y, sample_weight=np.full(len(y), 2.0)).certificate_.costs["cost"]
    assert doubled == 2 * model.fit(X, y).certificate_.costs["cost"]
    halved = model.fit(X, y, sample_weight=np.full(len(y), 0.5)).certificate_.costs["cost"]
    assert halved == doubled / 4


@pytest.mark.parametrize("method", editable_ids())
def test_workbench_of_estimator_counts_in_the_unit_of_costs(method):
    X, y = estimator_rows()
    estimator = make_classifier(method, depth=1, costs="bad>good=5").fit(X, y)
    costs = estimator.certificate_.costs
    bench = estimator.workbench(X, y)
    free = bench.complete()
    assert bench.cost(free.cost) == pytest.approx(costs["least"])
    tree = bench.tree(free.tree)
    assert sum(tree.nodes[0].counts) == len(y)  # counts are in rows, not in copies
    wished = bench.complete(["leaf root good"])
    always_good = 5 * int((y == "bad").sum())
    assert bench.cost(wished.cost) == pytest.approx(always_good)
    assert bench.price(wished.prices[0].price) == pytest.approx(always_good - costs["least"])
    each = np.where(y[:, None] == np.unique(y), 0, np.where(y[:, None] == "bad", 5, 1))
    by_row = make_classifier(method, depth=1).workbench(X, y, costs=each)
    assert by_row.cost(by_row.complete().cost) == pytest.approx(costs["least"])


def test_good_trees_of_estimator_take_an_amount_of_costs():
    X, y = estimator_rows()
    bench = make_classifier("exact", depth=1, costs="bad>good=5").workbench(X, y)
    least = bench.complete().cost
    dearest = Fraction(bench.good_trees(slack_cost="3").limit, bench.space.instance.Q)
    # the limit is rounded down to a whole step
    assert bench.cost(least) + 2 < bench.cost(dearest) <= bench.cost(least) + 3 + 1e-9
    by_share = Fraction(bench.good_trees(slack="0.5").limit, bench.space.instance.Q)
    assert bench.cost(by_share) <= 1.5 * bench.cost(least) + 1e-9
    with pytest.raises(ParameterError, match="compared by their costs"):
        bench.good_trees(slack_rows=1)
    with pytest.raises(ParameterError, match="no answer has a cost"):
        make_classifier("exact", depth=1).workbench(X, y).good_trees(slack_cost="3")
