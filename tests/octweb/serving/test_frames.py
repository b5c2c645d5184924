"""All interfaces predict the same for a frame, or refuse it, and train the same tree on a file.

There are 386 frames of 11 kinds of columns.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import trainer
from tests.octweb.serving.frames import (
    CHOICES,
    ODD,
    REFUSED,
    Doors,
    cells_of,
    fitted_on,
    forms_of,
    trained_on,
)
from tests.octweb.serving.training_doors import TARGET, by_api, by_command, by_page, training_file
from trainer.data.reader import load
from trainer.tree.export.pmml import to_pmml
from trainer.tree.file import read_model

pytestmark = pytest.mark.django_db


@pytest.fixture
def open_doors(owner, staff, client_of, tmp_path):
    """Provide a function that trains on a kind of column and returns the interfaces of its model."""

    def train(kind, options):
        learned = {"missing": "learn"} if "gaps" in kind else {}
        return trained_on(kind, options | learned, owner, staff, client_of(owner), tmp_path)

    return train


def assert_one_answer(doors, frames, kind, options):
    usual = doors.estimator(frames["objects"])
    assert usual != REFUSED
    for form, frame in frames.items():
        answers = doors.answers(frame)
        expected = answers["estimator"]
        assert {name: found for name, found in answers.items() if found != expected} == {}, (form, expected)
        if form not in ODD:
            assert expected == usual, form
        elif options and (form == "never seen" or "gaps" not in kind):
            assert expected == REFUSED, form


@pytest.mark.parametrize("kind", ["codes", "truths as text"])
def test_few_frames_get_equal_answers_in_every_interface(kind, open_doors):
    frames = forms_of(cells_of(kind, 1))
    few = {form: frames[form] for form in ("objects", "marks", "polars", "arrow")}
    assert_one_answer(open_doors(kind, {}), few, kind, {})


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"missing": "refuse", "unknown": "refuse"}], ids=["lenient", "strict"])
@pytest.mark.parametrize("kind", CHOICES)
def test_frames_get_equal_answers_in_every_interface(kind, options, open_doors):
    """With both settings, the 11 kinds of columns give 386 frames."""
    frames = forms_of(cells_of(kind, 1))
    assert len(frames) >= 13
    assert_one_answer(open_doors(kind, options), frames, kind, options)


@pytest.mark.slow
def test_jpmml_answers_frames_like_estimator(tmp_path):
    """Java starts once for all documents, so this is a test of its own."""
    if shutil.which("java") is None or importlib.util.find_spec("jpmml_evaluator") is None:
        pytest.skip("needs Java and the package jpmml-evaluator")
    expected = {}
    for kind, strict in itertools.product(CHOICES, (False, True)):
        options = {"missing": "refuse", "unknown": "refuse"} if strict else {}
        classifier = fitted_on(kind, options | ({"missing": "learn"} if "gaps" in kind else {}))
        classifier.save(tmp_path / "model.json")
        doors = Doors(classifier, None, None, tmp_path, file=read_model(tmp_path / "model.json"))
        for form, frame in forms_of(cells_of(kind, 1)).items():
            cells = doors.contract_cells(frame)
            if any(cell is None for row in cells for cell in row.values()) and "gaps" not in kind:
                continue  # programs answer "no" for an empty cell that the model refuses
            name = f"{kind} {strict} {form}"
            (tmp_path / f"{name}.pmml").write_text(to_pmml(doors.file.tree), encoding="utf-8")
            (tmp_path / f"{name}.rows.json").write_text(json.dumps(cells))
            expected[name] = doors.estimator(frame)
    reader = Path(__file__).parents[2] / "trainer" / "oracles" / "pmml_reader.py"
    process = subprocess.run([sys.executable, str(reader), str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stderr[-2000:]
    assert len(expected) > 300
    for name, leaves in expected.items():
        rows = json.loads((tmp_path / f"{name}.out.json").read_text())
        assert (REFUSED if None in rows else [int(row["leaf"]) for row in rows]) == leaves, name


BATCHES = [("codes", {}), ("text with gaps", {"unknown": "refuse"}), ("truths as text", {})]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "options"), BATCHES, ids=[kind for kind, _ in BATCHES])
def test_predicted_files_have_the_same_answers(kind, options, open_doors, media, settings, tmp_path):
    """A worker predicts these files in a process of its own."""
    settings.DATA_DIR = tmp_path / "data"
    doors = open_doors(kind, options)
    frames = forms_of(cells_of(kind, 1))
    for form in {"objects", "marks", "polars", "never seen", "capitals"} & frames.keys():
        assert doors.batch(frames[form]) == doors.estimator(frames[form]), form


def assert_one_tree(path, owner):
    expected = by_command(path)
    assert expected != REFUSED
    assert by_api(path, owner) == expected
    assert by_page(path, owner) == expected
    table, _, _ = load(path, target=TARGET)
    loaded = trainer.load(path.with_suffix(".json"))
    assert loaded.apply(frame_of(table)).tolist() == loaded.tree_.apply(table.matrix()).tolist()


def frame_of(table):
    """Return a table as a data frame of texts and numbers."""
    columns = {}
    for column in table.columns:
        names = column.schema.categories
        cells = [None if value != value else value for value in column.values.tolist()]
        columns[column.name] = [names[int(cell)] if names and cell is not None else cell for cell in cells]
    return pd.DataFrame(columns)


def test_uploaded_file_gives_the_tree_of_the_command(owner, media, tmp_path):
    path = training_file("text with gaps", "csv", tmp_path)
    expected = by_command(path)
    assert expected != REFUSED
    assert by_api(path, owner, in_worker=False) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "ending"),
    [*((kind, ending) for kind in CHOICES for ending in ("csv", "parquet")), ("text with gaps", "feather"), ("truths", "feather"),
     ("text", "xlsx"), ("truths", "xlsx"), ("numbers with gaps", "xlsx"), ("padded codes", "xlsx")],
)  # fmt: skip
def test_file_formats_give_equal_trees_in_every_interface(kind, ending, owner, media, settings, tmp_path):
    settings.DATA_DIR = tmp_path / "data"
    assert_one_tree(training_file(kind, ending, tmp_path), owner)
