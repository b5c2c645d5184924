"""The checker proves what follows from counts, and refutes what does not."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.trainer.counts.tables import KEY, counted, random_rows, write_rows
from trainer.check.recount import verdict, verify
from trainer.counts.folder import NUMBERS, RECORD, read_counts, suppress_small, write_counts
from trainer.counts.train import train_counts
from trainer.tree.file import write


@pytest.fixture
def trained(tmp_path):
    """Provide the folder of counts with folds, and the document of its tree."""
    path = write_rows(random_rows(np.random.default_rng(4), classes=3), tmp_path / "rows.csv")
    counts = counted(path, tmp_path / "counts", folds=3, key=KEY)
    model = train_counts(counts, {"leaf_penalty": 0.01}).model
    assert len(model.tree.nodes) > 3
    return tmp_path / "counts", model.to_json()


def judged(document: dict, folder: Path, tmp_path: Path) -> str:
    """Return the verdict of the checker on a document."""
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return verdict(verify(path, folder))


@pytest.mark.slow
def test_every_model_from_counts_is_proved_again(tmp_path, count):
    for seed in range(4 * count):
        rng = np.random.default_rng(seed)
        path = write_rows(random_rows(rng, classes=2 + seed % 2), tmp_path / f"{seed}.csv")
        folds = {"folds": 3, "key": KEY} if seed % 3 else {}
        counts = counted(path, tmp_path / str(seed), depth=1 + seed % 3, **folds)
        settings = {"leaf_penalty": float(rng.choice([0, 0.02]))}
        if seed % 4 == 1:
            settings["min_leaf"] = 3
        if seed % 4 == 2:
            settings |= {"max_leaves": 3, "forbidden": "c"}
        write(train_counts(counts, settings).model, tmp_path / "model.json")
        findings = verify(tmp_path / "model.json", tmp_path / str(seed))
        assert verdict(findings) == "proved", (seed, [f for f in findings if f.verdict not in ("proved", "recounted")])


def _raise_count(document):
    document["nodes"][-1]["counts"][0] += 1


def _claim_more(document):
    document["certificate"]["correct"] += 1


def _raise_objective(document):
    document["certificate"]["objective"] += 0.01
    document["certificate"]["bound"] += 0.01


def _swap_class(document):
    leaf = next(node for node in reversed(document["nodes"]) if "class" in node)
    leaf["class"] = next(name for name in document["classes"] if name != leaf["class"])


def _move_threshold(document):
    for node in document["nodes"]:
        if "threshold" in node.get("split", {}):
            node["split"]["threshold"] += 0.25
            return
    raise AssertionError("no threshold")


def _raise_fold(document):
    document["metrics"]["cross_validation"]["accuracies"][1] += 0.05


def _other_digest(document):
    document["certificate"]["counts"] = "0" * 64


def _hide_a_limit(document):
    document["parameters"]["max_leaves"] = 2


def _widen_the_scope(document):
    document["certificate"]["scope"] = document["certificate"]["scope"].replace("depth ≤ 3", "depth ≤ 9")


def _other_source(document):
    document["certificate"]["evidence"][0]["rows"] += 1


LIES = [_raise_count, _claim_more, _raise_objective, _swap_class, _move_threshold, _raise_fold, _other_digest, _hide_a_limit, _widen_the_scope,
        _other_source]  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_false_claims_are_refuted(trained, tmp_path, lie):
    folder, document = trained
    assert judged(document, folder, tmp_path) == "proved"
    lie(document)
    assert judged(document, folder, tmp_path) == "refuted"


@pytest.fixture
def priced(tmp_path):
    """Provide the folder of counts, and the document of a tree of least cost."""
    path = write_rows(random_rows(np.random.default_rng(4), classes=3), tmp_path / "rows.csv")
    counts = counted(path, tmp_path / "counts", folds=3, key=KEY)
    model = train_counts(counts, {"leaf_penalty": 0.01, "costs": "c0>c1=5; c2>c0=2.5", "cost_unit": "EUR"}).model
    assert len(model.tree.nodes) > 3
    return tmp_path / "counts", model.to_json()


def _lower_cost(document):
    document["certificate"]["costs"]["cost"] -= 1


def _lower_least(document):
    document["certificate"]["costs"]["least"] -= 1


def _drop_costs(document):
    del document["certificate"]["costs"]


def _other_costs(document):
    document["parameters"]["costs"] = "c0>c1=6; c2>c0=2.5"


def _no_costs(document):
    del document["parameters"]["costs"]


def _lower_measured_cost(document):
    document["metrics"]["train"]["cost_confusion"][0][1] += 1


def _free_leaves(document):
    document["parameters"]["leaf_penalty"] = 0.0


@pytest.mark.parametrize(
    "lie", [_lower_cost, _lower_least, _drop_costs, _other_costs, _no_costs, _lower_measured_cost, _free_leaves, *LIES]
)
def test_lies_about_costs_are_refuted(priced, tmp_path, lie):
    folder, document = priced
    assert judged(document, folder, tmp_path) == "proved"
    lie(document)
    assert judged(document, folder, tmp_path) == "refuted"


def test_a_tree_that_costs_more_than_another_is_refuted(tmp_path):
    path = write_rows(random_rows(np.random.default_rng(4), classes=3), tmp_path / "rows.csv")
    counts = counted(path, tmp_path / "counts")
    settings = {"costs": "c0>c1=5; c2>c0=2.5", "leaf_penalty": 0.01}
    document = train_counts(counts, settings | {"max_leaves": 2}).model.to_json()
    least = train_counts(counts, settings).model.to_json()
    assert document["certificate"]["costs"]["least"] > least["certificate"]["costs"]["least"] + 0.1
    document["parameters"]["max_leaves"] = None
    document["certificate"]["scope"] = least["certificate"]["scope"]
    assert [f.claim for f in _findings(document, tmp_path / "counts", tmp_path) if f.verdict == "refuted"] == [
        "bound",
        "optimal",
    ]


def test_a_tree_that_is_not_the_best_is_refuted(trained, tmp_path):
    folder, document = trained
    worse = copy.deepcopy(document)
    root = worse["nodes"][0]
    best = max(range(3), key=root["counts"].__getitem__)
    total = sum(root["counts"])
    right = root["counts"][best]
    worse["nodes"] = [{"id": 0, "counts": root["counts"], "class": worse["classes"][best]}]
    value = right / total - 0.01
    worse["certificate"] |= {"correct": right, "leaves": 1, "depth": 0, "objective": value, "bound": value}
    confusion = [[n if k == best else 0 for k in range(3)] for n in root["counts"]]
    worse["metrics"]["train"] = {"n": total, "correct": right, "accuracy": right / total, "confusion": confusion}
    findings = _findings(worse, folder, tmp_path)
    assert verdict(findings) == "refuted"
    assert [f.claim for f in findings if f.verdict == "refuted"] == ["bound", "optimal"]


def _findings(document, folder, tmp_path):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return verify(path, folder)


def test_changed_counts_are_refuted(trained, tmp_path):
    folder, document = trained
    low = read_counts(folder).low.copy()
    low[0, 0, 0] += 1
    np.savez_compressed(folder / NUMBERS, low=low)
    assert judged(document, folder, tmp_path) == "refuted"


def test_a_changed_description_is_refuted(trained, tmp_path):
    folder, document = trained
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    record["rows"] += 1
    (folder / RECORD).write_text(json.dumps(record), encoding="utf-8")
    assert judged(document, folder, tmp_path) == "refuted"


def test_a_model_from_counts_is_not_judged_by_rows(trained, tmp_path):
    _, document = trained
    assert judged(document, tmp_path / "rows.csv", tmp_path) == "cannot be judged"


def test_secret_counts_are_checked_at_their_ends(tmp_path, count):
    proved = 0
    for seed in range(2 * count):
        path = write_rows(random_rows(np.random.default_rng(seed)), tmp_path / f"{seed}.csv")
        secret = suppress_small(counted(path, tmp_path / f"{seed}-whole"), 3)
        write_counts(secret, tmp_path / str(seed))
        model = train_counts(secret, {"leaf_penalty": 0.02}).model
        document = model.to_json()
        assert judged(document, tmp_path / str(seed), tmp_path) == "proved"
        document["certificate"]["correct"] += 1
        assert judged(document, tmp_path / str(seed), tmp_path) == "refuted"
        proved += model.certificate["status"] == "secret_counts"
    assert proved


def test_the_single_file_checks_counts_too(trained, tmp_path):
    import subprocess
    import sys

    from trainer.check.bundle import bundle

    folder, document = trained
    (tmp_path / "model.json").write_text(json.dumps(document), encoding="utf-8")
    program = tmp_path / "alone" / "check_octweb.py"
    program.parent.mkdir()
    program.write_text(bundle(), encoding="utf-8")
    shutil.copytree(folder, tmp_path / "alone" / "counts")
    command = [sys.executable, str(program), str(tmp_path / "model.json"), "-", str(tmp_path / "alone" / "counts")]
    process = subprocess.run(command, capture_output=True, text=True, cwd=program.parent, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "proved           optimal" in process.stdout
