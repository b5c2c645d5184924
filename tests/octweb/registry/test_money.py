"""The misclassification cost on a model page equals a count by hand."""

from __future__ import annotations

import io

import numpy as np
import pytest

from octweb.datasets import actions as datasets
from octweb.registry.document.model_files import model_file
from octweb.registry.document.rows import check_claim
from octweb.registry.lifecycle import actions
from octweb.registry.page import performance
from octweb.registry.page.scene import ModelScene
from trainer.training.run import TrainRequest, train


@pytest.fixture
def table(owner, media):
    """Provide a data set of 200 rows with two numeric columns, for which some answers are wrong."""
    rng = np.random.default_rng(7)
    X = rng.integers(0, 30, (200, 2)) / 2
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + rng.normal(0, 3, 200) > 10, "good", "bad")
    lines = [f"{a:g},{b:g},{k}" for (a, b), k in zip(X, y, strict=True)]
    text = "first,second,answer\n" + "\n".join(lines) + "\n"
    return datasets.create(owner=owner, file=io.BytesIO(text.encode()), source_name="t.csv", name="t", target="answer")


def trained_on(table, owner, method="cart", **parameters):
    rows, labels = datasets.load(table)
    asked = {"depth": 3 if method == "cart" else 2, **parameters}
    result = train(TrainRequest(table=rows, labels=labels, method=method, parameters=asked, test_share=0.25))
    return actions.register(owner=owner, document=result.model.to_json(), dataset=table, title="T")


def scene_of(model, user):
    return ModelScene(model=model, user=user, inside=True)


@pytest.mark.one_database
def test_cost_of_tree_is_shown_beside_best_constant_answer(table, owner, client):
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
    saved = money["rows"][0]
    assert saved["saved_interval"][0] < saved["saved"] < saved["saved_interval"][1]
    client.force_login(owner)
    page = client.get(f"/models/{model.pk}/", {"mode": "performance"}).content.decode()
    assert "Cost of the answers" in page
    assert "The training counted costs of its own" in page
    plain = scene_of(trained_on(table, owner), owner)
    assert performance.money(plain) is None
    assert (
        "Cost of the answers" not in client.get(f"/models/{plain.model.pk}/", {"mode": "performance"}).content.decode()
    )


@pytest.mark.one_database
@pytest.mark.parametrize("part", ["unseen", "training"])
def test_cheapest_cut_is_that_of_all_cuts(table, owner, client, part):
    model = trained_on(table, owner, costs="bad>good=5; good>bad=0.2*first", cost_unit="EUR")
    scene = scene_of(model, owner)
    at = scene.part(part)
    codes = scene.rows.codes[at]
    first = scene.rows.matrix[at, 0]
    shares = np.array([scene.tree.nodes[leaf].counts[1] / scene.tree.nodes[leaf].rows for leaf in scene.leaf_of[at]])
    totals = []
    for cut in [*np.unique(shares), 2.0]:
        answers = shares >= cut
        totals.append(5 * ((codes == 0) & answers).sum() + (0.2 * first)[(codes == 1) & ~answers].sum())
    found = performance.cheapest_cut(scene, part, 1)
    assert found.cost == pytest.approx(min(totals) / len(at))
    assert found.cost <= found.tree_cost + 1e-12
    client.force_login(owner)
    picture = client.get(f"/api/v1/models/{model.pk}/figures/roc/", {"part": part, "positive": 1}).json()
    assert [line["name"] for line in picture["data"]][-2:] == ["this tree", "cheapest cut-off"]
    page = client.get(f"/models/{model.pk}/", {"mode": "performance", "part": part}).content.decode()
    assert "The diamond is the cheapest cut-off" in page
    assert performance.cheapest_cut(scene_of(trained_on(table, owner), owner), part, 1) is None


@pytest.mark.one_database
def test_model_with_costs_is_counted_again_on_its_page(table, owner):
    model = trained_on(table, owner, costs="bad>good=5; good>bad=0.2*first", cost_unit="EUR")
    found = check_claim(model)
    assert found.agrees
    assert found.sentence.startswith("yes, ")
    assert " EUR" in found.sentence
    document = model_file(model).to_json()
    document["certificate"]["costs"]["cost"] += 1
    lie = actions.register(owner=owner, document=document, dataset=table, title="L")
    assert "but the file says" in check_claim(lie).sentence


@pytest.mark.one_database
def test_balanced_model_is_recounted_on_its_page(table, owner):
    found = check_claim(trained_on(table, owner, method="exact", class_weight="balanced"))
    assert found.agrees, found.sentence
