"""Hyperplane models with proofs as files: trained, verified and altered."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trainer.check.proof.changes import page
from tests.trainer.check.proof.proof_planes_cases import changes
from tests.trainer.check.proof.second_checker_cases import proved_alone
from trainer.check.bundle import bundle
from trainer.check.proof.model import ModelTable
from trainer.check.proof.space.planes import plane_space
from trainer.check.proof.subject import NoProof
from trainer.check.recount import verdict, verify
from trainer.data.reader import load
from trainer.training.proof_file import ProofLimits
from trainer.training.run import TrainRequest, save, train

# thirds of 0.3 are on one line as decimals, but not as binary numbers
DECIMALS = "size,share,colour,class\n" + "".join(
    f"{x},{y},{c},{k}\n"
    for x, y, c, k in [
        (0.1, 0.1, "red", "a"), (0.2, 0.2, "red", "b"), (0.3, 0.3, "red", "a"), (0.1, 0.3, "blue", "b"), (0.2, 0.7, "blue", "a"),
        (0.3, 1.1, "blue", "b"), (0.7, 0.1, "green", "a"), (0.7, 0.2, "green", "b"), (0.7, 0.3, "green", "a"), (0.9, 0.8, "red", "c"),
    ]
)  # fmt: skip
QUICK = {"depth": 1, "first_trees": "none", "search_seconds": 1.0, "time_limit": 60.0}
METHODS = [
    ("cut-h", {}), ("cutw-h", {"leaf_penalty": 0.01}), ("s-oct", {"max_leaves": 2}), ("s-oct", {"big_m": "data"}),
    ("oct-h", {"scaling": "range"}), ("oct-h", {"coefficient_penalty": 0.0}),
]  # fmt: skip


def trained(
    folder: Path, method: str, parameters: dict[str, Any], share: float = 0.0, weights: np.ndarray | None = None
) -> tuple[Path, Path, Path]:
    data = folder / "rows.csv"
    model = folder / "model.json"
    file = folder / "proof.jsonl.gz"
    data.write_text(DECIMALS)
    table, labels, *_ = load(data, target="class")
    request = TrainRequest(
        table=table,
        labels=labels,
        method=method,
        parameters=QUICK | parameters,
        test_share=share,
        weights=weights,
        proof=file,
    )
    save(train(request).model, model)
    return model, file, data


@pytest.mark.slow
@pytest.mark.parametrize(("method", "parameters"), METHODS)
def test_an_optimum_is_proved_by_its_file_alone(tmp_path, method, parameters):
    model, file, data = trained(tmp_path, method, parameters)
    document = json.loads(model.read_text())
    said = next(e for e in document["certificate"]["evidence"] if e["kind"] == "proof")
    assert said["made"]
    assert said["steps"] > 5
    assert document["certificate"]["status"] == "optimal"
    assert verdict(verify(model, data)) == "recounted"
    assert verdict(verify(model, data, file)) == "proved"
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    cut = tmp_path / "cut.jsonl"
    cut.write_text("".join(json.dumps(line) + "\n" for line in lines[:-1]))
    assert verdict(verify(model, data, cut)) == "refuted"
    certificate = document["certificate"] | {"bound": document["certificate"]["bound"] - 0.001}
    model.write_text(json.dumps(document | {"certificate": certificate}))
    assert verdict(verify(model, data, file)) == "refuted"


def test_the_single_file_checks_such_a_proof(tmp_path):
    model, file, data = trained(tmp_path, "cut-h", {}, share=0.1)
    alone = tmp_path / "check_octweb.py"
    alone.write_text(bundle(), encoding="utf-8")
    command = [sys.executable, "-I", str(alone), str(model), str(file), str(data)]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "Verdict: proved" in process.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("method", "parameters"), METHODS[:1] + METHODS[-3:-1])
def test_both_checkers_agree_on_changed_proof_of_planes(tmp_path, method, parameters):
    model, file, data = trained(tmp_path, method, parameters | {"leaf_penalty": 0.01})
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    proofs = [lines, [{**lines[0], "goal": lines[0]["goal"] + 1}, *lines[1:]], lines[:-1]]
    proofs += [[{**lines[0], **change}, *lines[1:]] for change in ({"rows": "0"}, {"version": 1}, {"scale": 2})]
    for k in range(1, len(lines)):
        changed = changes(lines[k], random.Random(k), len(lines))
        proofs += [[*lines[:k], *own, *lines[k + 1 :]] for own in ([], *([one] for one in changed[::3]))]
    texts = ["\n".join(map(json.dumps, own)) + "\n" for own in proofs]
    here = proved_alone(model, data, texts, tmp_path)
    cases = [(model.read_text(), text, data.read_text()) for text in texts]
    assert here[0]
    assert sum(here) < len(here) / 2
    assert page(cases) == here


def test_proof_over_its_time_estimate_is_not_written(tmp_path):
    data = tmp_path / "rows.csv"
    file = tmp_path / "proof.jsonl.gz"
    data.write_text(DECIMALS)
    table, labels, *_ = load(data, target="class")
    request = TrainRequest(
        table=table, labels=labels, method="cut-h", parameters=QUICK, proof=file, proof_limits=ProofLimits(seconds=0.0)
    )
    said = train(request).model.certificate["evidence"][-1]
    assert said["made"] is False
    assert "take longer" in said["reason"]
    assert not file.exists()


def test_weights_and_rows_of_weight_zero_count_in_a_proof(tmp_path):
    rows = DECIMALS.splitlines()
    weights = np.array([0, *[1 + k % 3 for k in range(len(rows) - 2)]], np.int64)
    model, file, data = trained(tmp_path, "cut-h", {"leaf_penalty": 0.02}, weights=weights)
    assert verdict(verify(model, data, file)) == "proved"


def test_indistinguishable_numbers_are_left_unproved():
    near = np.array([1e15, 1e15 + 0.125])
    one = np.ones(2, np.int64)
    model = {
        "method": "cut-h", "parameters": {"depth": 1}, "classes": ["a", "b"], "certificate": {},
        "columns": [{"name": "x", "kind": "numeric"}],
    }  # fmt: skip
    with pytest.raises(NoProof, match="too small to tell"):
        plane_space(model, ModelTable([near], np.array([0, 1]), one, one))
    far = plane_space(model, ModelTable([near * 0 + [0.1, 0.3]], np.array([0, 1]), one, one))
    assert [far.exactly(x) for x in (0.1, 0.3)] == [Fraction(1, 10), Fraction(3, 10)]


def test_unit_of_column_is_range_or_less_with_outliers():
    values = np.array([0.0, 1, 2, 3, 4, 1000])
    one = np.ones(6, np.int64)
    model = {
        "method": "oct-h", "parameters": {"depth": 1, "scaling": "robust"}, "classes": ["a", "b"], "certificate": {},
        "columns": [{"name": "x", "kind": "numeric"}],
    }  # fmt: skip
    rows = ModelTable([values], np.array([0, 1] * 3), one, one)
    assert plane_space(model, rows).near[0] == 4 * (4 - 1) * (Fraction(5, 1000) - Fraction(1, 10**9))
    model["parameters"]["scaling"] = "range"
    assert plane_space(model, rows).near[0] == 1000 * (Fraction(5, 1000) - Fraction(1, 10**9))


def test_file_states_that_margin_alone_excludes_trees(tmp_path):
    """A hyperplane separates all rows, but with a hundredth of the required margin."""
    data = tmp_path / "rows.csv"
    file = tmp_path / "proof.jsonl.gz"
    above = [(0.1, 0.90000004), (0.4, 0.60000004), (0.7, 0.30000004), (1, 1)]
    rows = [*((x, y, "a") for x, y in ((0, 1), (1, 0), (0.25, 0.75), (0.55, 0.45))), *((x, y, "b") for x, y in above)]
    data.write_text("x,y,class\n" + "".join(f"{x},{y},{k}\n" for x, y, k in rows))
    table, labels, *_ = load(data, target="class")
    result = train(TrainRequest(table=table, labels=labels, method="cut-h", parameters=QUICK, proof=file))
    assert result.certificate.status == "optimal"
    assert result.certificate.objective < 1
    said = result.summary["proof"]
    assert not said["made"]
    assert "distance" in said["reason"]
    assert not file.exists()
