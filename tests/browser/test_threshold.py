"""Moving a threshold on the workbench: the browser counts like the server, and the split becomes a constraint."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from octweb.datasets import stored
from octweb.workbench import actions
from octweb.workbench.models import Workbench
from tests.browser.accessible import violations
from tests.browser.signed_in import signed_in
from tests.browser.waiting import overflow
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401
from tests.octweb.workbench.conftest import model, serve  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def held_threshold(owner, model, serve):  # noqa: F811
    """Return a workbench with a held threshold at the root, and the column that it asks for."""
    bench = actions.open_for(owner=owner, model=model)
    column = next(
        c["name"] for c in bench.dataset.columns if c["kind"] == "numeric" and c["name"] != bench.dataset.target
    )
    actions.edit(bench, wishes=[f"ask root {column} <= 2.5"])
    serve(bench)
    return bench, column


@pytest.mark.slow
def test_a_threshold_follows_keys_and_pointer(page, live_server, owner, model, serve):  # noqa: F811
    bench, column = held_threshold(owner, model, serve)
    spread = actions.current(bench).result["spreads"]["root"]
    signed_in(page.context, live_server.url, owner.username)
    address = f"{live_server.url}/workbenches/{bench.pk}/?at=root"
    page.goto(address)
    handle = page.locator(".cut-handle")
    before = int(handle.get_attribute("aria-valuenow"))
    handle.focus()
    page.keyboard.press("ArrowRight")
    expect(handle).to_have_attribute("aria-valuenow", str(before + 1))
    match = re.search(r"yes (\d+) rows .*; no (\d+) rows", page.locator(".cut-text").inner_text())
    bins = [sum(row) for row in spread["counts"]]
    assert [int(n) for n in match.groups()] == [sum(bins[: before + 2]), sum(bins[before + 2 :])]
    page.keyboard.press("Enter")
    page.get_by_text("Searching").first.wait_for()
    held = f"ask root {column} <= {spread['values'][before + 1]}"
    assert actions.current_wishes(Workbench.objects.get()) == [held]
    bench.refresh_from_db()
    serve(bench)
    tree = actions.current(bench).result["spreads"]["root"]
    assert tree["column"] == column
    table, _ = stored.load(bench.dataset)
    assert 0 < sum(bins) <= len(table)
    page.goto(address)
    # The search and the browser must count the same rows that answer yes.
    card = page.locator("[data-place=y] .cnt").text_content()
    assert re.search(rf"\b{match.group(1)} rows", card)
    box = page.locator(".cut-picture").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 3, box["y"] + 40, steps=4)
    expect(handle).to_have_attribute("aria-valuenow", "0")
    page.mouse.up()
    page.get_by_text("Searching").first.wait_for()
    assert actions.current_wishes(Workbench.objects.get()) == [f"ask root {column} <= {tree['values'][0]}"]
    serve(Workbench.objects.get())
    result = actions.current(Workbench.objects.get()).result
    # After the release, the page shows the price of the constraint in rows, without a click.
    price = f"+{result['wishes'][0]['price'] * result['n']:g} rows"
    page.get_by_text("proved in").wait_for()
    expect(page.locator(".wishes li")).to_contain_text(price)
    expect(page.locator("#bench > .banner").last).to_contain_text(f"with your 1 wish: {price}")
    page.locator("button[value=undo]").click()
    page.wait_for_url(re.compile(f"{bench.pk}/$"))
    assert actions.current_wishes(Workbench.objects.get()) == [held]
    assert not page.trouble


@pytest.mark.slow
def test_refresh_keeps_threshold_during_drag(page, live_server, owner, model, serve):  # noqa: F811
    bench, _ = held_threshold(owner, model, serve)
    # the edit waits for a worker, so the page refreshes, and the draft stays below
    actions.edit(bench, add=["depth y 1"])
    signed_in(page.context, live_server.url, owner.username)
    page.goto(f"{live_server.url}/workbenches/{bench.pk}/?at=root")
    page.get_by_text("Searching").first.wait_for()
    # The user may grab a new element before htmx has settled it.
    page.evaluate("htmx.config.defaultSettleDelay = 200")
    live = re.compile("/live/")
    with page.expect_response(live):
        pass  # waits for one refresh
    # One script reads the position, because a refresh may replace a picture that a locator holds.
    box = page.evaluate(
        "(e => { e.scrollIntoView({ block: 'center' }); return e.getBoundingClientRect().toJSON(); })(document.querySelector('.cut-picture'))"
    )
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
    page.mouse.down()
    page.evaluate("document.querySelector('.cut-handle').dataset.mark = 'own'")
    page.mouse.move(box["x"] + 3, box["y"] + 40, steps=4)
    page.wait_for_timeout(1000)  # time for four refreshes
    assert page.locator(".cut-handle").get_attribute("data-mark") == "own"
    assert page.locator(".cut-handle").get_attribute("aria-valuenow") == "0"
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40, steps=4)
    page.keyboard.press("Escape")
    with page.expect_response(live):
        page.mouse.up()  # the handle is back where it was, so no constraint is added, and refreshes continue
    # a locator waits here, because the page's policy forbids the functions that polling needs
    page.locator(".cut-handle:not([data-mark])").wait_for()
    assert not page.trouble


@pytest.mark.slow
def test_the_draft_is_a_picture_whose_cards_are_chosen(page, live_server, owner, model, serve):  # noqa: F811
    bench, column = held_threshold(owner, model, serve)
    signed_in(page.context, live_server.url, owner.username)
    page.goto(f"{live_server.url}/workbenches/{bench.pk}/")
    page.locator("[data-figure-json=draft-json] .main-svg").first.wait_for()
    card = page.locator(".draft-hit[data-place=root]")
    assert card.get_attribute("aria-label").startswith(f"{column} ≤ 2.5, ")
    assert card.inner_text() == f"1 asks {column} ≤ 2.5"
    # The links must lie over the cards of the figure.
    places = page.evaluate(
        "JSON.parse(document.getElementById('draft-json').textContent).layout.meta.nodes.map(v => v.box)"
    )
    links = page.eval_on_selector_all(
        ".draft-hit", "all => all.map(e => [e.offsetLeft, e.offsetTop, e.offsetWidth, e.offsetHeight])"
    )
    assert all(abs(a - b) <= 1 for one, two in zip(places, links, strict=True) for a, b in zip(one, two, strict=True))
    page.locator(".draft-hit[data-place=n]").click()
    page.wait_for_url(re.compile("at=n"))
    expect(page.locator(".draft-hit[aria-current]")).to_have_attribute("data-place", "n")
    for width in (1440, 380):
        page.set_viewport_size({"width": width, "height": 900})
        assert violations(page) == []
        assert overflow(page) <= 0
        expect(page.locator(".places")).to_be_visible(visible=width == 380)
