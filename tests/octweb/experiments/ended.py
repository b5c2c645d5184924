"""Candidates of experiments, ended with artificial records."""

from __future__ import annotations

import json

from octweb.experiments.models import Candidate
from octweb.jobs.models import RunStatus
from tests.octweb.small_models import trained


def end_candidate(candidate: Candidate, accuracies, leaves=2, costs=(), **summary):
    """End a candidate with given accuracies or costs of its folds and a number of leaves."""
    study = {"dataset": "", "fingerprint": "", "variant": "", "key": "", "folds": 3, "seed": 0, "threads": 1}
    candidate.records = [
        study
        | {"fold": f, "second": -1, "accuracy": a, "correct": round(30 * a), "n": 30, "leaves": leaves, "error": ""}
        for f, a in enumerate(accuracies)
    ]
    for record, cost in zip(candidate.records, costs, strict=bool(costs)):
        record |= {
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
