"""`manage.py train` in scripts: exit status, JSON, progress, model file and signals."""

from __future__ import annotations

import json
import signal
import time
from io import StringIO

import pytest
from django.core.management import call_command

from tests.octweb.runs.conftest import CSV
from tests.processes import MANAGE, manage, start


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "small.csv"
    path.write_text(CSV)
    return path


def train(*arguments):
    return manage("train", *arguments)


def test_writes_a_model_and_one_json_line(data, tmp_path):
    model = tmp_path / "model.json"
    progress = tmp_path / "progress.jsonl"
    result = train(
        data,
        "--target",
        "class",
        "--method",
        "cart",
        "--depth",
        3,
        "--folds",
        3,
        "--output",
        model,
        "--progress",
        progress,
        "--json",
    )
    assert result.returncode == 0, result.stderr
    summary = json.loads(result.stdout.strip().splitlines()[-1])
    document = json.loads(model.read_text())
    assert summary["n"] == 120
    assert summary["correct"] == round(summary["train_accuracy"] * 120)
    assert summary["status"] == "heuristic"
    assert summary["bound"] is None
    assert document["format"] == "octweb-tree"
    assert document["certificate"]["correct"] == summary["correct"]
    assert len(document["metrics"]["cross_validation"]["accuracies"]) == 3
    assert all(json.loads(line)["t"] >= 0 for line in progress.read_text().splitlines())


def test_depth_none_claims_trees_of_any_depth_and_proves_it(data, tmp_path):
    model = tmp_path / "model.json"
    proof = tmp_path / "model.proof.jsonl.gz"
    penalty = ("--leaf-penalty", 0.02)
    result = train(
        data,
        "--target",
        "class",
        "--method",
        "exact",
        "--depth",
        "none",
        *penalty,
        "--output",
        model,
        "--proof",
        proof,
        "--json",
    )
    assert result.returncode == 0, result.stderr
    summary = json.loads(result.stdout.strip().splitlines()[-1])
    document = json.loads(model.read_text())
    assert summary["status"] == "optimal"
    assert document["parameters"]["depth"] is None
    assert document["certificate"]["scope"].startswith("all trees of any depth with ")
    checked = manage("verify", model, data, "--proof", proof, "--require", "proved")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--target", "nothing", "--method", "cart"], 1, "nothing"),
        (["--target", "class", "--method", "cart", "--depth", "many"], 2, "depth"),
        (["--target", "class", "--method", "cart", "--depth", "none"], 2, "depth: 'none' is not a number"),
        (["--target", "class", "--method", "exact", "--depth", "none"], 2, "leaf_penalty: it must be a number above 0"),
        (["--target", "class", "--method", "cart", "--set", "nonsense=1"], 2, "nonsense"),
        (["--target", "class", "--method", "magic"], 2, "magic"),
        (["--target", "class", "--method", "cart", "--folds", "1"], 2, "folds"),
        (["--target", "class", "--method", "cart", "--output", "/nowhere/at/all/model.json"], 2, "nowhere"),
    ],
)
def test_error_is_specific(data, arguments, status, words):
    result = train(data, *arguments)
    assert result.returncode == status, result.stderr
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_infeasible_constraints_are_distinguished_from_faults(data, tmp_path):
    model = tmp_path / "model.json"
    limits = ["--depth", 1, "--set", "sensitivity=0.99", "--set", "specificity=0.99"]
    result = train(data, "--target", "class", "--method", "odt", *limits, "--json", "--output", model)
    assert result.returncode == 1
    assert not model.exists()
    answer = json.loads(result.stdout)
    assert answer["status"] == "infeasible"
    assert 0 <= answer["best"] < 0.99
    assert answer["reason"] in result.stderr


def test_missing_file_exits_1_with_one_line(tmp_path):
    result = train(tmp_path / "absent.csv", "--target", "class", "--method", "cart")
    assert result.returncode == 1
    assert len(result.stderr.strip().splitlines()) == 1


def test_sigterm_keeps_the_incumbent(tmp_path):
    """Many folds keep the command busy, and the signal comes after the tree was found."""
    data = tmp_path / "long.csv"
    data.write_text(CSV.splitlines()[0] + "\n" + "\n".join(CSV.splitlines()[1:] * 400) + "\n")
    model = tmp_path / "model.json"
    progress = tmp_path / "progress.jsonl"
    asked = [data, "--target=class", "--method=cart", "--folds=50", "--set=pruning=cross-validation", "--json"]
    child = start(MANAGE, "train", *asked, f"--output={model}", f"--progress={progress}", folder=tmp_path)
    until = time.monotonic() + 600
    while "fold 1" not in (progress.read_text() if progress.exists() else "") and time.monotonic() < until:
        time.sleep(0.05)
    child.send_signal(signal.SIGTERM)
    assert child.wait(600) == 0, (tmp_path / "stderr").read_text()
    assert json.loads((tmp_path / "stdout").read_text().splitlines()[-1])["n"] == 48_000
    assert json.loads(model.read_text())["nodes"]


def test_cost_is_printed_before_the_search(tmp_path):
    data = tmp_path / "rows.csv"
    data.write_text("a,b,y\n" + "".join(f"{i * 3 % 41},{i * i % 7},{i % 2}\n" for i in range(40)))
    out = StringIO()
    err = StringIO()
    call_command(
        "train",
        str(data),
        target="y",
        method="exact",
        depth=2,
        bins=5,
        json=True,
        folds=2,
        time_limit=10,
        stdout=out,
        stderr=err,
    )
    expected = json.loads(out.getvalue().splitlines()[-1])["expected"]
    assert (expected["rows"], expected["questions"]) == (40, 7)
    assert 0 < expected["low"] < expected["high"]
    assert expected["megabytes"] > 0
    assert "note: 40 rows × seven questions, about " in err.getvalue()
    assert "3 trainings of up to 10\u202fs each: one on all rows, and one for each fold" in err.getvalue()


def test_tree_without_splits_has_a_reason(tmp_path):
    data = tmp_path / "rows.csv"
    out = StringIO()
    data.write_text("a,y\n" + "".join(f"{i},{i % 2}\n" for i in range(40)))
    call_command("train", str(data), target="y", method="cart", set=["min_leaf=30"], stdout=out, stderr=StringIO())
    assert "The setting min_leaf asks for 30 rows in every leaf" in out.getvalue()
