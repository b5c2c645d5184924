"""Prometheus metrics count every call, in one process and summed over several."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection
from django.utils import timezone
from prometheus_client import REGISTRY

from octweb.checking.models import ModelCheck
from octweb.jobs.models import WorkerBeat
from tests.conftest import ROOT

pytestmark = pytest.mark.django_db
ROW = {"width": 7.5, "height": 0.1, "flag": 1, "colour": "red"}


def value(name, **labels):
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_rows_labels_and_errors_are_counted(client_of, owner, approved):
    client = client_of(owner)
    name = approved.family.name
    of = {"model": name, "version": "1"}
    before = {
        "rows": value("octweb_predict_rows_total", **of),
        "good": value("octweb_predict_requests_total", **of, api="v1", status="200"),
        "bad": value("octweb_predict_requests_total", **of, api="v1", status="400"),
        "seconds": value("octweb_predict_seconds_count", **of, api="v1"),
    }
    address = f"/api/v1/models/{approved.pk}/predict/"
    answer = client.post(address, {"rows": [ROW, ROW, ROW]}, format="json")
    assert answer.status_code == 200
    label = answer.json()["predictions"][0]["label"]
    assert client.post(address, {"rows": 3}, format="json").status_code == 400
    assert value("octweb_predict_rows_total", **of) == before["rows"] + 3
    assert value("octweb_predict_requests_total", **of, api="v1", status="200") == before["good"] + 1
    assert value("octweb_predict_requests_total", **of, api="v1", status="400") == before["bad"] + 1
    assert value("octweb_predict_seconds_count", **of, api="v1") == before["seconds"] + 2
    assert client.post(address, {"rows": [ROW | {"width": "wide"}]}, format="json").status_code == 422
    assert value("octweb_predict_requests_total", **of, api="v1", status="422") >= 1
    assert value("octweb_predict_labels_total", **of, label=label) >= 3


def test_names_of_unknown_users_are_not_stored(client_of, owner):
    client = client_of(owner)
    body = {"inputs": [{"name": "x", "shape": [1, 1], "datatype": "FP64", "data": [1]}]}
    for i in range(3):
        assert client.post(f"/v2/models/made-up-{i}/infer", body, format="json").status_code == 404
    assert value("octweb_predict_requests_total", model="unknown", version="", api="v2", status="404") >= 3
    assert value("octweb_predict_requests_total", model="made-up-0", version="", api="v2", status="404") == 0


def test_only_permitted_users_may_read(client, client_of, settings, owner, staff, approved):
    assert client.get("/metrics").status_code == 403
    client.force_login(owner)
    assert client.get("/metrics").status_code == 403
    client.force_login(staff)
    assert b"octweb_predict_seconds_bucket" in client.get("/metrics").content
    client.logout()
    settings.METRICS_TOKEN = "a long secret"
    assert client.get("/metrics", headers={"authorization": "Bearer a long secret"}).status_code == 200
    assert client.get("/metrics", headers={"authorization": "Bearer another"}).status_code == 403


def test_service_metrics_count_jobs_workers_and_parts(client, settings, approved, monkeypatch):
    settings.METRICS_TOKEN = "a long secret"
    now = timezone.now()
    for status, minutes in (("queued", 3), ("queued", 1), ("failed", 9)):
        check = ModelCheck.objects.create(owner=approved.owner, model=approved, status=status)
        ModelCheck.objects.filter(pk=check.pk).update(created=now - timedelta(minutes=minutes))
    WorkerBeat.objects.create(name="here", seen_at=now)
    WorkerBeat.objects.create(name="gone", seen_at=now - timedelta(hours=1))

    def scrape() -> dict[str, float]:
        answer = client.get("/metrics", headers={"authorization": "Bearer a long secret"})
        assert answer.status_code == 200
        lines = [line for line in answer.content.decode().splitlines() if line.startswith("octweb_")]
        return {name: float(number) for name, number in (line.rsplit(" ", 1) for line in lines)}

    sample = scrape()
    assert sample['octweb_jobs{kind="modelcheck",status="queued"}'] == 2
    assert sample['octweb_jobs{kind="modelcheck",status="failed"}'] == 1
    assert sample['octweb_jobs{kind="modelcheck",status="running"}'] == 0
    assert 180 <= sample['octweb_oldest_queued_seconds{kind="modelcheck"}'] < 240
    assert sample["octweb_workers"] == 1
    assert sample['octweb_ready{part="database"}'] == 1
    assert 0 < sample["octweb_disk_free_bytes"] < sample["octweb_disk_total_bytes"]
    assert sample["octweb_database_bytes"] > 10_000
    assert sample["octweb_web_processes"] >= 1
    assert sample["octweb_web_resident_bytes"] > 10_000_000

    def gone(*arguments):
        raise DatabaseError

    monkeypatch.setattr(connection, "cursor", gone)
    sample = scrape()
    assert sample['octweb_ready{part="database"}'] == 0
    assert "octweb_workers" not in sample
    assert sample["octweb_web_processes"] >= 1


def test_dashboard_shows_only_metrics_that_exist(client, media, staff):
    client.force_login(staff)
    known = set(re.findall(r"^# TYPE (\w+) ", client.get("/metrics").content.decode(), re.MULTILINE))
    dashboard = json.loads((ROOT / "deploy" / "grafana.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    named = {name for text in expressions for name in re.findall(r"octweb_\w+", text)}
    assert len(named) > 12
    assert {name.removesuffix("_bucket") for name in named} - known == set()
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_several_processes_answer_with_the_sum(tmp_path):
    code = (
        "from octweb.core import metrics\n"
        "with metrics.count_calls('v1') as call:\n    call.of('m', 1)\n    call.predicted({'a': 2, 'b': 0})\n"
        "print(metrics.exposition().decode())"
    )
    environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    for _ in range(2):
        process = subprocess.run(
            [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
        )
    assert 'octweb_predict_rows_total{model="m",version="1"} 4.0' in process.stdout


def test_metrics_work_without_the_data_folder(admin_client, settings, tmp_path):
    settings.DATA_DIR = tmp_path / "gone"
    answer = admin_client.get("/metrics")
    assert answer.status_code == 200
    assert 'octweb_ready{part="disk"} 0.0' in answer.content.decode()
    assert "octweb_disk_free_bytes" not in answer.content.decode()
