"""Lies about costs, prices, goals, weights, groups and time, also where several members agree, are not confirmed."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from tests.trainer.check.recount.files import csv_text
from trainer.check.recount import verdict, verify
from trainer.data.reader import load
from trainer.errors import TrainerError
from trainer.training.run import TrainRequest, save, train

COSTS = {"costs": "a>b=5; b>a=0.2*length", "cost_unit": "EUR"}
# parameters of the training, and the roles of the columns `w`, `who` and `when`
FILES = {
    "matrix": ({"costs": '{"unit":"EUR","costs":{"a":{"b":5},"b":{"a":"0.25*width","b":0.5}}}'}, {}),
    "rows": ({"costs": "rows", "cost_unit": "EUR"}, {}),
    "prices": (COSTS | {"column_price": "length=0.4; colour=0.1", "max_columns": 1}, {}),
    "f1": ({"goal": "f1", "positive": "b", "min_leaf": 2}, {}),
    "weights": (COSTS, {"weight": "w"}),
    "groups": (COSTS, {"group": "who"}),
    "time": (COSTS, {"time": "when"}),
}
Place = tuple[str | int, ...]


@pytest.fixture(scope="module", params=FILES)
def files(request, tmp_path_factory):
    """Provide the name of a case, its document, and the paths of its rows and proof."""
    parameters, roles = FILES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    header, *lines = csv_text(classes=2).splitlines()
    rows = [header.replace(",class", ",w,who,when,class")]
    for i, line in enumerate(lines):
        cells, answer = line.rsplit(",", 1)
        rows.append(f"{cells},{i % 4},p{i % 13},2020-01-{1 + i % 28:02d},{answer}")
    data = folder / "rows.csv"
    data.write_text("\n".join(rows) + "\n")
    ignored = [name for name in ("w", "who", "when") if name not in roles.values()]
    table, labels, _ = load(data, target="class", ignore=ignored, **roles)
    costs = np.random.default_rng(0).integers(0, 50, (len(labels.codes), 2)) / 10
    own = {"costs": costs} if parameters.get("costs") == "rows" else {}
    asked = TrainRequest(
        table=table,
        labels=labels,
        method="exact",
        parameters={"depth": 2, "bins": 4, **parameters},
        test_share=0.25,
        folds=3 if roles else 0,
        proof=folder / "proof",
        **own,
    )
    save(train(asked).model, folder / "model.json")
    return request.param, json.loads((folder / "model.json").read_text()), data, folder / "proof"


def judge(document, data, proof, folder):
    (folder / "lie.json").write_text(json.dumps(document))
    try:
        return verdict(verify(folder / "lie.json", data, proof))
    except TrainerError:
        return "refused"


def places(value, path=()):
    """Yield the places of numbers and texts in a document; of lists only the first two entries."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else list(enumerate(value))[:2]:
            yield from places(inner, (*path, key))
    elif path:
        yield path


def changed_at(document, changes):
    """Return the document with new values at some places."""
    changed = copy.deepcopy(document)
    for path, value in changes.items():
        holder = changed
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = value
    return changed


MONEY = ("costs", "column_prices", "weights", "goal")
INTERVALS = ("cost_interval", "saved_interval", "interval")


def single_lies(document):
    """Yield lies in one member about money, goals, weights, and the rows of training and of folds."""
    for path in places(document):
        top, *rest = path
        is_money = top == "certificate" and rest[0] in MONEY
        is_number = top == "metrics" or (top == "rows" and rest[0] in ("costs", "weights", "used"))
        if not (is_money or is_number):
            continue
        old = document
        for key in path:
            old = old[key]
        is_near = any(name in rest for name in INTERVALS)  # NumPy versions draw other samples
        if isinstance(old, bool) or old is None:
            continue
        if isinstance(old, str):
            values = [old + "1", "7", None] if rest[-1] != "positive" else ["a", None]
        else:
            values = [-1 - abs(old), old * 2 + 3] if is_near else [old + 1, old - 1, old + 0.01, -old - 1, None]
        for value in values:
            yield path, {path: value}


