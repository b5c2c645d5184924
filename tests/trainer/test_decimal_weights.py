"""Decimal row weights beside costs: every method equals enumeration, and its claims hold."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.trainer.column_prices_cases import cost_of, priced_text, random_prices
from tests.trainer.column_prices_cases import least_cost as least_priced
from tests.trainer.column_prices_cases import questions_of as questions_and_columns
from tests.trainer.costs_cases import (
    OVER_QUESTIONS,
    WITH_COSTS,
    has_choice,
    least_cost,
    questions_of,
    random_case,
    text_of,
    trained,
    weighted_costs,
)
from tests.trainer.costs_of_wishes_cases import MANY_BINS, least_with_wishes, session_of, thresholds_of
from tests.trainer.exact.good_trees_costs_cases import CostedTrees
from tests.trainer.goal_cases import ALL_THRESHOLDS
from trainer import make_classifier
from trainer.certificate import Guarantee, Status
from trainer.check.recount import verdict, verify
from trainer.data.reader import load
from trainer.data.row_weights import weights_in_steps
from trainer.errors import ModelFileError, ParameterError
from trainer.evaluate import Study, StudyDataset, Variant, report, run_study
from trainer.registry import editable_ids, get
from trainer.training.run import TrainRequest, save, train
from trainer.workbench.good_trees import GoodRequest
from trainer.workbench.requests import WorkbenchSession

DECIMALS = ("0.25", "0.1", "1", "1.5", "3.7")


def decimal_case(seed, *, rows=24, two=False, digits=None):
    """Return table, labels, costs as texts, parameters, and the exact weighted costs (rows, classes); None without a choice."""
    table, labels, _, costs, parameters = random_case(seed, rows=rows, two=two)
    rng = np.random.default_rng(seed + 10_000)
    given = rng.choice(np.array(DECIMALS, float), rows) if digits is None else np.round(rng.random(rows) + 0.01, digits)
    exact = np.array([Fraction(repr(w)) for w in given.tolist()], object)
    weighted = weighted_costs(table, labels, None, costs) * exact[:, None]
    if not has_choice(weighted):
        return None
    return replace(table, weights=weights_in_steps(given)), labels, costs, parameters, weighted


def check_method(method, seed):
    case = decimal_case(seed, two=get(method).two_classes)
    if case is None:
        return
    table, labels, costs, parameters, weighted = case
    if get(method).parameter("leaf_penalty") is None:
        del parameters["leaf_penalty"]
    parameters["depth"] = min(2, parameters["depth"])
    if get(method).parameter("time_limit"):
        parameters["time_limit"] = 30
    price = Fraction(str(parameters.get("leaf_penalty", 0))) * min(weighted.sum(axis=0))
    if price >= weighted.max(axis=1).sum() * len(labels.classes) - weighted.sum():
        return
    result = trained(method, table, labels, None, costs, **parameters)
    stated = result.certificate.costs
    answers = result.tree.labels[result.tree.apply(table.matrix())]
    cost = sum(weighted[np.arange(len(weighted)), answers])
    assert stated["cost"] == float(cost), seed
    assert stated["rounding_error"] == 0
    assert stated["cost_per_row"] == pytest.approx(float(cost) / table.weights.given.sum())
    assert stated["floor"] == float(sum(weighted.min(axis=1)))
    assert stated["best_constant"]["cost"] == float(min(weighted.sum(axis=0)))
    if get(method).guarantee is not Guarantee.TREE:
        return
    answers = questions_of(method, table, labels, None, get(method).settings({"depth": 1}))
    least = least_cost(answers, weighted, parameters["depth"], price)
    if method in (*OVER_QUESTIONS, "exact-numeric"):
        assert result.certificate.status == Status.OPTIMAL
        assert stated["least"] == pytest.approx(float(least)), seed
        assert float(cost + price * result.tree.n_leaves) == pytest.approx(float(least)), seed
    else:
        assert stated["least"] <= float(cost + price * result.tree.n_leaves) + 1e-9, seed


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact", "exact-numeric"])
def test_decimal_weights_give_the_least_cost(method):
    for seed in range(300):
        check_method(method, seed)


@pytest.mark.slow
@pytest.mark.parametrize("method", [m for m in WITH_COSTS if m not in ("exact", "exact-numeric")])
def test_decimal_weights_count_in_every_method(method):
    for seed in range(3):
        check_method(method, seed)


def test_decimal_weights_give_the_least_cost_in_some_cases():
    for seed in range(8):
        check_method("exact", seed)


def test_weights_of_many_digits_are_rounded_within_the_error():
    rounded = 0
    for seed in range(12):
        case = decimal_case(seed, digits=9 if seed % 2 else 17)
        if case is None:
            continue
        table, labels, costs, _, weighted = case
        result = trained("exact", table, labels, None, costs, depth=2, leaf_penalty=0)
        stated = result.certificate.costs
        answers = result.tree.labels[result.tree.apply(table.matrix())]
        cost = float(sum(weighted[np.arange(len(weighted)), answers]))
        least = float(least_cost(questions_of("exact", table, labels, None, get("exact").settings({})), weighted, 2, 0))
        error = stated["rounding_error"]
        rounded += error > 0
        assert error < 1e-4
        assert abs(stated["cost"] - cost) <= error + 1e-12
        assert abs(stated["least"] - least) <= error + 1e-12, seed
    assert rounded > 5


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact", "exact-numeric"])
def test_prices_of_columns_count_decimal_weights(method):
    for seed in range(300):
        check_prices(method, seed)


def check_prices(method, seed):
    case = decimal_case(seed, rows=14)
    if case is None:
        return
    table, labels, costs, _, weighted = case
    rng = np.random.default_rng(seed)
    prices = random_prices(rng, table.names)
    depth = 1 + seed % 3
    parameters = {"depth": depth, "leaf_penalty": 0, "column_price": priced_text(prices, table.names)}
    parameters |= ALL_THRESHOLDS if method == "exact" else {}
    result = trained(method, table, labels, None, costs, **parameters)
    answers, columns = questions_and_columns(table, labels, None)
    exact = {j: Fraction(text) for j, text in prices.items()}
    weights = table.weights.values
    charges = {j: price * table.weights.step for j, price in exact.items()}
    least = least_priced(answers, columns, charges, weighted, weights, depth, Fraction(0), {})
    assert cost_of(result.tree, table, charges, weighted, weights, Fraction(0)) == least, seed
    assert result.certificate.proved_optimal
    assert result.certificate.costs["least"] == pytest.approx(float(least))
    if result.certificate.column_prices:
        paid = result.certificate.column_prices["cost"]
        assert result.certificate.costs["cost"] + paid == pytest.approx(float(least))


def test_prices_of_columns_count_decimal_weights_in_some_cases():
    for seed in range(6):
        check_prices("exact", seed)


def test_digits_that_prices_cannot_count_are_refused():
    case = decimal_case(0, digits=17)
    table, labels, costs, _, _ = case
    with pytest.raises(ParameterError, match=r"too many digits for prices of columns"):
        trained("exact", table, labels, None, costs, depth=1, leaf_penalty=0, column_price="x0=0.1")


def test_good_trees_of_decimal_weights_equal_enumeration():
    tried = 0
    for seed in range(12):
        case = decimal_case(seed, rows=12)
        if case is None:
            continue
        tried += 1
        table, labels, costs, _, weighted = case
        asked = {"depth": 2, "leaf_penalty": 0, "costs": text_of(costs), "binarise": "all-thresholds"}
        session = WorkbenchSession(TrainRequest(table=table, labels=labels, method="exact", parameters=asked))
        all_trees = CostedTrees(session, weighted, 2, 1, Fraction(0))
        least = min(all_trees.total)
        record = session.good_trees(GoodRequest(slack_cost="1.5", listed=0), session.monitor())
        assert record["optimum_cost"] == pytest.approx(float(least))
        assert record["count"] == sum(cost <= least + Fraction("1.5") for cost in all_trees.total), seed
    assert tried > 8


def written(path, seed, *, rows=30, digits=None):
    """Write a table with decimal weights and a column of costs."""
    rng = np.random.default_rng(seed)
    lines = ["a,b,c,amount,w,class"]
    for i in range(rows):
        a, b, c = rng.integers(0, 2, 3)
        label = "yes" if (a & b) ^ (rng.random() < 0.3) else "no"
        weight = rng.choice(DECIMALS) if digits is None else repr(round(float(rng.random()) + 0.01, digits))
        lines.append(f"{a},{b},{c},{rng.integers(1, 9) / 4},{weight if i else 0},{label}")
    path.write_text("\n".join([*lines, "0,0,0,1,1,no", "1,1,1,1,0.5,yes"]) + "\n", encoding="utf-8")
    return load(path, target="class", weight="w")[:2]


@pytest.mark.slow
@pytest.mark.parametrize("method", editable_ids())
def test_wishes_beside_decimal_weights_equal_enumeration(method, tmp_path):
    for seed in range(12):
        table, labels = written(tmp_path / "rows.csv", seed, rows=12)
        exact = np.array([Fraction(repr(w)) for w in table.weights.given.tolist()], object)
        costs = {("no", "no"): "0", ("no", "yes"): "2.5", ("yes", "no"): "0.3*amount", ("yes", "yes"): "0.1"}
        weighted = weighted_costs(table, labels, None, costs) * exact[:, None]
        session = session_of(method, (table, labels, None, costs, {}), depth=2, **MANY_BINS[method])
        answers, columns = thresholds_of(table)
        free = least_with_wishes(answers, weighted, 2, 0)
        for wish, kept in (
            ("ask root b", {"root": [q for q, j in enumerate(columns) if j == 1]}),
            ("forbid root a", {"banned": [q for q, j in enumerate(columns) if j == 0]}),
            ("leaf root no", {"leaf": ("", 0)}),
        ):
            monitor = session.monitor()
            completion = session.complete([wish], monitor)
            least = least_with_wishes(answers, weighted, 2, 0, **kept)
            result = session.result(completion, monitor)
            certificate = result.model.certificate
            assert certificate["costs"]["least"] == pytest.approx(float(least), abs=1e-9), (seed, wish)
            price = certificate["wishes"][0]["price"] * certificate["optimum"]["objective_cost"]
            assert price == pytest.approx(float(least - free), abs=1e-6)
            save(result.model, tmp_path / "model.json")
            assert verdict(verify(tmp_path / "model.json", tmp_path / "rows.csv")) == "proved", (seed, wish)


# The tests below are about files.


def saved(folder, seed=1, *, digits=None, proof=True, **parameters):
    table, labels = written(folder / "rows.csv", seed, digits=digits)
    own = {"depth": 2, "leaf_penalty": 0, "costs": "no>yes=2.5; yes>no=0.3*amount; yes>yes=0.1", **parameters}
    beside = folder / "model.proof.jsonl.gz" if proof else None
    request = TrainRequest(table=table, labels=labels, method="exact", parameters=own, test_share=0.3, proof=beside)
    result = train(request)
    save(result.model, folder / "model.json")
    return folder / "model.json", beside, folder / "rows.csv", result


@pytest.mark.parametrize("digits", [None, 17])
@pytest.mark.parametrize("price", ["", "a=0.05"])
def test_file_with_decimal_weights_is_proved(tmp_path, digits, price):
    if digits and price:
        return
    model, proof, rows, result = saved(tmp_path, digits=digits, column_price=price)
    found = verify(model, rows, proof)
    assert verdict(found) == "proved", [f for f in found if f.verdict != "recounted"]
    assert (result.certificate.costs["rounding_error"] > 0) == (digits is not None)
    assert {"costs", "metrics train cost", "metrics test cost", "weights"} <= {
        f.claim for f in found if f.verdict == "recounted"
    }


@pytest.mark.parametrize(
    "lie",
    [
        lambda m: m["rows"]["weight"].update(step="1/10"),
        lambda m: m["rows"]["weights"].__setitem__(3, m["rows"]["weights"][3] + 1),
        lambda m: m["certificate"]["costs"].update(cost=m["certificate"]["costs"]["cost"] - 0.1),
        lambda m: m["certificate"]["costs"].update(cost_per_row=m["certificate"]["costs"]["cost_per_row"] * 2),
        lambda m: m["certificate"]["costs"].update(rounding_error=0.1),
        lambda m: m["metrics"]["test"].update(cost_per_row=m["metrics"]["test"]["cost_per_row"] * 2),
        lambda m: m["metrics"]["test"].update(cost_interval=[0.0, 0.001]),
    ],
)
def test_lies_about_decimal_weights_are_refuted(tmp_path, lie):
    model, _, rows, _ = saved(tmp_path, proof=False)
    record = json.loads(model.read_text(encoding="utf-8"))
    lie(record)
    model.write_text(json.dumps(record), encoding="utf-8")
    try:
        found = verdict(verify(model, rows))
    except ModelFileError:
        found = "refuted"
    assert found == "refuted"


@pytest.mark.parametrize("digits", [None, 17])
@pytest.mark.parametrize("by_row", [False, True])
def test_estimator_counts_decimal_sample_weights(tmp_path, digits, by_row):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (30, 3)).astype(float)
    y = np.where(rng.random(30) < 0.3, 1 - X[:, 0], X[:, 0] * X[:, 1]).astype(int)
    weights = rng.choice(np.array(DECIMALS, float), 30) if digits is None else rng.random(30)
    weights[4] = 0
    matrix = np.array([[0.0, 2.5], [0.7, 0.1]])
    costs = matrix[y] if by_row else "0>1=2.5; 1>0=0.7; 1>1=0.1"
    model = make_classifier("exact", depth=2, leaf_penalty=0).fit(X, y, sample_weight=weights, costs=costs)
    stated = model.certificate_.costs
    cost = float(weights @ matrix[y, model.predict(X)])
    assert stated["cost"] == pytest.approx(cost, abs=stated["rounding_error"] + 1e-9)
    assert stated["cost_per_row"] == pytest.approx(cost / weights.sum(), abs=stated["rounding_error"] + 1e-9)
    assert (stated["rounding_error"] > 0) == (digits is not None)
    found = model.verify(X, y, sample_weight=weights, costs=costs)
    assert verdict(found) == "proved", [f for f in found if f.verdict != "recounted"]


def test_smallest_leaf_of_decimal_sample_weights_is_refused():
    X = np.array([[0.0], [1.0], [1.0]])
    with pytest.raises(ParameterError, match=r"must be 1\. The sample weights are not whole numbers"):
        make_classifier("exact", depth=1, min_leaf=2).fit(X, [0, 1, 1], sample_weight=[0.5, 1, 1], costs="0>1=3")


def test_evaluation_counts_decimal_weights(tmp_path):
    table, labels = written(tmp_path / "rows.csv", 2, rows=40)
    parameters = {"depth": 1, "leaf_penalty": 0, "costs": "no>yes=2.5; yes>no=0.3*amount"}
    variant = Variant(label="a", method="exact", parameters=parameters)
    study = Study(datasets=(StudyDataset(name="d", table=table, labels=labels),), variants=(variant,), folds=4)
    records = list(run_study(study))
    cell = report(study, records).cell("d", "a")
    assert cell.cost_per_row == pytest.approx(cell.cost / table.weights.given.sum())
    low, high = cell.cost_interval
    assert low <= cell.cost_per_row <= high
