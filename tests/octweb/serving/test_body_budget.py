"""Bodies share a memory budget per process: large ones take turns, and small calls never wait."""

from __future__ import annotations

import contextlib
import io
import json
import threading
from collections import Counter
from typing import Any

import psutil
import pytest

from octweb.serving import body_budget
from octweb.serving.body_budget import MIN_COUNTED_BYTES, BodyBudget, BudgetExceeded
from octweb.serving.wire import Wire
from tests.octweb.serving.json_bombs_cases import BOMBS
from tests.torture.mixed import addresses
from tests.torture.site import Site

MOST = 1_000_000
AT_ONCE = 8


@pytest.fixture
def own(monkeypatch, settings) -> BodyBudget:
    """Provide an unused budget of one MB, without a timeout."""
    settings.MAX_PREDICT_BYTES = MOST
    found = BodyBudget()
    monkeypatch.setattr("octweb.serving.wire.BODY_BUDGET", found)
    return found


def test_reserved_bytes_never_exceed_the_budget(own):
    now = [0]
    most = [0]
    lock = threading.Lock()

    def call(size: int) -> None:
        with own.reserve(size, timeout=60):
            with lock:
                now[0] += size
                most[0] = max(most[0], now[0])
            with lock:
                now[0] -= size

    team = [threading.Thread(target=call, args=(MIN_COUNTED_BYTES * (1 + i % 9),)) for i in range(body_budget.WAITING)]
    for _ in range(50):
        for thread in team:
            thread.start()
        for thread in team:
            thread.join()
        team = [
            threading.Thread(target=call, args=(MIN_COUNTED_BYTES * (1 + i % 9),)) for i in range(body_budget.WAITING)
        ]
    assert now == [0]
    assert 0 < most[0] <= MOST
    with own.reserve(MOST):  # all of it is free again
        pass


def test_upload_over_limit_is_refused_and_small_one_accepted(own):
    with own.reserve(MOST - MIN_COUNTED_BYTES + 1):
        with pytest.raises(BudgetExceeded), own.reserve(MIN_COUNTED_BYTES, timeout=0):
            pass
        with own.reserve(MIN_COUNTED_BYTES - 1, timeout=0):
            pass
    with own.reserve(100 * MOST, timeout=0):  # longer than any: its reader refuses it
        pass


def test_waiting_call_proceeds_once_budget_is_free(own):
    inside = threading.Event()

    def later() -> None:
        with own.reserve(MOST, timeout=60):
            inside.set()

    with own.reserve(MOST):
        waiting = threading.Thread(target=later)
        waiting.start()
        while not own._waiting:  # until it waits
            pass
        assert not inside.is_set()
    waiting.join(60)
    assert inside.is_set()


def test_few_calls_wait_and_others_are_refused_at_once(own):
    with own.reserve(MOST):
        own._waiting = body_budget.WAITING
        with pytest.raises(BudgetExceeded), own.reserve(MOST, timeout=600):
            pass


def _call(content: bytes, **changes: Any) -> tuple[str, dict[str, str], bytes]:
    heard: list[Any] = []
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/",
        "CONTENT_LENGTH": str(len(content)),
        "CONTENT_TYPE": "application/json",
        "wsgi.input": io.BytesIO(content),
    } | changes

    def inner(environ, start):
        start("200 OK", [])
        return [environ["wsgi.input"].read()[:2]]

    body = b"".join(Wire(inner)(environ, lambda status, headers, *rest: heard.extend((status, dict(headers)))))
    return heard[0], heard[1], body


@pytest.mark.parametrize("size", [MIN_COUNTED_BYTES, MOST])
def test_call_over_body_budget_gets_503_with_retry_after(own, size):
    with own.reserve(MOST):
        own._waiting = body_budget.WAITING
        status, headers, body = _call(b"x" * size)
        assert status.startswith("503")
        assert int(headers["Retry-After"]) >= 1
        assert "large calls" in json.loads(body)["detail"]
        assert _call(b"x" * (MIN_COUNTED_BYTES - 1))[0] == "200 OK"
        # what Django puts into files takes none
        assert _call(b"x" * size, CONTENT_TYPE="multipart/form-data; boundary=x")[0] == "200 OK"
    own._waiting = 0
    assert _call(b"x" * size)[::2] == ("200 OK", b"xx")


def test_slow_body_reserves_no_budget(own, settings):
    settings.MAX_PREDICT_BYTES = 3 * MOST
    begun = threading.Event()
    go_on = threading.Event()
    answers = []

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            begun.set()
            assert go_on.wait(60)
            return super().read(size)

    content = b"x" * 2 * MOST
    slow = threading.Thread(target=lambda: answers.append(_call(content, **{"wsgi.input": Slow(content)})[0]))
    slow.start()
    assert begun.wait(60)
    with own.reserve(3 * MOST, timeout=0):  # all of it is free
        pass
    go_on.set()
    slow.join(60)
    assert answers == ["200 OK"]


def test_form_reserves_more_than_its_content_length(own):
    kind = {"CONTENT_TYPE": "application/x-www-form-urlencoded; charset=utf-8"}
    with own.reserve(MOST // 2):
        own._waiting = body_budget.WAITING
        assert _call(b"x" * (MOST // 3), **kind)[0].startswith("503")
        assert _call(b"x" * (MOST // 3))[0] == "200 OK"


@pytest.mark.slow
def test_many_bombs_at_once_stay_within_the_bound_of_one_process(tmp_path):
    """Without a budget, twelve of these took 1.7 GB, and /healthz waited for 14 s."""
    site = Site(tmp_path, workers=1)
    peak = [0.0]
    over = threading.Event()

    def watch(web: psutil.Process) -> None:
        while not over.wait(0.02):
            with contextlib.suppress(psutil.Error, ValueError):
                peak[0] = max(peak[0], max(child.memory_info().rss for child in web.children()) / 1e6)

    found: Counter[int] = Counter()
    try:
        site.prepare()
        _, other = addresses(site.approved_model())
        watcher = threading.Thread(target=watch, args=(psutil.Process(site.web.pid),))
        watcher.start()
        kind = {"Content_Type": "application/json"}
        content = BOMBS["a tensor of short texts"](31_000_000)
        calls = [
            threading.Thread(target=lambda: found.update([site.call("POST", other, content, timeout=300, **kind)[0]]))
            for _ in range(AT_ONCE)
        ]
        for call in calls:
            call.start()
        for call in calls:
            call.join()
        assert site.call("GET", "/healthz")[0] == 200
    finally:
        over.set()
        site.stop()
    assert set(found) <= {400, 413, 422, 503}, found
    assert peak[0] < 1000, (peak, found)
    assert (
        found.total() == AT_ONCE
    )  # how many of them find room in time depends on the machine; above, refusals are tried one by one


@pytest.mark.slow
@pytest.mark.django_db
def test_a_stranger_s_form_has_a_small_limit(client, settings):
    """Django reads a form before it looks at its token; 2.5 MB of `%41` take some 100 MB, and 32 MB took more than 1 GB."""
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    }
    client.handler.enforce_csrf_checks = True
    client.cookies["csrftoken"] = "a" * 32
    body = b"csrfmiddlewaretoken=" + b"a" * 32 + b"&username=" + b"%41" * 1_000_000
    answer = client.post("/accounts/login/", body, content_type="application/x-www-form-urlencoded")
    assert answer.status_code == 400
