"""Worksheets and Arrow files: preview, API, command line, new versions and prediction."""

from __future__ import annotations

import csv
import datetime
import io
import json
from io import StringIO

import pandas as pd
import pyarrow.feather as feather
import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from octweb.datasets import actions, versions
from octweb.datasets.models import Dataset
from tests.octweb.datasets.files import post, upload
from tests.workbooks import workbook
from trainer.tree.file import read_model

pytestmark = pytest.mark.django_db
HEADER = ["size", "colour", "seen", "class"]
ROWS = [[5 + i % 7 / 4, "rgb"[i % 3], datetime.date(2024, 1 + i % 12, 1 + i % 28), "pq"[i % 7 > 3]] for i in range(60)]
NOTES = [["The table is on the next sheet", "2024"], ["a", "b"], ["c", "d"]]
BOOK = workbook({"Notes": NOTES, "Data": [["Report"], [], HEADER, *ROWS]})
EXPECTED = [row[-1] for row in ROWS]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.xlsx"
    path.write_bytes(BOOK)
    return path


@pytest.fixture
def model(table, tmp_path):
    call_command(
        "train",
        str(table),
        target="class",
        method="cart",
        depth=2,
        sheet="Data",
        output=str(tmp_path / "m.json"),
        stdout=StringIO(),
        stderr=StringIO(),
    )
    return tmp_path / "m.json"


def answers(model, data, **options):
    out = StringIO()
    call_command("predict", str(model), str(data), stdout=out, stderr=StringIO(), **options)
    return [row["label"] for row in csv.DictReader(io.StringIO(out.getvalue()))]


def test_model_reads_the_sheet_of_the_training(model, table, tmp_path):
    assert read_model(model).reading["given"] == {"sheet": "Data"}
    assert answers(model, table) == EXPECTED
    other = tmp_path / "other.xlsx"
    other.write_bytes(workbook({"June": [HEADER, *ROWS], "May": NOTES}))
    assert answers(model, other) == EXPECTED
    assert answers(model, other, sheet="June") == EXPECTED
    text = tmp_path / "t.csv"
    text.write_text("\n".join(",".join(map(str, row)) for row in [HEADER, *ROWS]))
    assert answers(model, text) == EXPECTED


def test_verify_reads_the_workbook_with_its_own_code(model, table):
    out = StringIO()
    call_command("verify", str(model), str(table), json=True, stdout=out, stderr=StringIO())
    assert json.loads(out.getvalue().splitlines()[-1])["verdict"] == "recounted"


@pytest.mark.slow
def test_preview_offers_the_sheets(client, owner, media):
    client.force_login(owner)
    url = client.post(reverse("datasets:new"), {"file": upload(BOOK, "t.xlsx")}).url
    response = client.get(url)
    assert '<select id="sheet" name="sheet">' in response.content.decode()
    assert response.context["raw"].detected.sheets == ("Notes", "Data")
    again = client.post(url, {"sheet": "Data", "header": "yes", "reread": "1"})
    assert again.context["called"] == "row"
    assert again.context["total"] == 60
    fields = {"sheet": "Data", "seen": again.context["seen"], "target": "class", "confirm": "1", "name": "Boxes"}
    assert client.post(url, fields).status_code == 302
    dataset = Dataset.objects.get()
    assert (dataset.rows, dataset.base_name) == (60, "Boxes")


@pytest.mark.slow
def test_api_reads_the_named_sheet_of_each_version(owner, media):
    answer = post(owner, BOOK, "t.xlsx", sheet="Data", target="class")
    assert answer.status_code == 201, answer.content
    first = Dataset.objects.get()
    assert first.rows == 60
    assert first.columns[0]["kind"] == "numeric"
    version = versions.new_version(first, owner=owner, file=io.BytesIO(BOOK), source_name="b.xlsx")
    assert version.rows == 60
    assert actions.load(version)[0].reading["given"] == {"sheet": "Data"}
    answer = post(owner, BOOK, "t.xlsx", sheet="Dta", target="class")
    assert answer.status_code == 422
    assert "Did you mean 'Data'" in answer.json()["detail"]


def test_bomb_is_refused_before_it_is_unpacked(owner, media, settings):
    settings.MAX_UNPACKED_BYTES = 10**6
    answer = post(owner, workbook({"s": [["a", "b"]] + [["0" * 5000, "1"]] * 2000}), "t.xlsx", target="b")
    assert answer.status_code == 422
    assert "unpacks to more than" in answer.json()["detail"]


def test_api_names_the_remedy_for_other_spreadsheets(owner, media):
    answer = post(owner, b"\xd0\xcf\x11\xe0" + b"\0" * 600, "t.xls", target="b")
    assert answer.status_code == 422
    assert "save it as .xlsx or .csv" in answer.json()["detail"]


def test_file_to_predict_without_sheets_refuses_one(model, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(CommandError, match="has sheets"):
        answers(model, path, sheet="Data")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_api_keeps_declared_categories(owner, media, tmp_path, form):
    frame = pd.DataFrame({"region": pd.Categorical([1, 2, 3] * 20), "y": ["p", "q"] * 30})
    if form == "parquet":
        frame.to_parquet(tmp_path / "t")
    else:
        feather.write_feather(frame, tmp_path / "t", compression="uncompressed")
    answer = post(owner, (tmp_path / "t").read_bytes(), f"t.{form}", target="y")
    assert answer.status_code == 201, answer.content
    column = answer.json()["columns"][0]
    assert (column["kind"], column["reason"]) == ("categorical", "the file declares 3 categories")
    assert actions.load(Dataset.objects.get())[0].columns[0].schema.categories == ("1", "2", "3")


def test_feather_file_goes_through_the_pages(client, owner, media):
    """A person uploads it, sees its rows and declared categories, and stores it."""
    frame = pd.DataFrame(ROWS, columns=HEADER).astype({"colour": "category"})
    sink = io.BytesIO()
    frame.to_feather(sink)
    client.force_login(owner)
    url = client.post(reverse("datasets:new"), {"file": upload(sink.getvalue(), "boxes.feather")}).url
    response = client.get(url)
    assert response.context["total"] == 60
    assert "colour" in response.content.decode()
    fields = {"seen": response.context["seen"], "target": "class", "confirm": "1", "name": "Feathers"}
    assert client.post(url, fields).status_code == 302
    dataset = Dataset.objects.get()
    assert (dataset.rows, dataset.base_name) == (60, "Feathers")
    assert {c["name"]: c["kind"] for c in dataset.columns if c["name"] in ("size", "colour")} == {
        "size": "numeric",
        "colour": "categorical",
    }
