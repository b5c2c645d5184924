"""All pages except the model page, at three widths and in both themes, have no axe violation and no overflow."""

from __future__ import annotations

import json
from io import BytesIO

import pytest
from django.core.files.base import ContentFile
from django.urls import reverse
from playwright.sync_api import expect

from octweb.batch import actions as batch
from octweb.datasets import actions as datasets
from octweb.experiments import actions as experiments
from octweb.jobs.models import RunStatus
from octweb.registry.lifecycle import actions as registry
from octweb.runs import actions as runs
from octweb.serving import actions as tokens
from tests.browser.accessible import violations
from tests.browser.signed_in import signed_in
from tests.browser.waiting import overflow
from tests.octweb.registry.test_one_claim import documents, request_of  # noqa: F401
from tests.octweb.runs.conftest import CSV, csv_file, dataset  # noqa: F401
from tests.octweb.small_models import trained

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
# Axe checks each page in both themes, at the largest and the smallest width. Which width is dark differs between pages.
THEMES = ("light", "dark")
WIDTHS = (1600, 1440, 380)
MOST_OPEN = 12
# Whether the visible part of the table contains the whole claim.
IN_SIGHT = (
    """(badge) => badge.getBoundingClientRect().right <= badge.closest('.scroll').getBoundingClientRect().right"""
)


@pytest.fixture
def wished(owner, dataset, documents):  # noqa: F811
    """Provide a workbench tree under two constraints that cost rows."""
    return registry.register(owner=owner, document=documents[0], dataset=dataset, title="A tree with a longer title")


@pytest.fixture
def places(owner, dataset):  # noqa: F811
    """Provide the URLs of pages that have content."""
    run = runs.cancel(runs.enqueue(owner=owner, dataset=dataset, method="cart"))
    model = registry.register(owner=owner, document=trained("cart", depth=2), dataset=dataset, title="Small")
    registry.ask_for_approval(model, by=owner, reason="For the counters.")
    experiment = experiments.start(
        owner=owner, dataset=dataset, candidates=[{"method": "cart"}, {"method": "exact"}], folds=3, test_share=0.2
    )
    first = experiment.candidates.first()
    first.records = [
        {"fold": f, "second": -1, "accuracy": 0.8 + f / 100, "correct": 8, "n": 10, "leaves": 2} for f in range(3)
    ]
    first.summary = {
        "leaves": 2,
        "depth": 1,
        "train_accuracy": 0.9,
        "seconds": 0.4,
        "status": "heuristic",
        "gap": None,
        "metrics": {},
    }
    first.status = RunStatus.SUCCEEDED
    first.document = json.dumps(trained("cart", depth=2))
    first.save()
    named = [
        reverse(name)
        for name in (
            "home",
            "searches",
            "datasets:list",
            "registry:list",
            "registry:waiting",
            "glossary",
            "deleted",
            "notify",
            "datasets:new",
            "decisions",
            "batch:new",
            "drafts",
            "registry:compare",
            "serving:guide",
            "api-docs",
            "password_change",
            "password_change_done",
            "password_reset",
            "password_reset_done",
            "password_reset_complete",
            "registry:bring",
        )
    ]
    predicted = batch.enqueue(
        owner=owner, model=model, file=ContentFile(CSV.encode(), name="rows.csv"), source_name="rows.csv"
    )
    tokens.create_token(owner=owner, name="for the counters")
    messy = BytesIO(b"width,town,class\n1;,north,a\n2,,b\n3,south,a\n")
    staged = datasets.stage(owner=owner, file=messy, source_name="messy.csv")
    return [
        *named,
        reverse("search") + "?q=small",
        f"{reverse('runs:new')}?dataset={dataset.pk}",
        f"{reverse('experiments:new')}?dataset={dataset.pk}",
        reverse("runs:detail", args=[run.pk]),
        reverse("experiments:detail", args=[experiment.pk]),
        reverse("datasets:detail", args=[dataset.pk]),
        reverse("datasets:version", args=[dataset.pk]),
        reverse("datasets:edit", args=[dataset.pk]),
        reverse("datasets:preview", args=[staged.pk]),
        reverse("registry:review-page", args=[model.pk]),
        reverse("batch:detail", args=[predicted.pk]),
        reverse("delete", args=["run", run.pk]),
    ]


