"""Fixtures of workbenches: a model of `exact` on a small data set, and a session in the process of the test."""

from __future__ import annotations

import threading

import pytest

from octweb.datasets import stored
from octweb.registry.lifecycle import actions as registry
from octweb.workbench import work
from octweb.workbench.work import EditingSupervisor
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401
from trainer.training.run import TrainRequest, train


@pytest.fixture
def model(owner, dataset):  # noqa: F811
    table, labels = stored.load(dataset)
    request = TrainRequest(
        table=table,
        labels=labels,
        method="exact",
        parameters={"depth": 2, "bins": 5, "leaf_penalty": 0.01},
        test_share=0.25,
    )
    return registry.register(owner=owner, document=train(request).model.to_json(), dataset=dataset, title="Small tree")


@pytest.fixture
def serve(monkeypatch):
    """Provide a function that serves a workbench until all its steps are answered, and returns the job's status."""
    monkeypatch.setattr(work, "IDLE_SECONDS", 0.3)

    def run(bench):
        supervisor = EditingSupervisor(job_id=str(bench.pk), worker="here", stopping=threading.Event())
        status = supervisor.run()
        bench.refresh_from_db()
        return status

    return run
