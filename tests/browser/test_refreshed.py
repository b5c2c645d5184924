"""Input during the refresh of a page: no press is lost, and typed text stays."""

from __future__ import annotations

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from octweb.runs import actions as runs
from octweb.runs.models import TrainingRun
from octweb.workbench import actions as workbench
from octweb.workbench.models import Workbench
from tests.browser.signed_in import signed_in
from tests.browser.test_threshold import held_threshold
from tests.browser.waiting import until
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401
from tests.octweb.workbench.conftest import model, serve  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def replaced(page, button):
    """Wait until another button has replaced the marked one."""
    until(page, f"document.querySelector({button!r}) && !document.querySelector({button!r}).dataset.mark")


def press(page, button, by, change=lambda: None):
    """Hold the button until it has been replaced, then release it.

    `change` makes a change that causes the replacement.
    """
    if by == "mouse":
        page.hover(button)  # waits until it no longer moves
        page.mouse.down()
    else:
        page.focus(button)
        page.keyboard.down(" ")
    page.eval_on_selector(button, "(at) => { at.dataset.mark = 'old'; }")
    change()
    replaced(page, button)
    page.mouse.up() if by == "mouse" else page.keyboard.up(" ")


@pytest.mark.slow
@pytest.mark.parametrize("by", ["mouse", "space"])
def test_run_is_cancelled_after_its_page_refreshes(page, live_server, owner, dataset, by):  # noqa: F811
    run = runs.enqueue(owner=owner, dataset=dataset, method="cart")
    signed_in(page.context, live_server.url, "olga")
    page.goto(live_server.url + reverse("runs:detail", args=[run.pk]))
    with page.expect_navigation():
        press(page, "#live .acts button", by, lambda: TrainingRun.objects.update(log="A line."))
    run.refresh_from_db()
    assert run.status == "cancelled"
    assert page.trouble == []


def test_click_is_dropped_if_replacement_button_differs(page, live_server, owner, dataset):  # noqa: F811
    run = runs.enqueue(owner=owner, dataset=dataset, method="cart")
    signed_in(page.context, live_server.url, "olga")
    page.goto(live_server.url + reverse("runs:detail", args=[run.pk]))
    # the next refresh shows "Run again" in the same place
    press(page, "#live .acts button", "mouse", lambda: runs.cancel(run))
    page.wait_for_timeout(500)
    assert TrainingRun.objects.count() == 1
    assert page.trouble == []


@pytest.mark.slow
def test_alternatives_of_a_model_arrive_without_a_reload(page, live_server, owner, model, serve):  # noqa: F811
    signed_in(page.context, live_server.url, "olga")
    page.goto(f"{live_server.url}/models/{model.pk}/?mode=tree&node=0&tab=alternatives")
    page.get_by_role("button", name="Compute").click()
    expect(page.locator("#alternatives")).to_contain_text("Looking for prices")
    page.evaluate("window.sameDocument = true")
    serve(Workbench.objects.get())
    expect(page.locator("#alternatives")).not_to_contain_text("Looking for prices")
    expect(page.locator("#alternatives tbody td.num").first).to_contain_text("+")
    assert page.evaluate("window.sameDocument")
    assert page.trouble == []


@pytest.mark.parametrize("by", ["mouse", "space"])
def test_workbench_search_is_stopped_during_refresh(page, live_server, owner, model, by):  # noqa: F811
    bench = workbench.open_for(owner=owner, model=model)
    signed_in(page.context, live_server.url, "olga")
    page.goto(f"{live_server.url}/workbenches/{bench.pk}/")
    with page.expect_request("**/move/"):
        press(page, "#bench button[value=stop]", by)
    assert page.trouble == []


def refreshed(page):
    page.eval_on_selector("#bench", "(at) => { at.dataset.mark = 'old'; }")
    replaced(page, "#bench")


@pytest.mark.slow
def test_typed_text_survives_refresh_until_place_changes(
    page,
    live_server,
    owner,
    model,  # noqa: F811
    serve,  # noqa: F811
):
    bench, _ = held_threshold(owner, model, serve)
    workbench.edit(bench, add=["depth y 1"])  # the edit waits for a worker, so the page refreshes
    signed_in(page.context, live_server.url, "olga")
    page.goto(f"{live_server.url}/workbenches/{bench.pk}/?at=root")
    stands = page.get_attribute(".cut-handle", "aria-valuenow")
    page.fill("#height", "4")
    page.click("text=Type a wish, as in programs")
    page.fill("#wish", "ask root x <= 5")
    page.evaluate("document.getElementById('wish').setSelectionRange(3, 3)")
    refreshed(page)
    page.keyboard.type("ed")
    refreshed(page)
    assert page.input_value("#wish") == "asked root x <= 5"
    assert page.input_value("#height") == "4"
    assert page.get_attribute(".cut-handle", "aria-valuenow") == stands
    page.focus(".cut-handle")
    page.keyboard.press("ArrowRight")
    moved = page.input_value("#value")
    page.focus("#wish")  # the handle is now neither held nor focused
    refreshed(page)
    assert page.input_value("#value") == moved
    assert int(page.get_attribute(".cut-handle", "aria-valuenow")) == int(stands) + 1
    assert f"≤ {moved}: yes" in page.inner_text(".cut-text")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.press("Delete")
    refreshed(page)
    assert page.input_value("#wish") == ""

    leaves = page.eval_on_selector_all("[data-place].leaf", "(all) => all.map((at) => at.dataset.place)")
    page.goto(f"{live_server.url}/workbenches/{bench.pk}/?at={leaves[0]}")
    other = page.eval_on_selector("#label", "(at) => [...at.options].find((o) => !o.selected).value")
    page.select_option("#label", other)
    page.fill("#reason", "The ward knows better.")
    refreshed(page)
    assert (page.input_value("#label"), page.input_value("#reason")) == (other, "The ward knows better.")
    page.goto(f"{live_server.url}/workbenches/{bench.pk}/?at={leaves[-1]}")
    assert page.input_value("#reason") == ""
    assert page.trouble == []
