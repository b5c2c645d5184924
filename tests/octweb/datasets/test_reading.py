"""Files that need far more memory than their size: limits, the process that reads them, and waiting."""

from __future__ import annotations

import contextlib
import io
import resource
import subprocess
import sys
import threading

import pytest
from django.db import connection, connections
from django.urls import reverse

from octweb.core.problems import Busy, Conflict
from octweb.datasets import actions, intake, reader
from octweb.datasets.models import Dataset, Upload
from tests.bombs import BOMBS
from tests.conftest import ROOT
from tests.octweb.datasets.files import API, GOOD, api, stored_files, upload
from trainer.errors import DataError

pytestmark = pytest.mark.django_db
MB = 20  # unpacked size of each bomb
BASE_MB = 260  # memory of the interpreter with its libraries

READ_ALL = f"""
import resource
from pathlib import Path
from tests.bombs import bombs
from trainer.data.formats.file_bytes import ReadLimits
from trainer.data.formats.read_file import read_table
from trainer.errors import DataError
import sys
made = list(bombs({MB}))
resource.setrlimit(resource.RLIMIT_DATA, (limit := {(BASE_MB + 4 * MB) * 10**6}, limit))
for name, file_name, content in made:
    path = Path(sys.argv[1]) / file_name
    path.write_bytes(content)
    try:
        read_table(path, limits=ReadLimits(rows=200_000, columns=2_000))
    except DataError as error:
        assert len(str(error)) < 400, name
    except MemoryError:
        print(name)
"""


@pytest.mark.slow
@pytest.mark.one_database
def test_archive_bomb_takes_little_memory_without_limits(tmp_path):
    process = subprocess.run(
        [sys.executable, "-c", READ_ALL, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        env={
            "PATH": "/usr/bin",
            "ARROW_DEFAULT_MEMORY_POOL": "system",
            "MALLOC_ARENA_MAX": "1",
            "OPENBLAS_NUM_THREADS": "1",
        },
    )
    assert (process.returncode, process.stdout) == (0, ""), process.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.one_database
@pytest.mark.parametrize("name", ["empty lines", "Parquet of one long text"])
def test_bombs_are_read_outside_of_the_web_process(owner, media, monkeypatch, name):
    def refuse(*arguments):
        raise AssertionError("read in the web process")

    monkeypatch.setattr(intake, "answer", refuse)
    file_name, make = BOMBS[name]
    answer = api(owner).post(API, {"file": upload(make(MB), file_name), "target": "a"}, format="multipart")
    assert answer.status_code == 422, answer.content
    assert not Dataset.objects.exists()
    assert not stored_files(media)


@pytest.mark.one_database
def test_process_over_its_limit_is_stopped_with_reason(owner, media, monkeypatch, settings):
    monkeypatch.setattr(reader, "_is_small", lambda source: False)
    settings.MAX_READING_BYTES = resource.getpagesize() * 20_000
    with pytest.raises(DataError, match="more memory than this server gives"):
        actions.stage(owner=owner, file=io.BytesIO(GOOD), source_name="t.csv")
    settings.MAX_READING_BYTES = 10**9
    settings.MAX_READING_SECONDS = 0.05
    with pytest.raises(DataError, match=r"longer than 0\.05 s"):
        actions.stage(owner=owner, file=io.BytesIO(GOOD), source_name="t.csv")
    assert not Upload.objects.exists()
    assert not stored_files(media)
    assert list((settings.DATA_DIR / reader.FOLDER).iterdir()) == []


@pytest.mark.slow
@pytest.mark.one_database
def test_large_file_gives_same_steps_as_small_one(owner, monkeypatch):
    small = actions.create(owner=owner, file=io.BytesIO(GOOD), source_name="t.csv", target="label")
    monkeypatch.setattr(reader, "_is_small", lambda source: False)
    staged = actions.stage(owner=owner, file=io.BytesIO(GOOD), source_name="t.csv")
    monkeypatch.setitem(staged.found, "bytes", None)  # as if there were too many rows for this process
    choice = actions.ColumnChoice(target="label")
    assert actions.outlook(staged, choice).rows_kept == 40
    large = actions.confirm(staged, name="", reading=actions.ReadOptions(), choice=choice)
    assert (large.columns, large.profile, large.rows) == (small.columns, small.profile, small.rows)
    refused = GOOD.replace(b"\n", b",1\n", 3)
    with pytest.raises(DataError) as error:
        actions.create(owner=owner, file=io.BytesIO(refused), source_name="t.csv", target="label")
    assert error.value.problems[0].startswith("Line")


@pytest.mark.django_db(transaction=True)
def test_other_writes_proceed_during_an_upload(owner, media, monkeypatch):
    staged = actions.stage(owner=owner, file=io.BytesIO(GOOD), source_name="t.csv")
    seen = []
    for name in ("fill", "store"):
        real = getattr(actions, name)

        def watched(*arguments, real=real, **named):
            seen.append(connection.in_atomic_block)
            other = threading.Thread(target=write)
            other.start()
            other.join(60)
            return real(*arguments, **named)

        monkeypatch.setattr(actions, name, watched)

    def write():
        Upload.objects.create(owner=owner, source_name="another")
        connections.close_all()

    actions.confirm(staged, name="", reading=actions.ReadOptions(), choice=actions.ColumnChoice(target="label"))
    assert seen == [False, False]
    assert Upload.objects.filter(source_name="another").count() == 2


def test_excess_uploads_are_asked_to_wait(owner, media, monkeypatch, settings):
    monkeypatch.setattr(reader, "_is_small", lambda source: False)
    settings.MAX_UPLOADS_AT_ONCE = 0
    with pytest.raises(Busy):
        actions.stage(owner=owner, file=io.BytesIO(GOOD), source_name="t.csv")
    answer = api(owner).post(API, {"file": upload(GOOD, "t.csv"), "target": "label"}, format="multipart")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "10")
    assert "Try again" in answer.json()["detail"]
    assert not stored_files(media)


