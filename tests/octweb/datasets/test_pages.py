"""Pages of the list, of one data set, of its columns, and deletion."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.urls import reverse

from octweb.datasets import actions, stored
from octweb.datasets.models import Dataset
from tests.octweb.datasets.files import GOOD
from trainer.errors import DataError

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(client, owner):
    client.force_login(owner)
    return client


def address(name, dataset):
    return reverse(f"datasets:{name}", args=[dataset.pk])


def test_the_list_in_pages(page, owner, dataset):
    Dataset.objects.bulk_create(
        Dataset(owner=owner, name=f"Copy {i}", target="y", rows=1, file=dataset.file.name) for i in range(30)
    )
    first, second = (page.get(reverse("datasets:list"), {"page": n}) for n in (1, 2))
    assert len(first.context["page"].object_list) == 30
    assert len(second.context["page"].object_list) == 1
    assert page.get(reverse("datasets:list"), {"page": "x"}).status_code == 200


def test_an_empty_list_says_what_to_do(page):
    assert reverse("datasets:new") in page.get(reverse("datasets:list")).content.decode()


@pytest.mark.slow
@pytest.mark.parametrize("query", ["", "?sort=name", "?sort=file&all", "?sort=missing", "?sort=nothing"])
def test_detail_shows_profile_and_rows(page, dataset, query):
    answer = page.get(address("detail", dataset) + query)
    text = answer.content.decode()
    assert answer.status_code == 200
    table = text.split("<h2>Rows</h2>")[1]
    assert table.count("<td>day-01-") == 20
    assert '<th class="num">line</th>' in table
    assert '<tr><td class="num">2</td>' in table  # the header is line 1
    assert "50.0" in text


@pytest.mark.slow
@pytest.mark.one_database
def test_rows_of_parquet_have_numbers_and_no_lines(page, owner):
    content = io.BytesIO()
    pq.write_table(pa.table({"a": [1.5, 2.5, 3.0, 4.0], "y": ["p", "q", "p", "q"]}), content)
    dataset = actions.create(owner=owner, file=io.BytesIO(content.getvalue()), source_name="t.parquet")
    table = page.get(address("detail", dataset)).content.decode().split("<h2>Rows</h2>")[1]
    assert '<th class="num">row</th>' in table
    assert '<tr><td class="num">1</td>' in table


def test_detail_does_not_read_the_whole_file(page, dataset, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the whole file was read")

    monkeypatch.setattr(stored, "read_table", refuse)
    assert page.get(address("detail", dataset)).status_code == 200


def test_detail_reports_a_lost_file(page, dataset):
    dataset.file.storage.delete(dataset.file.name)
    answer = page.get(address("detail", dataset))
    assert answer.status_code == 200
    assert "missing or damaged" in answer.content.decode()


def test_a_name_is_shown_as_text(page, owner):
    content = GOOD.replace(b"code", b"<script>alert(1)</script>")
    dataset = actions.create(
        owner=owner, file=io.BytesIO(content), source_name="<b>.csv", name="<i>x</i>", target="label"
    )
    for name in ("detail", "edit"):
        text = page.get(address(name, dataset)).content.decode()
        assert "<script>alert" not in text
        assert "<i>x" not in text


def test_edit_changes_columns_and_can_take_all_back(page, dataset):
    assert page.get(address("edit", dataset)).status_code == 200
    fields = {"name": "New", "target": "label", "kind-0": "categorical", "role-1": "ignored", "role-2": "ignored"}
    assert page.post(address("edit", dataset), fields | {"unit-3": "m"}).url == address("detail", dataset)
    dataset.refresh_from_db()
    table, _ = actions.load(dataset)
    assert (dataset.name, table.names) == ("New", ("code", "size"))
    assert (str(table.schema[0].kind), table.schema[1].unit) == ("categorical", "m")
    back = {f"role-{i}": "feature" for i in range(4)} | {"kind-1": "categorical", "kind-2": "categorical"}
    page.post(address("edit", dataset), {"target": "label"} | back)
    dataset.refresh_from_db()
    assert actions.load(dataset)[0].names == ("code", "country", "day", "size")
    assert dataset.name == "New"


def test_an_edit_that_does_not_fit_changes_nothing(page, dataset):
    before = Dataset.objects.values().get(pk=dataset.pk)
    answer = page.post(address("edit", dataset), {"name": "New", "target": "label", "kind-1": "numeric"})
    assert answer.status_code == 200
    assert "is numeric, but has" in answer.content.decode()
    assert page.post(address("edit", dataset), {"target": "nothing"}).status_code == 200
    assert Dataset.objects.values().get(pk=dataset.pk) == before


def test_delete_is_refused_while_runs_are_active(page, dataset, run, media, django_capture_on_commit_callbacks):
    delete = reverse("delete", args=["dataset", dataset.pk])
    answer = page.post(delete, follow=True)
    assert "1 run uses this data set" in answer.content.decode()
    assert Dataset.objects.exists()
    run.delete()
    with django_capture_on_commit_callbacks(execute=True):
        assert page.post(delete).url == reverse("datasets:list")
    assert not Dataset.objects.kept().exists()
    assert page.get(address("detail", dataset)).status_code == 404


def test_a_stored_file_that_was_changed_is_not_trained_on(dataset):
    assert len(actions.load(dataset)[0]) == 40
    stored._load.cache_clear()
    other = GOOD.replace(b",yes", b",no!")
    with open(dataset.file.path, "wb") as stream:
        stream.write(other)
    with pytest.raises(DataError, match="changed outside octweb"):
        actions.load(dataset)
