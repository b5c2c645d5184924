"""Answers are counted by day, API and leaf, exactly, over several processes and restarts."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import UTC, date, datetime

import pytest
from django.db import DatabaseError, connection

from octweb.batch import actions as batch
from octweb.batch.tasks import predict_batch
from octweb.core import tally
from octweb.core.metrics import exposition
from octweb.core.tally import Key
from octweb.life import counting
from octweb.life.models import DailyCount
from octweb.serving.actions import create_token
from tests.conftest import ROOT
from tests.octweb.batch.conftest import rows_csv
from tests.octweb.small_models import csv_of_small_table

pytestmark = pytest.mark.django_db
ROW = {"width": 3.5, "height": 0.5, "flag": 1, "colour": "red"}


def post(client, path, body):
    return client.post(path, json.dumps(body), content_type="application/json")


def tensors(row):
    return {
        "inputs": [
            {"name": name, "datatype": "BYTES" if isinstance(cell, str) else "FP64", "shape": [1], "data": [cell]}
            for name, cell in row.items()
        ]
    }


def rows_of(counts, api):
    return sum(number for (of, kind, _), number in counts.items() if of == api and kind == "rows")


def test_answers_of_each_api_are_counted_by_leaf(approved, client_of, owner, counted):
    client = client_of(owner)
    name = approved.family.name
    predict = f"/api/v1/models/{approved.pk}/predict/"
    leaf = post(client, predict, {"rows": [ROW]}).json()["predictions"][0]["leaf"]
    assert post(client, predict, {"rows": [ROW] * 3}).status_code == 200
    assert post(client, predict + "?explain=true", {"rows": [ROW] * 2}).status_code == 200
    assert post(client, f"/v2/models/{name}/infer", tensors(ROW)).status_code == 200
    assert post(client, f"/invocations?model={name}", {"dataframe_records": [ROW] * 4}).status_code == 200
    assert counted(approved) == {
        ("v1", "rows", str(leaf)): 6,
        ("v2", "rows", str(leaf)): 1,
        ("invocations", "rows", str(leaf)): 4,
    }
    assert set(DailyCount.objects.values_list("day", flat=True)) == {datetime.now(UTC).date()}


def test_answers_of_a_draft_are_not_counted(model, client_of, owner, counted):
    assert post(client_of(owner), f"/api/v1/models/{model.pk}/predict/", {"rows": [ROW]}).status_code == 200
    assert counted(model) == {}


def test_unusual_cells_are_counted_by_column(approved, client_of, owner, counted):
    rows = [ROW | {"colour": "mauve"}, ROW | {"width": 99}, ROW | {"width": -99}, ROW | {"width": -98}]
    assert post(client_of(owner), f"/api/v1/models/{approved.pk}/predict/", {"rows": rows}).status_code == 200
    found = {(kind, name): n for (_, kind, name), n in counted(approved).items() if kind != "rows"}
    assert found == {("unknown", "colour"): 1, ("above", "width"): 1, ("below", "width"): 2}


def test_refused_rows_are_counted_by_reason_without_their_values(approved, client_of, owner, counted):
    client = client_of(owner)
    path = f"/api/v1/models/{approved.pk}/predict/"
    bad = [ROW | {"width": "wide"}, ROW | {"colour": None}, ROW | {"Jane Doe": 1}, 7]
    assert [post(client, path, {"rows": [row]}).status_code for row in bad] == [422] * 4
    v2 = post(client, f"/v2/models/{approved.family.name}/infer", tensors(ROW | {"width": None}))
    assert v2.status_code == 400
    found = counted(approved)
    assert {kind for _, kind, _ in found} == {"refused_value", "refused_empty", "refused_column", "refused_row"}
    assert found["v1", "refused_value", "width"] == found["v1", "refused_empty", "colour"] == 1
    assert found["v1", "refused_column", ""] == found["v1", "refused_row", ""] == found["v2", "refused_empty", "width"]


@pytest.mark.slow
def test_rows_of_a_file_are_counted_once(approved, settings, tmp_path, media, counted):
    settings.DATA_DIR = tmp_path / "data"
    content = csv_of_small_table() + "99,0,1,,a\n"
    job = batch.enqueue(owner=approved.owner, model=approved, file=rows_csv(content=content), source_name="rows.csv")
    assert predict_batch.func(str(job.pk)) == "succeeded"
    job.refresh_from_db()
    found = counted(approved)
    assert rows_of(found, "batch") == 120
    assert found["batch", "refused_empty", "colour"] == 1
    assert "life" not in job.summary


def test_output_that_invocations_refuses_is_not_counted(approved, client_of, owner, counted):
    body = {"instances": [ROW], "params": {"output": "nothing"}}
    assert post(client_of(owner), f"/invocations?model={approved.family.name}", body).status_code == 400
    assert counted(approved) == {}


def test_later_counts_add_to_earlier_ones(approved):
    key = Key(str(approved.pk), "v1", 20_000, "rows", "3")
    counting.add_counts({key: 2})
    counting.add_counts({key: 5, key._replace(name="4"): 1})
    found = DailyCount.objects.order_by("name").values_list("day", "name", "number")
    assert list(found) == [(date(2024, 10, 4), "3", 7), (date(2024, 10, 4), "4", 1)]


def test_counts_stay_in_memory_if_the_database_fails(approved, monkeypatch, counted):
    tally.ModelTally(str(approved.pk), "v1").add_row("1")

    def fail(counts):
        raise DatabaseError("away")

    with monkeypatch.context() as patch:
        patch.setattr(counting, "add_counts", fail)
        with pytest.raises(DatabaseError):
            counting.flush()
    tally.ModelTally(str(approved.pk), "v1").add_row("1")
    assert counted(approved) == {("v1", "rows", "1"): 2}


def test_counts_of_deleted_model_are_dropped(approved, counted):
    tally.ModelTally("00000000-0000-0000-0000-000000000000", "v1").add_row("1")
    tally.ModelTally(str(approved.pk), "v1").add_row("1")
    assert counted(approved) == {("v1", "rows", "1"): 1}


def test_day_is_the_day_of_the_answer_in_utc(approved, monkeypatch):
    own = tally.ModelTally(str(approved.pk), "v1")
    for seconds in (86_399.9, 86_400.1):
        monkeypatch.setattr(tally.time, "time", lambda: seconds)  # noqa: B023
        own.add_row("1")
    counting.flush()
    assert set(DailyCount.objects.values_list("day", "number")) == {(date(1970, 1, 1), 1), (date(1970, 1, 2), 1)}


def test_metrics_state_the_rows_of_each_leaf(approved):
    counting.add_counts({Key(str(approved.pk), api, 20_000, "rows", "3"): 4 for api in ("v1", "v2")})
    line = f'octweb_leaf_rows_total{{leaf="3",model="{approved.family.name}",version="1"}} 8.0'
    assert line in exposition().decode()


@pytest.mark.django_db(transaction=True)
def test_writers_at_the_same_time_lose_nothing(approved):
    keys = [Key(str(approved.pk), "v1", 20_000, "rows", str(leaf)) for leaf in range(5)]

    def write() -> None:
        try:
            for _ in range(10):
                counting.add_counts(dict.fromkeys(keys, 1))
        finally:
            connection.close()

    team = [threading.Thread(target=write) for _ in range(4)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    assert set(DailyCount.objects.values_list("number", flat=True)) == {40}


@pytest.mark.slow
@pytest.mark.one_database
@pytest.mark.django_db(transaction=True)
def test_two_processes_lose_nothing_over_a_restart(approved, owner, tmp_path):
    """Each SIGTERM comes right after the last answer, before the next periodic write."""
    _, secret = create_token(owner=owner)
    for calls in (40, 80):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = start_server(port, tmp_path)
        try:
            wait_for(port)
            for _ in range(40):
                assert call(port, f"/api/v1/models/{approved.pk}/predict/", secret) == 200
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(300)
        assert sum(DailyCount.objects.values_list("number", flat=True)) == calls


def start_server(port: int, folder) -> subprocess.Popen[bytes]:
    environment = os.environ | {
        "DATABASE_URL": f"sqlite:///{connection.settings_dict['NAME']}",
        "OCTWEB_DATA_DIR": str(folder),
        "OCTWEB_WARM": "0",
        "OCTWEB_WEB_PROCESSES": "2",
        "OCTWEB_BIND": f"127.0.0.1:{port}",
    }
    command = [
        sys.executable, "-m", "gunicorn", "-c", str(ROOT / "deploy" / "gunicorn.conf.py"), "octweb.wsgi:application",
    ]  # fmt: skip
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)


def wait_for(port: int) -> None:
    end = time.monotonic() + 300
    while time.monotonic() < end:
        try:
            http.client.HTTPConnection("127.0.0.1", port, timeout=100).request("GET", "/healthz")
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server has not started")


def call(port: int, path: str, secret: str) -> int:
    """Call over a connection of its own, so that both processes get some."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    headers = {"Authorization": f"Token {secret}", "Content-Type": "application/json"}
    line.request("POST", path, json.dumps({"rows": [ROW]}), headers)
    status = line.getresponse().status
    line.close()
    return status
