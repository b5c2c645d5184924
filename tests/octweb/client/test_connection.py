"""Addresses, refusals, retries and pages of the client, against a fake server."""

from __future__ import annotations

import datetime
import email.utils
import itertools
import subprocess
import sys

import httpx
import pytest

import octweb
from octweb import client as api
from octweb.client import connection
from tests.octweb.client.answers import DATASET, HEAD, RUN, model_of, ok, problem


def test_octweb_reexports_the_names():
    assert octweb.Client is api.Client
    assert "Client" in dir(octweb)
    assert {"load", "inspect"} <= set(dir(octweb))


def test_client_needs_neither_django_nor_httpx_to_import():
    code = (
        "import sys; sys.modules['django'] = sys.modules['httpx'] = sys.modules['numpy'] = None\n"
        "import octweb\n"
        "try: octweb.Client('http://x', 't')\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'octweb[client]'" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("url", "token", "words"),
    [
        ("", "t", "OCTWEB_URL"),
        ("http://", "t", "'http:' is no"),
        ("trees.test", "t", "'trees.test' is no"),
        ("http://x", "", "no token"),
    ],
)
def test_missing_address_or_token_is_refused(monkeypatch, url, token, words):
    monkeypatch.delenv("OCTWEB_URL", raising=False)
    monkeypatch.delenv("OCTWEB_TOKEN", raising=False)
    with pytest.raises(ValueError, match=words):
        api.Client(url, token)


def test_invalid_token_is_refused_without_its_text():
    with pytest.raises(ValueError, match="characters that no token has") as refused:
        api.Client("http://x", "sec\nret")
    assert "ret" not in str(refused.value)


def test_spaces_and_the_path_of_the_api_are_cut_off():
    seen = []
    transport = httpx.MockTransport(lambda request: seen.append(request) or ok([]))
    api.Client(" http://x/api/v1/ ", "secret\n", transport=transport).methods()
    assert str(seen[0].url) == "http://x/api/v1/methods/"
    assert seen[0].headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (lambda client: client.methods(), "methods/"),
        (lambda client: api.RemoteDataset(client._connection, DATASET).confirm(target="z"), "datasets/d1/"),
        (lambda client: client.decisions.outcomes(b"decision,outcome\n"), "outcomes/"),
    ],
)
def test_answer_of_another_server_is_named(played, call, path):
    client, _ = played(httpx.Response(200, text="<p>Welcome</p>"))
    with pytest.raises(api.ClientError, match=f"{path} is not JSON"):
        call(client)


def test_redirect_names_the_new_address(played):
    client, calls = played(httpx.Response(301, headers={"Location": "https://octweb.test/api/v1/methods/"}))
    with pytest.raises(api.ApiError, match=r"moved to https://octweb\.test"):
        client.methods()
    assert len(calls) == 1


def test_address_and_token_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("OCTWEB_URL", "http://trees.test/below/")
    monkeypatch.setenv("OCTWEB_TOKEN", "from-environment")
    seen = []
    transport = httpx.MockTransport(lambda request: seen.append(request) or ok([]))
    assert api.Client(transport=transport).methods() == []
    assert str(seen[0].url) == "http://trees.test/below/api/v1/methods/"
    assert seen[0].headers["Authorization"] == "Bearer from-environment"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, api.BadRequestError),
        (401, api.AuthenticationError),
        (403, api.NotAllowedError),
        (404, api.NotFoundError),
        (409, api.StateConflictError),
        (410, api.RetiredError),
        (413, api.TooLargeError),
        (422, api.InvalidValueError),
        (418, api.ApiError),
        (500, api.ServerError),
    ],
)
def test_refusal_is_an_exception_with_its_details(played, status, kind):
    client, calls = played(problem(status, "depth: it is not a number."))
    with pytest.raises(kind, match="depth: it is not a number") as refused:
        client.runs.create(dataset="d1", method="cart")
    assert (refused.value.status, refused.value.code) == (status, "a-code")
    assert refused.value.errors[0]["attr"] == "depth"
    assert len(calls) == 1


def test_refusal_of_a_proxy_without_json_is_shown(played):
    client, _ = played(httpx.Response(413, text="<h1>Request Entity Too Large</h1>"))
    with pytest.raises(api.TooLargeError, match="Request Entity Too Large"):
        client.methods()


@pytest.mark.parametrize("status", [429, 503])
def test_busy_server_is_asked_again_after_its_pause(played, pauses, status):
    client, calls = played(problem(status, **{"Retry-After": "7"}), ok({"predictions": [], **HEAD}))
    model_of(client).predict([])
    assert pauses == [7.0]
    assert len(calls) == 2


