"""The frontier of sensitivity and specificity in a browser, up to the constraint of the next run."""

from __future__ import annotations

import re

import pytest
from django.core.files.base import ContentFile
from playwright.sync_api import expect

from octweb.datasets.models import Dataset
from octweb.registry.document.sensitivity_frontier import points_of
from octweb.registry.lifecycle import actions
from tests.browser.signed_in import signed_in
from tests.browser.waiting import choose_last_point, drawn, until
from tests.octweb.small_models import csv_of_small_table, small_table
from trainer.data.reader import load
from trainer.training.run import TrainRequest, train

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def dataset(owner, media):
    table, labels = small_table()
    text = "\n".join(line[:-1] + "b" if line.endswith(",c") else line for line in csv_of_small_table().split("\n"))
    columns = [c.to_json() | {"role": "feature"} for c in table.schema]
    made = Dataset(
        owner=owner, name="Two classes", target=labels.name, rows=len(table), columns=columns, sha256="0" * 64
    )
    made.file.save("two.csv", ContentFile(text.encode()))
    return made


@pytest.mark.slow
def test_slider_and_points_become_the_constraint_of_a_new_run(page, live_server, dataset, owner):
    table, labels, *_ = load(dataset.file.path, target="kind")
    result = train(TrainRequest(table=table, labels=labels, method="odt", parameters={"depth": 2, "frontier": True}))
    document = result.model.to_json()
    points = points_of(document["certificate"])
    model = actions.register(owner=owner, document=document, dataset=dataset, title="Reach")
    signed_in(page.context, live_server.url, "olga")
    page.goto(f"{live_server.url}/models/{model.pk}/?mode=proof")
    expect(page.locator("#reach-figure .points path.point")).to_have_count(len(points))
    drawn(page, "#reach-figure")

    page.focus("#reach-slider")
    page.keyboard.press("Home")
    if points[0]["sensitivity"] == 0:
        expect(page.locator("#reach-words")).to_contain_text("sensitivity 0.0")
    first = re.escape(f"p_sensitivity={points[0]['required']!r}")
    expect(page.locator("#reach-link")).to_have_attribute("href", re.compile(first))
    page.keyboard.press("End")
    expect(page.locator("#reach-words")).to_contain_text("sensitivity 100.0")

    with page.expect_navigation(url="**/runs/new/**"):
        choose_last_point(page, "#reach-figure")
    assert page.input_value("#id_p_sensitivity") == str(points[-1]["required"])

    page.focus("#reach-slider")
    page.keyboard.press("Home")
    until(page, f"Number(document.getElementById('id_p_sensitivity').value) === {points[0]['required']!r}")
    assert page.trouble == []