# Buttons and states that must be visible without a horizontal scroll, even if their table scrolls.
BESIDE = """[...document.querySelectorAll('main .samples .btn, main td:nth-child(2) > .badge-wrap')].filter((e) =>
  e.checkVisibility() && e.getBoundingClientRect().right > innerWidth).map((e) => e.textContent.trim())"""
APART = """[...document.querySelectorAll('header form.inline label')].filter((label) => {
  const middle = (element) => { const box = element.getBoundingClientRect(); return (box.top + box.bottom) / 2; };
  const field = document.getElementById(label.htmlFor);
  return field && Math.abs(middle(label) - middle(field)) > 15;
}).map((label) => label.textContent)"""


# Closes all but a few parts of a page, so that axe does not check a hundred parts of one kind.
FEW_OPEN = "most => [...document.querySelectorAll('main details')].slice(most).forEach((d) => { d.open = false; })"


def read(page, theme):
    """Return the axe violations in this theme."""
    page.emulate_media(color_scheme=theme)
    return [f"{theme}: {line}" for line in violations(page)]


def misplaced(page, width):
    """Return what overflows, is misaligned or out of sight at this width."""
    page.set_viewport_size({"width": width, "height": 900})
    found = [f"{overflow(page)} pixels too wide"] * (overflow(page) > 0)
    found += [f"'{words}' stands on another line than its field" for words in page.evaluate(APART)]
    found += [f"'{words}' is out of sight" for words in page.evaluate(BESIDE)]
    return [f"{width}: {line}" for line in found]


@pytest.mark.slow
def test_every_page_is_accessible_at_three_widths(page, live_server, places):
    signed_in(page.context, live_server.url, "olga")
    found = []
    for number, place in enumerate(places):
        page.set_viewport_size({"width": WIDTHS[0], "height": 900})
        assert page.goto(live_server.url + place).status == 200, place
        page.evaluate("document.querySelectorAll('main details').forEach((d) => { d.open = true; })")
        lines = read(page, THEMES[number % 2])
        lines += [line for width in WIDTHS for line in misplaced(page, width)]
        page.evaluate(FEW_OPEN, MOST_OPEN)
        lines += read(page, THEMES[1 - number % 2])
        found += [f"{place}: {line}" for line in lines]
    assert found == []
    assert page.trouble == []


def test_search_opens_by_keys_and_leads_on(page, live_server, places):
    signed_in(page.context, live_server.url, "olga")
    page.goto(live_server.url)
    page.keyboard.press("Control+k")
    page.wait_for_selector("dialog.search[open] input")
    page.keyboard.insert_text("heig")  # the whole text arrives at once, so there is one request
    expect(page.locator("dialog.search li[aria-selected=true]")).to_contain_text("height")
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog.search:not([open])", state="attached")
    page.keyboard.press("Control+k")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("small")
    # the list must not show the column of the previous search
    expect(page.locator("dialog.search li").first).to_contain_text("Small")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url("**/datasets/**")
    assert page.trouble == []


@pytest.mark.parametrize(("address", "width"), [("/models/", 380), ("/", 1280)])
def test_price_of_wishes_is_in_sight_in_lists(page, live_server, wished, address, width):
    signed_in(page.context, live_server.url, wished.owner.username)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(live_server.url + address)
    badge = page.locator("td .badge.gap")
    expect(badge).to_contain_text("Best with 2 wishes, +")
    assert badge.evaluate(IN_SIGHT)
    assert badge.evaluate("(badge) => badge.scrollHeight <= badge.clientHeight + 1")
