"""Files without a header: preview, API, command line, new versions and prediction."""

from __future__ import annotations

import csv
import io
import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from octweb.datasets import actions, stored, versions
from octweb.datasets.models import Dataset
from tests.octweb.datasets.files import post, upload
from trainer.data.inspect_table import inspect
from trainer.tree.file import read_model

pytestmark = pytest.mark.django_db
ROWS = [(5 + i % 7 / 4, f"{'rgb'[i % 3]}", i % 11, "pq"[i % 7 > 3]) for i in range(60)]
TEXT = "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in ROWS)
COLUMNS = ["column 1", "column 2", "column 3", "column 4"]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TEXT)
    return path


@pytest.fixture
def model(table, tmp_path):
    return train(table, tmp_path / "m.json", "column 4")


def train(table, model, target):
    call_command(
        "train",
        str(table),
        target=target,
        method="cart",
        depth=2,
        no_header=True,
        output=str(model),
        stdout=StringIO(),
        stderr=StringIO(),
    )
    return model


def answers(model, data, **options):
    out = StringIO()
    call_command("predict", str(model), str(data), stdout=out, stderr=StringIO(), **options)
    return [row["label"] for row in csv.DictReader(io.StringIO(out.getvalue()))]


def test_first_line_that_is_a_row_is_found(table):
    findings = inspect(table, target="p")
    assert findings[0].kind == "no_header"
    assert findings[0].mend == {"header": False}
    assert findings[0].figure == "the first line is 5.0, r, 0, p"
    assert all(finding.kind != "no_header" for finding in inspect(table, target="column 4", header=False))


def test_command_inspect_names_the_option(table):
    out = StringIO()
    call_command("inspect", str(table), target="p", stdout=out)
    assert "To change: --no-header" in out.getvalue()
    out = StringIO()
    call_command("inspect", str(table), target="column 4", no_header=True, stdout=out)
    assert "no_header" not in out.getvalue()


def test_refused_names_advise_no_header(tmp_path):
    (tmp_path / "t.csv").write_text("1,1,p\n2,3,q\n1,4,p\n")
    with pytest.raises(CommandError, match="--no-header"):
        call_command("inspect", str(tmp_path / "t.csv"), target="p", stdout=StringIO())


def test_model_reads_later_files_without_header(model, table, tmp_path):
    expected = ["pq"[i % 7 > 3] for i in range(60)]
    assert [column.name for column in read_model(model).tree.schema] == COLUMNS[:3]
    assert answers(model, table) == expected
    without_class = tmp_path / "new.csv"
    without_class.write_text("".join(line.rpartition(",")[0] + "\n" for line in TEXT.splitlines()))
    assert answers(model, without_class) == expected
    named = tmp_path / "named.csv"
    named.write_text(",".join(COLUMNS) + "\n" + TEXT)
    assert answers(model, named) == expected
    assert answers(model, table, no_header=True) == expected


def test_leading_class_may_be_omitted(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("".join(f"{d},{a},{b},{c}\n" for a, b, c, d in ROWS))
    model = train(table, tmp_path / "m.json", "column 1")
    short = tmp_path / "short.csv"
    short.write_text("".join(f"{a},{b},{c}\n" for a, b, c, _ in ROWS))
    assert answers(model, short) == answers(model, table)
    short.write_text("".join(f"{a},{b}\n" for a, b, _, _ in ROWS))
    with pytest.raises(CommandError, match="2 columns and no header line, but the training file had 4"):
        answers(model, short)


def test_tree_of_one_leaf_keeps_the_first_row(table, tmp_path):
    table.write_text("".join(f"{i},p\n" for i in range(30)) + "1,q\n")
    model = tmp_path / "leaf.json"
    call_command(
        "train",
        str(table),
        target="column 2",
        method="cart",
        depth=0,
        no_header=True,
        output=str(model),
        stdout=StringIO(),
        stderr=StringIO(),
    )
    assert len(answers(model, table)) == 31


def test_model_with_names_refuses_no_header(table, tmp_path):
    table.write_text("a,b,c,d\n" + TEXT)
    model = tmp_path / "m.json"
    call_command(
        "train", str(table), target="d", method="cart", depth=2, output=str(model), stdout=StringIO(), stderr=StringIO()
    )
    with pytest.raises(CommandError, match="Add a header line with a"):
        answers(model, table, no_header=True)


def test_verify_reads_the_file_as_training_did(model, table):
    out = StringIO()
    call_command("verify", str(model), str(table), json=True, stdout=out, stderr=StringIO())
    assert json.loads(out.getvalue().splitlines()[-1])["verdict"] == "recounted"


def test_contract_states_that_there_is_no_header(model):
    out = StringIO()
    call_command("contract", str(model), json=True, stdout=out)
    assert json.loads(out.getvalue())["header"] is False


def test_button_reads_the_first_line_as_data(client, owner, media):
    client.force_login(owner)
    url = client.post(reverse("datasets:new"), {"file": upload(TEXT.encode())}).url
    response = client.get(url)
    finding = response.context["findings"][0]
    assert (finding["kind"], finding["button"]) == ("no_header", "Read the first line as data")
    fields = {"seen": response.context["seen"], "header": "yes", "mend": finding["value"]}
    again = client.post(url, fields)
    assert again.context["total"] == 60
    assert list(again.context["target_names"]) == COLUMNS
    fields = {"seen": again.context["seen"], "header": "no", "target": "column 4", "confirm": "1", "name": "t"}
    assert client.post(url, fields).status_code == 302
    assert stored.load(Dataset.objects.get())[0].names == tuple(COLUMNS[:3])


def test_api_reads_later_versions_in_the_same_way(owner, media):
    answer = post(owner, TEXT.encode(), header="false", target="column 4")
    assert answer.status_code == 201, answer.content
    first = Dataset.objects.get()
    assert (first.rows, first.reading["width"]) == (60, 4)
    version = versions.new_version(first, owner=owner, file=io.BytesIO(TEXT.encode()), source_name="b.csv")
    assert version.rows == 60
    table, _ = actions.load(version)
    assert table.reading["given"] == {"header": False}
