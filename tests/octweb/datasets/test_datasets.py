"""Data sets over API and pages: what is stored, what is refused, who sees what."""

from __future__ import annotations

import io
import random

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from rest_framework.test import APIClient

from octweb.datasets import actions, samples
from octweb.datasets.models import Dataset, Upload

pytestmark = pytest.mark.django_db
API = "/api/v1/datasets/"
GOOD = b"code,country,day,size,label\n" + b"".join(
    b"%05d,%s,2024-01-%02d,%d.5,%s\n" % (i % 4, (b"NA", b"DE", b"FR")[i % 3], i % 9 + 1, i, (b"yes", b"no")[i % 2])
    for i in range(40)
)


@pytest.fixture(autouse=True)
def _media(media):
    return media


@pytest.fixture
def dataset(owner):
    return actions.create(owner=owner, file=io.BytesIO(GOOD), source_name="good.csv", target="label")


def api(user) -> APIClient:
    client = APIClient(raise_request_exception=False)
    if user is not None:
        client.force_authenticate(user)
    return client


def post(user, content: bytes, **fields):
    return api(user).post(API, {"file": SimpleUploadedFile("t.csv", content), **fields}, format="multipart")


def test_upload_answers_the_contract_and_keeps_text(owner):
    answer = post(owner, GOOD, target="label", name="Mine")
    assert answer.status_code == 201, answer.content
    record = answer.json()
    assert (record["name"], record["rows"], record["target"]) == ("Mine", 40, "label")
    assert {"name", "kind", "missing", "distinct"} <= set(record["columns"][0])
    rows = api(owner).get(f"{API}{record['id']}/rows/?limit=2").json()
    assert rows["rows"][1][:3] == ["00001", "DE", "2024-01-02"]
    assert rows["rows"][0][1] == "NA"
    assert b"00001,DE,2024-01-02" in api(owner).get(f"{API}{record['id']}/download/").content


@pytest.mark.parametrize("limit", ["-1", "x", "1001", "0000000009999", "²"])
def test_limit_of_rows_is_checked(owner, dataset, limit):
    assert api(owner).get(f"{API}{dataset.pk}/rows/", {"limit": limit}).status_code == 400


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"a,b,y\n1,2,p\n1,2\n3,4,q\n", "3"),
        (b'a,b,y\n1,"2,p\n3,4,q\n', "2"),
        (b"a,a,y\n1,2,p\n3,4,q\n", "a"),
        (b"a,b,y\n1,2,p\n3,4,p\n", "class"),
        (b"y\np\nq\n", "column"),
        (b"", ""),
    ],
)
def test_unusable_files_are_refused_with_the_place(owner, media, content, word):
    answer = post(owner, content, target="y")
    assert answer.status_code in (400, 422), answer.content
    assert word in answer.json()["detail"] + str(answer.json()["errors"])
    assert not Dataset.objects.exists()
    assert not [p for p in media.rglob("*") if p.is_file()]


def test_a_file_beyond_the_limit_is_413(owner, settings):
    settings.MAX_UPLOAD_BYTES = 100
    assert post(owner, GOOD, target="label").status_code == 413
    assert not Dataset.objects.exists()


def test_two_hundred_damaged_files_never_break_the_server(owner, client, media):
    rng = random.Random(7)
    client.force_login(owner)
    client.raise_request_exception = False
    for i in range(100):
        content = bytearray(GOOD)
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(content))
            content[at : at + rng.randint(0, 9)] = bytes(rng.choice(b'\x00\xff",;\n\r\t') for _ in range(3))
        content = bytes(content) + b'1,2\n"'  # a row too short and a quote never closed
        answer = post(owner, content, target="label")
        assert 400 <= answer.status_code < 500, (i, answer.content)
        page = client.post(reverse("datasets:new"), {"file": SimpleUploadedFile("t.csv", content)})
        assert 400 <= page.status_code < 500, (i, page.status_code)
    assert not Dataset.objects.exists()
    assert not Upload.objects.exists()
    assert not [p for p in media.rglob("*") if p.is_file()]


def test_two_steps_store_only_when_confirmed(owner, client):
    client.force_login(owner)
    url = client.post(reverse("datasets:new"), {"file": SimpleUploadedFile("t.csv", GOOD)}).url
    assert client.get(url).status_code == 200
    assert not Dataset.objects.exists()
    answer = client.post(url, {"target": "label", "confirm": "1"})
    assert answer.status_code == 302
    assert not Upload.objects.exists()
    assert client.get(answer.url).status_code == 200


def test_strangers_get_404_and_staff_see(owner, stranger, staff, client, dataset):
    for name in ("rows/", "download/", ""):
        address = f"{API}{dataset.pk}/{name}"
        assert [api(u).get(address).status_code for u in (owner, staff, stranger, None)] == [200, 200, 404, 401]
    assert api(stranger).delete(f"{API}{dataset.pk}/").status_code == 404
    assert api(stranger).patch(f"{API}{dataset.pk}/", {"name": "x"}, format="json").status_code == 404
    assert api(stranger).get(API).json()["count"] == 0
    for name in ("detail", "edit", "delete"):
        address = reverse(f"datasets:{name}", args=[dataset.pk])
        call = client.post if name == "delete" else client.get
        client.logout()
        assert call(address).status_code == 302
        client.force_login(stranger)
        assert call(address).status_code == 404
    assert Dataset.objects.filter(pk=dataset.pk, name=dataset.name).exists()


def test_kinds_change_without_loss_and_content_is_verified(owner, dataset):
    change = {"columns": [{"name": "code", "kind": "categorical"}]}
    assert api(owner).patch(f"{API}{dataset.pk}/", change, format="json").status_code == 200
    dataset.refresh_from_db()
    table, _ = actions.load(dataset)
    assert "00001" in next(c for c in table.schema if c.name == "code").categories


@pytest.mark.parametrize(
    ("slug", "rows"), [("iris", 150), ("monks-3", 432), ("tic-tac-toe", 958), ("balance-scale", 625)]
)
def test_samples_have_their_rows_and_load_once(owner, slug, rows):
    first = samples.load(owner=owner, slug=slug)
    assert first.rows == rows
    assert samples.load(owner=owner, slug=slug).pk == first.pk
