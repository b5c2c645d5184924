"""Candidates in a real child process: folds are stored as they end, and another attempt resumes."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

from octweb.experiments import actions
from octweb.experiments.board import board
from octweb.experiments.models import Candidate
from octweb.experiments.work import CandidateSupervisor
from octweb.registry.document.selection import selection_of

pytestmark = pytest.mark.django_db(transaction=True)


def run(candidate: Candidate) -> str:
    return CandidateSupervisor(job_id=str(candidate.pk), worker="here", stopping=threading.Event()).run()


def test_candidates_run_to_recommendation_and_estimate(owner, dataset, client):
    browser = client
    browser.force_login(owner)
    trials = [
        {"method": "cart", "parameters": {"depth": 1}},
        {"method": "cart", "parameters": {"depth": 3, "min_leaf": 2}},
    ]
    experiment = actions.start(owner=owner, dataset=dataset, candidates=trials, folds=3, nested=True)
    for candidate in experiment.candidates.all():
        assert run(candidate) == "succeeded", Candidate.objects.get(pk=candidate.pk).error
    found = board(experiment)
    assert [line.done for line in found.lines] == [6, 6]
    assert found.chosen is not None
    assert found.honest.n == dataset.rows
    other = next(line for line in found.lines if not line.recommended)
    model = actions.open_candidate(found.chosen.candidate)
    said = selection_of(model)
    known = found.honest
    assert (said.candidates, said.accuracy, said.n, said.fair) == (2, known.accuracy, dataset.rows, False)
    assert said.interval[0] <= said.accuracy <= said.interval[1]
    assert known.accuracy == pytest.approx(np.mean(known.accuracies), abs=0.01)
    text = browser.get(f"/models/{model.pk}/").content.decode()
    assert said.words in text
    assert f"/experiments/{experiment.pk}/" in text
    assert browser.get(f"/api/v1/models/{model.pk}/").json()["selection"]["accuracy"] == known.accuracy
    passed_over = selection_of(actions.open_candidate(other.candidate))
    assert passed_over.accuracy is None
    assert "The experiment recommends another one" in passed_over.words
    assert model.leaves == found.chosen.leaves
    assert model.unseen_accuracy == pytest.approx(found.chosen.score.mean)
    # the model files contain the trees of the folds, so that the checker can count them
    for candidate in experiment.candidates.all():
        assert len(json.loads(candidate.document)["rows"]["fold_trees"]) == 3
        assert candidate.trees == {}
        assert not any("tree" in record for record in candidate.records)


@pytest.mark.one_database
def test_folds_that_are_done_are_not_computed_again(owner, dataset):
    experiment = actions.start(owner=owner, dataset=dataset, candidates=[{"method": "cart"}], folds=3, test_share=0.2)
    candidate = experiment.candidates.get()
    assert run(candidate) == "succeeded"
    candidate.refresh_from_db()
    known = candidate.records
    assert sum(r["n"] for r in known) == candidate.summary["n"] == 96
    marked = [r | {"seconds": 1234.0} for r in known[:2]]
    Candidate.objects.filter(pk=candidate.pk).update(records=marked, status="queued", attempt=0, document="")
    assert run(candidate) == "succeeded"
    candidate.refresh_from_db()
    assert sorted(r["seconds"] for r in candidate.records)[1:] == [1234.0, 1234.0]
    assert candidate.document
