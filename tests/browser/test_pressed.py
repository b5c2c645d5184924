"""A button that a refresh replaces between its press and its release: what was pressed is done, by mouse and by the space bar."""

from __future__ import annotations

import pytest
from django.urls import reverse

from octweb.runs import actions as runs
from octweb.runs.models import TrainingRun
from octweb.workbench import actions as workbench
from tests.browser.signed_in import signed_in
from tests.browser.test_walk import page  # noqa: F401 (page is a fixture)
from tests.browser.waiting import until
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401
from tests.octweb.workbench.conftest import model  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
HERE = "(at) => { const box = at.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }"


def replaced(page, button):  # noqa: F811
    """Waits until another button stands in the place of the one that has the mark."""
    until(page, f"document.querySelector({button!r}) && !document.querySelector({button!r}).dataset.mark")


def press(page, button, by, change=lambda: None):  # noqa: F811
    """Holds the button until it has been replaced, which a change may be needed for, and lets go."""
    place = page.eval_on_selector(button, HERE)
    if by == "mouse":
        page.mouse.move(*place)
        page.mouse.down()
    else:
        page.focus(button)
        page.keyboard.down(" ")
    page.eval_on_selector(button, "(at) => { at.dataset.mark = 'old'; }")
    change()
    replaced(page, button)
    page.mouse.up() if by == "mouse" else page.keyboard.up(" ")


@pytest.mark.parametrize("by", ["mouse", "space"])
def test_a_run_is_cancelled_though_its_page_was_refreshed_meanwhile(page, live_server, owner, dataset, by):  # noqa: F811
    run = runs.enqueue(owner=owner, dataset=dataset, method="cart")
    signed_in(page.context, live_server.url, "olga")
    page.goto(live_server.url + reverse("runs:detail", args=[run.pk]))
    with page.expect_navigation():
        press(page, "#live .acts button", by, lambda: TrainingRun.objects.update(log="A line."))
    run.refresh_from_db()
    assert run.status == "cancelled"
    assert page.trouble == []


def test_a_button_that_came_in_its_place_and_asks_for_something_else_is_not_pressed(page, live_server, owner, dataset):  # noqa: F811
    run = runs.enqueue(owner=owner, dataset=dataset, method="cart")
    signed_in(page.context, live_server.url, "olga")
    page.goto(live_server.url + reverse("runs:detail", args=[run.pk]))
    press(page, "#live .acts button", "mouse", lambda: runs.cancel(run))  # the next refresh has "Run again" there
    page.wait_for_timeout(500)
    assert TrainingRun.objects.count() == 1
    assert page.trouble == []


@pytest.mark.parametrize("by", ["mouse", "space"])
def test_a_search_of_the_workbench_is_stopped_though_it_refreshes(page, live_server, owner, model, by):  # noqa: F811
    bench = workbench.open_for(owner=owner, model=model)
    signed_in(page.context, live_server.url, "olga")
    page.goto(f"{live_server.url}/workbenches/{bench.pk}/")
    with page.expect_request("**/move/"):
        press(page, "#bench button[value=stop]", by)
    assert page.trouble == []
