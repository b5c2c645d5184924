"""`manage.py predict`."""

from __future__ import annotations

import csv
import json

import pytest
from django.core.management import CommandError, call_command

from tests.octweb.registry.test_pages import csv_of_small_table
from tests.octweb.small_models import small_table
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
    assert f"{correct} of {len(table)} rows with a known class are correct" in capsys.readouterr().err


def test_rows_with_a_gap_stay_in_their_place(files):
    lines = (files / "data.csv").read_text().splitlines()
    lines[2] = "," + lines[2].split(",", 1)[1]
    (files / "data.csv").write_text("\n".join(lines) + "\n")
    call_command("predict", str(files / "model.json"), str(files / "data.csv"), output=str(files / "out.csv"))
    with (files / "out.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert rows[1]["label"] == ""
    assert rows[0]["label"] and rows[2]["label"]  # noqa: PT018


def test_what_cannot_be_read_is_said_in_one_line(files):
    (files / "data.csv").write_text("a,b\n1,2\n")
    with pytest.raises(CommandError, match="width"):
        call_command("predict", str(files / "model.json"), str(files / "data.csv"))
    with pytest.raises(CommandError):
        call_command("predict", str(files / "nothing.json"), str(files / "data.csv"))
