"""Data sets, runs and models of the client, against a fake server."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from octweb import client as api
from octweb.client import connection, jobs, models
from octweb.client.client import RUN_MEMBERS
from octweb.core import idempotency
from octweb.jobs.models import FINISHED
from octweb.registry.prediction import recording, retired
from octweb.runs.serializers import NewRunSerializer
from tests.octweb.client.answers import DATASET, HEAD, RUN, model_of, ok, problem


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
    dates = {"kind": "unread_dates", "sentence": "Two digits.", "mend": {"column": "day", "kind": "date:mm/dd/yy"}}
    with pytest.raises(ValueError, match="'unread_dates' cannot be mended by the client: Two digits"):
        dataset.confirm(mend=[dates])


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


def test_run_settings_are_separated_from_parameters(played):
    client, calls = played(ok(DATASET), ok(DATASET | {"target": "z"}), ok(RUN, 201))
    dataset = client.datasets.get("d1")
    client.train(dataset, target="z", method="exact", depth=3, weight="w", warm_start=model_of(client), folds=5)
    assert json.loads(calls[1].content) == {"target": "z"}
    assert json.loads(calls[2].content) == {
        "dataset": "d1",
        "method": "exact",
        "parameters": {"depth": 3},
        "weight": "w",
        "warm_start": "m1",
        "folds": 5,
    }


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


def test_name_of_a_model_is_not_taken_for_its_id(played):
    client, calls = played()
    with pytest.raises(ValueError, match=r"client.models.get\(name\)"):
        client.predict("loans", [])
    assert calls == []


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


def test_constants_equal_those_of_the_server():
    assert set(FINISHED) == jobs.FINISHED
    assert {*RUN_MEMBERS} == NewRunSerializer().fields.keys() - {
        "dataset",
        "method",
        "parameters",
        "name",
        "test_share",
        "folds",
    }
    assert (models.SUBJECT_HEADER, models.DRY_RUN_HEADER) == (recording.SUBJECT_HEADER, retired.DRY_RUN_HEADER)
    assert idempotency.ABANDONED.total_seconds() == connection.LONGEST_EXECUTION_SECONDS


def test_approval_sends_recording_only_if_given(played):
    client, calls = played(*[ok({"id": "m1"}), ok({"id": "m1"})])
    model = model_of(client)
    model.approve("It is small.", recording="full")
    model.approve()
    bodies = [json.loads(call.content) for call in calls]
    assert [body.get("recording") for body in bodies] == ["full", None]


def test_life_asks_for_the_days(played):
    client, calls = played(ok({"decisions": 3}))
    assert model_of(client).life(days=7) == {"decisions": 3}
    assert (calls[0].url.path, dict(calls[0].url.params)) == ("/api/v1/models/m1/life/", {"days": "7"})


def test_preview_of_version_is_a_dry_run(played):
    found = {"rows": 3, "differences": [], "problems": ["'width' has another unit."]}
    client, requests = played(ok(found))
    dataset = api.RemoteDataset(client._connection, {"id": "d1", "name": "A"})
    assert dataset.preview_version(b"width\n1\n") == found
    body = requests[0].read()
    assert requests[0].url.path.endswith("/datasets/d1/versions/")
    assert b'name="dry_run"\r\n\r\ntrue' in body
    assert b"width" in body
