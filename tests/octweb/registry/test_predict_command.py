"""`manage.py predict`."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command

from tests.octweb.small_models import csv_of_small_table, small_table
from trainer.tree.file import from_json


@pytest.fixture
def files(tmp_path, cart_document):
    (tmp_path / "model.json").write_text(json.dumps(cart_document))
    (tmp_path / "data.csv").write_text(csv_of_small_table())
    return tmp_path


def test_every_row_gets_what_the_tree_says(files, cart_document, capsys):
    call_command("predict", str(files / "model.json"), str(files / "data.csv"), output=str(files / "out.csv"))
    with (files / "out.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    tree, (table, _) = from_json(cart_document).tree, small_table()
    assert [r["label"] for r in rows] == [tree.classes[k] for k in tree.predict(table.matrix())]
    assert [int(r["leaf"]) for r in rows] == tree.apply(table.matrix()).tolist()
    assert [int(r["row"]) for r in rows] == list(range(1, len(table) + 1))
    assert [float(r["probability a"]) for r in rows] == tree.predict_proba(table.matrix())[:, 0].tolist()
    correct = cart_document["metrics"]["train"]["correct"]
    errors = capsys.readouterr().err
    assert f"{correct} of {len(table)} rows with a known class are correct" in errors
    assert f"Always the most frequent class of the training: {max(tree.nodes[0].counts)}." in errors


def test_rows_with_a_gap_stay_in_their_place(files):
    lines = (files / "data.csv").read_text().splitlines()
    lines[2] = "," + lines[2].split(",", 1)[1]
    (files / "data.csv").write_text("\n".join(lines) + "\n")
    call_command("predict", str(files / "model.json"), str(files / "data.csv"), output=str(files / "out.csv"))
    with (files / "out.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert rows[1]["label"] == ""
    assert rows[0]["label"] and rows[2]["label"]  # noqa: PT018


def test_unreadable_file_is_reported_in_one_line(files):
    (files / "data.csv").write_text("a,b\n1,2\n")
    with pytest.raises(CommandError, match="width"):
        call_command("predict", str(files / "model.json"), str(files / "data.csv"))
    with pytest.raises(CommandError):
        call_command("predict", str(files / "nothing.json"), str(files / "data.csv"))


def test_rows_are_explained_when_asked_as_by_explain(files, capsys):
    model = str(files / "model.json")
    data = str(files / "data.csv")
    out = files / "out.csv"
    call_command(
        "predict", model, data, output=str(out), explain=True, units_from=data, change=["width=up", "colour=never"]
    )
    assert "measured on the 120 training rows" in capsys.readouterr().err
    call_command("explain", model, data, change=["width=up", "colour=never"], json=True)
    records = json.loads(capsys.readouterr().out)
    with out.open() as stream:
        rows = list(csv.DictReader(stream))
    for row, record in zip(rows, records, strict=True):
        flip = record["flip"] or {"label": "", "distance": ""}
        assert (row["flip_label"], row["flip_distance"]) == (flip["label"], str(flip["distance"]))
        assert row["no_flip"] == (record["no_flip"] or "")
    assert sum(bool(row["flip"]) for row in rows) > 50


def test_options_for_explanations_alone_are_refused(files, tmp_path):
    model = str(files / "model.json")
    data = str(files / "data.csv")
    with pytest.raises(CommandError, match="Add --explain"):
        call_command("predict", model, data, change=["width=up"])
    other = tmp_path / "other.csv"
    other.write_text("\n".join((files / "data.csv").read_text().splitlines()[:50]) + "\n")
    with pytest.raises(CommandError, match="not the one that trained the model"):
        call_command("predict", model, data, output=str(tmp_path / "o"), explain=True, units_from=str(other))
    with pytest.raises(CommandError, match="no such column"):
        call_command("predict", model, data, output=str(tmp_path / "o"), explain=True, change=["wdth=up"])
    for cost, words in ((["wdth=1"], "no such column"), (["width=dear"], "write COLUMN=NUMBER")):
        with pytest.raises(CommandError, match=words):
            call_command("predict", model, data, output=str(tmp_path / "o"), explain=True, cost=cost)
    with pytest.raises(CommandError, match="Add --explain"):
        call_command("predict", model, data, output=str(tmp_path / "o"), cost=["width=1"])


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--explain",)])
def test_plain_predictions_load_nothing_that_explains(files, more):
    script = (
        "import sys, django; django.setup(); from django.core.management import call_command; call_command(*sys.argv[1:]);"
        "print(sorted(m for m in sys.modules if m in "
        "('trainer.explain.flip', 'trainer.explain.columns', 'trainer.explain.record', 'trainer.explain.program')))"
    )
    arguments = ["predict", str(files / "model.json"), str(files / "data.csv"), f"--output={files / 'out.csv'}", *more]
    process = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    assert (process.stdout.strip().splitlines()[-1] == "[]") == (not more)
