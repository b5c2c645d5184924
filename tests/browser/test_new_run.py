"""The page of a new run in a browser: keyboard, settings swapped in place, and no lost input."""

from __future__ import annotations

import io

import pytest
from playwright.sync_api import expect

from octweb.datasets import actions as datasets
from octweb.datasets.choice import ColumnChoice
from tests.browser.accessible import violations
from tests.browser.signed_in import signed_in
from tests.browser.waiting import overflow, until
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401
from trainer.table import MissingPolicy

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# Whether the bar ends at the lower edge of the window and the field lies above it.
IN_REACH = """(([bar, field]) => bar.bottom === innerHeight && field.bottom <= bar.top)(
    ['start-bar', 'id_p_min_leaf'].map((id) => document.getElementById(id).getBoundingClientRect()))"""

# The next request leaves 300 ms after the last change. This holds it until `let_go`, and reports the answer that comes
# before it.
HOLD_NEXT = """() => {
  const own = window.setTimeout;
  let next;
  window.setTimeout = (act, after, ...more) => {
    if (after !== 300) return own(act, after, ...more);
    next = act;
    return 0;
  };
  window.let_go = () => { window.setTimeout = own; next(); };
  document.addEventListener("htmx:afterOnLoad", () => own(() => { window.answered = true; }, 100), { once: true }); // and has settled
}"""


def shown(page, method):
    page.wait_for_selector(f'input[name="shown_method"][value="{method}"]', state="attached")


@pytest.fixture
def votes(owner, media):
    """Provide a data set of 40 rows; ten of them have an empty cell."""
    text = "a,b,class\n" + "".join(f"{('y', 'n', 'y', '')[i % 4]},{'yn'[i % 2]},{'pq'[i % 2]}\n" for i in range(40))
    dropped = ColumnChoice(missing={"a": MissingPolicy.DROP})
    return datasets.create(
        owner=owner, file=io.BytesIO(text.encode()), source_name="votes.csv", target="class", choice=dropped
    )


@pytest.mark.slow
def test_missing_switch_changes_the_outlook(page, live_server, owner, votes):
    signed_in(page.context, live_server.url, "olga")
    page.goto(f"{live_server.url}/runs/new/?dataset={votes.pk}")
    page.fill("#id_name", "Mine")
    page.click("#constraints summary")
    assert "30 rows" in page.inner_text(".head")
    assert page.is_disabled('input[name="ask"][value="groups"]')
    page.focus("#learn-empty")
    page.keyboard.press("Space")
    page.wait_for_selector(".head >> text=40 rows")
    expect(page.locator("#learn-empty")).to_be_focused()
    expect(page.locator("#learn-empty")).to_be_checked()
    expect(page.locator('input[name="ask"][value="groups"]')).to_be_enabled()
    for part in ("#form-state", "#in-words", "#start-bar"):
        expect(page.locator(f"#run-form {part}")).to_have_count(1)  # a swap of the whole form must not lose them
    expect(page.locator("#id_name")).to_have_value("Mine")
    expect(page.locator("#constraints")).to_have_attribute("open", "")
    assert violations(page) == []
    page.keyboard.press("Space")
    page.wait_for_selector(".head >> text=30 rows")
    expect(page.locator("#learn-empty")).not_to_be_checked()
    assert page.trouble == []


@pytest.mark.slow
def test_answers_settings_and_words_change_in_place(page, live_server, owner, dataset):  # noqa: F811
    signed_in(page.context, live_server.url, "olga")
    page.goto(f"{live_server.url}/runs/new/?dataset={dataset.pk}")
    url = page.url
    page.fill("#id_p_min_leaf", "7")
    page.wait_for_selector("#in-words >> text=at least seven rows")

    # The arrow keys move between the cards and choose them.
    page.focus('input[name="sure"][value="proved"]')
    page.keyboard.press("ArrowLeft")
    shown(page, "cart")
    expect(page.locator('input[name="sure"][value="quick"]')).to_be_focused()
    page.keyboard.press("4")
    page.wait_for_selector('input[name="shown_ask"][value="groups"]', state="attached")
    page.keyboard.press("p")
    shown(page, "odt")
    expect(page.locator("#id_p_min_leaf")).to_have_count(0)
    page.keyboard.press("1")
    shown(page, "exact")
    expect(page.locator("#id_p_min_leaf")).to_have_value("7")

    # Text that is typed during a request stays, and the cursor keeps its position.
    page.fill("#id_p_min_leaf", "1")
    page.focus("#id_p_depth")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("2")
    shown(page, "exact-numeric")
    expect(page.locator("#id_p_depth")).to_be_focused()
    expect(page.locator("#id_p_depth")).to_have_value("2")

    page.click("#own-method summary")
    page.click('label[for="method-exact"]')
    shown(page, "exact")
    page.click("#constraints summary")
    page.select_option('[name="p_forbidden_pairs-0-a"]', "width")
    page.select_option('[name="p_forbidden_pairs-0-b"]', "height")
    page.click("[data-add-pair]")
    expect(page.locator('[name="p_forbidden_pairs-1-a"]')).to_have_count(1)
    page.wait_for_selector("#in-words >> text=No path asks both of width and height")
    assert page.url == url
    for choice, expected in (("folds", [False, True]), ("none", [False, False]), ("test", [True, False])):
        page.check(f"[name=evaluation][value={choice}]")
        for name, visible in zip(("test_percent", "folds"), expected, strict=True):
            expect(page.locator(f"[name={name}]")).to_be_visible(visible=visible)
    for width in (1600, 1440, 380):
        page.set_viewport_size({"width": width, "height": 900})
        assert overflow(page) <= 0, width
    # On a phone the start button stays in reach, and it does not cover the focused field.
    page.focus("#id_p_min_leaf")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("3")
    page.wait_for_selector("#in-words >> text=at least three rows", state="attached")
    until(page, IN_REACH)
    expect(page.locator("#start-bar")).to_contain_text("Exact search")
    assert violations(page) == []
    page.click("#start-bar button")
    page.wait_for_selector("text=in the queue")
    assert page.trouble == []


@pytest.mark.slow
def test_card_chosen_during_a_request_stays_chosen(page, live_server, owner, dataset):  # noqa: F811
    signed_in(page.context, live_server.url, "olga")
    page.goto(f"{live_server.url}/runs/new/?dataset={dataset.pk}")
    page.click("#constraints summary")
    held = []
    page.route("**/runs/new/advice/", lambda route: route.continue_() if held else held.append(route))
    with page.expect_request("**/runs/new/advice/"):
        page.fill("#id_p_depth", "2")
    page.evaluate(HOLD_NEXT)
    page.locator('#constraints input[name="p_forbidden"]').first.uncheck()
    page.get_by_text("Quick", exact=True).click()
    with page.expect_response("**/runs/new/advice/"):
        held[0].continue_()  # this request is answered before the next one leaves
    until(page, "window.answered")
    expect(page.locator('input[name="sure"][value="quick"]')).to_be_checked()
    page.evaluate("let_go()")
    shown(page, "cart")
    expect(page.locator('input[name="sure"][value="quick"]')).to_be_checked()
    page.get_by_text("Proved", exact=True).first.click()
    page.wait_for_selector('input[name="shown_sure"][value="proved"]', state="attached")
    expect(page.locator("#id_p_depth")).to_have_value("2")
    expect(page.locator('#constraints input[name="p_forbidden"]').first).not_to_be_checked()
    assert page.trouble == []
