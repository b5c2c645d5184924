"""Retries, problem details, pagination and bodies of the client, against a fake server."""

from __future__ import annotations

import datetime
import email.utils
import io
import itertools
import json
import subprocess
import sys
import time

import httpx
import numpy as np
import pandas as pd
import polars as pl
import pytest

import octweb
from octweb import client as api
from octweb.batch.api import NewBatchPredictionSerializer
from octweb.client import bodies, connection, datasets, jobs, models
from octweb.datasets.serializers import NewDatasetSerializer
from tests.octweb.client.conftest import problem

RUN = {"id": "r1", "name": "n", "status": "queued", "progress": {}, "error": "", "model": None}
DATASET = {"id": "d1", "name": "Loans", "rows": 3, "target": "y", "columns": []}
HEAD = {"model": "m1", "name": "loans", "version": 2, "certificate": {"proved_optimal": True}, "notes": []}


def ok(body, status=200) -> httpx.Response:
    return httpx.Response(status, json=body)


def model_of(client) -> api.RemoteModel:
    return api.RemoteModel(client._connection, {"id": "m1", "name": "loans", "version": 2})


def test_names_are_offered_by_octweb_itself():
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


CELLS = {"a": 1.5, "b": None, "c": "x", "d": 3}


@pytest.mark.parametrize(
    "rows",
    [
        CELLS,
        [CELLS],
        ({"a": np.float64(1.5), "b": float("nan"), "c": np.str_("x"), "d": np.int64(3)} for _ in range(1)),
        pd.DataFrame({"a": [1.5], "b": [np.nan], "c": ["x"], "d": [3]}),
        pd.DataFrame({"a": [1.5], "b": [pd.NA], "c": ["x"], "d": [3]}).convert_dtypes(),
        pl.DataFrame({"a": [1.5], "b": [None], "c": ["x"], "d": [3]}),
    ],
    ids=["dict", "list", "numpy", "pandas", "nullable", "polars"],
)
def test_rows_of_every_form_are_sent_alike(rows):
    assert json.dumps(bodies.rows_of(rows)) == json.dumps([CELLS])


def test_dates_and_flags_are_sent_as_the_server_reads_them():
    frame = pd.DataFrame({"when": [pd.Timestamp("2026-11-02"), pd.NaT], "flag": [True, False]})
    assert bodies.rows_of(frame) == [{"when": "2026-11-02", "flag": True}, {"when": None, "flag": False}]
    frame["when"] = [pd.Timestamp("2026-11-02"), pd.Timestamp("2026-11-02 13:30")]
    assert [row["when"] for row in bodies.rows_of(frame)] == ["2026-11-02T00:00:00", "2026-11-02T13:30:00"]
    assert bodies.rows_of({"when": pd.Timestamp("2026-11-02")}) == [{"when": "2026-11-02T00:00:00"}]


