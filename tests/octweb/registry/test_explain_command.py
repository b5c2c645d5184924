"""`manage.py explain`: the output that scripts rely on, permissions and refusals."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from trainer.table import Column as TableColumn
from trainer.table import ColumnKind, ColumnSchema, Labels, Table, fingerprint
from trainer.tree.file import ModelFile, write
from trainer.tree.nodes import DraftBranch, DraftLeaf, grow
from trainer.tree.splits import Subset, Threshold

AGES = [20.0, 30.0, 40.0, 50.0, 60.0, 70.0]
COLOURS = ("blue", "red")
CODES = [0, 1, 0, 1, 0, 1]
LABELS = ["no", "no", "no", "yes", "yes", "yes"]


@pytest.fixture
def files(tmp_path):
    schema = (
        ColumnSchema(name="age", kind=ColumnKind.NUMERIC),
        ColumnSchema(name="colour", kind=ColumnKind.CATEGORICAL, categories=COLOURS),
    )
    table = Table(
        columns=tuple(
            TableColumn(schema=s, cells=np.array(v, float)) for s, v in zip(schema, (AGES, CODES), strict=True)
        ),
        row_numbers=np.arange(1, 7),
    )
    y = np.array([int(label == "yes") for label in LABELS], np.int32)
    draft = DraftBranch(
        split=Threshold(feature=0, threshold=45.0),
        left=DraftLeaf(label=0),
        right=DraftBranch(split=Subset(feature=1, codes=(0,)), left=DraftLeaf(label=1), right=DraftLeaf(label=1)),
    )
    tree = grow(draft, table.matrix(), y, schema=schema, classes=("no", "yes"))
    own = fingerprint(table, Labels(name="answer", classes=("no", "yes"), codes=y))
    write(ModelFile(tree=tree, target="answer", fingerprint=own), tmp_path / "model.json")
    lines = [f"{int(a)},{COLOURS[c]},{label}" for a, c, label in zip(AGES, CODES, LABELS, strict=True)]
    (tmp_path / "data.csv").write_text("\n".join(["age,colour,answer", *lines]) + "\n")
    return str(tmp_path / "model.json"), str(tmp_path / "data.csv")


def explain(*arguments):
    out = io.StringIO()
    err = io.StringIO()
    call_command("explain", *arguments, "--json", stdout=out, stderr=err)
    return json.loads(out.getvalue().splitlines()[-1]), err.getvalue()


def test_the_record_has_what_the_contract_says(files):
    found, notes = explain(*files)
    assert [r["row"] for r in found] == [1, 2, 3, 4, 5, 6]
    third = found[2]
    assert (third["label"], third["leaf"], third["no_flip"]) == ("no", 1, None)
    assert third["probabilities"] == {"no": 1.0, "yes": 0.0}
    (step,) = third["path"]
    expected = {"column": "age", "value": 40, "op": "<=", "threshold": 45.0, "distance": 5.0}
    assert {key: step[key] for key in expected} == expected
    flip = third["flip"]
    # Ages are integers, so 46 is the first age above 45. Their median absolute deviation is 15.
    assert flip["changes"] == {"age": [40, 46]}
    assert flip["distance"] == pytest.approx(6 / 15)
    assert (flip["label"], flip["proved"]) == ("yes", True)
    assert "the 6 training rows of this file" in notes


def test_rows_are_chosen_and_permissions_are_kept(files):
    found, _ = explain(*files, "--row", "3", "5", "--change", "age=down")
    assert [r["row"] for r in found] == [3, 5]
    assert found[0]["flip"] is None
    assert "No permitted change" in found[0]["no_flip"]
    assert found[1]["flip"]["changes"] == {"age": [60, 45]}


def test_a_wanted_class_that_is_the_answer_already(files):
    found, _ = explain(*files, "--row", "1", "--wanted", "no")
    assert found[0]["flip"] is None
    assert found[0]["no_flip"] == "The answer is already no."


def test_explanation_names_foreign_rows_as_unit_source(files, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("age,colour\n41.5,blue\n,red\n")
    found, notes = explain(files[0], str(other))
    assert "it is not the file that trained the model" in notes
    assert found[0]["flip"]["changes"] == {"age": [41.5, 45.1]}
    assert (found[1]["label"], found[1]["flip"]) == (None, None)
    assert "'age' has no value" in found[1]["no_flip"]


def test_cost_replaces_the_unit(files, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("age,colour\n41.5,blue\n")
    found, _ = explain(files[0], str(other), "--cost", "age=2")
    assert found[0]["flip"]["changes"] == {"age": [41.5, 45.1]}
    assert found[0]["flip"]["distance"] == pytest.approx(2 * (45.1 - 41.5))


def test_smallest_total_differs_from_fewest_columns(tmp_path):
    """41 years more are enough; 6 of height and 6 of weight together cost less."""
    names = ("age", "height", "weight")
    schema = tuple(ColumnSchema(name=name, kind=ColumnKind.NUMERIC) for name in names)
    rows = np.array([[40.0, 40, 40], [50, 50, 50], [60, 60, 60], [45, 90, 70]])
    left = DraftBranch(
        split=Threshold(feature=1, threshold=45.0),
        left=DraftLeaf(label=0),
        right=DraftBranch(
            split=Threshold(feature=2, threshold=45.0), left=DraftLeaf(label=0), right=DraftLeaf(label=1)
        ),
    )
    draft = DraftBranch(split=Threshold(feature=0, threshold=80.0), left=left, right=DraftLeaf(label=1))
    tree = grow(draft, rows, np.array([0, 1, 1, 1], np.int32), schema=schema, classes=("no", "yes"))
    write(ModelFile(tree=tree, target="answer", fingerprint="0" * 64), tmp_path / "model.json")
    (tmp_path / "data.csv").write_text("age,height,weight\n40,40,40\n")
    files = str(tmp_path / "model.json"), str(tmp_path / "data.csv")
    costs = [word for name in names for word in ("--cost", f"{name}=1")]
    (few,), notes = explain(*files, *costs)
    assert (few["least"], few["flip"]["columns"], few["flip"]["distance"]) == ("columns", 1, 41)
    assert "fewest columns first" in notes
    (cheap,), notes = explain(*files, *costs, "--least", "total")
    assert cheap["flip"]["changes"] == {"height": [40, 46], "weight": [40, 46]}
    assert (cheap["least"], cheap["flip"]["distance"], cheap["flip"]["proved"]) == ("total", 12, True)
    assert [f["changes"] for f in cheap["alternatives"]] == [{"age": [40, 81]}]
    assert "the smallest total, however many columns change" in notes
    call_command("predict", *files, output=str(tmp_path / "out.csv"), explain=True, cost=costs[1::2], least="total")
    (row,) = csv.DictReader((tmp_path / "out.csv").open())
    assert (row["flip"], float(row["flip_distance"])) == ("height 40 -> 46; weight 40 -> 46", 12)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--row", "9"), "There is no row 9"),
        (("--change", "agee=up"), "no such column"),
        (("--change", "age=sideways"), "is not one of free"),
        (("--change", "colour=up"), "column of categories"),
        (("--change", "colour=green"), "is not a category"),
        (("--wanted", "perhaps"), "no class 'perhaps'"),
        (("--least", "money"), "is not one of columns, total"),
        (("--cost", "agee=2"), "no such column"),
        (("--cost", "age=dear"), "write COLUMN=NUMBER"),
        (("--cost", "colour=2"), "no cost per unit"),
    ],
)
def test_impossible_values_are_refused_in_words(files, more, words):
    with pytest.raises(CommandError, match=words):
        explain(*files, *more)
