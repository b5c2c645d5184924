"""False files of each kind and method are refuted, and true files are not."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from tests.trainer.check.recount.files import OBLIQUE, TWO_CLASSES, findings, trained
from trainer.check.recount import verdict, verify
from trainer.check.recount.structure import LEAST
from trainer.data.reader import load
from trainer.errors import ModelFileError
from trainer.registry import METHODS, get
from trainer.training.run import TrainRequest, train

ALL = [m.id for m in METHODS]
TREES = [m.id for m in METHODS if m.guarantee == "tree"]
FAST = {"time_limit": 2.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def assert_refuted(document, data, tmp_path, claim=None):
    found = findings(document, data, tmp_path)
    assert verdict(found) == "refuted", [(f.claim, f.verdict, f.detail) for f in found]
    assert claim is None or claim in {f.claim for f in found if f.verdict == "refuted"}, found
    return found


def one_leaf(document):
    """Return the document with a tree of one leaf instead of its tree, and all numbers that follow from it."""
    counts = document["nodes"][0]["counts"]
    k = counts.index(max(counts))
    n = sum(counts)
    document["nodes"] = [{"id": 0, "counts": counts, "class": document["classes"][k]}]
    document.pop("training_rows", None)  # these refer to columns that the tree no longer tests
    confusion = [[c if j == k else 0 for j in range(len(counts))] for c in counts]
    document["metrics"] = {"train": {"n": n, "correct": counts[k], "accuracy": counts[k] / n, "confusion": confusion}}
    certificate = document["certificate"]
    objective = float(Fraction(counts[k], n) - Fraction(certificate["leaf_penalty"]))
    certificate |= {"correct": counts[k], "leaves": 1, "depth": 0, "objective": objective}
    if certificate.get("splits") is not None:
        certificate |= {"splits": 0, "splits_proved": 0}
    return document


def called_optimal(document):
    """Return the document with its bound lowered to the objective."""
    certificate = document["certificate"]
    certificate |= {"bound": certificate["objective"], "gap": 0.0, "status": "optimal", "evidence": [], "unproved": ""}
    return document


@pytest.mark.parametrize("method", ALL)
def test_a_bad_tree_called_optimal(folder, tmp_path, method):
    document, data = trained(folder, method, **FAST)
    assert verdict(findings(document, data, tmp_path)) in ("proved", "recounted")
    assert_refuted(called_optimal(one_leaf(document)), data, tmp_path, "bound" if method in TREES else "status")


@pytest.mark.parametrize("method", [m for m in TREES if m != "odt"])
def test_a_time_limit_called_optimal(folder, tmp_path, method):
    document, data = trained(folder, method, time_limit=0)
    if document["certificate"]["status"] == "time_limit":
        # the bound may be reached by chance
        assert verdict(findings(document, data, tmp_path)) in ("recounted", "proved")
    document = one_leaf(document)
    assert_refuted(called_optimal(document), data, tmp_path, "bound")


def test_one_leaf_and_any_gap(folder, tmp_path):
    document, data = trained(folder, "exact")
    document = one_leaf(document)
    certificate = document["certificate"]
    certificate |= {"bound": 1.0, "gap": 1 / certificate["objective"] - 1, "mip_gap": 1, "status": "optimal"}
    assert_refuted(document, data, tmp_path, "status")
    document["parameters"]["mip_gap"] = 1
    assert_refuted(document, data, tmp_path, "method")


@pytest.mark.parametrize("method", TREES)
def test_optimal_without_a_bound(folder, tmp_path, method):
    document, data = trained(folder, method, **FAST)
    document["certificate"] |= {"bound": None, "gap": None, "status": "optimal"}
    assert_refuted(document, data, tmp_path, "status")


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("test_share", [0.0, 0.25])
def test_numbers_and_names_that_are_not_true(folder, tmp_path, method, test_share):
    document, data = trained(folder, method, test_share=test_share, **FAST)
    text = json.dumps(document)
    n = document["certificate"]["n"]
    other = "cart" if method != "cart" else "exact"
    for claim, edit in {
        "n": lambda d: d["certificate"].update(n=n + 1),
        "data": lambda d: d.update(fingerprint="0" * 64),
        "method": lambda d: d.update(method=other),
        "status": lambda d: d["certificate"].update(status="OPTIMAL!"),
        "metrics train": lambda d: d["metrics"]["train"].update(correct=n + 1),
        "scope": lambda d: d["certificate"].update(scope="all trees"),
        "categories and classes": lambda d: d.update(classes=d["classes"][:-1]),
    }.items():
        changed = json.loads(text)
        edit(changed)
        if claim == "categories and classes":
            found = findings(changed, data, tmp_path)
            assert verdict(found) == "refuted"
        else:
            assert_refuted(changed, data, tmp_path, claim)
    changed = json.loads(text)
    changed["method"] = changed["certificate"]["method"] = other
    assert_refuted(changed, data, tmp_path)
    changed = json.loads(text)
    changed["parameters"]["class_weight"] = "balanced"
    assert_refuted(changed, data, tmp_path)


def test_classes_left_out_and_the_fingerprint_made_to_fit(folder, tmp_path):
    """The file has two of three classes, and a tree and a fingerprint of their rows alone.

    The third class is still in the file of rows.
    """
    from trainer.data.reader import load
    from trainer.training.run import TrainRequest, train

    _, data = trained(folder, "exact")
    part = tmp_path / "part.csv"
    part.write_text("\n".join(line for line in data.read_text().splitlines() if not line.endswith(",c")) + "\n")
    table, labels, *_ = load(part, target="class")
    document = json.loads(json.dumps(train(TrainRequest(table=table, labels=labels, method="exact")).model.to_json()))
    assert_refuted(document, data, tmp_path, "categories and classes")
    document["rows"]["used"] += 1
    del document["rows"]
    assert_refuted(document, data, tmp_path, "categories and classes")


RESTRICTED = {
    "max_leaves": 2, "max_columns": 1, "recall": "a: 0.5", "forbidden_pairs": "length + width", "forbidden": "flag",
    "monotone": "length up", "min_leaf": 5,
}  # fmt: skip
BROKEN = {
    "max_leaves": 1, "max_columns": 0, "recall": "a: 1; b: 1", "forbidden": "length; width; colour; flag", "min_leaf": 45,
}  # fmt: skip


@pytest.mark.parametrize("method", [m for m in ALL if m not in TWO_CLASSES])
def test_broken_or_unsearched_restriction_is_refuted(folder, tmp_path, method):
    document, data = trained(folder, method, **FAST)
    for name, value in BROKEN.items():
        if get(method).parameter(name) is not None:
            changed = json.loads(json.dumps(document))
            changed["parameters"][name] = value
            assert_refuted(changed, data, tmp_path, "scope")
    for name, value in RESTRICTED.items():
        if get(method).parameter(name) is not None:
            changed = json.loads(json.dumps(document))
            changed["parameters"][name] = value
            assert_refuted(changed, data, tmp_path)


@pytest.mark.parametrize("method", ["cart", "oc1", "bivariate"])
@pytest.mark.parametrize(
    ("name", "kept", "broken", "words"),
    [
        ("min_node", 6, 49, "no question to fewer than {} rows"),
        ("min_gain", 0.02, 0.3, "each question lowering the impurity by at least {} of the rows"),
    ],
)
def test_tree_beyond_its_growth_limit(folder, tmp_path, method, name, kept, broken, words):
    """The scope states the limit, too, so only the tree can reveal the lie."""
    document, data = trained(folder, method, **{name: kept})
    assert len(document["nodes"]) > 1
    lines = {f.claim: f.verdict for f in findings(document, data, tmp_path)}
    assert lines[name] == lines["scope"] == "recounted"
    document["parameters"][name] = broken
    certificate = document["certificate"]
    assert words.format(kept) in certificate["scope"]
    certificate["scope"] = certificate["scope"].replace(words.format(kept), words.format(broken))
    found = assert_refuted(document, data, tmp_path, name)
    assert [f.claim for f in found if f.verdict == "refuted"] == [name]


SEARCHED = [
    (method, {name: value})
    for method in ("exact", "bendoct", "flowoct")
    for name, value in RESTRICTED.items()
    if get(method).parameter(name) is not None
]


@pytest.mark.parametrize(("method", "asked"), [*SEARCHED, ("bendoct", {"max_leaves": 3, "recall": "a: 0.6; b: 0.3"})])
def test_bound_below_restricted_optimum_is_refuted(folder, tmp_path, method, asked):
    document, data = trained(folder, method, leaf_penalty=0.01, **asked)
    assert document["certificate"]["status"] == "optimal"
    assert verdict(findings(document, data, tmp_path)) == "proved"
    certificate = document["certificate"]
    worse = one_leaf(document)
    if not (asked.get("recall") or certificate["depth"] > 0):
        assert_refuted(called_optimal(worse), data, tmp_path)


@pytest.mark.parametrize("method", ["exact-numeric", "binoct", "odt", "oct", "bendoct-accelerated"])
def test_plain_search_agrees_with_each_method(folder, tmp_path, method):
    from trainer.check.recount.search import small
    from trainer.check.recount.table.rows import load as read
    from trainer.data.reader import load

    document, data = trained(folder, method)
    found, _ = small.best(document, read(data, document).training)
    assert found is not None
    assert found.is_whole
    assert float(found.value) == pytest.approx(document["certificate"]["objective"], abs=1e-9)
    assert verdict(findings(document, data, tmp_path)) == "proved"
    assert load(data, target="class")


@pytest.mark.parametrize("method", ["bivariate"])
def test_a_worthless_split_that_names_itself_the_best(folder, tmp_path, method):
    document, data = trained(folder, method)
    document.pop("training_rows", None)  # these refer to columns that the tree no longer tests
    root = document["nodes"][0]
    assert root["impurity_bound"] is not None
    lines = data.read_text().splitlines()[1:]
    flags = [(line.split(",")[3] == "0", line.split(",")[-1]) for line in lines]
    sides = [[sum(f == left and c == k for f, c in flags) for k in document["classes"]] for left in (True, False)]

    def gini(counts):
        return sum(counts) - sum(c * c for c in counts) / sum(counts)

    heavier = {"missing": "left" if sum(sides[0]) >= sum(sides[1]) else "right", "missing_seen": False}
    value = gini(sides[0]) + gini(sides[1])
    assert value > root["impurity"] + 1e-6
    document["nodes"] = [
        root | {"split": {"kind": "threshold", "feature": "flag", "threshold": 0.5} | heavier, "left": 1, "right": 2,
                "impurity": value, "impurity_bound": value},
        *({"id": i + 1, "counts": s, "class": document["classes"][s.index(max(s))]} for i, s in enumerate(sides)),
    ]  # fmt: skip
    correct = sum(max(s) for s in sides)
    n = len(flags)
    document["metrics"] = {}
    document["certificate"] |= {
        "correct": correct, "leaves": 2, "depth": 1, "objective": correct / n, "splits": 1, "splits_proved": 1,
    }  # fmt: skip
    assert_refuted(document, data, tmp_path, "splits")


def test_impurities_are_counted_again(folder, tmp_path):
    document, data = trained(folder, "bivariate")
    assert verdict(findings(document, data, tmp_path)) in ("proved", "recounted")
    document["nodes"][0]["impurity"] -= 0.5
    document["nodes"][0]["impurity_bound"] -= 0.5
    assert_refuted(document, data, tmp_path, "impurity")
    assert OBLIQUE


@pytest.mark.parametrize(("method", "name"), [("exact", "bins"), ("odt", "bins"), ("exact", "depth")])
def test_huge_numbers_are_rejected(folder, tmp_path, method, name):
    document, data = trained(folder, method, **FAST)
    document["parameters"][name] = 10**20
    with pytest.raises(ModelFileError, match=f"'{name}' is over"):
        findings(document, data, tmp_path)


def test_scope_with_huge_number_of_bins(folder, tmp_path):
    document, data = trained(folder, "odt", **FAST)
    certificate = document["certificate"]
    certificate["scope"] = certificate["scope"].replace("at most 10 bins", f"at most {10**20} bins")
    assert_refuted(document, data, tmp_path, "scope")


@pytest.mark.parametrize("method", ["exact", "flowoct", "binoct", "odt"])
def test_a_tree_of_questions_that_are_not_of_its_space(folder, tmp_path, method):
    """The scope states fewer bins, too.

    The tree is better than all trees of that space, and its bound holds, but it is outside.
    """
    document, data = trained(folder, method, bins=10, **FAST)
    assert "questions" in {f.claim for f in findings(document, data, tmp_path) if f.verdict == "recounted"}
    document["parameters"]["bins"] = 3
    words = next(f.detail for f in assert_refuted(document, data, tmp_path, "scope") if f.claim == "scope")
    told = words.partition("The parameters ask for: ")[2].partition(". The file says")[0]
    if method == "odt":
        told = document["certificate"]["scope"].replace("at most 10 bins", "at most 3 bins")
    document["certificate"]["scope"] = told
    found = assert_refuted(document, data, tmp_path, "questions")
    assert [f.claim for f in found if f.verdict == "refuted"] == ["questions"]


def test_scope_in_words_of_checker_for_unreadable_one(folder, tmp_path):
    document, data = trained(folder, "odt", **FAST)
    document["certificate"]["scope"] = "all trees with another topology"
    found = assert_refuted(document, data, tmp_path, "scope")
    told = next(f.detail for f in found if f.claim == "scope").partition("ask for: ")[2].partition(". The file says")[0]
    document["certificate"]["scope"] = told
    assert_refuted(document, data, tmp_path, "scope")


@pytest.mark.parametrize("method", ["exact", "exact-numeric", "odt"])
def test_questions_on_many_categories_belong_to_space(tmp_path, method):
    """Twelve categories have more subsets than a second search would try, and `odt` may use any of them."""
    draw = np.random.default_rng(3)
    places = draw.integers(12, size=90)
    data = tmp_path / "rows.csv"
    data.write_text("\n".join(["place,class", *(f"p{k},{'yn'[k % 2]}" for k in places)]) + "\n")
    table, labels, *_ = load(data, target="class")
    model = train(TrainRequest(table=table, labels=labels, method=method, parameters={"depth": 2} | FAST)).model
    found = findings(json.loads(json.dumps(model.to_json())), data, tmp_path)
    assert "questions" in {f.claim for f in found}
    assert verdict(found) in ("proved", "recounted"), [f for f in found if f.verdict == "refuted"]


def test_tree_worse_by_one_light_row_is_not_optimal(tmp_path):
    """Its gap is 4e-9, which the decimals of a file hardly distinguish from zero."""
    data = tmp_path / "rows.csv"
    proof = tmp_path / "proof.gz"
    data.write_text("x,class\n0,a\n1,b\n2,c\n")
    table, labels, *_ = load(data, target="class")
    weights = np.array([150_000_000, 100_000_000, 1])

    def made(depth, proof=None):
        asked = {"depth": depth, "binarise": "all-thresholds"}
        request = TrainRequest(
            table=table, labels=labels, method="exact", parameters=asked, weights=weights, proof=proof
        )
        return json.loads(json.dumps(train(request).model.to_json()))

    best = made(2, proof)
    worse = made(1)
    claim = worse["certificate"]
    objective = worse["certificate"]["objective"]
    worse["parameters"]["depth"], claim["scope"], claim["evidence"] = 2, best["certificate"]["scope"], []
    model = tmp_path / "model.json"
    lines = []
    for document, bound in ((best, 1.0), (worse, 1.0), (worse, objective)):
        document["certificate"] |= {"bound": bound, "gap": bound / document["certificate"]["objective"] - 1}
        model.write_text(json.dumps(document))
        found = [verify(model, data, proof), verify(model, data)]
        lines.append([next((f.verdict for f in own if f.claim == "optimal"), verdict(own)) for own in found])
    assert objective < 1
    assert lines[0] == ["proved", "proved"]
    assert set(lines[1] + lines[2]) <= {"cannot be judged", "refuted"}, lines


def test_least_values_of_parameters_are_those_of_the_methods():
    own: dict[str, float] = {"folds": 0, "test_share": 0}
    for method in METHODS:
        for parameter in method.parameters:
            if parameter.minimum is not None and parameter.name != "memory_limit":
                own[parameter.name] = min(parameter.minimum, own.get(parameter.name, parameter.minimum))
    assert own == {name: least for least, names in LEAST.items() for name in names.split()}


@pytest.mark.parametrize("lie", [{"min_leaf": 0}, {"folds": -1}, {"time_limit": -1}, {"leaf_penalty": -0.01}])
def test_file_with_a_parameter_below_its_least_is_damaged(tmp_path, lie):
    document, data = trained(tmp_path, "exact")
    document["parameters"] |= lie
    (path := tmp_path / "model.json").write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="and the least is"):
        verify(path, data)
