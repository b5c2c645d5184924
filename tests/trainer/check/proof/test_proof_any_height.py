"""Proofs of any depth: both checkers accept true ones and refuse false ones."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.trainer.check.proof.changes import page
from tests.trainer.check.proof.second_checker_cases import table
from trainer.check.recount import verdict, verify
from trainer.data.reader import load
from trainer.training.run import TrainRequest, save, train


def raised(lines):
    """Return the proof with its goal, and the bounds of steps about all rows, doubled."""
    return [
        lines[0] | {"goal": 2 * lines[0]["goal"]},
        *(s if s["path"] else s | {"bound": 2 * s["bound"]} for s in lines[1:]),
    ]


LIES = {
    "goal": lambda lines: [lines[0] | {"goal": lines[0]["goal"] + 1}, *lines[1:]],
    "raised": raised,
    "missing root": lambda lines: lines[:-1],
    "one step": lambda lines: [lines[0], lines[-1]],
    "count": lambda lines: [*lines[:-1], lines[-1] | {"by": "count"}],
    "floor": lambda lines: [*lines[:-1], lines[-1] | {"by": "floor"}],
    "height": lambda lines: [*lines[:-1], lines[-1] | {"height": 3}],
    "leaves": lambda lines: [*lines[:-1], lines[-1] | {"leaves": 2}],
    "version": lambda lines: [lines[0] | {"like": 1}, *lines[1:]],
    "scale": lambda lines: [lines[0] | {"scale": 2}, *lines[1:]],
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("any-height")
    data = table(folder, 1)
    rows, labels, _ = load(data, target="kind", ignore=[])
    proof = folder / "model.proof.jsonl.gz"
    parameters = {"depth": None, "leaf_penalty": 0.012, "binarise": "quantile-thresholds", "bins": 4}
    result = train(TrainRequest(table=rows, labels=labels, method="exact", parameters=parameters, proof=proof))
    model = folder / "model.json"
    save(result.model, model)
    return model, proof, data


def test_file_of_any_depth_is_proved(files):
    model, proof, data = files
    document = json.loads(model.read_text())
    findings = verify(model, data, proof)
    assert document["parameters"]["depth"] is None
    assert document["certificate"]["scope"].startswith("all trees of any depth with ")
    assert document["certificate"]["status"] == "optimal"
    assert verdict(findings) == "proved"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("scope", lambda m: m["certificate"].update(scope=m["certificate"]["scope"].replace("of any depth", ""))),
        ("bound", lambda m: m["certificate"].update(bound=m["certificate"]["bound"] - 0.05)),
        ("depth", lambda m: m["parameters"].update(depth=3)),
    ],
)
def test_false_claim_of_any_depth_is_refuted(files, tmp_path, name, change):
    model, proof, data = files
    document = json.loads(model.read_text())
    change(document)
    other = tmp_path / "model.json"
    other.write_text(json.dumps(document))
    assert verdict(verify(other, data, proof)) == "refuted", name


def test_both_checkers_refuse_the_same_lies(files, tmp_path):
    model, proof, data = files
    with gzip.open(proof, "rt") as stream:
        lines = [json.loads(line) for line in stream]
    assert (lines[0]["version"], lines[0]["like"]) == (8, 9)  # version 8 is for data with an empty cell
    assert {step["by"] for step in lines[1:]} >= {"count", "split"}
    cases = {"truth": lines} | {name: lie(lines) for name, lie in LIES.items()}
    texts = {name: "".join(json.dumps(line) + "\n" for line in own) for name, own in cases.items()}
    said = page([(model.read_text(), text, data.read_text()) for text in texts.values()])
    for (name, text), holds in zip(texts.items(), said, strict=True):
        path = tmp_path / f"{name}.jsonl"
        path.write_text(text)
        assert (verdict(verify(model, data, path)) == "proved") == holds == (name == "truth"), name
