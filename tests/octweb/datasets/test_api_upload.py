"""POST datasets/: stored data sets, and refusals that name the place."""

from __future__ import annotations

import gzip
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from octweb.datasets.models import Dataset
from tests.octweb.datasets.files import API, GOOD, api, post, stored_files, upload

pytestmark = pytest.mark.django_db


def test_upload_answers_the_contract_and_keeps_text(owner):
    answer = post(owner, GOOD, target="label", name="Mine")
    assert answer.status_code == 201, answer.content
    record = answer.json()
    assert (record["name"], record["rows"], record["target"]) == ("Mine", 40, "label")
    assert {"name", "kind", "missing", "distinct"} <= set(record["columns"][0])
    rows = api(owner).get(f"{API}{record['id']}/rows/?limit=2").json()
    assert rows["rows"][1][:3] == ["00001", "DE", "day-01-02"]
    assert rows["rows"][0][1] == "NA"


@pytest.mark.one_database
def test_gzip_and_parquet_give_the_same_table_as_csv(owner):
    table = pa.table({"a": [1.5, 2.5, 3.0, 4.0], "y": ["p", "q", "p", "q"]})
    parquet = io.BytesIO()
    pq.write_table(table, parquet)
    text = b"a,y\n1.5,p\n2.5,q\n3,p\n4,q\n"
    records = [
        post(owner, content, name, target="y").json()
        for content, name in [(text, "t.csv"), (gzip.compress(text), "t.csv.gz"), (parquet.getvalue(), "t.parquet")]
    ]
    profiles = [r["profile"]["columns"] for r in records]
    assert [r["rows"] for r in records] == [4, 4, 4]
    assert profiles[0] == profiles[1] == profiles[2]


def test_delimiter_encoding_header_and_kinds_can_be_given(owner):
    content = "1;M\u00fcller;p\n2;B\u00e4r;q\n3;M\u00fcller;q\n1;B\u00e4r;p\n".encode("cp1252")
    answer = post(
        owner,
        content,
        delimiter=";",
        encoding="cp1252",
        header="false",
        target="column 3",
        kinds='{"column 1": "categorical"}',
    )
    assert answer.status_code == 201, answer.content
    record = answer.json()
    assert [c["name"] for c in record["columns"]] == ["column 1", "column 2", "column 3"]
    assert record["columns"][0]["kind"] == "categorical"
    assert api(owner).get(f"{API}{record['id']}/rows/").json()["rows"][0] == ["1", "M\u00fcller", "p"]


@pytest.mark.parametrize("kinds", ["{", "[]", '{"code": "colour"}', '{"code": 3}'])
def test_kinds_that_are_no_kinds_are_400(owner, kinds):
    answer = post(owner, GOOD, target="label", kinds=kinds)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == "kinds"


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"a,b,y\n1,2,p\n1,2\n3,4,q\n", "Line 3"),
        (b'a,b,y\n1,"2,p\n3,4,q\n', "Line 2"),
        (b"a,a,y\n1,2,p\n3,4,q\n", "'a' appears 2 times"),
        (b"a,b,y\n1,2,p\n3,4,p\n", "one class"),
        (b"y\np\nq\n", "no usable column"),
        (b"", "empty"),
    ],
)
def test_unusable_files_are_refused_with_the_place(owner, media, content, word):
    answer = post(owner, content, target="y")
    assert answer.status_code == 422, answer.content
    assert word in answer.json()["detail"] + str(answer.json()["errors"])
    assert not Dataset.objects.exists()
    assert not stored_files(media)


def test_a_file_beyond_the_limit_is_413(owner, settings, media):
    settings.MAX_UPLOAD_BYTES = 100
    answer = post(owner, GOOD, target="label")
    assert answer.status_code == 413
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert not Dataset.objects.exists()
    assert not stored_files(media)


def test_another_content_type_is_415(owner):
    assert api(owner).post(API, {"name": "x"}, format="json").status_code == 415
    assert api(owner).post(API, b"a,y\n1,p\n", content_type="text/csv").status_code == 415


def test_a_request_without_a_file_is_400(owner):
    answer = api(owner).post(API, {"target": "label"}, format="multipart")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == "file"


def test_a_path_in_the_name_of_a_file_is_never_a_path(owner, media):
    file = upload(GOOD)
    file._name = "../../etc/evil.csv"
    answer = api(owner).post(API, {"file": file, "target": "label"}, format="multipart")
    assert answer.status_code == 201
    assert answer.json()["source_name"] == "evil.csv"
    assert [p.suffix for p in stored_files(media)] == [".parquet"]


def test_database_error_leaves_no_file_behind(owner, media, monkeypatch):
    def broken(self, *args, **kwargs):
        raise RuntimeError("no database")

    monkeypatch.setattr(Dataset, "save", broken)
    assert post(owner, GOOD, target="label").status_code == 500
    assert not stored_files(media)
