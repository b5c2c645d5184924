"""The checker also verifies claims in the evidence: costs in rows, frontiers and their trees."""

from __future__ import annotations

import copy

import pytest

from tests.trainer.check.recount.files import findings, trained
from trainer.check.recount import verdict


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def part(document, kind):
    return next(e for e in document["certificate"]["evidence"] if e["kind"] == kind)


@pytest.mark.parametrize("name", ["cost", "bound"])
@pytest.mark.parametrize(("method", "kind"), [("exact", "dynamic-programming"), ("exact-numeric", "interval-pruning")])
def test_costs_in_rows_are_objective_and_bound(folder, tmp_path, method, kind, name):
    document, data = trained(folder, method)
    assert verdict(findings(document, data, tmp_path)) == "proved"
    part(document, kind)[name] = "1/2"
    assert {f.claim for f in findings(document, data, tmp_path) if f.verdict == "refuted"} == {kind}


@pytest.mark.parametrize("leaves", [2, 3, 4])
def test_a_frontier_of_leaves_is_searched_again(folder, tmp_path, leaves):
    document, data = trained(folder, "exact", max_leaves=leaves)
    found = findings(document, data, tmp_path)
    assert verdict(found) == "proved", [f for f in found if f.role == "optimality"]
    points = part(document, "leaf-frontier")["points"]
    points[-1]["correct"] -= 1
    points[-1]["bound"] -= 1
    assert "leaf-frontier" in {f.claim for f in findings(document, data, tmp_path) if f.verdict == "refuted"}
    points[-1]["bound"] += 2
    points[-1]["correct"] += 2
    assert "leaf-frontier" in {f.claim for f in findings(document, data, tmp_path) if f.verdict == "refuted"}


def test_trees_of_a_frontier_are_run_again(folder, tmp_path):
    document, data = trained(folder, "cut-h", pareto=True, time_limit=3.0)
    lines = {f.claim: f.verdict for f in findings(document, data, tmp_path)}
    assert lines["leaf-frontier"] == "cannot be judged"
    assert verdict(findings(document, data, tmp_path)) == "recounted"
    point = next(p for p in part(document, "leaf-frontier")["points"] if p.get("tree"))
    leaf = next(v for v in reversed(point["tree"]) if "class" in v)
    leaf["counts"][0] += 1
    lines = {f.claim: f.verdict for f in findings(document, data, tmp_path)}
    assert lines["leaf-frontier"] == "refuted"
    leaf["counts"][0] -= 1
    leaf["class"] = next(name for name in document["classes"] if name != leaf["class"])
    lines = {f.claim: f.verdict for f in findings(document, data, tmp_path)}
    assert lines["leaf-frontier"] == "refuted"


def test_optimal_trees_are_counted_and_listed_ones_run(folder, tmp_path):
    document, data = trained(folder, "exact", optimal_trees=5)
    lines = {f.claim: f.verdict for f in findings(document, data, tmp_path)}
    assert lines["bound"] == lines["optimal-trees"] == "proved"
    assert lines["listed trees"] == "recounted"
    assert verdict(findings(document, data, tmp_path)) == "proved"
    own = part(document, "optimal-trees")
    true = copy.deepcopy(own)
    first, *rest = true["listed"]
    for claim, lie in (
        ("optimal-trees", {"count": str(int(own["count"]) + 1)}),
        ("optimal-trees", {"count": "7" + own["count"]}),
        ("optimal-trees", {"listed": rest}),
        ("optimal-trees", {"count": None}),
        ("listed trees", {"listed": [first, first, *rest[1:]]}),
        ("listed trees", {"listed": [_leaf(document), *rest]}),
        ("listed trees", {"listed": [[{**first[0], "counts": [1, 1, 1]}, *first[1:]], *rest]}),
        ("listed trees", {"listed": [_other_class(first, document), *rest]}),
    ):
        own.update(copy.deepcopy(true) | lie)
        assert {f.claim: f.verdict for f in findings(document, data, tmp_path)}[claim] == "refuted", lie
    own.update(true | {"listed": [None] * len(true["listed"])})  # older files list trees in words
    assert {f.claim: f.verdict for f in findings(document, data, tmp_path)}["listed trees"] == "cannot be judged"
    assert verdict(findings(document, data, tmp_path)) == "recounted"


@pytest.mark.parametrize(
    ("asked", "claim"),
    [
        ({"max_columns": 0}, "refuted"),
        ({"max_columns": 1}, "refuted"),
        ({"max_leaves": 2}, "refuted"),
        ({"recall": "a: 0.9"}, "refuted"),
        ({"forbidden_pairs": "length + colour"}, "cannot be judged"),
        ({"column_price": "length=0.05"}, "refuted"),
        ({"goal": "f1"}, "refuted"),
    ],
)
def test_count_of_trees_beside_other_settings_is_no_proof(folder, tmp_path, asked, claim):
    """The search counts optimal trees without these settings, so that its number says nothing."""
    document, data = trained(folder, "exact", depth=2, bins=4, **asked)
    assert verdict(findings(document, data, tmp_path)) == "proved"
    document["parameters"]["optimal_trees"] = 1
    own = {"kind": "optimal-trees", "listed": [document["nodes"]]}
    document["certificate"]["evidence"].append(own)
    for count in range(1, 9):
        own["count"] = str(count)
        said = findings(document, data, tmp_path)
        assert claim in {f.verdict for f in said if f.claim in ("optimal-trees", "column prices")}, count


def _leaf(document):
    counts = document["nodes"][0]["counts"]
    return [{"id": 0, "counts": counts, "class": document["classes"][counts.index(max(counts))]}]


def _other_class(tree, document):
    """Return the tree with another class in its last leaf."""
    *others, leaf = tree
    return [*others, {**leaf, "class": next(name for name in document["classes"] if name != leaf["class"])}]
