"""Fixtures of experiments: candidates, and a function that ends them with artificial records."""

from __future__ import annotations

import json

import pytest

from octweb.experiments import actions
from octweb.experiments.models import Candidate
from octweb.jobs.models import RunStatus
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401
from tests.octweb.small_models import trained

TWO = [
    {"method": "cart", "parameters": {"depth": 2}},
    {"method": "exact", "parameters": {"depth": 1, "leaf_penalty": 0.01}},
]


@pytest.fixture
def experiment(owner, dataset):  # noqa: F811
    return actions.start(owner=owner, dataset=dataset, candidates=TWO, folds=3, test_share=0.25)


@pytest.fixture
def priced_experiment(owner, dataset):  # noqa: F811
    classes = dataset.profile["classes"]
    costs = {"costs": f"{classes[0]}>{classes[1]}=5", "cost_unit": "EUR"}
    candidates = [one | {"parameters": one["parameters"] | costs} for one in TWO]
    return actions.start(owner=owner, dataset=dataset, candidates=candidates, folds=3, test_share=0.25)


@pytest.fixture
def finish(cart_document):
    """Provide a function that ends a candidate with given accuracies or costs of folds and a number of leaves."""

    def end(candidate: Candidate, accuracies, leaves=2, costs=(), **summary):
        candidate.records = [
            {"fold": f, "second": -1, "accuracy": a, "correct": round(30 * a), "n": 30, "leaves": leaves, "error": ""}
            for f, a in enumerate(accuracies)
        ]
        study = {"dataset": "", "fingerprint": "", "variant": "", "key": "", "folds": 3, "seed": 0, "threads": 1}
        for record, cost in zip(candidate.records, costs, strict=bool(costs)):
            record |= study | {
                "cost": cost,
                "constant_cost": 60.0,
                "cost_unit": "EUR",
                "cost_sums": [5 * cost, cost, 30, 30],
            }
        test = {"n": 30, "correct": 24, "accuracy": 0.8}
        candidate.summary = {
            "leaves": leaves,
            "depth": 1,
            "train_accuracy": 0.9,
            "seconds": 0.5,
            "status": "heuristic",
            "gap": None,
            "metrics": {"test": test},
        } | summary
        document = trained("cart", depth=2)
        document["metrics"]["test"] = test
        candidate.document = json.dumps(document)
        candidate.status = RunStatus.SUCCEEDED
        candidate.save()
        return candidate

    return end