def joint_lies(name, document):
    """Yield lies in several members that agree with each other."""
    certificate = document["certificate"]
    better = {("certificate", key): certificate[key] + 0.01 for key in ("objective", "bound")}
    yield "objective and bound", better
    yield "bound", {("certificate", "bound"): certificate["bound"] - 0.01, ("certificate", "gap"): 0.0}
    if costs := certificate.get("costs"):
        money = ("certificate", "costs")
        yield "cheaper tree", better | {(*money, key): costs[key] * 0.9 for key in ("cost", "cost_per_row", "least")}
        yield "dearer constant", {(*money, "best_constant", "cost"): costs["best_constant"]["cost"] * 1.1}
        yield "coarser step", {(*money, "step"): "1", (*money, "rounding_error"): 0.0}
        yield "finer step", {(*money, "step"): "1/1000", (*money, "rounding_error"): 0.0}
        yield "no floor", {(*money, "floor"): costs["floor"] + 0.5}
        yield "another unit", {(*money, "unit"): "USD"}
        yield "no costs", {money: None}
        yield "no costs anywhere", {money: None, ("parameters", "costs"): ""}
        text = document["parameters"]["costs"]
        if text != "rows":
            yield "cheaper errors", {("parameters", "costs"): text.replace("5", "4", 1)}
            stated = copy.deepcopy(costs["costs"])
            stated["a"]["b"] = "4"
            yield (
                "cheaper errors in both",
                {
                    ("parameters", "costs"): text.replace("5", "4", 1),
                    (*money, "costs"): stated,
                },
            )
            swapped = {"a": dict(reversed(list(stated["b"].items()))), "b": stated["a"]}
            yield "swapped rows of the matrix", {(*money, "costs"): swapped}
    if name == "rows":
        cells = document["rows"]["costs"]
        yield "costs of two rows swapped", {("rows", "costs"): [cells[1], cells[0], *cells[2:]]}
        yield "rewards for costs", {("rows", "costs"): [[5 - a for a in row] for row in cells]}
        yield "negative cost", {("rows", "costs"): [[-1.0, 0.0], *cells[1:]]}
    if name == "prices":
        prices = ("certificate", "column_prices")
        yield "no prices", {prices: None, ("parameters", "column_price"): ""}
        yield "one price less", {("parameters", "column_price"): "length=0.4"}
        yield "more columns", {("parameters", "max_columns"): 2}
        yield "no limit of columns", {("parameters", "max_columns"): None}
    if name == "f1":
        yield "another goal", {("parameters", "goal"): "mcc", ("certificate", "goal", "maximise"): "mcc"}
        yield "no goal", {("parameters", "goal"): "accuracy", ("certificate", "goal"): None}
        yield "another class", {("parameters", "positive"): "a", ("certificate", "goal", "positive"): "a"}
        yield "smaller leaves", {("parameters", "min_leaf"): 1}
        yield "larger leaves", {("parameters", "min_leaf"): 40}
    if name == "weights":
        weights = document["rows"]["weights"]
        yield "weights swapped", {("rows", "weights"): [weights[1], weights[0], *weights[2:]]}
        yield "all weigh one", {("rows", "weights"): [1] * len(weights)}
        yield "parts of weights", {("rows", "weights"): [weight + 0.01 for weight in weights]}
        yield "another step", {("rows", "weight", "step"): "1/2"}
    if "held_out" in document["rows"]:
        signs = document["rows"]["held_out"]
        yield "others held out", {("rows", "held_out"): signs[3:] + signs[:3]}
    if folds := document["rows"].get("folds"):
        yield "other folds", {("rows", "folds"): folds[1:] + folds[0]}
        if by_fold := document["metrics"]["cross_validation"].get("by_fold"):
            yield "fewer folds", {("metrics", "cross_validation", "by_fold"): by_fold[:-1]}
    if single := certificate.get("single_question"):
        yield "single question", {("certificate", "single_question", "correct"): single["n"] + 1}
        yield "rows of the question", {("certificate", "single_question", "n"): single["n"] + 1}


def test_lies_in_several_members_are_not_confirmed(files, tmp_path):
    name, document, data, proof = files
    assert judge(document, data, proof, tmp_path) == "proved"
    lies = list(joint_lies(name, document))
    found = {words: judge(changed_at(document, changes), data, proof, tmp_path) for words, changes in lies}
    assert [words for words, said in found.items() if said == "proved"] == []
    assert sum(said in ("refuted", "refused") for said in found.values()) > len(lies) / 2


@pytest.mark.slow
def test_lies_in_one_member_are_refuted(files, tmp_path):
    _, document, data, proof = files
    lies = list(single_lies(document))
    said = [(path, value, judge(changed_at(document, value), data, proof, tmp_path)) for path, value in lies]
    assert [lie for lie in said if lie[2] not in ("refuted", "refused")] == []
