"""The checker accepts true claims and refutes each kind of false claim."""

from __future__ import annotations

import csv
import io
import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from trainer.check.recount import refuted, verdict, verify
from trainer.data.reader import load
from trainer.errors import DataError, ModelFileError
from trainer.training.run import TrainRequest, save, train


def rows_text() -> str:
    rng = np.random.default_rng(3)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["length", "colour", "flag", "class"])
    for _ in range(80):
        length = round(rng.normal(), 2)
        colour = rng.choice(["red", "green", "blue"])
        flag = rng.integers(2)
        answer = "yes" if (length > 0) ^ (colour == "red" and flag == 1) ^ (rng.random() < 0.1) else "no"
        writer.writerow([length, colour, flag, answer])
    return out.getvalue()


@cache
def document(method: str, parameters: tuple[tuple[str, Any], ...]) -> str:
    """Return the model file of a training on the rows, with which many tests begin."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_text(rows_text())
        table, labels, *_ = load(path, target="class")
        result = train(TrainRequest(table=table, labels=labels, method=method, parameters=dict(parameters)))
        save(result.model, Path(folder) / "model.json")
        return (Path(folder) / "model.json").read_text()


@pytest.fixture
def trained(tmp_path):
    """Provide a function that returns the paths of a separate copy of the model and of its rows."""

    def make(method="exact", **parameters):
        model = tmp_path / "model.json"
        path = tmp_path / "rows.csv"
        path.write_text(rows_text())
        model.write_text(document(method, tuple(sorted(parameters.items()))))
        return model, path

    return make


def verdicts(model, data):
    return {f.claim: f.verdict for f in verify(model, data)}


@pytest.mark.parametrize("scheme", ["quantile-thresholds", "quantile-buckets"])
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_an_optimal_tree_is_verified_by_a_plain_search(trained, scheme, depth):
    paths = trained(depth=depth, leaf_penalty=0.01, binarise=scheme)
    found = verdicts(*paths)
    assert {"structure", "data", "counts", "correct", "leaves", "n", "depth", "objective", "gap"} <= set(found)
    assert {claim for claim, verdict in found.items() if verdict == "proved"} == {"bound", "optimal"}
    assert {claim for claim, verdict in found.items() if verdict != "recounted"} <= {
        "bound",
        "optimal",
        "how it was made",
    }
    assert verdict(verify(*paths)) == "proved"


def test_a_heuristic_tree_is_recounted(trained):
    paths = trained(method="cart", depth=3)
    found = verdicts(*paths)
    assert {"structure", "data", "counts", "correct", "objective"} <= set(found)
    assert {claim for claim, verdict in found.items() if verdict != "recounted"} <= {"how it was made", "evidence"}
    assert verdict(verify(*paths)) == "recounted"


def change(model, edit):
    document = json.loads(model.read_text())
    edit(document)
    model.write_text(json.dumps(document))


def lower_bound(certificate):
    certificate.update(bound=certificate["objective"] - 1e-8, gap=1e-8 / certificate["objective"])


@pytest.mark.parametrize(
    ("claim", "edit"),
    [
        ("objective", lambda d: d["certificate"].update(objective=d["certificate"]["objective"] + 0.01, bound=1.0)),
        ("correct", lambda d: d["certificate"].update(correct=d["certificate"]["correct"] + 1)),
        ("leaves", lambda d: d["certificate"].update(leaves=d["certificate"]["leaves"] - 1)),
        ("bound", lambda d: lower_bound(d["certificate"])),
        ("counts", lambda d: d["nodes"][-1]["counts"].__setitem__(0, d["nodes"][-1]["counts"][0] + 1)),
        ("structure", lambda d: d["nodes"][0].update(right=d["nodes"][0]["left"])),
        ("structure", lambda d: d["parameters"].update(depth=1)),
        ("structure", lambda d: d["nodes"][-1].update({"class": "perhaps"})),
        ("data", lambda d: d.update(fingerprint="0" * 64)),
    ],
)
def test_a_false_claim_is_refuted(trained, claim, edit):
    model, data = trained(depth=2, leaf_penalty=0.01)
    change(model, edit)
    findings = verify(model, data)
    assert refuted(findings)
    assert next(f.claim for f in findings if f.verdict == "refuted") == claim


@pytest.mark.parametrize(
    "edit",
    [
        lambda d: d.pop("nodes"),
        lambda d: d.update(nodes=[]),
        lambda d: d.update(nodes=3),
        lambda d: d.pop("target"),
        lambda d: d["columns"][0].pop("kind"),
        lambda d: d["nodes"][0].pop("counts"),
        lambda d: d["nodes"][0].update(split={"kind": "threshold", "feature": "length", "threshold": "high"}),
        lambda d: d.update(certificate=[1]),
        lambda d: d["certificate"].update(objective="much"),
        lambda d: d["certificate"].update(bound=float("inf")),
        lambda d: d["certificate"].update(leaf_penalty="1/0"),
        lambda d: d["certificate"].update(leaf_penalty="1e10000000"),
        lambda d: d["certificate"].update(leaf_penalty="1.e3000000"),
        lambda d: d["certificate"].update(leaf_penalty="1e3_000_000"),
        lambda d: d["certificate"].update(objective="1" * 5000),
        lambda d: d["parameters"].update(recall="yes: 1e-10000000"),
        lambda d: d["columns"][1].update(categories=3),
        lambda d: d["columns"][1].update(categories=[[1]]),
        lambda d: d.update(target=["class"]),
        lambda d: d.update(classes=[["no"], "yes"]),
    ],
)
def test_damaged_file_is_reported(trained, edit):
    model, data = trained(depth=2)
    change(model, edit)
    with pytest.raises(ModelFileError, match="The model file is damaged"):
        verify(model, data)


def test_a_file_that_is_no_model_is_refused(trained):
    model, data = trained(depth=2)
    for text in ("", "[]", "{", "3", '"x"', "1" * 5000, "[" * 100_000):
        model.write_text(text)
        with pytest.raises(ModelFileError):
            verify(model, data)


def test_a_file_without_rows_is_refused(trained):
    model, data = trained(depth=2)
    data.write_text("")
    with pytest.raises(DataError, match="empty"):
        verify(model, data)


def test_names_may_look_like_numbers(trained, tmp_path):
    rows = ["flag,a1e5000"] + [f"{i % 2},{'7e9999' if i % 2 else 'b2e5001'}" for i in range(20)]
    data = tmp_path / "names.csv"
    model = tmp_path / "names.json"
    data.write_text("\n".join(rows) + "\n")
    table, labels, *_ = load(data, target="a1e5000")
    request = TrainRequest(
        table=table, labels=labels, method="exact", parameters={"depth": 1, "recall": "b2e5001: 0.5"}
    )
    save(train(request).model, model)
    assert not refuted(verify(model, data))


def test_a_tree_that_is_not_the_best_is_refuted_as_optimal(trained):
    model, data = trained(depth=1, leaf_penalty=0.01)
    change(model, lambda d: d["parameters"].update(depth=2))
    assert verdicts(model, data)["scope"] == "refuted"
    change(model, lambda d: d["certificate"].update(scope=d["certificate"]["scope"].replace("≤ 1", "≤ 2")))
    found = verdicts(model, data)
    assert found["bound"] == "refuted"


@pytest.mark.parametrize("method", ["exact", "cut-h", "bendoct"])
def test_gap_follows_from_bound_and_optimal_needs_it_closed(trained, method):
    model, data = trained(method=method, depth=2, time_limit=0)
    plain = json.loads(model.read_text())["certificate"]
    assert plain["gap"] > 0.1
    assert plain["status"] == "time_limit"
    assert not refuted(verify(model, data))
    for edit in (
        {"gap": 0.0},
        {"gap": None},
        {"gap": plain["gap"] * 1.001},
        {"status": "optimal"},
        {"status": "optimal", "mip_gap": 0.01},
        {"status": "optimal", "gap": 0.0},
    ):
        change(model, lambda d, edit=edit: d.update(certificate=plain | edit))
        assert verdicts(model, data)["gap"] == "refuted", edit
    change(model, lambda d: d.update(certificate=plain | {"status": "optimal", "mip_gap": plain["gap"] + 0.1}))
    assert verdicts(model, data)["gap"] == "recounted"


@pytest.mark.parametrize("method", ["cut-h", "cutw-h", "s-oct"])
def test_bound_of_planes_is_refuted_by_tree_of_single_columns(trained, method):
    model, data = trained(method=method, depth=2, time_limit=0)

    def forge(document):
        certificate = document["certificate"]
        certificate |= {"status": "optimal", "bound": certificate["objective"], "gap": 0.0, "evidence": []}

    change(model, forge)
    found = next(f for f in verify(model, data) if f.claim == "bound")
    assert found.verdict == "refuted"
    assert "which is better" in found.detail


def test_other_rows_are_noticed(trained):
    model, data = trained(depth=2)
    lines = data.read_text().splitlines()
    data.write_text("\n".join(lines[:-1]) + "\n")
    assert verdicts(model, data)["data"] == "refuted"


def test_a_restricted_search_is_made_with_the_restrictions(trained):
    paths = trained(depth=2, max_leaves=3)
    assert verdict(verify(*paths)) == "proved"
