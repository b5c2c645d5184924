"""The cost of the answers on a model page, counted by hand."""

from __future__ import annotations

import io

import numpy as np
import pytest

from octweb.datasets import actions as datasets
from octweb.registry import actions
from octweb.registry.workspace import performance
from octweb.registry.workspace.scene import ModelScene
from trainer.training.run import TrainRequest, train


@pytest.fixture
def table(owner, media):
    """200 rows of two columns of numbers that leave some answers wrong."""
    rng = np.random.default_rng(7)
    X = rng.integers(0, 30, (200, 2)) / 2
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + rng.normal(0, 3, 200) > 10, "good", "bad")
    lines = [f"{a:g},{b:g},{k}" for (a, b), k in zip(X, y, strict=True)]
    text = "first,second,answer\n" + "\n".join(lines) + "\n"
    return datasets.create(owner=owner, file=io.BytesIO(text.encode()), source_name="t.csv", name="t", target="answer")


def trained_on(table, owner, **parameters):
    rows, labels = datasets.load(table)
    asked = {"depth": 3, **parameters}
    result = train(TrainRequest(table=rows, labels=labels, method="cart", parameters=asked, test_share=0.25))
    return actions.register(owner=owner, document=result.model.to_json(), dataset=table, title="T")


def scene_of(model, user):
    return ModelScene(model=model, user=user, inside=True)


@pytest.mark.one_database
def test_money_of_a_trained_cost_is_beside_the_best_single_answer(table, owner, client):
    model = trained_on(table, owner, costs="bad>good=5; good>bad=0.2*first", cost_unit="EUR")
    scene = scene_of(model, owner)
    money = performance.money(scene)
    rows = scene.rows
    for own, at in zip(money["rows"], (rows.unseen, rows.training), strict=True):
        codes = rows.codes[at]
        said = scene.predicted[at]
        first = rows.matrix[at, 0]
        cost = 5 * ((codes == 0) & (said == 1)).sum() + (0.2 * first)[(codes == 1) & (said == 0)].sum()
        single = {"good": 5 * (codes == 0).sum(), "bad": (0.2 * first)[codes == 1].sum()}[money["constant"]]
        assert own["n"] == len(at)
        assert own["cost"] == pytest.approx(cost)
        assert own["per_row"] == pytest.approx(cost / len(at))
        assert own["saved"] == pytest.approx(single - cost)
    cells = [cell["cost"] for row in performance.mistakes(scene, "unseen")["rows"] for cell in row["cells"]]
    assert all(text.endswith(" EUR") for text in cells if text)
    assert any(cells)
    client.force_login(owner)
    page = client.get(f"/models/{model.pk}/", {"mode": "performance"}).content.decode()
    assert "Cost of the answers" in page
    assert "The training counted costs of its own" in page
    plain = scene_of(trained_on(table, owner), owner)
    assert performance.money(plain) is None
    assert (
        "Cost of the answers" not in client.get(f"/models/{plain.model.pk}/", {"mode": "performance"}).content.decode()
    )
