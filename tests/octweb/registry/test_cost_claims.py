"""A tree of least cost is described as such everywhere, and never called proved optimal."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from octweb.datasets import stored
from octweb.dossier.document import to_html
from octweb.registry.lifecycle import actions
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401
from tests.octweb.visible_text import visible
from trainer.dossier import dossier as make_dossier
from trainer.training.claims import LEAST_COST, claim_words, read_claim
from trainer.training.run import TrainRequest, train
from trainer.tree.file import from_json
from trainer.tree.numbers import number_text

pytestmark = pytest.mark.django_db
PAGES = {
    "strip": "/models/{pk}/",
    "proof": "/models/{pk}/?mode=proof",
    "inspector": "/models/{pk}/?mode=tree&tab=proof",
    "history": "/models/{pk}/?mode=history",
    "list": "/models/",
    "home": "/",
    "review": "/models/{pk}/review/",
    "waiting": "/models/review/",
    "compare": "/models/compare/",
    "API": "/api/v1/models/{pk}/",
    "HTML file": "/models/{pk}/download/html/",
    "admin": "/admin/registry/treemodel/",
}


@pytest.fixture
def request_of(dataset):  # noqa: F811
    table, labels = stored.load(dataset)
    parameters = {"depth": 2, "bins": 5, "leaf_penalty": 0.01, "costs": "no>yes=5", "cost_unit": "EUR"}
    return TrainRequest(table=table, labels=labels, method="exact", parameters=parameters, test_share=0.25)


@pytest.fixture
def document(request_of):
    return train(request_of).model.to_json()


@pytest.fixture
def model(owner, dataset, document):  # noqa: F811
    return actions.register(owner=owner, document=document, dataset=dataset, title="Cheapest")


@pytest.mark.parametrize("place", PAGES)
def test_claim_of_least_cost_is_the_same_everywhere(place, model, client, staff):
    actions.ask_for_approval(model, by=model.owner)
    client.force_login(staff)
    answer = client.get(PAGES[place].format(pk=model.pk))
    assert answer.status_code == 200
    text = visible(answer.content.decode())
    assert LEAST_COST in text
    assert "Proved optimal" not in text
    assert "has a better objective" not in text


def test_performance_page_says_saving_and_interval(model, document, client, owner):
    client.force_login(owner)
    text = visible(client.get(f"/models/{model.pk}/?mode=performance").content.decode())
    assert "no tree of this scope saves more after the price of its leaves" in text
    assert "against always answering" in text
    low, high = document["metrics"]["test"]["cost_interval"]
    assert low <= document["metrics"]["test"]["cost_per_row"] <= high
    assert f"{low:.3g} to {high:.3g}" in text


def test_head_of_page_says_costs_and_not_accuracy(model, document, client, owner):
    client.force_login(owner)
    text = visible(client.get(f"/models/{model.pk}/").content.decode())
    test = document["metrics"]["test"]
    assert f"Cost per unseen row {number_text(test['cost_per_row'])} EUR" in text
    assert f"one answer: {number_text(test['constant_cost'] / test['n'])} EUR" in text
    assert "Cost per training row" in text
    assert "Accuracy on unseen rows" not in text


@pytest.mark.parametrize("place", ["list", "home", "waiting", "history", "review", "side by side"])
def test_lists_say_costs_and_not_accuracy(place, model, document, dataset, owner, client, staff):  # noqa: F811
    other = actions.register(owner=owner, document=document, dataset=dataset, title="Same")
    actions.ask_for_approval(model, by=model.owner)
    client.force_login(staff if place == "waiting" else owner)
    address = {"side by side": f"/models/compare/?models={model.pk}&models={other.pk}"} | PAGES
    text = visible(client.get(address[place].format(pk=model.pk)).content.decode()).replace("\u202f", " ")
    test = document["metrics"]["test"]
    per_row = number_text(test["cost_per_row"])
    assert f"Cost per unseen row {per_row} EUR" in text if place == "review" else f"{per_row} EUR a row" in text
    assert f"{100 * test['accuracy']:.1f} %" not in text


def test_comparison_ranks_by_cost_if_all_trees_have_the_same(model, document, owner, dataset, client):  # noqa: F811
    dearer = json.loads(json.dumps(document))
    test = dearer["metrics"]["test"]
    test |= {
        "cost": test["cost"] + test["n"],
        "cost_per_row": test["cost_per_row"] + 1,
        "accuracy": 1.0,
        "correct": test["n"],
    }
    actions.register(owner=owner, document=dearer, dataset=dataset, title="Dearer")
    client.force_login(owner)
    answer = client.get("/models/compare/")
    text = visible(answer.content.decode())
    assert [row["model"].title for row in answer.context["rows"]] == ["Cheapest", "Dearer"]
    assert [row["frontier"] for row in answer.context["rows"]] == [True, False]
    per_row = document["metrics"]["test"]["cost_per_row"]
    assert f"Cheapest (version 1) has the lowest cost per unseen row ({per_row:.3g} EUR" in text
    assert "they are ranked by the cost per held-out row" in text
    other = json.loads(json.dumps(dearer))
    other["certificate"]["costs"]["costs"]["no"]["yes"] = "7"
    actions.register(owner=owner, document=other, dataset=dataset, title="Other costs")
    answer = client.get("/models/compare/")
    assert answer.context["rows"][-1]["model"].title == "Cheapest"
    assert "The costs of answers differ, so trees are ranked by accuracy." in visible(answer.content.decode())


def test_html_file_says_what_answers_cost(model, client, owner):
    client.force_login(owner)
    text = visible(client.get(f"/models/{model.pk}/download/html/").content.decode())
    assert "The answers cost" in text
    assert "EUR" in text


def test_dossier_says_least_cost_and_the_cost(document, csv_file, tmp_path):  # noqa: F811
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    record = make_dossier(path, csv_file)
    text = visible(to_html(record, from_json(document).tree))
    assert LEAST_COST in text
    assert "The answers cost" in text
    assert "Proved optimal" not in text


def test_gap_of_costs_names_the_bound_in_its_unit(request_of):
    result = train(request_of)
    stopped = replace(result.certificate, bound=result.certificate.objective + 0.05, gap=0.05, status="time_limit")
    stopped.costs["least"] = 12.5
    claim = read_claim(stopped.to_json())
    assert claim.kind == "gap"
    assert "costs less than 12.5 EUR" in claim.explanation
    assert read_claim({"guarantee": "tree", **result.summary}).words == LEAST_COST
    assert claim_words(result.certificate.to_json()).startswith(f"{LEAST_COST}: no tree that was searched costs less")


def test_comparison_joins_names_of_several_cheapest_trees(model, document, owner, dataset, client):  # noqa: F811
    for title in ("Second", "Third"):
        actions.register(owner=owner, document=document, dataset=dataset, title=title)
    client.force_login(owner)
    text = visible(client.get("/models/compare/").content.decode())
    assert "(version 1) and " in text
    assert text.count("(version 1), ") >= 1
    assert "tie for the lowest cost per unseen row" in text
