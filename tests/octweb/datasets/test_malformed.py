"""Two hundred damaged uploads: each is stored completely or refused without a trace."""

from __future__ import annotations

import gzip
import io
import random
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.urls import reverse
from django.utils import timezone

from octweb.datasets import actions, reader
from octweb.datasets.models import Dataset, Upload
from tests.octweb.datasets.files import API, GOOD, api, stored_files, upload

pytestmark = pytest.mark.django_db
BYTES = b"\x00\xff\xfe\",;\n\r\t\\'\x1a\xc3\x80 0-eN"


def good_parquet(compression: str) -> bytes:
    out = io.BytesIO()
    table = pa.table(
        {
            "size": [i / 2 for i in range(40)],
            "count": list(range(40)),
            "flag": [i % 3 == 0 for i in range(40)],
            "word": pa.array([("a", "b", None)[i % 3] for i in range(40)]).dictionary_encode(),
            "label": ["yes" if i % 2 else "no" for i in range(40)],
        }
    )
    pq.write_table(table, out, compression=compression)
    return out.getvalue()


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Return the content with one to four changes, each of a different kind and place."""
    out = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(out) + 1)
        length = rng.choice((1, 1, 2, 5, 30))
        kind = rng.randrange(6)
        if kind == 0:
            out[at : at + length] = b""
        elif kind == 1:
            out[at:at] = bytes(rng.choice(BYTES) for _ in range(length))
        elif kind == 2:
            out[at : at + length] = bytes(rng.randrange(256) for _ in range(length))
        elif kind == 3:
            out[at:at] = out[max(0, at - 40) : at]
        elif kind == 4:
            del out[at:]
        elif at < len(out):
            out[at] ^= 1 << rng.randrange(8)
    return bytes(out)


def two_hundred() -> list[tuple[str, bytes]]:
    rng = random.Random(20240607)
    sources = [
        ("t.csv", GOOD),
        ("t.csv", b"\xef\xbb\xbf" + GOOD.replace(b",", b";")),
        ("t.csv", GOOD.decode().encode("utf-16")),
        ("t.csv.gz", gzip.compress(GOOD, mtime=0)),
        ("t.parquet", good_parquet("snappy")),
        ("t.parquet", good_parquet("none")),
    ]
    found: dict[bytes, str] = {}
    while len(found) < 200:
        name, content = sources[len(found) % len(sources)]
        bad = damaged(content, rng)
        if bad != content:
            found[bad] = name
    return [(name, content) for content, name in found.items()]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    """Parquet is read by the same code in this process. `test_reading.py` tests the processes."""
    monkeypatch.setattr(reader, "_is_small", lambda source: True)


@pytest.mark.slow
@pytest.mark.one_database
def test_two_hundred_damaged_files_by_api(owner, media, django_capture_on_commit_callbacks):
    client = api(owner)
    seen = {True: 0, False: 0}
    for i, (name, content) in enumerate(two_hundred()):
        answer = client.post(API, {"file": upload(content, name), "target": "label"}, format="multipart")
        assert answer.status_code == 201 or 400 <= answer.status_code < 500, (i, answer.content)
        accepted = answer.status_code == 201
        seen[accepted] += 1
        assert Dataset.objects.count() == len(stored_files(media)) == accepted, i
        if accepted:
            address = f"{API}{answer.json()['id']}/"
            assert len(client.get(f"{address}rows/?limit=1000").json()["rows"]) > 0
            table, labels = actions.load(Dataset.objects.get())
            assert len(table) == len(labels.codes) == answer.json()["rows"]
            with django_capture_on_commit_callbacks(execute=True):
                assert client.delete(address).status_code == 204
                actions.purge(timezone.now() + timedelta(days=31))
        else:
            assert answer.json()["detail"]
    assert min(seen.values()) >= 10, seen  # both outcomes occurred often enough to mean something


@pytest.mark.slow
@pytest.mark.one_database
def test_every_fifth_messy_file_parses_alike_on_the_page(owner, client, media, django_capture_on_commit_callbacks):
    client.force_login(owner)
    client.raise_request_exception = False
    for i, (name, content) in enumerate(two_hundred()[::5]):
        page = client.post(reverse("datasets:new"), {"file": upload(content, name)})
        refused = page.status_code == 200 and 'role="alert"' in page.content.decode()
        assert page.status_code == 302 or refused, (i, page.status_code)
        accepted = page.status_code == 302
        assert Upload.objects.count() * 2 == len(stored_files(media)) == accepted * 2, i
        if accepted:
            assert client.get(page.url).status_code == 200, i
            with django_capture_on_commit_callbacks(execute=True):
                assert client.post(f"{page.url}discard/").status_code == 302
    assert not Dataset.objects.exists()
    assert not stored_files(media)
