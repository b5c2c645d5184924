"""Erasing rows of a data set: a version without them, models that trained on them, and no stored file with them."""

from __future__ import annotations

import io
import re
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.urls import reverse
from django.utils import timezone

from octweb.audit.models import Record
from octweb.core.problems import Conflict
from octweb.datasets import actions, erasing, samples, versions
from octweb.datasets.models import Dataset
from octweb.datasets.stored import ERASED, first_rows, load
from octweb.experiments import actions as experiments
from octweb.privacy.actions import erase_rows
from octweb.registry.lifecycle import actions as registry
from octweb.registry.lifecycle.audit_trail import audit_datasets
from octweb.runs import actions as runs
from octweb.workbench import actions as workbenches
from trainer.errors import DataError
from trainer.training.run import TrainRequest, train

pytestmark = pytest.mark.django_db
TEXT = "person,size,colour,class\n" + "".join(
    f"p{i:03d},{i % 10},{'rg'[i % 2]},{'pq'[i % 3 == 0]}\n" for i in range(60)
)


@pytest.fixture
def boxes(owner, media, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        return actions.create(
            owner=owner, file=io.BytesIO(TEXT.encode()), source_name="a.csv", name="Boxes", target="class"
        )


@pytest.fixture
def trained(boxes):
    table, labels = load(boxes)
    document = train(TrainRequest(table=table, labels=labels, method="cart", test_share=0.5)).model.to_json()
    return registry.register(owner=boxes.owner, document=document, dataset=boxes, title="Boxes")


def later(boxes):
    return versions.new_version(boxes, owner=boxes.owner, file=io.BytesIO(TEXT.encode()), source_name="b.csv")


def stored_bytes(media):
    """Return all cells of all stored Parquet files, as text."""
    tables = [pq.read_table(path).to_pydict() for path in media.rglob("*.parquet")]
    return repr(tables)


def test_new_version_has_all_other_rows_in_order(boxes):
    version = erasing.without_rows(boxes, [3, 60], by=boxes.owner, why="request")
    assert (version.version, version.rows, version.previous) == (2, boxes.rows - 2, boxes)
    names, rows = first_rows(version, 100)
    expected = [r for i, r in enumerate(first_rows(boxes, 100)[1], 1) if i not in (3, 60)]
    assert (names, rows) == (first_rows(boxes, 1)[0], expected)
    assert actions.first_lines(version, 3) == [2, 3, 5]
    assert [c["kind"] for c in version.columns] == [c["kind"] for c in boxes.columns]


def test_rows_are_found_by_text_and_by_number(boxes):
    assert [row.number for row in erasing.find_rows(boxes, "person", " p007 ")] == [8]
    assert erasing.find_rows(boxes, "person", "p7") == []
    assert len(erasing.find_rows(boxes, "size", "3")) == 6
    with pytest.raises(DataError, match="no column 'age'"):
        erasing.find_rows(boxes, "age", "3")


@pytest.mark.parametrize(
    ("numbers", "why", "words"),
    [([61], "request", "no row 61"), ([], "request", "Choose 1 to"), ([1], "because", "is not a reason")],
)
def test_wrong_choice_is_refused(boxes, numbers, why, words):
    with pytest.raises(DataError, match=words):
        erasing.without_rows(boxes, numbers, by=boxes.owner, why=why)
    assert Dataset.objects.count() == 1


def test_removal_leaves_no_stored_file_with_the_row(
    boxes, trained, media, client_of, django_capture_on_commit_callbacks
):
    second = later(boxes)
    assert "p007" in stored_bytes(media)
    with django_capture_on_commit_callbacks(execute=True):
        answer = client_of(boxes.owner).post(
            f"/api/v1/datasets/{boxes.pk}/erase/", {"rows": [8], "why": "request", "remove": True}, format="json"
        )
    assert answer.status_code == 201, answer.content
    assert sorted(answer.json()["removed"]) == sorted([str(boxes.pk), str(second.pk)])
    assert "p007" not in stored_bytes(media)
    assert "p008" in stored_bytes(media)
    assert "p007" not in repr(list(Dataset.objects.values()))
    assert "p007" not in repr(list(Record.objects.values()))
    assert audit_datasets(Dataset.objects.all()).problems == []
    with pytest.raises(DataError, match="were erased"):
        load(Dataset.objects.get(pk=boxes.pk))


def test_models_that_trained_on_the_row_are_listed(boxes, trained, client_of):
    api = client_of(boxes.owner)
    found = {}
    for name in ("p001", "p002", "p003", "p004", "p005", "p006", "p007", "p008"):
        body = api.get(f"/api/v1/datasets/{boxes.pk}/erase/", {"column": "person", "value": name}).json()
        found[name] = [(m["id"], m["training"], m["held_out"]) for m in body["models"]]
    # half of the rows were held out
    assert {tuple(models) for models in found.values()} == {(), ((str(trained.pk), 1, 0),)}


def test_unfinished_run_prevents_the_removal(boxes, client_of):
    runs.enqueue(owner=boxes.owner, dataset=boxes, method="cart")
    answer = client_of(boxes.owner).post(
        f"/api/v1/datasets/{boxes.pk}/erase/", {"rows": [8], "why": "request", "remove": True}, format="json"
    )
    assert (answer.status_code, Dataset.objects.count()) == (409, 1)
    assert "have not ended" in answer.json()["detail"]


@pytest.mark.parametrize("kind", ["experiment", "workbench"])
def test_unfinished_search_prevents_the_removal(boxes, kind):
    """A search has the rows in memory, and its tree would be stored after the erasure."""
    if kind == "experiment":
        experiments.start(owner=boxes.owner, dataset=boxes, candidates=[{"method": "cart"}])
    else:
        workbenches.open_for(owner=boxes.owner, dataset=boxes)
    with pytest.raises(Conflict, match="have not ended"):
        erase_rows(boxes, [8], by=boxes.owner, why="request", remove=True)
    assert Dataset.objects.exclude(file="").count() == 1


def test_erasure_is_refused_if_a_run_starts_concurrently(boxes, media, monkeypatch):
    second = later(boxes)
    described = erasing.reader.describe

    def describe_while_a_run_is_queued(*args, **options):
        runs.enqueue(owner=boxes.owner, dataset=second, method="cart")
        return described(*args, **options)

    monkeypatch.setattr(erasing.reader, "describe", describe_while_a_run_is_queued)
    files = sorted(media.rglob("*.parquet"))
    with pytest.raises(Conflict, match="have not ended"):
        erase_rows(boxes, [8], by=boxes.owner, why="request", remove=True)
    assert Dataset.objects.exclude(file="").count() == 2
    assert sorted(media.rglob("*.parquet")) == files
    assert not Record.objects.filter(what__in=["rows erased", "file erased"]).exists()


def test_erased_cell_is_in_no_reason_of_a_column(owner, media):
    """The reason for the kind of a column quotes a cell that does not fit."""
    rows = "".join(f"p{i:03d},{'circa 77' if i == 7 else i % 13},{'pq'[i % 3 == 0]}\n" for i in range(120))
    spaced = ("person,size,class\n" + rows).replace(",", ";")
    dataset = actions.create(
        owner=owner, file=io.BytesIO(spaced.encode()), source_name="a.csv", name="Sizes", target="class"
    )
    assert "circa 77" in repr(list(Dataset.objects.values()))
    erase_rows(dataset, [8], by=owner, why="request", remove=True)
    assert "circa 77" not in repr(list(Dataset.objects.values()))


def test_row_is_found_in_a_version_with_another_order_of_columns(boxes):
    lines = [line.split(",") for line in TEXT.splitlines()]
    text = "\n".join(",".join(line[::-1]) for line in lines)
    second = versions.new_version(boxes, owner=boxes.owner, file=io.BytesIO(text.encode()), source_name="b.csv")
    assert erasing.versions_with(boxes, [8], by=boxes.owner) == {boxes: [8], second: [8]}


def test_row_with_not_a_number_is_found_in_other_versions(owner, media):
    size = [float("nan") if i == 7 else i / 2 for i in range(60)]
    table = pa.table({"size": size, "class": ["pq"[i % 3 == 0] for i in range(60)]})
    content = io.BytesIO()
    pq.write_table(table, content)
    versions_of = []
    for before in (None, 0):
        file = io.BytesIO(content.getvalue())
        if before is None:
            made = actions.create(owner=owner, file=file, source_name="a.parquet", name="Sizes", target="class")
        else:
            made = versions.new_version(versions_of[0], owner=owner, file=file, source_name="b.parquet")
        versions_of.append(made)
    assert erasing.versions_with(versions_of[0], [8], by=owner) == {one: [8] for one in versions_of}


@pytest.mark.parametrize("address", ["runs", "experiments", "workbenches"])
def test_search_on_an_erased_version_is_refused(boxes, client_of, address):
    erase_rows(boxes, [8], by=boxes.owner, why="request", remove=True)
    method = {} if address == "experiments" else {"method": "exact"}
    answer = client_of(boxes.owner).post(f"/api/v1/{address}/", {"dataset": str(boxes.pk)} | method, format="json")
    assert (answer.status_code, answer.json()["detail"]) == (422, ERASED)


def test_sample_with_erased_rows_is_stored_again(owner, media):
    sample = samples.load(owner=owner, slug=samples.SAMPLES[0].slug)
    erase_rows(sample, [1], by=owner, why="mistake", remove=True)
    assert samples.load(owner=owner, slug=samples.SAMPLES[0].slug).file


def test_deleted_version_with_erased_rows_is_purged(boxes, media, django_capture_on_commit_callbacks):
    later(boxes)
    with django_capture_on_commit_callbacks(execute=True):
        erasing.remove_rows(boxes, by=boxes.owner, why="request")
    assert len([*media.rglob("*.parquet")]) == 1
    Dataset.objects.update(deleted_at=timezone.now() - Dataset.back_within() - timedelta(days=1))
    assert actions.purge(timezone.now()) == 2
    assert not [*media.rglob("*.parquet")]


def test_pages_find_erase_and_show_what_is_left(boxes, trained, client, django_capture_on_commit_callbacks):
    client.force_login(boxes.owner)
    address = reverse("privacy:erase-rows", args=[boxes.pk])
    page = client.get(address, {"column": "person", "value": "p007"}).content.decode()
    assert re.search(r'name="row" value="8"', page)
    with django_capture_on_commit_callbacks(execute=True):
        answer = client.post(address, {"row": "8", "why": "request", "remove": "1"}, follow=True)
    assert answer.status_code == 200
    assert "59 rows" in answer.content.decode()
    for url in (
        reverse("datasets:detail", args=[boxes.pk]),
        reverse("registry:detail", args=[trained.pk]),
        reverse("runs:new") + f"?dataset={boxes.pk}",
        reverse("datasets:edit", args=[boxes.pk]),
        address + "?column=person&value=p007",
    ):
        assert client.get(url).status_code == 200, url
    assert "were erased" in client.get(reverse("datasets:detail", args=[boxes.pk])).content.decode()
    assert client.post(address, {"row": "x", "why": "request"}).status_code == 200


def test_stranger_finds_and_erases_nothing(boxes, stranger, client_of, client):
    address = f"/api/v1/datasets/{boxes.pk}/erase/"
    api = client_of(stranger)
    assert api.get(address, {"column": "person", "value": "p007"}).status_code == 404
    assert api.post(address, {"rows": [8], "why": "request"}, format="json").status_code == 404
    client.force_login(stranger)
    assert client.get(reverse("privacy:erase-rows", args=[boxes.pk])).status_code == 404
