"""Column prices in `exact` and `exact-numeric` equal enumeration, and refusals."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest

from tests.trainer.column_prices_cases import cost_of, least_cost, priced_text, questions_of, random_prices
from tests.trainer.costs_cases import has_choice, text_of, weighted_costs
from tests.trainer.costs_cases import random_case as costs_case
from tests.trainer.goal_cases import ALL_THRESHOLDS, random_case
from trainer import make_classifier
from trainer.certificate import Limits, Status
from trainer.data.column_prices import read_column_prices
from trainer.data.reader import load
from trainer.errors import DataError, ParameterError
from trainer.methods.monitor import Monitor
from trainer.registry import get
from trainer.training.claims import price_sentence
from trainer.training.run import TrainRequest, fit, train


def limits_of(method, seed):
    """Return the further limits of a random case."""
    limits = {"min_leaf": 2 + seed % 3} if seed % 4 == 0 else {}
    if seed % 3 == 1:
        limits["max_columns"] = seed // 3 % 3
    if seed % 5 < 3:
        limits["max_leaves"] = 1 + seed % 7
    return limits if method == "exact" else {}


def check_case(method, seed, with_costs):
    if with_costs:
        table, labels, weights, answer_costs, parameters = costs_case(seed, rows=14)
        costs = weighted_costs(table, labels, weights, answer_costs)
        if not has_choice(costs):
            return
        parameters |= {"costs": text_of(answer_costs)}
    else:
        table, labels, weights, parameters = random_case(seed)
        counted = np.ones(len(labels.codes), int) if weights is None else weights
        wrong = labels.codes[:, None] != np.arange(len(labels.classes))
        costs = np.array([[Fraction(int(w) * int(e)) for e in row] for w, row in zip(counted, wrong, strict=True)])
    counted = np.ones(len(labels.codes), int) if weights is None else weights
    rng = np.random.default_rng(seed)
    parameters |= {"depth": int(rng.integers(1, 5 if seed % 7 == 0 else 4))} | limits_of(method, seed)
    if method == "exact":
        parameters |= ALL_THRESHOLDS
    texts = random_prices(rng, table.names)
    prices = {j: Fraction(text) for j, text in texts.items()}
    penalty = Fraction(str(parameters["leaf_penalty"]))
    price = penalty * (min(costs.sum(axis=0)) if with_costs else int(counted.sum()))
    try:
        request = TrainRequest(
            table=table,
            labels=labels,
            method=method,
            weights=weights,
            parameters=parameters | {"column_price": priced_text(texts, table.names)},
        )
        result = train(request)
    except ParameterError as error:
        assert "leaf_penalty" in error.errors  # noqa: PT017
        return
    answers, columns = questions_of(table, labels, weights)
    most = min(parameters.get("max_columns", len(table.names)), len(table.names))
    wanted = min(
        least_cost(answers[:, among], columns[among], prices, costs, counted, parameters["depth"], price, parameters)
        for among in (np.isin(columns, few) for few in itertools.combinations(range(len(table.names)), most))
    )
    assert len({j for node in result.tree.nodes if node.split for j in node.split.used}) <= most
    assert result.tree.n_leaves <= parameters.get("max_leaves", 64)
    found = cost_of(result.tree, table, prices, costs, counted, price)
    assert found == wanted, (seed, parameters, texts)
    assert result.certificate.status == Status.OPTIMAL
    assert result.certificate.bound == result.certificate.objective
    if with_costs:
        assert result.certificate.costs["least"] == pytest.approx(float(wanted), abs=1e-9)
    elif any(prices.values()):
        assert result.certificate.objective == pytest.approx(1 - float(wanted / int(counted.sum())), abs=1e-12)


METHODS = ("exact", "exact-numeric")


@pytest.mark.slow
@pytest.mark.parametrize("with_costs", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_least_priced_cost_is_found_and_proved(method, with_costs, count):
    """Tables with ties, equal rows, constant columns, empty cells, weights, penalties, few leaves and smallest leaves."""
    for seed in range(12 * count):
        check_case(method, seed, with_costs)


@pytest.mark.parametrize("method", METHODS)
def test_least_priced_cost_of_few_tables_is_found(method):
    for seed in range(12):
        check_case(method, seed, with_costs=seed % 2 == 1)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (150, 6))
    return X, (X[:, 0] & X[:, 1]) | (rng.random(150) < 0.1)


def test_price_of_zero_changes_nothing(rows):
    plain = make_classifier("exact", depth=3).fit(*rows)
    free = make_classifier("exact", depth=3, column_price="x0=0").fit(*rows)
    assert free.tree_.to_json() == plain.tree_.to_json()
    assert free.certificate_.evidence == plain.certificate_.evidence
    assert free.certificate_.column_prices is None


@pytest.mark.parametrize("method", METHODS)
def test_certificate_states_who_pays(rows, method):
    model = make_classifier(method, depth=2, column_price={"x0": 0.05, "x1": 0.1, "x5": 3}).fit(*rows)
    stated = model.certificate_.column_prices
    assert stated["prices"] == {"x0": "0.05", "x1": "0.1", "x5": "3"}
    assert stated["paid"]["x0"] == 150
    assert stated["paid"]["x5"] == 0
    assert stated["cost"] == pytest.approx(0.05 * 150 + 0.1 * stated["paid"]["x1"])
    lost = (150 - model.certificate_.correct + stated["cost"]) / 150
    assert model.certificate_.objective == pytest.approx(1 - lost)


def test_sentence_about_prices_counts_in_the_unit_of_the_weights(tmp_path):
    """Four rows of weight 0.25, which is one step, pay 0.4 errors each: 0.4 errors together."""
    path = tmp_path / "rows.csv"
    path.write_text("a,w,class\n" + "0,0.25,n\n" * 2 + "1,0.25,y\n" * 2)
    table, labels, *_ = load(path, target="class", weight="w")
    asked = {"depth": 1, "leaf_penalty": 0, "column_price": "a=0.4"}
    certificate = train(
        TrainRequest(table=table, labels=labels, method="exact", parameters=asked)
    ).certificate.to_json()
    assert certificate["column_prices"]["cost"] == pytest.approx(1.6)
    assert price_sentence(certificate).startswith("Asking columns costs 0.4 errors on the training rows")


@pytest.mark.parametrize(
    "asked", [{"method": "exact"}, {"method": "exact", "max_leaves": 6}, {"method": "exact-numeric"}]
)
def test_stopped_search_with_prices_has_a_valid_bound(rows, asked):
    model = make_classifier(**asked, depth=4, column_price="x0=0.05; x1=0.1")
    best = model.fit(*rows).certificate_.objective
    problem, settings = model._problem(*rows, None)
    _, certificate, _ = fit(get(asked["method"]), problem, settings, Monitor(Limits(time=0.0)))
    assert certificate.objective <= best <= certificate.bound


def test_reported_bounds_with_prices_cover_deeper_trees():
    """The best tree of depth three pays for x6. At depth four free columns suffice, so its bound must be higher."""
    rows = np.array(list(itertools.product((0, 1), repeat=6)))
    a, b, c, d, e, f = rows.T
    lab = e & f
    y = np.where(lab == 1, a ^ b, c ^ d)
    model = make_classifier("exact", depth=4, leaf_penalty=0.0001, column_price="x6=0.1")
    problem, settings = model._problem(np.column_stack((rows, lab)), y, None)
    bounds = []
    monitor = Monitor(sink=lambda progress, draft: bounds.append(progress.bound))
    _, certificate, _ = fit(get("exact"), problem, settings, monitor)
    assert certificate.objective > 0.99
    assert min(bound for bound in bounds if bound is not None) >= certificate.objective


@pytest.mark.parametrize(
    ("asked", "name", "words"),
    [
        ({"column_price": "lab=3"}, "column_price", "not a column"),
        ({"column_price": "x0"}, "column_price", "does not name a column and a price"),
        ({"column_price": "x0=cheap"}, "column_price", "has no price"),
        ({"column_price": "x0=-1"}, "column_price", "not negative"),
        ({"column_price": "x0=1; x0=2"}, "column_price", "named twice"),
        ({"column_price": '{"x0": '}, "column_price", "not JSON"),
        ({"column_price": '{"x0": 1, "x0": 2}'}, "column_price", "named twice"),
        ({"column_price": "x0=1e-30"}, "column_price", "too many digits"),
        ({"column_price": "x0=1", "goal": "f1"}, "goal", "a ratio of counts without a unit"),
        ({"column_price": "x0=1", "goal": "mcc"}, "goal", "a ratio of counts without a unit"),
        ({"column_price": "x0=1", "goal": "balanced"}, "goal", "not possible with prices"),
        ({"column_price": "x0=1", "class_weight": "balanced"}, "class_weight", "not possible with prices"),
    ],
)
def test_prices_that_do_not_fit_are_refused(rows, asked, name, words):
    with pytest.raises(ParameterError, match=words) as caught:
        make_classifier("exact", depth=1, **asked).fit(*rows)
    assert name in caught.value.errors


@pytest.mark.parametrize("price", ["1e30", "1e-30"])
def test_extreme_price_is_refused_by_exact_numeric(rows, price):
    with pytest.raises(DataError, match="too many digits"):
        make_classifier("exact-numeric", depth=1, column_price=f"x0={price}").fit(*rows)


def test_prices_are_read_as_text_and_json():
    names = ("a", "b=c", "d;e")
    assert read_column_prices("a=1.5; b=c=2", names) == {0: Fraction(3, 2), 1: Fraction(2)}
    assert read_column_prices(json.dumps({"d;e": 0.1}), names) == {2: Fraction(1, 10)}
    assert read_column_prices("", names) == {}
