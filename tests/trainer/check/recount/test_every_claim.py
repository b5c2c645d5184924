"""The checker has a line for each claim that a method, a run or the workbench can write."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction

import pytest

from tests.trainer.check.recount.files import findings, trained
from tests.trainer.check.recount.search_settings import OF_THE_SEARCH
from trainer.certificate import Certificate, Evidence
from trainer.check.recount import verdict
from trainer.data.reader import load
from trainer.registry import METHODS
from trainer.training.run import TrainRequest
from trainer.tree.file import ModelFile
from trainer.workbench.requests import WorkbenchSession

TOLD = "how it was made"
SCOPE = "scope"
PRICES = "what is maximised"
BEST = "fewest leaves"
# Part of a file → line of the checker about it. The line is "" for a name or the description of a column, which claims
# nothing about the tree.
PARTS = {
    "format": "", "format_version": "", "version": "", "name": "", "method": "method", "target": "categories and classes",
    "classes": "categories and classes", "columns": "data", "nodes": "counts", "parameters": SCOPE, "metrics": "metrics train",
    "fingerprint": "data", "certificate": "objective", "rows": "rows", "reading": "lines left out", "contract": "", "sizes": "sizes",
}  # fmt: skip
CERTIFICATE = {
    "method": "method", "guarantee": "method", "status": "status", "objective": "objective", "bound": "bound", "gap": "gap",
    "mip_gap": "status", "scope": SCOPE, "splits_proved": "splits", "splits": "splits", "subtrees_proved": "subtrees", "subtrees": "subtrees", "correct": "correct", "n": "n",
    "leaves": "leaves", "depth": "depth", "leaf_penalty": PRICES, "coefficient_penalty": PRICES, "goal": "required shares",
    "nodes": TOLD, "cuts": TOLD, "seconds": TOLD, "solver": TOLD, "solver_version": TOLD, "warm_start_objective": TOLD,
    "unproved": TOLD, "note": TOLD, "weight_error": TOLD, "unseen_looks": TOLD, "single_question": TOLD, "wishes": "wish ", "optimum": "optimum without wishes",
    "costs": "costs", "column_prices": "column prices", "weights": "weights", "class_weights": "weights of classes", "counts": "",
}  # fmt: skip
OWN_LINE = {
    "dynamic-programming",
    "interval-pruning",
    "wishes",
    "leaf-frontier",
    "coefficient-frontier",
    "frontier",
    "subtrees",
}
EVIDENCE = {
    str(kind): str(kind) if str(kind) in OWN_LINE | {"optimal-trees"} else "evidence"
    for kind in [*Evidence, "distance"]
}
PARAMETERS = {
    "depth": "structure", "bins": SCOPE, "extra_thresholds": SCOPE, "binarise": SCOPE, "topology": SCOPE, "select": SCOPE, "big_m": SCOPE, "scaling": SCOPE,
    "balanced": SCOPE, "height": SCOPE, "min_node": "min_node", "min_gain": "min_gain", "max_leaves": "max_leaves", "min_leaf": "min_leaf",
    "max_columns": "max_columns", "max_card": "max_card", "forbidden": "forbidden", "forbidden_pairs": "forbidden_pairs ",
    "recall": "recall ", "monotone": "monotone ", "fairness": "fairness", "leaf_penalty": PRICES, "paper_lambda": PRICES,
    "coefficient_penalty": PRICES, "class_weight": "counts", "goal": PRICES, "sensitivity": "required shares", "specificity": "required shares",
    "negative_weight": "required shares", "mip_gap": "status", "impurity": "impurity", "then_fewest": BEST,
    "test_share": "rows held out", "folds": "folds", "unseen_missing": "empty cells", "costs": "costs", "cost_unit": "costs",
    "column_price": "column prices",
}  # fmt: skip


def test_each_part_that_a_file_can_have_is_listed():
    parts = {field.name for field in dataclasses.fields(ModelFile)} - {"tree", "class_type"}
    assert parts | {"format", "format_version", "classes", "columns", "nodes", "contract"} == set(PARTS)
    kept = {field.name for field in dataclasses.fields(Certificate)} | {
        "wishes",
        "optimum",
        "unseen_looks",
        "single_question",
    }
    assert kept - {"evidence"} == set(CERTIFICATE)


def test_each_parameter_has_finding_or_concerns_search_only():
    declared = {p.name for m in METHODS for p in m.parameters}
    assert declared - set(PARAMETERS) - OF_THE_SEARCH == set()
    assert OF_THE_SEARCH & set(PARAMETERS) == set()


CASES = [
    *((m.id, {"time_limit": 2.0}, 0.25 if m.id in ("cart", "exact") else 0.0) for m in METHODS),
    ("exact", {"max_leaves": 3, "leaf_penalty": 0.01, "min_leaf": 2, "forbidden": "flag"}, 0.0),
    ("exact", {"recall": "a: 0.5", "forbidden_pairs": "length+width", "max_columns": 2, "optimal_trees": 0}, 0.0),
    ("exact", {"optimal_trees": 3, "class_weight": "balanced"}, 0.0),
    ("exact", {"costs": "a>b=5; b>c=0.2*length", "cost_unit": "EUR", "leaf_penalty": 0.01}, 0.25),
    ("exact", {"column_price": "length=0.01; colour=0.02"}, 0.0),
    ("exact", {"goal": "f1", "positive": "a", "leaf_penalty": 0.01}, 0.0),
    ("exact", {"monotone": "length up", "max_leaves": 4}, 0.0),
    ("exact-numeric", {"fairness": "opportunity", "fairness_column": "flag", "fairness_delta": 0.1}, 0.0),
    ("flowoct", {"monotone": "length up", "time_limit": 3.0}, 0.0),
    ("bendoct", {"fairness": "opportunity", "fairness_column": "flag", "fairness_delta": 0.4, "time_limit": 3.0}, 0.0),
    ("cut-h", {"then_fewest": True, "first_trees": "none", "search_seconds": 0.5}, 0.0),
    ("cutw-h", {"pareto": True, "time_limit": 2.0}, 0.0),
    ("odt", {"frontier": True, "positive": "b", "sensitivity": 0.5, "time_limit": 2.0}, 0.0),
    ("odt", {"max_card": 1, "topology": "auto", "time_limit": 2.0}, 0.0),
]


def empty(value):
    return value in (None, "", "none", "0", 0, False, [], {})


def wanted(document):
    """Yield the checker lines that this file needs, for each part that claims something."""
    certificate = document["certificate"]
    given = document["parameters"]
    for name in document:
        yield f"part {name}", PARTS[name]
    for name, value in certificate.items():
        if name != "evidence" and not empty(value):
            yield f"certificate {name}", CERTIFICATE[name]
    for part in certificate.get("evidence") or ():
        yield f"evidence {part['kind']}", EVIDENCE[part["kind"]]
    neutral = {"min_leaf": 1, "min_node": 2, "negative_weight": "1", "pruning_folds": given.get("pruning_folds")}
    if not any("impurity" in node for node in document["nodes"]):
        neutral["impurity"] = given.get("impurity")  # it says how splits were chosen, but no split states its impurity
    if certificate["status"] != "optimal":
        neutral["then_fewest"] = given.get("then_fewest")  # nothing is claimed about smaller trees
    for name in set(given) & set(PARAMETERS):
        if not empty(given[name]) and str(given[name]) != str(neutral.get(name)):
            yield f"parameter {name}", PARAMETERS[name]
    for name in document["metrics"]:
        yield f"metrics {name}", f"metrics {name}"


def without_a_line(document, said):
    found = {f.claim for f in said}
    return [
        place
        for place, line in wanted(document)
        if line and line not in found and not (line.endswith(" ") and any(c.startswith(line) for c in found))
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@pytest.mark.slow
@pytest.mark.parametrize(("method", "asked", "share"), CASES)
def test_every_claim_of_a_method_has_a_line(folder, tmp_path, method, asked, share):
    document, data = trained(folder, method, test_share=share, folds=2 if share else 0, **asked)
    said = findings(document, data, tmp_path)
    assert verdict(said) in ("proved", "recounted"), [f for f in said if f.verdict == "refuted"]
    assert without_a_line(document, said) == []


def test_steps_and_units_of_columns_are_counted_again(folder, tmp_path):
    document, data = trained(folder, "cart", test_share=0.0, folds=0)
    said = findings(document, data, tmp_path)
    assert [f.claim for f in said if "column" in f.claim and f.verdict != "recounted"] == []
    numeric = [column for column in document["columns"] if "decimals" in column]
    assert numeric
    for column in numeric:
        for name, lie in (("decimals", column["decimals"] + 1), ("change_unit", 10 * column["change_unit"])):
            told = {**column, name: lie}
            columns = [told if other is column else other for other in document["columns"]]
            refuted = [f for f in findings({**document, "columns": columns}, data, tmp_path) if f.verdict == "refuted"]
            assert refuted[0].claim == "columns"
            # ranges are rounded by the unit, so the contract may be refuted, too
            assert {f.claim for f in refuted} <= {"columns", "contract"}
            assert f"'{column['name']}' states {name}" in refuted[0].detail


@pytest.mark.parametrize("lie", [[0.5, 9.0], [-1e6, 1e6], [1e6, 2e6]], ids=["too narrow", "too wide", "elsewhere"])
def test_range_that_training_rows_do_not_have_is_refuted(folder, tmp_path, lie):
    document, data = trained(folder, "cart", test_share=0.0, folds=0)
    contract = document["contract"]
    name = next(name for name, column in contract["columns"].items() if "range" in column)
    columns = contract["columns"] | {name: {"range": lie}}
    said = findings({**document, "contract": contract | {"columns": columns}}, data, tmp_path)
    assert [f.claim for f in said if f.verdict == "refuted"] == ["contract"]


@pytest.mark.parametrize(
    "lie",
    [
        {"target": {"type": "int"}},
        {"target": {"type": "words"}},
        {"columns": {"length": {"unknown": "refuse"}}},
        {"columns": {"length": {"unknown": "perhaps"}}},
        {"columns": {"no such column": {}}},
        {"columns": []},
    ],
    ids=str,
)
def test_contract_that_the_table_does_not_have_is_refuted(folder, tmp_path, lie):
    document, data = trained(folder, "cart", test_share=0.0, folds=0)
    said = findings({**document, "contract": document["contract"] | lie}, data, tmp_path)
    assert [f.claim for f in said if f.verdict == "refuted"] == ["contract"]


@pytest.mark.parametrize("method", ["exact", "exact-numeric"])
def test_every_claim_of_the_workbench_has_a_line(folder, tmp_path, method):
    _, data = trained(folder, "exact", test_share=0.0)
    table, labels, *_ = load(data, target="class")
    session = WorkbenchSession(TrainRequest(table=table, labels=labels, method=method, parameters={"depth": 2}))
    monitor = session.monitor()
    asked = ["ask root width <= 2", "forbid y flag", "leaf n"] if method == "exact-numeric" else ["ask root width"]
    result = session.result(session.complete(asked, monitor), monitor, tmp_path / "proof.jsonl.gz")
    document = json.loads(json.dumps(result.model.to_json()))
    document["certificate"]["unseen_looks"] = 2
    said = findings(document, data, tmp_path)
    assert verdict(said) == "proved"
    assert without_a_line(document, said) == []
    assert {f"price of the wish '{w}'" for w in asked} <= {f.claim for f in said}
    # Without the constraints, the file would claim the best of all trees.
    certificate = document["certificate"]
    del certificate["wishes"]
    certificate["scope"] = certificate["scope"].split(", the wish")[0]
    better = Fraction(certificate["optimum"]["objective"]) > Fraction(certificate["objective"])
    assert verdict(findings(document, data, tmp_path)) == ("refuted" if better else "proved")


@pytest.mark.parametrize(
    ("edit", "claim"),
    [
        (lambda d: d.update(award="the best tree of the year"), "award"),
        (lambda d: d["certificate"].update(robust=True), "robust"),
        (lambda d: d["certificate"]["evidence"].append({"kind": "oracle"}), "evidence 'oracle'"),
        (lambda d: d["metrics"].update(tomorrow={"accuracy": 1.0}), "metrics tomorrow"),
    ],
)
def test_unknown_members_are_named_and_not_proved(folder, tmp_path, edit, claim):
    document, data = trained(folder, "exact")
    assert verdict(findings(document, data, tmp_path)) == "proved"
    edit(document)
    said = findings(document, data, tmp_path)
    assert [f.verdict for f in said if f.claim == claim] == ["cannot be judged"]
    assert verdict(said) == "recounted"
