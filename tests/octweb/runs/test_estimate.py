"""The estimated time of a run uses the times of finished runs."""

from __future__ import annotations

import pytest

from octweb.runs import actions
from octweb.runs.estimate import correct_estimate, estimate
from octweb.runs.models import RunStatus
from trainer.registry import get

pytestmark = pytest.mark.django_db


def test_runs_that_have_finished_move_the_estimate(owner, dataset):
    method = get("exact")
    values = method.settings({}).to_json()
    before = estimate(user=owner, dataset=dataset, method=method, values=values, test_share=0)
    for _ in range(4):
        run = actions.enqueue(owner=owner, dataset=dataset, method="exact")
        run.status = RunStatus.SUCCEEDED
        run.summary = {
            "seconds": 500,
            "n": 120,
            "features": 3,
            "encoded_features": before.questions,
            "classes": ["a", "b"],
            "status": "optimal",
        }
        run.save()
    after = estimate(user=owner, dataset=dataset, method=method, values=values, test_share=0)
    assert before.high < 60 < after.high
    assert after.low < 500 < after.high
    assert "4 earlier runs on these data" in after.source


def test_spread_shrinks_only_with_agreeing_runs():
    alone = correct_estimate(0.5, [])
    assert alone == (0.0, 0.5)
    assert correct_estimate(0.5, [(0.2, 3.0)] * 5)[1] < 0.5
    assert correct_estimate(0.5, [(-1.0, 3.0), (1.0, 3.0)])[1] > 0.5
