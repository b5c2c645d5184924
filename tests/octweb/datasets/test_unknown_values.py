"""The policy for categories unknown to training: set by API, page and commands, and obeyed by the model."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from octweb.datasets import actions
from tests.octweb.datasets.files import API, api
from trainer.data.reader import load
from trainer.data.rows import parse_rows
from trainer.errors import DataError, RowError
from trainer.table import UnknownPolicy
from trainer.tree.file import read_model

ROWS = "town,plan,age,class\n" + "".join(
    f"{'north' if i % 2 else 'south'},{'ab'[i // 2 % 2]},{20 + i % 30},{'yes' if i % 2 else 'no'}\n" for i in range(60)
)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "towns.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


def policies(schema):
    return {column.name: str(column.unknown) for column in schema}


def policies_of(dataset):
    return policies(actions.load(dataset)[0].schema)


def upload(owner, **fields):
    file = SimpleUploadedFile("towns.csv", ROWS.encode())
    return api(owner).post(API, {"file": file, "name": "Towns", "target": "class", **fields}, format="multipart")


def test_policies_are_by_column_or_for_all(table):
    found, *_ = load(table, target="class", unknown={"": UnknownPolicy.REFUSE, "plan": UnknownPolicy.BRANCH})
    assert policies(found.schema) == {"town": "refuse", "plan": "branch", "age": "warn"}
    assert policies(load(table, target="class")[0].schema) == {"town": "warn", "plan": "warn", "age": "warn"}


def test_a_policy_that_cannot_hold_is_refused(table):
    with pytest.raises(DataError, match="'age' is numeric: a text in it is always refused"):
        load(table, target="class", unknown={"age": UnknownPolicy.BRANCH})
    with pytest.raises(DataError, match="There is no column 'twn'"):
        load(table, target="class", unknown={"twn": UnknownPolicy.REFUSE})


def test_train_command_keeps_the_policy_in_the_file(table, tmp_path, capsys):
    model = tmp_path / "model.json"
    call_command("train", str(table), "--target=class", "--method=cart", "--unknown=town=refuse", f"--output={model}")
    own = read_model(model)
    assert policies(own.tree.schema)["town"] == "refuse"
    with pytest.raises(RowError, match="'east'"):
        parse_rows(own.tree.schema, own.tree.used_columns, [{"town": "east", "plan": "a", "age": 30}])
    with pytest.raises(CommandError, match=r"'town=never' is not one of branch, warn, refuse"):
        call_command("train", str(table), "--target=class", "--method=cart", "--unknown=town=never")


def test_counts_keep_the_policy(table, tmp_path, capsys):
    counts = tmp_path / "counts"
    model = tmp_path / "model.json"
    call_command("count", str(table), "--target=class", "--depth=2", "--unknown=refuse", f"--output={counts}")
    call_command("train", str(counts), "--method=exact", f"--output={model}")
    assert policies(read_model(model).tree.schema) == {"town": "refuse", "plan": "refuse", "age": "warn"}


def test_converted_tree_keeps_the_policy(table, tmp_path, capsys):
    source = tmp_path / "model.json"
    other = tmp_path / "converted.json"
    call_command("train", str(table), "--target=class", "--method=cart", f"--output={source}")
    call_command("convert", str(source), "--unknown=refuse", f"--output={other}")
    assert set(policies(read_model(other).tree.schema).values()) <= {"refuse", "warn"}
    assert policies(read_model(other).tree.schema)["town"] == "refuse"


@pytest.mark.django_db
def test_upload_and_change_by_the_api(owner):
    answer = upload(owner, unknown='{"town": "refuse"}')
    assert answer.status_code == 201, answer.content
    address = f"{API}{answer.json()['id']}/"
    dataset = actions.Dataset.objects.get(pk=answer.json()["id"])
    assert policies_of(dataset) == {"town": "refuse", "plan": "warn", "age": "warn"}
    contract = api(owner).get(f"{address}contract/").json()
    assert {c["name"]: c["unknown"] for c in contract["columns"]} == {"town": "refuse", "plan": "warn", "age": "refuse"}
    changed = api(owner).patch(address, {"columns": [{"name": "plan", "unknown": "branch"}]}, format="json")
    assert changed.status_code == 200, changed.content
    dataset.refresh_from_db()
    assert policies_of(dataset) == {"town": "refuse", "plan": "branch", "age": "warn"}


@pytest.mark.django_db
def test_policy_of_numbers_is_refused_at_its_column(owner):
    address = f"{API}{upload(owner).json()['id']}/"
    answer = api(owner).patch(address, {"columns": [{"name": "age", "unknown": "branch"}]}, format="json")
    assert answer.status_code == 400, answer.content
    assert "'age' is numeric" in answer.content.decode()
    assert upload(owner, unknown="sometimes").status_code == 400


@pytest.mark.django_db
def test_page_offers_and_keeps_the_policy(client, owner):
    client.force_login(owner)
    pk = upload(owner).json()["id"]
    text = client.get(f"/datasets/{pk}/edit/").content.decode()
    assert text.count('aria-label="New values of ') == 2
    client.post(
        f"/datasets/{pk}/edit/", {"target": "class", "name": "Towns", "unknown-0": "refuse", "unknown-1": "branch"}
    )
    dataset = actions.Dataset.objects.get(pk=pk)
    assert policies_of(dataset) == {"town": "refuse", "plan": "branch", "age": "warn"}
    assert 'value="refuse" selected' in client.get(f"/datasets/{pk}/edit/").content.decode()
