"""Misclassification costs in a browser: typed as a table, kept, and shown on the model page."""

from __future__ import annotations

import pytest

from octweb.datasets import actions as datasets
from octweb.registry.lifecycle import actions as registry
from tests.browser.accessible import violations
from tests.browser.signed_in import signed_in
from tests.browser.waiting import overflow
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401
from trainer.training.run import TrainRequest, train

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.slow
def test_costs_are_typed_as_a_table_and_kept(page, live_server, owner, dataset):  # noqa: F811
    signed_in(page.context, live_server.url, "olga")
    page.goto(f"{live_server.url}/runs/new/?dataset={dataset.pk}&method=exact")
    page.click("#answer-costs summary")
    page.fill('input[name="p_costs-0-1"]', "5")
    page.fill('input[name="p_cost_unit"]', "EUR")
    page.wait_for_selector("#in-words >> text=Counts what answers cost")
    assert page.input_value('input[name="p_costs-0-1"]') == "5"
    assert violations(page) == []
    assert not overflow(page)


def test_costs_are_shown_on_the_model_page(page, live_server, owner, dataset):  # noqa: F811
    rows, labels = datasets.load(dataset)
    parameters = {"depth": 1, "costs": "no>yes=5", "cost_unit": "EUR"}
    result = train(TrainRequest(table=rows, labels=labels, method="cart", parameters=parameters, test_share=0.25))
    model = registry.register(owner=owner, document=result.model.to_json(), dataset=dataset, title="T")
    signed_in(page.context, live_server.url, "olga")
    page.goto(f"{live_server.url}/models/{model.pk}/?mode=performance")
    page.wait_for_selector("section.card >> text=Cost of the answers")
    assert "EUR" in page.inner_text("#mistakes")
    assert violations(page) == []
    assert not overflow(page)