def test_the_page_says_that_the_server_is_busy(owner, client, media, monkeypatch, settings):
    client.force_login(owner)
    monkeypatch.setattr(reader, "_is_small", lambda source: False)
    settings.MAX_UPLOADS_AT_ONCE = 0
    answer = client.post(reverse("datasets:new"), {"file": upload(GOOD)})
    assert (answer.status_code, "Try again" in answer.content.decode()) == (503, True)


@pytest.mark.django_db(transaction=True)
def test_confirm_in_two_threads_at_once_stores_once(owner, media, monkeypatch):
    """Both threads find the upload, and the second locks its row while the first transaction is open."""
    staged = actions.stage(owner=owner, file=io.BytesIO(GOOD), source_name="t.csv")
    inserting = threading.Barrier(2)
    outcomes = []
    insert = actions.insert

    def insert_together(dataset):
        # the row is locked, so the second call never arrives here
        with contextlib.suppress(threading.BrokenBarrierError):
            inserting.wait(1.0)
        insert(dataset)

    def confirm(upload):
        try:
            actions.confirm(upload, name="", reading=actions.ReadOptions(), choice=actions.ColumnChoice(target="label"))
            outcomes.append("stored")
        except Conflict:
            outcomes.append("refused")
        finally:
            connections.close_all()

    store = actions.store
    described = threading.Barrier(2)

    def store_together(*arguments, **named):
        described.wait(60)
        store(*arguments, **named)

    monkeypatch.setattr(actions, "insert", insert_together)
    monkeypatch.setattr(actions, "store", store_together)
    uploads = [Upload.objects.get(pk=staged.pk) for _ in range(2)]
    threads = [threading.Thread(target=confirm, args=(upload,)) for upload in uploads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["refused", "stored"]
    assert Dataset.objects.count() == 1
    assert len(stored_files(media)) == 1
