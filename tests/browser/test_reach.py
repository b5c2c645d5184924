"""The frontier in a real browser: slider, click on a point, and the constraint in the form of the next run."""

from __future__ import annotations

import pytest
from django.core.files.base import ContentFile

from octweb.datasets.models import Dataset
from octweb.registry import actions
from octweb.registry.reach import points_of
from tests.browser.signed_in import signed_in
from tests.browser.test_walk import page  # noqa: F401 (page is a fixture)
from tests.octweb.registry.test_pages import csv_of_small_table
from tests.octweb.small_models import small_table
from trainer.data.reader import load
from trainer.run import TrainRequest, train

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


def test_slider_and_points_become_the_constraint_of_a_new_run(page, live_server, dataset, owner):  # noqa: F811
    table, labels, *_ = load(dataset.file.path, target="kind")
    result = train(TrainRequest(table=table, labels=labels, method="odt", parameters={"depth": 2, "frontier": True}))
    document = result.model.to_json()
    points = points_of(document["certificate"])
    model = actions.register(owner=owner, document=document, dataset=dataset, title="Reach")
    signed_in(page.context, live_server.url, "olga")
    page.goto(f"{live_server.url}/models/{model.pk}/?mode=proof")
    page.wait_for_selector("#reach-figure .points path.point")
    assert page.locator("#reach-figure .points path.point").count() == len(points)

    page.focus("#reach-slider")
    page.keyboard.press("Home")
    assert "sensitivity 0.0" in page.inner_text("#reach-words") or points[0]["sensitivity"] > 0
    assert f"p_sensitivity={points[0]['required']!r}" in page.get_attribute("#reach-link", "href")
    page.keyboard.press("End")
    assert "sensitivity 100.0" in page.inner_text("#reach-words")

    last = page.locator("#reach-figure .points path.point").last
    last.scroll_into_view_if_needed()
    box = last.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector("#reach-figure .hoverlayer .hovertext")
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_url("**/runs/new/**")
    assert page.input_value("#id_p_sensitivity") == str(points[-1]["required"])

    page.wait_for_selector("#reach-figure .points path.point")
    page.focus("#reach-slider")
    page.keyboard.press("Home")
    assert float(page.input_value("#id_p_sensitivity")) == points[0]["required"]
    assert page.trouble == []
