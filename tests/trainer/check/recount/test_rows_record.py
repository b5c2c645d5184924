"""Held-out rows, folds and weights are in the file, so the checker needs only the uploaded table."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.trainer.check.recount.files import findings, trained, verdicts
from trainer.check.recount import verdict, verify
from trainer.data.reader import load
from trainer.registry import METHODS
from trainer.training.run import TrainRequest, save, train


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@pytest.mark.slow
@pytest.mark.parametrize("method", [m.id for m in METHODS])
def test_held_out_rows_and_folds_are_checked_from_upload(folder, method, tmp_path):
    document, data = trained(folder, method, test_share=0.25, folds=2, time_limit=2.0)
    found = findings(document, data, tmp_path)
    by_claim = {f.claim: f.verdict for f in found}
    for claim in ("rows held out", "folds", "metrics train", "metrics test", "metrics cross_validation"):
        assert by_claim[claim] == "recounted", (claim, found)
    assert verdict(found) in ("proved", "recounted"), found


def test_other_rows_held_out_or_folded_are_refuted(folder, tmp_path):
    document, data = trained(folder, "exact", test_share=0.25, folds=2)
    kept = document["rows"]
    out = kept["held_out"]
    swapped = out.replace("0", "x").replace("1", "0").replace("x", "1")
    for claim, change in (
        ("data", {"held_out": swapped}),
        ("data", {"held_out": None}),
        ("rows", {"held_out": out + "0"}),
        ("rows", {"used": kept["used"] + 1}),
        ("folds", {"folds": "0" * len(out)}),
        ("folds", {"folds": kept["folds"].replace("1", "2")}),
        ("metrics cross_validation", {"folds": kept["folds"].translate(str.maketrans("01", "10"))}),
        ("metrics cross_validation", {"fold_trees": kept["fold_trees"][:1]}),
        ("data", {"weights": [1] * (len(out) - 1) + [2], "held_out": "1" + out[1:]}),
        ("counts", {"weights": [2] * len(out)}),
        ("weights", {"weights": [1 << 60] * len(out)}),  # their sum exceeds 64 bits
        ("weights", {"weights": [1 << 48] * len(out)}),  # their sum exceeds 2^53, below which all integers are doubles
        ("weights", {"weights": [-1] * len(out)}),
    ):
        changed = document | {"rows": kept | change}
        assert verdicts(changed, data, tmp_path)[claim] == "refuted", (claim, change)


def test_an_older_file_without_the_record_is_checked_by_the_seed(folder, tmp_path):
    document, data = trained(folder, "exact", test_share=0.25, folds=2)
    del document["rows"]
    found = verdicts(document, data, tmp_path)
    assert found["rows held out"] == found["data"] == found["metrics test"] == "recounted"
    assert found["metrics cross_validation"] == "cannot be judged"
    document["parameters"]["seed"] += 1
    assert verdicts(document, data, tmp_path)["data"] == "refuted"


def test_weights_are_in_the_file(folder, tmp_path):
    _, data = trained(folder, "exact")
    table, labels, *_ = load(data, target="class")
    weights = np.random.default_rng(1).integers(1, 5, len(table))
    request = TrainRequest(
        table=table, labels=labels, method="exact", parameters={"depth": 2}, test_share=0.2, folds=2, weights=weights
    )
    save(train(request).model, tmp_path / "weighted.json")
    found = verify(tmp_path / "weighted.json", data)
    assert verdict(found) == "proved", found
    document = json.loads((tmp_path / "weighted.json").read_text())
    document["rows"]["weights"] = None
    assert verdicts(document, data, tmp_path)["counts"] == "refuted"


@pytest.mark.parametrize("method", ["exact", "exact-numeric"])
def test_balanced_classes_are_weighed_again(folder, tmp_path, method):
    document, data = trained(folder, method, class_weight="balanced", test_share=0.25)
    assert verdict(findings(document, data, tmp_path)) in ("proved", "recounted")
    document["parameters"]["class_weight"] = "none"
    assert verdicts(document, data, tmp_path)["counts"] == "refuted"
