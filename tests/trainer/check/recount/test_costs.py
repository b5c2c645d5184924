"""Model files with costs: true ones are proved, and false costs are refuted."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.trainer.check.recount.costs_cases import write_table
from tests.trainer.check.recount.files import OBLIQUE, findings, trained
from tests.trainer.costs_cases import checked_case, random_case, text_of
from trainer.check.recount import verdict, verify
from trainer.errors import ModelFileError
from trainer.registry import METHODS
from trainer.training.run import TrainRequest, save, train

COSTS = "a>b=5; b>a=0.2*length; c>c=1"
WITH_COSTS = [m.id for m in METHODS if m.parameter("costs")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def train_with_costs(folder, method="exact", **asked):
    return trained(folder, method, test_share=0.25, costs=COSTS, cost_unit="EUR", **asked)


def verdict_of(document, data, tmp_path):
    """Return the verdict on a document. One that cannot be read counts as refuted."""
    try:
        return verdict(findings(document, data, tmp_path))
    except ModelFileError:
        return "refuted"


@pytest.mark.slow
@pytest.mark.parametrize("method", WITH_COSTS)
def test_file_with_costs_is_proved_or_recounted(folder, tmp_path, method):
    document, data = train_with_costs(folder, method)
    said = findings(document, data, tmp_path)
    wanted = {"cart": "recounted", "oc1": "recounted"} | dict.fromkeys(
        OBLIQUE, verdict(said)
    )  # the proof files of these methods prove them
    assert verdict(said) == wanted.get(method, "proved"), [f for f in said if f.verdict != "recounted"]
    assert {"costs", "metrics train cost", "metrics test cost"} <= {f.claim for f in said if f.verdict == "recounted"}


@pytest.mark.parametrize("penalty", [0, 0.01])
def test_file_with_costs_and_a_smallest_leaf_is_proved(folder, tmp_path, penalty):
    document, data = train_with_costs(folder, min_leaf=9, leaf_penalty=penalty)
    said = findings(document, data, tmp_path)
    assert verdict(said) == "proved", [f for f in said if f.verdict != "recounted"]
    document["parameters"]["min_leaf"] = 8
    assert verdict_of(document, data, tmp_path) == "refuted"


def without_costs(document):
    document["certificate"].pop("costs")


def other_parameters(text):
    def change(document):
        document["parameters"]["costs"] = text

    return change


def other_certificate(name, value):
    def change(document):
        document["certificate"]["costs"][name] = value

    return change


def better_cost(document):
    for costs in (document["certificate"]["costs"], document["metrics"]["train"]):
        costs["cost"] -= 0.2


def cheaper_test(document):
    document["metrics"]["test"]["cost_per_row"] /= 2


def cheaper_cell(document):
    document["metrics"]["test"]["cost_confusion"][0][1] += 1


def dearer_constant(document):
    document["metrics"]["test"]["constant_cost"] += 5


def narrow_interval(document):
    low, high = document["metrics"]["test"]["cost_interval"]
    document["metrics"]["test"]["cost_interval"] = [(3 * low + high) / 4, high]


def narrow_savings(document):
    low, high = document["metrics"]["test"]["saved_interval"]
    document["metrics"]["test"]["saved_interval"] = [(3 * low + high) / 4, high]


def no_interval(document):
    document["metrics"]["test"]["cost_interval"] = None


def cost_of_folds(document):
    document["parameters"]["costs"] = ""
    without_costs(document)


def smallest_leaf(document):
    document["parameters"]["min_leaf"] = 2


def lower_bound_of_errors(document):
    document["certificate"]["bound"] = document["certificate"]["objective"] = 0.9


def wrong_constant(document):
    document["certificate"]["costs"]["best_constant"]["answer"] = "c"


def other_answer(document):
    leaf = next(node for node in document["nodes"] if "class" in node)
    leaf["class"] = "c"


LIES = [
    without_costs, other_parameters(""), other_parameters("a>b=4; b>a=0.2*length; c>c=1"), other_parameters("a>b=cheap"),
    other_parameters("a>b=5; b>a=0.2*width; c>c=1"), other_certificate("unit", "USD"), other_certificate("floor", 0.0),
    other_certificate("leaf_price", 3.0), other_certificate("least", 1.0), other_certificate("step", "1"),
    other_certificate("rounding_error", 0.5), other_certificate("costs", {}), better_cost, cheaper_test, cheaper_cell, dearer_constant, cost_of_folds, smallest_leaf,
    lower_bound_of_errors, wrong_constant, other_answer, narrow_interval, narrow_savings, no_interval,
]  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_lie_about_costs_is_refuted(folder, tmp_path, lie):
    document, data = train_with_costs(folder, leaf_penalty=0.01)
    assert verdict_of(document, data, tmp_path) == "proved"
    lie(document)
    assert verdict_of(document, data, tmp_path) == "refuted"


def lower_impurity(document):
    node = next(v for v in document["nodes"] if v.get("impurity"))
    node["impurity"] = node["impurity_bound"] = node["impurity"] * 0.9


def higher_impurity_bound(document):
    node = next(v for v in document["nodes"] if v.get("impurity"))
    node["impurity"] = node["impurity_bound"] = node["impurity"] * 1.2


@pytest.mark.parametrize(
    ("method", "lie"),
    [
        *((method, lie) for method in ("odt", "bivariate", "cut-h") for lie in (better_cost, other_answer, wrong_constant, without_costs)),
        ("odt", lower_bound_of_errors), ("cut-h", lower_bound_of_errors), ("bivariate", lower_impurity),
        ("bivariate", higher_impurity_bound),
    ],
)  # fmt: skip
def test_lie_about_costs_of_other_methods_is_refuted(folder, tmp_path, method, lie):
    document, data = train_with_costs(folder, method)
    assert verdict_of(document, data, tmp_path) != "refuted"
    lie(document)
    assert verdict_of(document, data, tmp_path) == "refuted"


def test_costs_of_a_file_without_costs_are_refuted(folder, tmp_path):
    document, data = train_with_costs(folder)
    costs = document["certificate"]["costs"]
    plain, data = trained(folder, "exact", test_share=0.25)
    plain["metrics"]["train"]["cost"] = 3.0
    assert verdict_of(plain, data, tmp_path) == "refuted"
    plain, data = trained(folder, "exact", test_share=0.25)
    plain["certificate"]["costs"] = costs
    assert verdict_of(plain, data, tmp_path) == "refuted"


def test_unknown_member_of_costs_is_not_judged(folder, tmp_path):
    document, data = train_with_costs(folder)
    document["certificate"]["costs"]["savings"] = 100
    said = findings(document, data, tmp_path)
    assert verdict(said) != "proved"
    assert "costs savings" in {f.claim for f in said if f.verdict == "cannot be judged"}


@pytest.mark.parametrize(("method", "seed"), [("exact", 2), ("exact", 7), ("exact-numeric", 2), ("exact-numeric", 9)])
def test_proof_with_costs_holds_for_its_rows_only(tmp_path, method, seed):
    table, labels, weights, costs, _ = random_case(seed, rows=60)
    data = tmp_path / "rows.csv"
    write_table(data, table, labels)
    parameters = {"depth": 3, "costs": text_of(costs)}
    request = TrainRequest(
        table=table,
        labels=labels,
        method=method,
        weights=weights,
        parameters=parameters,
        proof=tmp_path / "proof.jsonl",
    )
    result = train(request)
    save(result.model, tmp_path / "model.json")
    said = verify(tmp_path / "model.json", data, tmp_path / "proof.jsonl")
    bound = next(f for f in said if f.claim == "bound")
    assert bound.verdict == "proved"
    assert "holds" in bound.detail or "hold:" in bound.detail
    assert verdict(said) == "proved"
    plain = json.loads((tmp_path / "model.json").read_text())
    plain["certificate"]["bound"] = plain["certificate"]["objective"] + 0.01
    (tmp_path / "model.json").write_text(json.dumps(plain))
    assert verdict(verify(tmp_path / "model.json", data, tmp_path / "proof.jsonl")) == "refuted"


@pytest.mark.parametrize("method", ["cart", "exact", "exact-numeric"])
def test_random_honest_files_are_never_refuted(tmp_path, method, count):
    for seed in range(2 * count):
        case = checked_case(method, seed)
        if case is None:
            continue
        table, labels, *_ = random_case(seed)
        write_table(tmp_path / "rows.csv", table, labels)
        save(case[0].model, tmp_path / "model.json")
        said = verify(tmp_path / "model.json", tmp_path / "rows.csv")
        assert verdict(said) in ("proved", "recounted"), (seed, [f for f in said if f.verdict == "refuted"])


def test_rounded_costs_are_recounted(tmp_path):
    table, labels, _, _, _ = random_case(1, rows=60, two=True)
    table.columns[-1].values[:] = np.random.default_rng(1).random(60) * 1e6
    path = tmp_path / "rows.csv"
    lines = [",".join([*table.names, "y"])]
    lines += [
        ",".join([*map(repr, row), labels.classes[k]])
        for row, k in zip(table.matrix().tolist(), labels.codes, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    request = TrainRequest(
        table=table, labels=labels, method="exact", parameters={"depth": 2, "costs": "a>b=0.37*amount; b>a=11"}
    )
    save(train(request).model, tmp_path / "model.json")
    assert verdict(verify(tmp_path / "model.json", path)) == "proved"
