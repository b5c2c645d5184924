"""The claim "fewest leaves": proved from the proof, and refused for a tree with one leaf too many."""

from __future__ import annotations

import copy
import gzip
import json

import numpy as np
import pytest

from trainer.check.recount import verdict, verify
from trainer.check.recount.fewest import CLAIM
from trainer.data.reader import load
from trainer.training.run import TrainRequest, train

ASKED = {"depth": 2, "then_fewest": True, "first_trees": "none", "search_seconds": 0.5, "time_limit": 60.0}


def table(seed):
    """Return a few rows of two columns, with one class above a line and some exceptions."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 6, (2, 11 + seed % 3))
    kinds = np.where((x + y > 5) ^ (rng.random(len(x)) < 0.25), "a", "b")
    kinds[:2] = "a", "b"
    return "x,y,kind\n" + "".join(f"{a},{b},{k}\n" for a, b, k in zip(x, y, kinds, strict=True))


def trained(folder, seed, method="cut-h", **more):
    data = folder / "rows.csv"
    proof = folder / "proof.jsonl.gz"
    data.write_text(table(seed))
    rows, labels, *_ = load(data, target="kind")
    request = TrainRequest(
        table=rows, labels=labels, method=method, parameters=ASKED | more, test_share=0, folds=0, proof=proof
    )
    return json.loads(json.dumps(train(request).model.to_json())), data, proof


def judged(document, folder, data, proof):
    model = folder / "model.json"
    model.write_text(json.dumps(document))
    return verify(model, data, proof)


def line(found):
    return [f.verdict for f in found if f.claim == CLAIM]


UNSEEN = {"missing": "left", "missing_seen": False}  # no cell is empty, so all rows go left


def with_an_idle_question(document):
    """Add an idle split below the root, and so one leaf. Return None if there is no space for it."""
    document = copy.deepcopy(document)
    nodes = document["nodes"]
    sides = [nodes[nodes[0][side]] for side in ("left", "right")] if "split" in nodes[0] else []
    leaf = next((v for v in sides if "split" not in v), None)
    if leaf is None:
        return None
    own = leaf.pop("class")
    size = len(nodes)
    leaf |= {
        "split": {"kind": "threshold", "feature": "x", "threshold": 99.0} | UNSEEN,
        "left": size,
        "right": size + 1,
    }
    nodes += [{"id": size, "counts": leaf["counts"], "class": own}, {"id": size + 1, "counts": [0, 0], "class": own}]
    document.pop("training_rows", None)
    document["certificate"] |= {"leaves": document["certificate"]["leaves"] + 1, "depth": 2}
    return document


@pytest.mark.parametrize("seed", range(8))
def test_the_fewest_leaves_are_proved_and_one_more_is_not(tmp_path, seed):
    document, data, proof = trained(tmp_path, seed, leaf_penalty=0.0 if seed % 2 else 0.001)
    assert document["certificate"]["status"] == "optimal"
    found = judged(document, tmp_path, data, proof)
    assert (line(found), verdict(found)) == (["proved"], "proved")
    larger = with_an_idle_question(document)
    if larger is not None and not document["parameters"]["leaf_penalty"]:
        said = judged(larger, tmp_path, data, proof)
        assert [f.verdict for f in said if f.claim == "bound"] == ["proved"]
        assert line(said) in (["refuted"], ["cannot be judged"])
    document["parameters"]["then_fewest"] = False
    assert line(judged(document, tmp_path, data, proof)) == []


@pytest.mark.parametrize("seed", [1, 6])
def test_a_proof_of_each_number_of_leaves_shows_it_too(tmp_path, seed):
    document, data, proof = trained(tmp_path, seed, pareto=True)
    assert b'"goals"' in gzip.decompress(proof.read_bytes()).splitlines()[0]
    found = judged(document, tmp_path, data, proof)
    assert (line(found), verdict(found)) == (["proved"], "proved")
    larger = judged(with_an_idle_question(document), tmp_path, data, proof)
    assert [f.verdict for f in larger if f.claim == "bound"] == ["proved"]
    assert line(larger) in (["refuted"], ["cannot be judged"])


@pytest.mark.parametrize("seed", range(4))
def test_missing_blocks_for_smaller_trees_prevent_proof(tmp_path, seed):
    """The proof is of the optimum alone, from a run that did not request the fewest leaves."""
    document, data, proof = trained(tmp_path, seed)
    plain = tmp_path / "plain"
    plain.mkdir()
    _, _, alone = trained(plain, seed, then_fewest=False)
    found = judged(document, tmp_path, data, alone)
    assert [f.verdict for f in found if f.claim == "bound"] == ["proved"]
    by = next(f.detail for f in found if f.claim == CLAIM)
    assert "blocks of the proof" not in by or proof.read_bytes() == alone.read_bytes()


def test_frontier_goals_do_not_replace_blocks_of_smaller_trees(tmp_path):
    """Nothing is as easy to prove as that trees make no error or more."""
    document, data, proof = trained(tmp_path, 1, pareto=True, time_limit=20.0)
    assert document["certificate"]["status"] == "optimal"
    assert line(judged(document, tmp_path, data, proof)) == ["proved"]
    header = json.loads(gzip.decompress(proof.read_bytes()).splitlines()[0])
    assert len(header["goals"]) > 1
    proof.write_text(json.dumps(header | {"goals": [0]}))
    assert line(judged(document, tmp_path, data, proof)) == ["cannot be judged"]
