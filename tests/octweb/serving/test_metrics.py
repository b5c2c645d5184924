"""Prometheus metrics count every call, in one process and summed over several."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from prometheus_client import REGISTRY

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


def test_names_of_strangers_are_not_kept(client_of, owner):
    client = client_of(owner)
    body = {"inputs": [{"name": "x", "shape": [1, 1], "datatype": "FP64", "data": [1]}]}
    for i in range(3):
        assert client.post(f"/v2/models/made-up-{i}/infer", body, format="json").status_code == 404
    assert value("octweb_predict_requests_total", model="unknown", version="", api="v2", status="404") >= 3
    assert value("octweb_predict_requests_total", model="made-up-0", version="", api="v2", status="404") == 0


def test_who_may_read_them(client, client_of, settings, owner, staff, approved):
    assert client.get("/metrics").status_code == 403
    client.force_login(owner)
    assert client.get("/metrics").status_code == 403
    client.force_login(staff)
    assert b"octweb_predict_seconds_bucket" in client.get("/metrics").content
    client.logout()
    settings.METRICS_TOKEN = "a long secret"
    assert client.get("/metrics", headers={"authorization": "Bearer a long secret"}).status_code == 200
    assert client.get("/metrics", headers={"authorization": "Bearer another"}).status_code == 403


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
