"""Review, sharing, data set versions and the live leaderboard in a browser, with several users."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from octweb.datasets import actions as datasets
from octweb.experiments import actions as experiments
from octweb.jobs.models import RunStatus
from octweb.registry.lifecycle import actions as registry
from octweb.runs import actions as runs
from octweb.runs.models import TrainingRun
from tests.browser.accessible import violations
from tests.browser.pictures import picture
from tests.browser.signed_in import signed_in
from tests.browser.waiting import calm, complaints, drawn, overflow, until
from tests.octweb.runs.conftest import CSV, csv_file, dataset  # noqa: F401
from tests.octweb.small_models import trained
from trainer.training.run import TrainRequest, train

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def as_user(windows, live_server, media):
    """Provide a function that returns a page of a signed-in user.

    Console lines fail the test, except those about missing pages.
    """
    trouble = []

    def page_of(name, *, width=1440):
        page = windows.page(width=width)
        complaints(page, trouble, but="status of 404")
        signed_in(page.context, live_server.url, name)
        return page

    yield page_of
    assert trouble == []


@pytest.fixture
def second(django_user_model):
    return django_user_model.objects.create_superuser("bert", password="a long password")


def small(owner, dataset=None, title="Small"):  # noqa: F811
    return registry.register(owner=owner, document=trained("cart", depth=2), dataset=dataset, title=title)


def test_the_list_of_the_administration_fits_with_long_names(as_user, live_server, owner, second):
    for title in ("Small", "A wide survey of the households in all western regions, second round"):
        small(owner, title=title)
    page = as_user("bert")
    page.goto(f"{live_server.url}{reverse('admin:registry_treemodel_changelist')}")
    assert page.evaluate("(r => r.scrollWidth - r.clientWidth)(document.querySelector('.results'))") <= 0
    assert page.inner_text(".field-training >> nth=0").endswith("\u202f%")


def at_its_fragment(page):
    """Wait until Chromium has moved to the fragment of the URL, because this takes the focus away."""
    page.wait_for_url("**#*")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))")


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()
    page.wait_for_load_state()


def ask_by_keyboard(page, url):
    """Ask for approval of the model without a mouse."""
    page.goto(url)
    page.click("text=Ask for approval")
    at_its_fragment(page)
    page.keyboard.press("Tab")  # the address ends in #decide, so Tab moves to the field
    expect(page.locator("#ask-reason")).to_be_focused()
    page.keyboard.type("For the new counters.")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Send to review")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Waiting for a reviewer")
    assert violations(page) == []


@pytest.mark.slow
def test_model_is_returned_rejected_and_approved(as_user, live_server, owner, staff, second):
    model = small(owner)
    url = live_server.url + reverse("registry:detail", args=[model.pk])
    review = live_server.url + reverse("registry:review-page", args=[model.pk])
    olga, ada, bert = (as_user(name) for name in ("olga", "ada", "bert"))

    ask_by_keyboard(olga, url)

    ada.goto(live_server.url)
    ada.click("text=Small >> nth=0")
    ada.wait_for_selector("text=For the new counters.")
    press(ada, "Ask back")
    # the refusal appears beside the note, which keeps the focus
    expect(ada.locator("#refused")).to_contain_text("what is missing")
    expect(ada.locator("#reason")).to_be_focused()
    assert violations(ada) == []
    ada.keyboard.type("Which counters?")
    press(ada, "Ask back")
    ada.wait_for_selector("text=Asked back by ada")

    olga.goto(url)
    expect(olga.locator(".banner").first).to_contain_text("Which counters?")
    assert violations(olga) == []
    olga.click("text=Answer and ask again")
    olga.fill("#ask-reason", "Those of the west.")
    press(olga, "Send to review")

    ada.goto(review)
    ada.wait_for_selector("text=Those of the west.")
    ada.fill("#reason", "Too many are missed.")
    press(ada, "Reject")
    olga.goto(url)
    assert "Too many are missed." in olga.inner_text(".banner.bad")
    olga.click("text=Ask again")
    olga.fill("#ask-reason", "The costs were agreed.")
    press(olga, "Ask again")

    bert.goto(review)
    bert.click("text=Approve and serve")
    bert.wait_for_selector("text=This version is served.")
    assert violations(bert) == []
    history = bert.get_by_role("group", name="History").inner_text()
    assert history.index("Which counters?") < history.index("Too many are missed.") < history.index("costs were agreed")

    own = small(staff, title="Her own")
    registry.ask_for_approval(own, by=staff)
    ada.goto(live_server.url + reverse("registry:review-page", args=[own.pk]))
    assert "Four eyes" in ada.inner_text("#decide")
    assert not ada.get_by_role("button", name="Approve").count()
    bert.goto(live_server.url + reverse("registry:waiting"))
    bert.click("text=Her own")
    press(bert, "Approve only")
    bert.wait_for_selector("text=Approved, and not served")
    assert violations(bert) == []
    press(bert, "Serve this version")
    bert.wait_for_selector("text=This version is served.")
    bert.on("dialog", lambda question: question.accept())
    press(bert, "Stop serving")
    bert.wait_for_selector("text=No version is served under this name.")
    assert overflow(bert) <= 0


@pytest.mark.slow
def test_a_model_is_shared_with_a_person_by_name(as_user, live_server, owner, stranger, dataset):  # noqa: F811
    model = small(owner, dataset)
    url = live_server.url + reverse("registry:detail", args=[model.pk])
    olga = as_user("olga", width=380)
    sam = as_user("sam")
    assert sam.goto(url).status == 404
    olga.goto(live_server.url + reverse("registry:review-page", args=[model.pk]))
    olga.fill("#share-name", "nobody")
    press(olga, "Share")
    expect(olga.locator("#not-shared")).to_contain_text("no active account 'nobody'")
    expect(olga.locator("#share-name")).to_be_focused()
    until(olga, "scrollY > 0")  # the page scrolls to the field
    assert violations(olga) == []
    assert overflow(olga) <= 0
    olga.fill("#share-name", "sam")
    press(olga, "Share")
    olga.wait_for_selector("text=sam: read")
    assert sam.goto(url).status == 200
    sam.wait_for_selector("#inspector table")
    assert "unseen" not in sam.inner_text("#inspector")  # the rows are not shared, so the page must not mention them
    assert violations(sam) == []
    press(olga, "Share no longer with sam")
    olga.wait_for_selector("text=no longer shared with sam")
    assert sam.goto(url).status == 404


@pytest.mark.slow
def test_a_new_version_and_the_same_training_again(as_user, live_server, owner, dataset, tmp_path):  # noqa: F811
    run = runs.enqueue(owner=owner, dataset=dataset, method="cart", parameters={"depth": 2})
    TrainingRun.objects.filter(pk=run.pk).update(status=RunStatus.SUCCEEDED)
    head, *lines = CSV.strip().split("\n")
    other = tmp_path / "other.csv"
    later = tmp_path / "later.csv"
    other.write_text("\n".join([head.replace("height", "length"), *lines]) + "\n")
    later.write_text("\n".join([head, *lines, *lines[::2]]) + "\n")
    olga = as_user("olga")
    olga.goto(live_server.url + reverse("datasets:detail", args=[dataset.pk]))
    olga.click("text=New version")
    olga.set_input_files("#file", str(other))
    press(olga, "Store as version 2")
    expect(olga.locator("main")).to_contain_text("length")  # the page names the columns that differ, and stores nothing
    olga.set_input_files("#file", str(later))
    press(olga, "Store as version 2")
    olga.wait_for_selector("text=Train the same again")
    expect(olga.locator("main")).to_contain_text(f"{len(lines) + len(lines[::2])}")
    assert violations(olga) == []
    press(olga, str(run))
    olga.wait_for_url("**/runs/**")
    again = TrainingRun.objects.exclude(pk=run.pk).get()
    assert (again.method, again.parameters, again.dataset.previous_id) == (run.method, run.parameters, dataset.pk)
    olga.goto(live_server.url + reverse("datasets:detail", args=[dataset.pk]))
    olga.wait_for_selector("text=There is a newer version")


# A headless browser shows no notifications and never hides a page, so this replaces both.
UNSEEN = """
window.told = [];
let hidden = false;
window.Notification = class {
  constructor(title, options) { window.told.push([title, options.body]); }
  static get permission() { return localStorage.getItem("permission") ?? "default"; }
  static async requestPermission() { localStorage.setItem("permission", "granted"); return "granted"; }
};
Object.defineProperty(document, "hidden", { get: () => hidden });
window.look_away = () => { hidden = true; };
"""


@pytest.mark.slow
def test_hidden_tab_gets_notification_when_run_ends(as_user, live_server, owner, dataset):  # noqa: F811
    waits, ends = (runs.enqueue(owner=owner, dataset=dataset, method="cart", name=n) for n in ("Watched", "A long one"))
    page = as_user("olga")
    page.add_init_script(UNSEEN)
    page.goto(f"{live_server.url}/notifications/")
    page.click("text=Allow notifications")
    page.wait_for_selector("text=This browser will say so")
    expect(page.locator("[data-notify]")).to_be_disabled()
    for run, away in ((waits, False), (ends, True)):
        page.goto(live_server.url + reverse("runs:detail", args=[run.pk]))
        assert page.title() == f"{run.name} · octweb"
        if away:
            page.evaluate("look_away()")
        TrainingRun.objects.filter(pk=run.pk).update(status=RunStatus.FAILED, error="The file is gone.")
        until(page, "document.title.startsWith('Failed')")
        assert page.title() == f"Failed: {run.name} · octweb"
        assert page.evaluate("told") == ([["octweb", "A long one: failed."]] if away else [])


@pytest.fixture
def experiment(owner, dataset):  # noqa: F811
    """Provide an experiment with two waiting candidates. `done` ends the first one."""
    return experiments.start(
        owner=owner, dataset=dataset, candidates=[{"method": "cart"}, {"method": "exact"}], folds=3, test_share=0.2
    )


def done(candidate):
    candidate.records = [
        {"fold": f, "second": -1, "accuracy": 0.8 + f / 100, "correct": 8, "n": 10, "leaves": 2} for f in range(3)
    ]
    candidate.summary = {"leaves": 2, "depth": 1, "train_accuracy": 0.9, "seconds": 0.4, "status": "heuristic"}
    candidate.summary |= {"gap": None, "metrics": {}}
    candidate.status = RunStatus.SUCCEEDED
    candidate.document = json.dumps(trained("cart", depth=2))
    candidate.save()


@pytest.mark.slow
def test_leaderboard_updates_without_scrolling(as_user, live_server, experiment):
    page = as_user("olga", width=380)
    page.goto(live_server.url + reverse("experiments:detail", args=[experiment.pk]))
    page.wait_for_selector("#experiment-chart .main-svg")
    page.focus("#leaderboard .seg a >> text=Leaves")
    table = "document.querySelector('#leaderboard .scroll')"
    page.evaluate(f"{table}.scrollLeft = 120")
    done(experiment.candidates.first())
    page.wait_for_selector("text=done ·")
    # One script reads the position, because a refresh may replace a cell that a locator holds.
    score = "document.querySelector('#leaderboard tbody tr').querySelectorAll('td')[3].getBoundingClientRect()"
    assert page.evaluate(f"{score}.right") + 120 <= 364  # the score is visible beside the name without scrolling
    expect(page.locator("#leaderboard .seg a >> text=Leaves")).to_be_focused()
    assert page.evaluate(f"{table}.scrollLeft") == 120
    page.wait_for_selector("#experiment-chart .point")
    drawn(page, "#experiment-chart")
    assert violations(page) == []
    assert overflow(page) <= 0
    # A chart keeps its height when the window gets wider and narrower again.
    height = "document.querySelector('#experiment-chart .main-svg').getBoundingClientRect().height"
    width = "document.querySelector('#experiment-chart .main-svg').getBoundingClientRect().width"
    before = page.evaluate(height)
    for size in (1440, 380):
        page.set_viewport_size({"width": size, "height": 900})
        until(page, f"{width} === document.getElementById('experiment-chart').clientWidth")
        until(page, f"{height} === {before}")
        until(page, f"document.getElementById('experiment-chart').clientHeight === {before}")


def test_escape_closes_overlay_and_restores_focus(as_user, live_server, owner, dataset):  # noqa: F811
    model = small(owner, dataset)
    page = as_user("olga")
    page.goto(live_server.url + reverse("registry:detail", args=[model.pk]))
    page.wait_for_selector("#hits .hit")
    open_now = "document.querySelectorAll('dialog[open], details.menu[open], :popover-open').length"
    for opener in (
        "[data-canvas=keys]",
        "#find",
        ".who details.menu > summary",
        ".tools details.menu > summary",
        ".badge",
    ):
        page.focus(opener)
        page.keyboard.press("Enter")
        until(page, f"{open_now} === 1")
        page.keyboard.press("Escape")
        until(page, f"{open_now} === 0")
        expect(page.locator(opener).first).to_be_focused()
    page.focus(".who details.menu > summary")
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+Tab")  # a menu closes when the focus leaves it
    until(page, f"{open_now} === 0")


@pytest.mark.slow
def test_refused_form_is_focused_and_keeps_typed_values(
    as_user,
    live_server,
    owner,
    dataset,  # noqa: F811
    tmp_path,
):
    olga = as_user("olga", width=380)
    olga.emulate_media(color_scheme="dark")
    olga.goto(f"{live_server.url}/notifications/")
    olga.fill("#webhook", "ftp://night")
    press(olga, "Save")
    expect(olga.locator("#webhook")).to_be_focused()
    assert olga.input_value("#webhook") == "ftp://night"
    olga.goto(f"{live_server.url}{reverse('experiments:new')}?dataset={dataset.pk}")
    for tick in olga.locator("[name=kinds]").all():
        tick.uncheck()
    olga.locator("#plan >> text=Nothing: tick").wait_for()
    expect(olga.locator("#plan button")).to_be_disabled()
    olga.evaluate("document.querySelector('main form').submit()")
    olga.locator("text=Tick at least one kind of question.").wait_for()
    expect(olga.locator("#id_kinds_0")).to_be_focused()
    other = tmp_path / "other.csv"
    other.write_text(CSV.replace("height", "length", 1))
    olga.goto(live_server.url + reverse("datasets:version", args=[dataset.pk]))
    olga.set_input_files("#file", str(other))
    press(olga, "Store as version 2")
    olga.locator("[role=alert]").wait_for()
    expect(olga.locator("#file")).to_be_focused()
    assert violations(olga) == []


# Texts that lie to the right of a phone's screen.
OUT_OF_SIGHT = """(s => [...document.querySelectorAll(s)].filter((e) => e.checkVisibility()
  && e.getBoundingClientRect().right > innerWidth).map((e) => e.textContent.trim()))"""


def grown_on(dataset, depth):  # noqa: F811
    table, labels = datasets.load(dataset)
    request = TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": depth}, test_share=0.25)
    return train(request).model.to_json()


@pytest.mark.slow
def test_phone_page_shows_the_decisive_parts(as_user, live_server, owner, staff, dataset, experiment):  # noqa: F811
    three = [
        registry.register(owner=owner, document=grown_on(dataset, depth), dataset=dataset, title=f"Of depth {depth}")
        for depth in (1, 2, 3)
    ]
    gone = small(owner, dataset, "Gone")
    registry.delete(gone)
    registry.ask_for_approval(three[0], by=owner)
    registry.reject(three[0], by=staff, reason="Too many are missed, and nobody said what that costs.")
    olga = as_user("olga", width=380)
    olga.emulate_media(color_scheme="dark")
    ticks = "&".join(f"models={model.pk}" for model in three)
    olga.goto(f"{live_server.url}/models/compare/?{ticks}")
    assert "only the second right" in olga.evaluate(
        "[...document.querySelectorAll('.stacked td')].map((e) => getComputedStyle(e, '::before').content).join()"
    )
    assert olga.evaluate(f"{OUT_OF_SIGHT}('.stacked td')") == []
    assert max(box.bounding_box()["height"] for box in olga.locator(".aligned .badge").all()) <= 26  # no badge wraps
    for place in ("/", reverse("registry:review-page", args=[three[0].pk])):
        olga.goto(live_server.url + place)
        expect(olga.locator(".stacked td >> text=nobody said")).to_be_visible()
        assert olga.evaluate(f"{OUT_OF_SIGHT}('.stacked td')") == [], place
    olga.goto(f"{live_server.url}/models/searches/")
    olga.focus("#sort")
    olga.keyboard.press("ArrowDown")
    olga.wait_for_url("**sort=oldest")
    expect(olga.locator("#sort")).to_be_focused()  # so one more key chooses the next order
    for place, selector in (("/models/searches/", "td .badge"), ("/deleted/", "td .btn")):
        olga.goto(live_server.url + place)
        assert olga.locator(selector).count() == 1
        assert olga.evaluate(f"{OUT_OF_SIGHT}('{selector}')") == [], place
        assert olga.locator(selector).bounding_box()["height"] <= 44, place  # its text does not wrap
        assert violations(olga) == []
        assert overflow(olga) <= 0


@pytest.mark.slow
def test_tab_order_follows_reading_order(as_user, live_server, owner, dataset):  # noqa: F811
    model = small(owner, dataset)
    page = as_user("olga")
    for place in (
        reverse("registry:detail", args=[model.pk]),
        f"{reverse('runs:new')}?dataset={dataset.pk}",
        reverse("registry:review-page", args=[model.pk]),
    ):
        page.mouse.click(0, 0)  # after a click, a new page begins with the focus at its top
        page.goto(live_server.url + place)
        calm(page)
        stops = tab_stops(page)
        assert len(stops) > 20
        moves = list(pairwise(stops))
        for (part, left, bottom), (next_part, next_left, next_bottom) in moves:
            if part == next_part:  # within a part, the focus moves down, and on one line to the right
                assert next_bottom > bottom - 40 or next_left > left, (place, stops)
        entered = 1 + sum(a[0] != b[0] for a, b in moves)
        # the focus leaves a part only after all its stops
        assert entered == len({part for part, *_ in stops}), (place, stops)


def tab_stops(page):
    """Return the stops of the Tab key in order: part of the page, left and bottom edge in pixels."""
    stops = []
    for _ in range(120):
        page.keyboard.press("Tab")
        place = page.evaluate(
            """(() => {
              const at = document.activeElement, box = at.getBoundingClientRect();
              const part = at.closest(".appbar, .crumb, .head, .strip, .modes, .canvas, .insp, .foot, .side, .stack");
              return at === document.body ? null : [part?.className ?? "skip", box.left, box.bottom + scrollY];
            })()"""
        )
        if place is None:
            return stops
        stops.append(place)
    raise AssertionError(f"the Tab key does not come to an end: {stops}")


@pytest.mark.slow
def test_an_open_point_is_read_and_approved_with_a_note(as_user, live_server, owner, staff, second, dataset):  # noqa: F811
    better = small(owner, dataset)
    registry.approve(registry.ask_for_approval(better, by=owner, reason="For the counters."), by=staff, reason="Known.")
    document = trained("cart", depth=0)
    worse = registry.register(owner=owner, document=document, dataset=dataset, title="Small")
    registry.ask_for_approval(worse, by=owner, reason="Shorter for the night shift.")
    address = live_server.url + reverse("registry:review-page", args=[worse.pk])
    narrow = as_user("bert", width=380)
    narrow.goto(address)
    assert overflow(narrow) <= 0
    picture(narrow, "checklist-380")
    bert = as_user("bert", width=1280)
    bert.goto(address)
    picture(bert, "checklist-1280")
    lines = bert.locator(".checks li")
    expect(lines).to_have_count(8)
    expect(lines.filter(has_text="Better than one answer for all")).to_contain_text("Open")
    assert violations(bert) == []
    press(bert, "Approve only")
    expect(bert.locator("#refused")).to_contain_text("Say in a note why")
    expect(bert.locator("#reason")).to_be_focused()
    bert.keyboard.type("The night shift wants one answer.")
    press(bert, "Approve only")
    bert.wait_for_selector("text=Approved, and not served")