def test_frame_with_equal_names_is_refused():
    with pytest.raises(ValueError, match="2 columns 'a'"):
        bodies.rows_of(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_values_that_are_no_row_are_refused():
    with pytest.raises(TypeError, match="mapping of column to value, not list"):
        bodies.rows_of([[1, 2]])
    with pytest.raises(ValueError, match="infinite"):
        bodies.rows_of({"a": float("inf")})


@pytest.mark.parametrize("source", ["missing.csv", io.StringIO("a\n1\n"), 7])
def test_values_that_are_no_file_are_refused(source):
    with pytest.raises((FileNotFoundError, TypeError), match=r"missing.csv|binary mode|int is no path"):
        bodies.open_file(source)


def test_rows_are_predicted_in_batches(played):
    def answer(request):
        rows = json.loads(request.content)["rows"]
        predictions = [
            {"label": str(r["a"]), "probabilities": {"0": 1.0}, "leaf": 0, "decision": f"k{r['a']}"} for r in rows
        ]
        return ok(HEAD | {"predictions": predictions, "notes": ["Column 'a' has a new category."]})

    client, calls = played(answer, answer, answer)
    frame = pd.DataFrame({"a": range(5)}, index=list("vwxyz"))
    answers = model_of(client).predict(frame, batch_size=2, subject="person 7")
    assert answers.labels == ["0", "1", "2", "3", "4"]
    assert answers.decisions[-1] == "k4"
    assert answers.notes == ["Column 'a' has a new category."]
    assert len(answers[1:3]) == 2
    assert list(answers.to_frame().columns) == ["label", "probability 0", "leaf", "decision"]
    assert {call.headers["Octweb-Subject"] for call in calls} == {"person 7"}


def test_name_of_a_model_is_not_taken_for_its_id(played):
    client, calls = played()
    with pytest.raises(ValueError, match=r"client.models.get\(name\)"):
        client.predict("loans", [])
    assert calls == []


def test_rows_of_later_batches_keep_their_numbers(played):
    note = ok(HEAD | {"predictions": [], "notes": ["rows[0]: 'x' is not a known category of 'a'."]})
    client, _ = played(note, note)
    assert [text[:7] for text in model_of(client).predict([{}] * 4, batch_size=2).notes] == ["rows[0]", "rows[2]"]
    client, _ = played(note, problem(422, "rows[1]: column 'a' needs a number."))
    with pytest.raises(api.InvalidValueError, match=r"rows\[3\]: column 'a'") as refused:
        model_of(client).predict([{}] * 4, batch_size=2)
    assert refused.value.errors[0]["detail"].startswith("rows[3]")
    assert refused.value.__notes__ == ["The first 2 rows were answered by earlier calls."]
    with pytest.raises(ValueError, match="at least 1"):
        model_of(client).predict([{}], batch_size=0)


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


def test_findings_are_mended_by_one_change_per_column(played):
    client, calls = played(ok(DATASET), ok(DATASET))
    dataset = client.datasets.get("d1")
    findings = [
        {"kind": "identifier", "sentence": "s", "mend": {"column": "id", "role": "ignored"}},
        {"kind": "sentinel", "sentence": "s", "mend": {"column": "age", "missing": ["-9"]}},
        {"kind": "other_spelling", "sentence": "s", "mend": {"column": "town", "merge": {"bern": "Bern"}}},
    ]
    dataset.confirm(mend=findings, kinds={"age": "numeric"}, target="y")
    assert json.loads(calls[1].content) == {
        "columns": [
            {"name": "id", "role": "ignored"},
            {"name": "age", "missing_words": ["-9"], "kind": "numeric"},
            {"name": "town", "merge": True},
        ],
        "target": "y",
    }
    with pytest.raises(ValueError, match="'no_header' cannot be mended by the client: The first line is a row"):
        dataset.confirm(mend=[{"kind": "no_header", "sentence": "The first line is a row.", "mend": {"header": False}}])


def test_findings_without_a_remedy_change_nothing(played):
    columns = [{"name": "paid year"}, {"name": "paid month"}, {"name": "age"}]
    client, calls = played(ok(DATASET | {"columns": columns}), ok(DATASET))
    findings = [
        {"kind": "equal_rows_across", "sentence": "s", "mend": {}},
        {"kind": "identifier", "sentence": "s", "mend": {"column": "id", "role": "feature", "kind": "numeric"}},
        {"kind": "sentinel", "sentence": "s", "mend": {"column": "paid", "kind": "text"}},
        {
            "kind": "date_after_outcome",
            "sentence": "s",
            "mend": {"column": "paid", "columns": ["paid month", "paid year"], "role": "ignored"},
        },
    ]
    client.datasets.get("d1").confirm(mend=findings)
    assert json.loads(calls[1].content) == {
        "columns": [{"name": "paid month", "role": "ignored"}, {"name": "paid year", "role": "ignored"}]
    }


@pytest.mark.parametrize(
    ("known", "serializer", "own", "send"),
    [
        (
            datasets.READ_OPTIONS,
            NewDatasetSerializer,
            {"file", "name", "target"},
            lambda client: client.datasets.upload(b"a\n1\n", sep=";"),
        ),
        (
            models.FILE_OPTIONS,
            NewBatchPredictionSerializer,
            {"file", "model"},
            lambda client: model_of(client).predict_file(b"a\n1\n", sep=";"),
        ),
    ],
)
def test_options_of_a_file_are_those_of_the_api(played, known, serializer, own, send):
    assert {*known} == serializer().fields.keys() - own
    client, calls = played()
    with pytest.raises(TypeError, match=f"'sep' is no option. The options are {known[0]}"):
        send(client)
    assert calls == []


def test_numbers_of_numpy_are_sent_as_parameters(played):
    client, calls = played(ok(DATASET), ok(RUN, 201))
    costs = {"a": {"b": np.float64(2.5)}}
    client.train(client.datasets.get("d1"), depth=np.int64(3), forbidden=np.array(["x"]), costs=costs)
    assert json.loads(calls[1].content)["parameters"] == {"depth": 3, "forbidden": ["x"], "costs": {"a": {"b": 2.5}}}


def test_page_size_of_a_list_can_be_chosen(played):
    client, calls = played(ok({"results": [], "next": None}))
    assert list(client.runs.list(page_size=7)) == []
    assert calls[0].url.params["page_size"] == "7"


def test_settings_of_a_run_are_told_from_parameters(played):
    client, calls = played(ok(DATASET), ok(DATASET | {"target": "z"}), ok(RUN, 201))
    dataset = client.datasets.get("d1")
    client.train(dataset, target="z", method="exact", depth=3, weight="w", warm_start=model_of(client), folds=5)
    assert json.loads(calls[1].content) == {"target": "z"}
    assert json.loads(calls[2].content) == {
        "dataset": "d1", "method": "exact", "parameters": {"depth": 3}, "weight": "w", "warm_start": "m1", "folds": 5,
    }  # fmt: skip


def test_name_without_the_wanted_version_is_an_error(played):
    listed = [{"id": f"m{i}", "name": "loans", "version": i, "served_since": None} for i in (2, 1)]
    client, _ = played(*[ok({"next": None, "results": listed})] * 2)
    with pytest.raises(api.ClientError, match=r"no served version. Versions that you may use: 2, 1\."):
        client.models.get("loans")
    with pytest.raises(api.ClientError, match=r"no version 3. Versions that you may use: 2, 1\."):
        client.models.get("loans", version=3)


def test_name_means_its_served_version(played):
    listed = [{"id": f"m{i}", "name": "loans", "version": i, "served_since": "2026-11-01"} for i in (3, 2)]
    listed.append(listed[0] | {"id": "m1", "version": 1, "served_since": None})
    client, calls = played(
        ok({"next": None, "results": listed}), ok(listed[0] | {"served": False}), ok(listed[1] | {"served": True})
    )
    assert client.models.get("loans").version == 2
    assert len(calls) == 3
