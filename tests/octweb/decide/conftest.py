"""Fixtures of decisions: models with rows."""

from __future__ import annotations

import io

import numpy as np
import pytest

from octweb.datasets import actions as datasets
from octweb.registry.lifecycle import actions
from trainer.training.run import TrainRequest, train


@pytest.fixture
def table_model(owner, media):
    """Provide a tree on two numbers and a category with gaps, trained on 300 rows, a quarter of them held out."""
    rng = np.random.default_rng(11)
    X = rng.integers(0, 40, (300, 2)) / 2
    town = rng.choice(["north", "south", "east", ""], 300)
    y = np.where(X[:, 0] + 4 * (town == "north") + rng.normal(0, 2, 300) > 10, "good", "bad")
    lines = [f"{a:g},{b:g},{t},{k}" for (a, b), t, k in zip(X, town, y, strict=True)]
    text = "score,age,town,answer\n" + "\n".join(lines) + "\n"
    choice = datasets.ColumnChoice(target="answer", missing={"town": "category"})
    dataset = datasets.create(owner=owner, file=io.BytesIO(text.encode()), source_name="t.csv", name="t", choice=choice)
    table, labels = datasets.load(dataset)
    request = TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 3}, test_share=0.25)
    return actions.register(owner=owner, document=train(request).model.to_json(), dataset=dataset, title="Loans")


@pytest.fixture
def approved_model(table_model, staff):
    actions.ask_for_approval(table_model, by=table_model.owner)
    return actions.approve(table_model, by=staff)
