"""Experiments with grouped rows: form, API, child process, and the unbiased estimate."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import call_command
from django.urls import reverse
from rest_framework.test import APIClient

from octweb.datasets import actions as datasets
from octweb.experiments import actions
from octweb.experiments.board import board, interval_of
from octweb.experiments.models import Experiment
from octweb.experiments.wording import honest_words
from octweb.experiments.work import CandidateChild
from octweb.jobs.child import PROGRESS
from octweb.jobs.models import RunStatus
from trainer.errors import ParameterError
from trainer.evaluate.intervals import wilson

pytestmark = pytest.mark.django_db

ROWS = "".join(
    f"P{i // 4:02};{1 + i // 4}.{1 + i % 4:02}.2024;{i % 5};{'yes' if (i // 4) % 3 == 0 else 'no'}\n" for i in range(80)
)


@pytest.fixture
def visits(owner, media):
    return datasets.create(
        owner=owner,
        file=io.BytesIO(f"patient;day;x;class\n{ROWS}".encode()),
        source_name="visits.csv",
        name="Visits",
        target="class",
    )


def start(owner, visits, **changes):
    arguments = {
        "candidates": [{"method": "cart", "parameters": {"depth": 2}}],
        "folds": 3,
        "test_share": 0.25,
    } | changes
    return actions.start(owner=owner, dataset=visits, **arguments)


def test_candidate_folds_by_groups_and_its_run_does_too(owner, visits, capsys):
    experiment = start(owner, visits, group="patient")
    candidate = experiment.candidates.get()
    child = CandidateChild.prepare(candidate)
    command = child.command()
    call_command(*command[command.index("evaluate") :])
    summary = json.loads(capsys.readouterr().out.strip().splitlines()[-1])["whole"]
    records = [json.loads(line) for line in (child.folder / PROGRESS).read_text().splitlines()]
    assert [record["group"] for record in records] == ["patient"] * 3
    groups = [{group for group, _, _ in record["by_group"]} for record in records]
    assert not groups[0] & groups[1]
    test = summary["metrics"]["test"]
    assert test["groups"] == 5
    assert list(interval_of(test)) == test["interval"]
    candidate.status = RunStatus.SUCCEEDED
    candidate.document = child.result.read_text()
    candidate.save()
    assert actions.retrain(candidate, owner=owner).group == "patient"


def test_interval_of_rows_without_groups_is_wilsons():
    assert interval_of({"correct": 7, "n": 10}) == wilson(7, 10)


def test_words_call_the_number_of_held_out_rows_about_right(owner, visits):
    experiment = start(owner, visits, group="patient")
    assert honest_words(board(experiment)).startswith("About 20 rows were kept out")


def test_form_and_api_take_both_columns(client, owner, visits):
    client.force_login(owner)
    page = client.get(reverse("experiments:new"), {"dataset": visits.pk}).content.decode()
    assert "Do several rows belong to the same person or thing?" in page
    data = {"dataset": visits.pk, "kinds": ["one"], "time_limit": "0.5", "folds": 3, "check": "held-out", "name": ""}
    assert client.post(reverse("experiments:new"), data | {"group": "patient", "time": "day"}).status_code == 302
    made = Experiment.objects.get()
    assert (made.group, made.time) == ("patient", "day")
    api = APIClient()
    api.force_authenticate(owner)
    body = {"dataset": str(visits.pk), "folds": 3, "candidates": [{"method": "cart"}]}
    answer = api.post("/api/v1/experiments/", body | {"time": "day"}, format="json")
    assert answer.status_code == 201, answer.json()
    assert (answer.json()["group"], answer.json()["time"]) == ("", "day")
    assert api.post("/api/v1/experiments/", body | {"group": "nobody"}, format="json").status_code == 422


def test_unknown_column_is_refused(owner, visits):
    with pytest.raises(ParameterError, match="no group column 'who'"):
        start(owner, visits, group="who")
