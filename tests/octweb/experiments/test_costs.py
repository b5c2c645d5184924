"""Candidates with costs are ranked by the cost per held-out row, on page and API."""

from __future__ import annotations

import pytest
from django.urls import reverse

from octweb.experiments.board import board, points
from octweb.experiments.models import Experiment
from octweb.experiments.wording import reasons, reasons_against
from octweb.figures.experiment import experiment_figure
from trainer.data.cost_text import stated_costs

pytestmark = pytest.mark.django_db


@pytest.fixture
def ranked(priced_experiment, finish):
    """Provide a ranked experiment, in which the candidate with the higher accuracy costs more."""
    cart, exact = priced_experiment.candidates.all()
    finish(cart, [0.9, 0.9, 1.0], leaves=3, costs=[60.0, 66.0, 63.0])
    finish(exact, [0.7, 0.8, 0.7], leaves=4, costs=[30.0, 33.0, 27.0])
    return priced_experiment


def test_cheaper_candidate_is_recommended_although_less_accurate(ranked):
    leaderboard = board(ranked)
    assert [line.candidate.method for line in leaderboard.sorted("accuracy")] == ["exact", "cart"]
    assert leaderboard.chosen.candidate.method == "exact"
    assert leaderboard.chosen.score.mean == pytest.approx(1.0)
    text = " ".join(reasons(leaderboard))
    assert "Its answers cost 1 EUR per unseen row" in text
    assert "No other candidate is cheaper" in text
    (other,) = reasons_against(leaderboard)
    assert other["reason"] == "1.1 EUR above the lowest, more than its standard error of 0.0577 EUR"


def test_page_and_api_rank_by_cost_with_interval(ranked, client, client_of, owner):
    client.force_login(owner)
    page = " ".join(client.get(f"/experiments/{ranked.pk}/").content.decode().split())
    assert "Lowest cost on" in page
    assert "<b>1 EUR</b>" in page
    assert "always one answer: 2 EUR" in page
    assert "follow the cost of answers per row, not accuracy" in page
    body = client_of(owner).get(f"/api/v1/experiments/{ranked.pk}/").json()
    assert body["ranked_by"] == "cost_per_row"
    first = body["candidates"][0]
    assert (first["id"], first["cost_per_row"]) == (body["highest"], 1.0)
    assert first["accuracy"] == pytest.approx(0.7333, abs=1e-4)
    assert first["cost_standard_error"] == pytest.approx(0.0577, abs=1e-4)
    low, high = first["cost_interval"]
    assert 0 < low < 1 < high


def test_picture_shows_cost_and_band_above_lowest(ranked):
    leaderboard = board(ranked)
    figure = experiment_figure(points(leaderboard), leaderboard.base, leaderboard.measure)
    assert figure["layout"]["yaxis"]["title"]["text"] == "cost per unseen row, EUR"
    band = next(shape for shape in figure["layout"]["shapes"] if shape["type"] == "rect")
    assert (band["y0"], band["y1"]) == pytest.approx((1.0, 1.0577), abs=1e-4)
    assert "always one answer: 2 EUR" in [words["text"] for words in figure["layout"]["annotations"]]


@pytest.mark.parametrize("change", ["costs", "records"])
def test_incomparable_candidates_are_ranked_by_accuracy(ranked, change, client, owner):
    candidate = ranked.candidates.first()
    if change == "costs":
        candidate.parameters["costs"] += "00"
    else:
        candidate.records = [r for r in candidate.records if not r.pop("cost_sums")]
        candidate.records = [
            {"fold": 0, "second": -1, "accuracy": 1.0, "correct": 30, "n": 30, "leaves": 3, "cost": 1.0}
        ]
    candidate.save()
    assert not board(ranked).measure.by_cost
    client.force_login(owner)
    page = " ".join(client.get(f"/experiments/{ranked.pk}/").content.decode().split())
    assert "Candidates have different costs, or an earlier version evaluated them" in page


def test_form_and_api_give_the_same_costs_to_every_candidate(client, client_of, owner, dataset):
    client.force_login(owner)
    url = reverse("experiments:new")
    first, second = dataset.profile["classes"]
    assert "What does a wrong answer cost?" in client.get(url, {"dataset": dataset.pk}).content.decode()
    data = {"dataset": dataset.pk, "kinds": ["one"], "time_limit": "0.5", "folds": 3, "check": "held-out", "name": ""}
    refused = client.post(url, data | {"costs-0-1": "much"})
    assert refused.status_code == 200
    assert refused.context["form"].errors["costs"]
    assert client.post(url, data | {"costs-0-1": "5", "costs-unit": "EUR"}).status_code == 302
    body = {"dataset": str(dataset.pk), "kinds": ["one"], "folds": 3, "costs": f"{first}>{second}=5"}
    answer = client_of(owner).post("/api/v1/experiments/", body, format="json")
    assert answer.status_code == 201, answer.json()
    of_page, of_api = Experiment.objects.order_by("created")
    for experiment in (of_page, of_api):
        stated = [stated_costs(c.parameters["costs"], (first, second))[0] for c in experiment.candidates.all()]
        assert stated
        assert all(costs == {(first, second): "5"} for costs in stated)
    wrong = client_of(owner).post("/api/v1/experiments/", body | {"costs": 5}, format="json")
    assert wrong.status_code == 400
