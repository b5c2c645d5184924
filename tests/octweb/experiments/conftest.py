"""Fixtures of experiments: candidates, and a function that ends them with artificial records."""

from __future__ import annotations

import pytest

from octweb.experiments import actions
from tests.octweb.experiments.ended import end_candidate
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401

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
def finish():
    """Provide a function that ends a candidate with given accuracies or costs of folds and a number of leaves."""
    return end_candidate
