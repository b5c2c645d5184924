"""Waiting for runs and following their progress, against a fake server."""

from __future__ import annotations

import time

import httpx
import pytest

from octweb import client as api
from octweb.client import jobs
from tests.octweb.client.answers import RUN, ok, problem


def test_run_is_polled_to_its_end(played, pauses):
    answers = [ok(RUN | {"status": "running"}), ok(RUN | {"status": "succeeded", "model": "m1"}), ok({"id": "m1"})]
    client, calls = played(ok(RUN), *answers)
    run = client.runs.get("r1").wait(timeout=60)
    assert run.model.id == "m1"
    assert len(pauses) == 2
    assert [call.url.path for call in calls[1:]] == ["/api/v1/runs/r1/"] * 2 + ["/api/v1/models/m1/"]


def test_wait_outlives_a_restart_of_the_server(played, pauses, monkeypatch):
    outage = (httpx.ConnectError("refused"), problem(502))
    ended = ok(RUN | {"status": "succeeded"})
    client, _ = played(ok(RUN), *outage, ended, retries=0)
    assert client.runs.get("r1").wait().status == "succeeded"
    monkeypatch.setattr(jobs, "LONGEST_OUTAGE_SECONDS", -1.0)
    client, _ = played(ok(RUN), *outage, ended, retries=0)
    with pytest.raises(api.NoConnectionError):
        client.runs.get("r1").wait()


def test_progress_outlives_a_restart_of_the_server(played, pauses, monkeypatch):
    outage = (httpx.ConnectError("refused"), problem(502))
    ended = ok({"status": "succeeded", "attempt": 1, "next": 0, "records": []})
    client, _ = played(ok(RUN), *outage, ended, ok(RUN | {"status": "succeeded"}), retries=0)
    run = client.runs.get("r1")
    assert list(run.progress()) == []
    assert run.is_finished
    monkeypatch.setattr(jobs, "LONGEST_OUTAGE_SECONDS", -1.0)
    client, _ = played(ok(RUN), *outage, ended, retries=0)
    with pytest.raises(api.NoConnectionError):
        list(client.runs.get("r1").progress())


def test_failed_run_raises_the_reason_of_the_server(played):
    client, _ = played(ok(RUN | {"status": "failed", "error": "Not enough memory."}))
    run = client.runs.get("r1")
    with pytest.raises(api.RunFailedError, match="Not enough memory"):
        run.wait()
    with pytest.raises(api.RunFailedError, match="has no model"):
        _ = run.model


def test_wait_ends_at_its_timeout(played):
    client, _ = played(*[lambda request: ok(RUN)] * 20)
    start = time.monotonic()
    with pytest.raises(api.WaitTimeoutError, match="continues on the server"):
        client.runs.get("r1").wait(timeout=0.05)
    assert time.monotonic() - start >= 0.05


def test_polls_grow_and_keep_the_timeout():
    pauses = []
    for pause in jobs.polls(10.0, lambda: sum(pauses)):
        pauses.append(pause)
        if pause is None:
            break
    assert pauses[0] == jobs.FIRST_POLL_SECONDS
    assert max(pauses[:-1]) <= jobs.LONGEST_POLL_SECONDS
    assert sum(pauses[:-1]) == pytest.approx(10.0)


def test_progress_is_yielded_once_also_after_a_new_attempt(played, pauses):
    def page(attempt, since, records, status="running"):
        return ok({"status": status, "attempt": attempt, "next": since + len(records), "records": records})

    step = {"t": 1.0, "phase": "search", "incumbent": 0.8, "bound": 1.0, "gap": 0.25, "leaves": 3, "nodes": 9}
    pages = [
        page(1, 0, [step]), page(1, 1, []), page(2, 1, []),
        page(2, 0, [step | {"t": 2.0}]), page(2, 1, [step | {"t": 3.0, "gap": None}], "succeeded"), page(2, 2, [], "succeeded"),
    ]  # fmt: skip
    client, calls = played(ok(RUN), *pages, ok(RUN | {"status": "succeeded"}))
    run = client.runs.get("r1")
    steps = list(run.progress())
    assert [step.seconds for step in steps] == [1.0, 2.0, 3.0]
    assert (steps[0].incumbent, steps[0].bound, steps[0].gap, steps[0].leaves) == (0.8, 1.0, 0.25, 3)
    assert steps[0].data["nodes"] == 9
    assert steps[-1].gap is None
    assert [call.url.params.get("since") for call in calls[1:-1]] == ["0", "1", "1", "0", "1", "2"]
    assert run.is_finished
