"""GET of data sets: filtered list, pages, details, rows and download."""

from __future__ import annotations

import csv
import io

import pyarrow.parquet as pq
import pytest

from octweb.datasets import actions, stored
from octweb.datasets.models import Dataset
from tests.octweb.datasets.files import API, GOOD, api
from trainer.data.formats import staged

pytestmark = pytest.mark.django_db


def test_the_list_has_pages_and_a_filter_by_name(owner, dataset):
    for i in range(5):
        Dataset.objects.create(
            owner=owner, name=f"Copy {i}", target="y", rows=1, file=dataset.file.name, sha256="0" * 64
        )
    seen = []
    address = f"{API}?page_size=4"
    while address:
        page = api(owner).get(address).json()
        assert page["count"] == 6
        seen += [d["name"] for d in page["results"]]
        address = page["next"]
    assert sorted(seen) == ["Copy 0", "Copy 1", "Copy 2", "Copy 3", "Copy 4", "good"]
    assert [d["name"] for d in api(owner).get(f"{API}?name=COPY 3").json()["results"]] == ["Copy 3"]
    assert api(owner).get(f"{API}?name=none").json()["results"] == []
    assert api(owner).get(f"{API}?name=%00").status_code == 200
    assert api(owner).get(f"{API}?page=99").status_code == 404


@pytest.mark.parametrize("limit", ["-1", "x", "1001", "0000000009999", "²"])
def test_limit_of_rows_is_checked(owner, dataset, limit):
    assert api(owner).get(f"{API}{dataset.pk}/rows/", {"limit": limit}).status_code == 400


@pytest.mark.parametrize(("limit", "count"), [("0", 0), ("1", 1), ("39", 39), ("1000", 40)])
def test_first_rows_are_returned_unchanged(owner, dataset, limit, count):
    answer = api(owner).get(f"{API}{dataset.pk}/rows/", {"limit": limit}).json()
    expected = list(csv.reader(io.StringIO(GOOD.decode())))
    assert answer == {"columns": expected[0], "rows": expected[1 : count + 1]}


def test_the_download_streams_the_rows_as_read(owner, dataset, monkeypatch):
    monkeypatch.setattr(stored, "STREAMED_ROWS", 7)
    answer = api(owner).get(f"{API}{dataset.pk}/download/")
    pieces = list(answer.streaming_content)
    assert len(pieces) == 1 + 6
    assert b"".join(pieces).replace(b"\r\n", b"\n") == GOOD
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{dataset.pk}.csv"'


def test_first_rows_read_one_group_of_a_large_file(owner, monkeypatch):
    monkeypatch.setattr(staged, "ROW_GROUP_ROWS", 100)
    content = b"a,y\n" + b"".join(b"%d,%d\n" % (i, i % 2) for i in range(5000))
    dataset = actions.create(owner=owner, file=io.BytesIO(content), source_name="large.csv", target="y")
    assert pq.ParquetFile(dataset.file.path).metadata.num_row_groups == 50
    # The first group lies at the front of the file, so it must be readable although all others are damaged.
    metadata = pq.ParquetFile(dataset.file.path).metadata
    start = metadata.row_group(1).column(0).data_page_offset - 60
    end = metadata.row_group(49).column(1).data_page_offset
    with open(dataset.file.path, "r+b") as stream:
        stream.seek(start + 60)
        stream.write(b"\xee" * (end - start - 60))
    names, rows = actions.first_rows(dataset, 20)
    assert names == ("a", "y")
    assert rows == [(str(i), str(i % 2)) for i in range(20)]


@pytest.mark.parametrize("name", ["rows/", "download/"])
def test_missing_stored_file_is_reported(owner, dataset, name):
    dataset.file.storage.delete(dataset.file.name)
    answer = api(owner).get(f"{API}{dataset.pk}/{name}")
    assert answer.status_code == 422
    assert "missing or damaged" in answer.json()["detail"]
