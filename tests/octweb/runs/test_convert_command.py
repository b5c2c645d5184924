"""`manage.py convert` turns LightGBM and PMML files into model files for `verify` and `predict`."""

from __future__ import annotations

import io
import json

import lightgbm
import numpy as np
import pandas as pd
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from sklearn.tree import DecisionTreeClassifier

from trainer.cli.interrupts import Interrupts
from trainer.convert import from_sklearn
from trainer.tree.export.pmml import to_pmml
from trainer.tree.file import read_model


@pytest.fixture
def folder(tmp_path):
    """Provide a folder with rows.csv, a LightGBM model as text and JSON, and PMML of a good and of a bad tree."""
    rng = np.random.default_rng(11)
    frame = pd.DataFrame({"width": rng.integers(0, 9, 120), "height": rng.normal(size=120).round(1)})
    frame["edible"] = np.where((frame["width"] > 3) ^ (frame["height"] > 0), "yes", "no")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    X = frame[["width", "height"]]
    y = frame["edible"]
    options = {
        "n_estimators": 1,
        "num_leaves": 4,
        "learning_rate": 1.0,
        "min_child_samples": 2,
        "verbose": -1,
        "n_jobs": 1,
    }
    booster = lightgbm.LGBMClassifier(**options).fit(X, y).booster_
    (tmp_path / "model.txt").write_text(booster.model_to_string())
    (tmp_path / "model.dump.json").write_text(json.dumps(booster.dump_model()))
    (tmp_path / "three.txt").write_text(
        lightgbm.LGBMClassifier(**options | {"n_estimators": 3}).fit(X, y).booster_.model_to_string()
    )
    bad = DecisionTreeClassifier(max_depth=2, splitter="random", random_state=1).fit(X, y)
    (tmp_path / "bad.pmml").write_text(to_pmml(from_sklearn(bad), target="edible"))
    return tmp_path


def convert(folder, source, *arguments) -> tuple[str, dict]:
    out = io.StringIO()
    call_command("convert", str(folder / source), "--json", *map(str, arguments), stdout=out, stderr=io.StringIO())
    text = out.getvalue()
    return text, json.loads(text.splitlines()[-1])


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        ("model.txt", ["--target", "edible", "--classes", "no,yes"]),
        ("model.dump.json", ["--from", "lightgbm", "--target", "edible", "--classes", "no,yes"]),
        ("bad.pmml", []),
    ],
)
def test_a_converted_file_is_verified_and_predicts(folder, source, arguments):
    model = folder / "out.json"
    rows = folder / "rows.csv"
    _, record = convert(folder, source, "--data", rows, "--output", model, *arguments)
    out = io.StringIO()
    call_command("verify", str(model), str(rows), "--json", stdout=out)
    assert json.loads(out.getvalue().splitlines()[-1])["verdict"] == "recounted"
    call_command(
        "predict",
        str(model),
        str(rows),
        "--output",
        str(folder / "said.csv"),
        stdout=io.StringIO(),
        stderr=io.StringIO(),
    )
    said = pd.read_csv(folder / "said.csv")["label"]
    assert int((said == pd.read_csv(rows)["edible"]).sum()) == record["correct"]
    assert record["n"] == 120


def test_file_without_rows_has_no_claims(folder):
    _, record = convert(
        folder, "model.txt", "--output", folder / "out.json", "--classes", "no,yes", "--target", "edible"
    )
    document = json.loads((folder / "out.json").read_text())
    assert record["counted"] is False
    assert document["method"] == "converted"
    assert document["target"] == "edible"
    assert document["certificate"]["guarantee"] == "heuristic"
    assert document["metrics"] == {}


def test_a_better_tree_is_found_and_the_best_one_is_proved(folder):
    text, record = convert(folder, "bad.pmml", "--data", folder / "rows.csv", "--compare")
    own = record["compare"]
    assert own["verdict"] == "not optimal"
    assert own["stopped"] is False
    assert own["columns"] == ["width", "height"]
    assert "height ≤ 0.05?" in own["rules"]
    fewer = own["mistakes"] - own["best_mistakes"]
    assert f"Not optimal: a better tree with as many leaves exists: {fewer} fewer mistake" in text
    assert own["least_mistakes"] == own["best_mistakes"] == 0  # the rows are those of a tree of depth two
    out = folder / "best.json"
    call_command(
        "train",
        str(folder / "rows.csv"),
        "--target",
        "edible",
        "--method",
        "exact-numeric",
        "--depth",
        "2",
        "--output",
        str(out),
        stdout=io.StringIO(),
        stderr=io.StringIO(),
    )
    (folder / "best.pmml").write_text(to_pmml(read_model(out).tree, target="edible"))
    text, record = convert(folder, "best.pmml", "--data", folder / "rows.csv", "--compare")
    assert record["compare"]["verdict"] == "no better tree"
    assert record["compare"]["rules"] == ""
    assert "(proved)" in text


def test_stopped_search_is_reported(folder, monkeypatch):
    class Stopped(Interrupts):
        def on_start(self, monitor):
            self.cancelled = True
            super().on_start(monitor)

    monkeypatch.setattr("trainer.cli.convert.Interrupts", Stopped)
    _, record = convert(folder, "bad.pmml", "--data", folder / "rows.csv", "--compare")
    assert record["compare"]["stopped"] is True
    assert record["compare"]["verdict"] == "open"


@pytest.mark.parametrize(
    ("source", "arguments", "words"),
    [
        ("three.txt", [], "has 3 trees"),
        ("rows.csv", [], "neither PMML, nor"),
        ("rows.csv", ["--from", "pmml"], "well-formed"),
        ("nothing.txt", [], "No such file"),
        ("model.txt", ["--compare"], "needs --data"),
        ("model.txt", ["--data", "{rows}"], "Name the column of --data"),
        ("model.txt", ["--data", "{rows}", "--target", "edible"], "--classes no,yes"),
        ("model.txt", ["--data", "{rows}", "--target", "eddible"], "Did you mean 'edible'"),
        ("model.txt", ["--time-limit", "0"], "more than 0"),
        ("bad.pmml", ["--classes", "a,b,c"], "gave 3 different names"),
    ],
)
def test_bad_input_is_one_clear_sentence(folder, source, arguments, words):
    arguments = [a.format(rows=folder / "rows.csv") for a in arguments]
    with pytest.raises(CommandError, match=words) as error:
        convert(folder, source, *arguments)
    assert "\n" not in str(error.value)
