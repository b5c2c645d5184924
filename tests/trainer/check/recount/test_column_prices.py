"""Model files with column prices: true ones are proved, and false prices are refuted."""

from __future__ import annotations

import numpy as np
import pytest

from tests.trainer.check.recount.column_prices_cases import higher_objective, lower_bound, verdict_of
from tests.trainer.check.recount.files import findings, trained
from tests.trainer.check.recount.goals_cases import _file
from tests.trainer.column_prices_cases import priced_text, random_prices
from tests.trainer.goal_cases import random_case
from trainer.check.recount import verdict, verify

PRICES = "length=0.4; colour=0.1; flag=0"
COSTS = {"costs": "a>b=5; b>a=0.2*length; c>c=1", "cost_unit": "EUR"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@pytest.mark.parametrize(
    "asked",
    [
        {},
        COSTS,
        {"min_leaf": 5, "leaf_penalty": 0.01},
        COSTS | {"min_leaf": 5},
        {"max_columns": 1},
        COSTS | {"max_columns": 2},
        {"max_leaves": 3},
        {"recall": "a: 0.9", "depth": 2},
        {"recall": "b: 0.8; c: 0.5", "depth": 2, "max_leaves": 3},
        {"forbidden_pairs": "length + colour", "depth": 2},
        COSTS | {"forbidden_pairs": "length + colour", "depth": 2},
        {"recall": "b: 0.8", "forbidden_pairs": "length + colour", "depth": 2, "max_columns": 2},
        {"method": "exact-numeric", "recall": "b: 0.8", "depth": 1},
        COSTS | {"max_leaves": 3, "max_columns": 1},
        {"method": "exact-numeric", "leaf_penalty": 0.01},
        COSTS | {"method": "exact-numeric"},
    ],
)
def test_honest_file_with_prices_is_proved(folder, tmp_path, asked):
    document, data = file_of(folder, PRICES, asked)
    said = findings(document, data, tmp_path)
    assert verdict(said) == "proved", [f for f in said if f.verdict != "recounted"]
    assert "column prices" in {f.claim for f in said if f.verdict == "recounted"}


def file_of(folder, prices, asked):
    """Return the document of `asked`, by default of `exact` with four bins, and its rows."""
    settings = {"method": "exact", "test_share": 0.25, "column_price": prices} | asked
    return trained(folder, **settings | ({"bins": 4} if settings["method"] == "exact" else {}))


def other_parameter(text):
    def change(document):
        document["parameters"]["column_price"] = text

    return change


def stated(name, value):
    def change(document):
        document["certificate"]["column_prices"][name] = value

    return change


def paid_less(document):
    paid = document["certificate"]["column_prices"]["paid"]
    name = max(paid, key=paid.get)
    paid[name] -= 1


def no_prices(document):
    document["certificate"].pop("column_prices")


def without_all_prices(document):
    document["parameters"]["column_price"] = ""
    no_prices(document)


def goal(document):
    document["parameters"]["goal"] = "f1"


@pytest.mark.parametrize(
    "lie",
    [
        other_parameter("length=0.3; colour=0.1"),
        other_parameter("width=0.4"),
        other_parameter("length"),
        other_parameter("length=-1"),
        other_parameter("height=0.4"),
        stated("unit", "USD"),
        stated("prices", {}),
        stated("cost", 0.1),
        stated("paid", {}),
        paid_less,
        no_prices,
        without_all_prices,
        higher_objective,
        lower_bound,
        goal,
    ],
)
@pytest.mark.parametrize(
    "asked",
    [
        {},
        COSTS,
        COSTS | {"max_columns": 1},
        {"max_leaves": 2},
        {"recall": "b: 0.8", "depth": 2},
        {"method": "exact-numeric"},
        COSTS | {"method": "exact-numeric"},
    ],
)
def test_lie_about_prices_is_refuted(folder, tmp_path, lie, asked):
    document, data = file_of(folder, "length=0.05; colour=0.02", asked)
    assert verdict_of(document, data, tmp_path) == "proved"
    assert sum(document["certificate"]["column_prices"]["paid"].values()) > 0
    lie(document)
    assert verdict_of(document, data, tmp_path) == "refuted"


@pytest.mark.parametrize("costs", [{}, COSTS])
@pytest.mark.parametrize(("name", "low", "high"), [("max_columns", 1, 2), ("max_leaves", 2, 3)])
def test_other_limit_beside_prices_is_refuted(folder, tmp_path, name, low, high, costs):
    """A better tree exists within the higher limit, and it is not in the space of the lower one."""
    asked = {"column_price": "length=0.01; colour=0.01", "bins": 4, "leaf_penalty": 0, **costs}
    smaller, data = trained(folder, "exact", **asked, **{name: low})
    larger, _ = trained(folder, "exact", **asked, **{name: high})
    assert larger["certificate"]["objective"] > smaller["certificate"]["objective"] + 1e-6
    for document, lie in ((smaller, high), (larger, low)):
        assert verdict_of(document, data, tmp_path) == "proved"
        document["parameters"][name] = lie
        assert verdict_of(document, data, tmp_path) == "refuted"


def test_prices_of_a_file_without_them_are_refuted(folder, tmp_path):
    document, data = trained(folder, "exact", column_price=PRICES, bins=4)
    plain, data = trained(folder, "exact", bins=4)
    plain["certificate"]["column_prices"] = document["certificate"]["column_prices"]
    assert verdict_of(plain, data, tmp_path) == "refuted"


@pytest.mark.parametrize(
    ("name", "value"),
    [("optimal_trees", 1), ("class_weight", "balanced")],
)
def test_settings_that_no_training_takes_with_prices_are_refuted(folder, tmp_path, name, value):
    document, data = file_of(folder, PRICES, {})
    document["parameters"][name] = value
    assert "column prices" in {f.claim for f in findings(document, data, tmp_path) if f.verdict == "refuted"}


def test_tree_that_ignores_prices_is_refuted_as_the_best(folder, tmp_path):
    """The file is consistent in itself: it has the tree of fewest errors, with the cost of its columns."""
    best, data = trained(folder, "exact", column_price="length=0.05; colour=0.02", bins=4)
    document, data = trained(folder, "exact", bins=4)
    document["parameters"]["column_price"] = "length=0.05; colour=0.02"
    document["certificate"]["evidence"] = []
    document["certificate"]["column_prices"] = {"unit": "", "prices": {"length": "0.05", "colour": "0.02"}}
    asked = {"length": 0, "colour": 0}
    paid = {0: set()}
    for node in document["nodes"]:
        own = paid[node["id"]]
        if "split" in node:
            paid[node["left"]] = paid[node["right"]] = own | {node["split"]["feature"]}
        else:
            for name in asked:
                asked[name] += sum(node["counts"]) * (name in own)
    cost = 0.05 * asked["length"] + 0.02 * asked["colour"]
    n = sum(document["nodes"][0]["counts"])
    document["certificate"]["column_prices"] |= {"paid": asked, "cost": cost}
    document["certificate"]["objective"] -= cost / n
    document["certificate"]["bound"] = document["certificate"]["objective"]
    assert document["certificate"]["objective"] < best["certificate"]["objective"]
    said = findings(document, data, tmp_path)
    assert next(f for f in said if f.verdict == "refuted").claim == "bound"


@pytest.mark.parametrize("method", ["exact", "exact-numeric"])
def test_random_honest_files_with_prices_are_proved(tmp_path, method, count):
    for seed in range(3 * count):
        table, labels, _, parameters = random_case(seed)
        text = priced_text(random_prices(np.random.default_rng(seed), table.names), table.names)
        if method == "exact" and seed % 2:
            parameters["max_leaves"] = 1 + seed % 4
        _file(table, labels, parameters | {"column_price": text}, tmp_path, method)
        said = verify(tmp_path / "model.json", tmp_path / "rows.csv")
        assert verdict(said) == "proved", (seed, [f for f in said if f.verdict not in ("recounted", "proved")])