def test_retry_after_may_be_a_date():
    moment = email.utils.format_datetime(
        datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=30), usegmt=True
    )
    assert 25 < connection._seconds(moment) <= 30
    assert connection._seconds("soon") is None
    assert connection._seconds(None) is None


def test_long_pause_is_left_to_the_caller(played, pauses):
    client, calls = played(problem(429, **{"Retry-After": "3600"}))
    with pytest.raises(api.RateLimitError) as refused:
        client.methods()
    assert refused.value.retry_after == 3600
    assert (len(calls), pauses) == (1, [])


def test_pauses_grow_and_attempts_end(played, pauses):
    client, calls = played(*[problem(503)] * 4, retries=3)
    with pytest.raises(api.ServerError):
        client.methods()
    assert len(calls) == 4
    assert all(b > a for a, b in itertools.pairwise(pauses))


def test_lost_answer_of_a_new_run_is_repeated_with_one_key(played, pauses):
    client, calls = played(httpx.ReadTimeout("late"), problem(502), ok(RUN, 201))
    assert client.runs.create(dataset="d1", method="cart").id == "r1"
    assert len({call.headers["Idempotency-Key"] for call in calls}) == 1
    assert len({call.content for call in calls}) == 1


def test_lost_answer_of_a_prediction_is_not_repeated(played, pauses):
    """The decision may already be recorded."""
    client, calls = played(httpx.ReadTimeout("late"))
    with pytest.raises(api.NoConnectionError, match="/models/m1/predict/"):
        model_of(client).predict({"a": 1})
    assert (len(calls), pauses) == (1, [])


def test_prediction_that_was_not_sent_is_repeated(played, pauses):
    client, calls = played(httpx.ConnectError("refused"), ok({"predictions": [], **HEAD}))
    model_of(client).predict([])
    assert len(calls) == 2


def test_call_whose_first_attempt_runs_is_asked_again(played, pauses):
    running = [problem(409, **{"Retry-After": "1"})] * 30
    client, _ = played(httpx.ReadTimeout("late"), *running, ok(RUN, 201), retries=1)
    assert client.runs.create(dataset="d1", method="cart").id == "r1"
    assert pauses[1:] == [1.0] * 30


def test_upload_is_read_again_for_each_attempt(played, pauses, tmp_path):
    path = tmp_path / "loans.csv"
    path.write_bytes(b"a,y\n1,2\n")
    client, calls = played(problem(503), ok(DATASET, 201))
    dataset = client.datasets.upload(path, target="y", header=False, ignore=["a"])
    assert dataset.target == "y"
    for call in calls:
        assert b"a,y\n1,2\n" in call.content
        assert b'filename="loans.csv"' in call.content
        assert b'["a"]' in call.content
        assert b"false" in call.content


def test_deletion_whose_answer_was_lost_succeeds(played, pauses):
    client, calls = played(ok(DATASET), httpx.ReadTimeout("late"), problem(404))
    client.datasets.get("d1").delete()
    assert [call.method for call in calls] == ["GET", "DELETE", "DELETE"]
    client, _ = played(ok(DATASET), problem(503), problem(404))
    with pytest.raises(api.NotFoundError):
        client.datasets.get("d1").delete()


def test_pages_are_followed_to_the_end(played):
    after = "https://proxy.test/api/v1/runs/?cursor=abc&page_size=200&status=queued"
    first = ok({"count": 2, "next": after, "previous": None, "results": [RUN]})
    client, calls = played(first, ok({"count": 2, "next": None, "previous": None, "results": [RUN | {"id": "r2"}]}))
    assert [run.id for run in client.runs.list(status="queued")] == ["r1", "r2"]
    assert [str(call.url) for call in calls] == [
        "http://octweb.test/api/v1/runs/?page_size=200&status=queued",
        "http://octweb.test/api/v1/runs/?cursor=abc&page_size=200&status=queued",
    ]


def test_pages_below_a_prefix_are_followed(monkeypatch):
    answers = [ok({"next": "http://t/trees/api/v1/runs/?cursor=a", "results": []}), ok({"next": None, "results": []})]
    seen = []
    transport = httpx.MockTransport(lambda request: seen.append(str(request.url)) or answers.pop(0))
    assert list(api.Client("http://t/trees", "x", transport=transport).runs) == []
    assert seen[1] == "http://t/trees/api/v1/runs/?cursor=a"


def test_page_size_of_a_list_can_be_chosen(played):
    client, calls = played(ok({"results": [], "next": None}))
    assert list(client.runs.list(page_size=7)) == []
    assert calls[0].url.params["page_size"] == "7"
