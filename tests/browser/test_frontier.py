"""Frontiers of hyperplane models in a browser: selecting a point or row shows its tree."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from octweb.registry.lifecycle import actions
from tests.browser.signed_in import signed_in
from tests.browser.waiting import address, choose_last_point
from tests.octweb.small_models import trained

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.slow
def test_points_and_rows_show_their_trees(media, page, live_server, owner):
    document = trained("cut-h", depth=2, pareto=True, time_limit=6, first_trees="cart")
    model = actions.register(owner=owner, document=document, dataset=None, title="Hyperplanes")
    signed_in(page.context, live_server.url, "olga")
    page.goto(f"{live_server.url}/models/{model.pk}/?mode=proof")
    for card in ("#leaf-frontier", "#coefficient-frontier"):
        page.locator(card).scroll_into_view_if_needed()
        expect(page.locator(f"{card} .points path.point")).to_have_count(page.locator(f"{card} tbody tr").count())
        assert page.locator(f"{card} details[open]").count() == 0
        choose_last_point(page, card)
        # The last point belongs to the last row of the table and to the last tree, which appears as figure and as text.
        page.wait_for_selector(f"{card} details:last-of-type[open] .figure .main-svg")
        expect(page.locator(f"{card} details[open] pre")).to_have_text(re.compile(r"\S"))
        page.locator(f"{card} tbody tr").first.click()
        page.wait_for_selector(f"{card} details.of-frontier[open] >> nth=1")
        where = page.locator(f"{card} details[open]").first.get_attribute("id")
        assert where == page.locator(f"{card} tbody tr").first.get_attribute("data-tree")
        assert where == address(page).split("#")[1]
    assert page.trouble == []
