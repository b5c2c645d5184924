"""The model page in a browser with difficult tables: 20 classes, 60 long column names, 64 leaves."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from django.conf import settings
from playwright.sync_api import expect

from octweb.datasets import actions as datasets
from octweb.registry.document.model_files import model_file
from octweb.registry.document.rows import rows_of
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import TreeModel
from octweb.serving.coding import compress_body
from tests.browser.accessible import violations
from tests.browser.pictures import picture
from tests.browser.signed_in import signed_in
from tests.browser.waiting import address, calm, complaints, overflow, until
from tests.octweb.registry.typed_numbers_cases import EXAMPLES
from trainer.training.run import TrainRequest, train
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf, grow
from trainer.tree.splits import Threshold

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
LONG = "share_of_households_with_two_or_more_cars_region_{:02d}_in_percent"
WIDE = "A wide survey of the households in all western regions, second round"
MODES = ("tree", "performance", "proof", "use", "history")
MOST_BYTES = 640_000  # includes 37 kB for the font


def stored(owner, name, columns, X, labels, *, method="cart", **parameters):
    """Return a data set of these rows and a model that was trained on three quarters of them."""
    head = ",".join([*columns, "answer"])
    lines = [",".join([*(f"{x:.3f}" for x in row), label]) for row, label in zip(X, labels, strict=True)]
    text = "\n".join([head, *lines]) + "\n"
    dataset = datasets.create(
        owner=owner, file=io.BytesIO(text.encode()), source_name=f"{name}.csv", name=name, target="answer"
    )
    table, target = datasets.load(dataset)
    result = train(
        TrainRequest(table=table, labels=target, method=method, parameters=parameters, test_share=0.25, name=name)
    )
    return registry.register(owner=owner, document=result.model.to_json(), dataset=dataset, title=name)


@pytest.fixture
def twenty(owner, media):
    """Provide a tree of depth 6 for 20 classes."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 4, (1500, 4))
    codes = 5 * X[:, 0].astype(int) + np.minimum(4, (X[:, 1] * 1.25).astype(int))
    codes = np.where(rng.random(1500) < 0.3, rng.integers(0, 20, 1500), codes)
    return stored(owner, "Twenty species", "abcd", X, [f"species {k:02d}" for k in codes], depth=6, min_leaf=4)


def complete(level: int) -> Draft:
    """Return a tree of 64 leaves: one column per level, cut at 0."""
    if level == 6:
        return DraftLeaf()
    split = Threshold(feature=10 * level + 4, threshold=0.0)
    return DraftBranch(split=split, left=complete(level + 1), right=complete(level + 1))


@pytest.fixture
def wide(owner, media):
    """Provide a tree with 64 leaves over 60 columns, whose long names differ in two digits."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(900, 60))
    labels = np.where(rng.random(900) < 0.5, "agrees with the question", "does not agree with it")
    model = stored(owner, "Wide", [LONG.format(j) for j in range(60)], X, labels, depth=1)
    rows = rows_of(model)
    file = model_file(model)
    matrix = rows.matrix[rows.training]
    codes = rows.codes[rows.training]
    tree = grow(complete(0), matrix, codes, schema=file.tree.schema, classes=file.tree.classes)
    right = int((tree.predict(matrix) == codes).sum())
    metrics = {"train": {"n": len(codes), "correct": right, "accuracy": right / len(codes)}}
    certificate = {**file.certificate, "objective": right / len(codes)}
    document = replace(file, tree=tree, metrics=metrics, certificate=certificate).to_json()
    return registry.register(owner=owner, document=document, dataset=model.dataset, title=WIDE)


@pytest.fixture
def planes(owner, media):
    """Provide a tree of one hyperplane over 60 columns."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(160, 60))
    labels = np.where(X[:, 14] + X[:, 24] - X[:, 3] > 0, "yes", "no")
    return stored(
        owner, "Planes", [LONG.format(j) for j in range(60)], X, labels, method="cut-h", depth=1, time_limit=2
    )


@pytest.fixture
def small(owner, media):
    """Provide a small tree of two classes with unseen rows."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 3))
    labels = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.4 * rng.normal(size=400) > 0, "good", "bad")
    return stored(owner, "Small", ("score", "age", "noise"), X, labels, depth=2)


@pytest.fixture
def opened(windows, live_server):
    """Provide a function that signs in and opens a page of a model.

    Anything on the console fails the test at its end.
    """
    trouble = []

    def open_page(model, query="", *, width=1440, dark=False, **more):
        page = windows.page(width=width, dark=dark, bypass_csp=True, **more)
        complaints(page, trouble)
        signed_in(page.context, live_server.url, "olga")
        page.base = f"{live_server.url}/models/{model.pk}/"
        page.goto(page.base + query)
        return page

    yield open_page
    assert trouble == []


def cards(page):
    """Wait until the cards are visible."""
    page.wait_for_selector("#hits .hit")


# Tables whose frame is too small for their rows, and breadcrumbs that are cut off.
WHOLE = """[...document.querySelectorAll('#inspector .scroll')].filter((e) => e.clientHeight < e.firstElementChild.offsetHeight)
    .concat([...document.querySelectorAll('.strip .crumb')].filter((e) => e.scrollWidth > e.clientWidth)).map((e) => e.textContent.trim())"""
VIEWS = ((380, "dark"), (1440, "light"))
BETWEEN = (420, 600, 740, 800, 1024, 1200, 1600)
CUT = """['.appbar', '.strip', '.modes', '.foot'].filter((s) => { const e = document.querySelector(s);
    return e && getComputedStyle(e).overflowX !== 'auto' && e.scrollWidth > e.clientWidth; })"""
MORE_BADGES = """(() => { const title = document.querySelector('.strip .title');
    while (title.children.length < 4) title.append(title.firstElementChild.cloneNode(true)); })()"""

ANSWERS = """document.querySelector('.insp .sides').getBoundingClientRect().bottom
    <= document.querySelector('.insp .pane').getBoundingClientRect().bottom"""


# Cards that lie outside the canvas.
OUTSIDE = """(() => { const view = document.getElementById('view').getBoundingClientRect();
    return [...document.querySelectorAll('#hits .hit')].map((e) => e.getBoundingClientRect()).filter((card) =>
        card.left < view.left - 1 || card.top < view.top - 1 || card.right > view.right + 1 || card.bottom > view.bottom + 1); })()"""


# Of the focused card and the two below it: those outside the canvas or behind the small map.
HIDDEN = """(() => {
    const view = document.getElementById('view').getBoundingClientRect();
    const map = document.getElementById('minimap')?.getBoundingClientRect();
    const node = document.getElementById('tree-figure').layout.meta.nodes.find((v) => v.id === Number(document.activeElement.dataset.node));
    return [node.id, node.left, node.right].filter((id) => {
        const box = document.querySelector(`.hit[data-node="${id}"]`).getBoundingClientRect();
        return box.left < view.left || box.right > view.right || box.top < view.top || box.bottom > (map?.top ?? view.bottom);
    });
})()"""


@pytest.mark.slow
def test_every_mode_is_accessible_and_fits(opened, small):
    """Each mode is loaded once. Width and theme change on the open page."""
    page = opened(small)
    found = []
    for mode in MODES:
        page.set_viewport_size({"width": VIEWS[0][0], "height": 900})  # at this width some figures are not drawn yet
        page.goto(f"{page.base}?mode={mode}")
        calm(page)
        for width, theme in VIEWS:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=theme)
            found += [f"{mode} {width} {theme}: {line}" for line in violations(page)]
            over = overflow(page)
            found += [f"{mode} {width}: {over} px too wide"] * (over > 0)
        for width in BETWEEN:
            page.set_viewport_size({"width": width, "height": 900})
            found += [f"{mode} {width}: {part} is cut" for part in page.evaluate(CUT)]
            found += [f"{mode} {width}"] * (overflow(page) > 0)
    assert found == []
    page.evaluate(MORE_BADGES)
    for width in (*BETWEEN, 1440, 1600):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.locator(".strip .crumb").bounding_box()["width"] > 90, width
        assert page.evaluate(CUT) == [], width
    for width in (1440, 1600):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(page.base)
        cards(page)
        until(page, "document.documentElement.scrollHeight <= innerHeight")
        until(page, f"({WHOLE}).length === 0")
    assert [page.locator(f'[data-canvas="{b}"]').get_attribute("aria-pressed") for b in ("fit", "all")] == [
        "true",
        "false",
    ]
    page.click('[data-canvas="text"]')
    low = page.locator(".canvas > .legend").bounding_box()
    assert page.locator("#as-text").bounding_box()["y"] >= low["y"] + low["height"], "the legend stays in sight"
    page.click('[data-canvas="text"]')
    page.click('[data-canvas="all"]')
    page.wait_for_selector('[data-canvas="all"][aria-pressed="true"]')
    assert page.locator('[data-canvas="fit"]').get_attribute("aria-pressed") == "false"


def opens_alone(page):
    """Check that one side of the first split opens as a whole and the other side closes."""
    part = page.locator('.hit[aria-level="2"][aria-expanded]').first
    part.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(f'#inspector header[data-node="{part.get_attribute("data-node")}"]')
    page.click('[data-tab="below"]')
    page.click('[data-canvas="part"]')
    leaves = int(page.locator('[data-tab="below"] .n').inner_text())
    page.wait_for_function("n => document.querySelectorAll('.hit.leaf').length === n", arg=leaves)
    expect(page.locator('.hit[aria-expanded="false"]')).to_have_count(1)


@pytest.mark.slow
@pytest.mark.parametrize("which", ["twenty", "wide"])
def test_large_tree_is_shown_whole_and_can_be_folded(opened, request, which):
    page = opened(request.getfixturevalue(which))
    assert page.locator(".strip .crumb").bounding_box()["height"] < 25
    assert page.locator(".strip h1").bounding_box()["height"] < 40  # one line, or two small ones
    assert page.locator(".strip").bounding_box()["height"] < 85
    cards(page)
    until(page, f"({OUTSIDE}).length === 0")
    page.wait_for_selector("#minimap .main-svg")
    until(page, "document.getElementById('map-frame').getBoundingClientRect().width > 50")
    page.wait_for_selector("#threshold-handle:not([hidden])")
    until(page, ANSWERS)  # picture, curve and both answers of a question are visible without scrolling
    picture(page, f"workspace-{which}", whole=False)
    closed = page.locator('.hit[aria-expanded="false"]')
    before = page.locator(".hit").count()
    hidden = closed.count()
    assert hidden > 3
    closed.first.focus()
    page.keyboard.press("Space")
    page.wait_for_function("n => document.querySelectorAll('.hit').length > n", arg=before)
    focused = "document.activeElement.dataset.node + document.activeElement.getAttribute('aria-expanded')"
    opened_now = page.evaluate(focused)
    assert opened_now.endswith("true")  # the focus is still on the branch
    until(page, f"({HIDDEN}).length === 0")  # the opened cards are visible, and none is behind the small map
    page.keyboard.press("Space")
    page.wait_for_function("n => document.querySelectorAll('.hit').length === n", arg=before)
    assert page.evaluate(focused) == opened_now.replace("true", "false")
    page.click('[data-canvas="all"]')
    page.wait_for_function("document.querySelectorAll('.hit[aria-expanded=\"false\"]').length === 0")
    assert page.locator(".hit.leaf").count() == request.getfixturevalue(which).leaves > 32
    page.keyboard.press("f")
    page.wait_for_function("n => document.querySelectorAll('.hit').length === n", arg=before)
    assert violations(page) == []
    opens_alone(page)
    page.set_viewport_size({"width": 1200, "height": 900})
    first = page.locator(".facts4 dd").first.inner_text()
    assert first == "not evaluated" or "%" in first, "small print goes where there is little room, a fact does not"


@pytest.mark.slow
@pytest.mark.parametrize(("which", "least"), [("small", 0.7), ("planes", 0.5)])
def test_a_small_tree_uses_its_canvas(opened, request, which, least):
    page = opened(request.getfixturevalue(which), width=1600)
    cards(page)
    share, above, below = page.evaluate("""(() => {
        const view = document.getElementById('view').getBoundingClientRect();
        const boxes = [...document.querySelectorAll('.hit')].map((e) => e.getBoundingClientRect());
        const top = Math.min(...boxes.map((b) => b.top)), bottom = Math.max(...boxes.map((b) => b.bottom));
        return [(bottom - top) / view.height, top - view.top, view.bottom - bottom];
    })()""")
    assert share >= least
    assert min(above, below) >= 0
    assert below < 2 * above + 20  # the tree is not much closer to the top than to the bottom


def test_a_click_on_a_leaf_shows_its_rows_sorted_and_as_csv(opened, small):
    page = opened(small)
    cards(page)
    page.locator(".hit.leaf").first.click()
    page.wait_for_selector("#inspector .rows-panel table")
    expect(page.locator('.hit[aria-selected="true"]')).to_have_count(1)
    assert "tab=" not in address(page)
    node = page.get_attribute("#inspector header", "data-node")
    assert f"node={node}" in address(page)
    lines = lambda: [int(t.replace(",", "")) for t in page.locator(".rows tbody td:first-child").all_inner_texts()]  # noqa: E731
    assert lines() == sorted(lines())
    assert min(lines()) >= 2  # line 1 of the file is its header
    page.locator('.rows th a >> text="score"').focus()
    page.keyboard.press("Enter")
    page.wait_for_selector('.rows th[aria-sort="ascending"] >> text=score')
    # the focus stays on the header, so that keys can sort again
    page.wait_for_function("document.activeElement.closest('th[aria-sort=ascending]')")
    page.click(".rows-panel .seg >> text=Unseen")
    page.wait_for_selector('.rows-panel .seg [aria-current] >> text="Unseen"')
    count = int(page.inner_text(".rows-panel .row .note2").split()[0])
    with page.expect_download() as download:
        page.click(".rows-panel >> text=CSV")
    content = Path(download.value.path()).read_text().splitlines()
    assert content[0] == "line,row,leaf,actual,predicted,score,age,noise"
    assert len(content) == 1 + count


def test_keys_walk_choose_and_change_tabs(opened, small):
    page = opened(small)
    cards(page)
    page.locator('.hit[tabindex="0"]').focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    left = small_tree_node(page, 0, "left")
    page.wait_for_selector(f'#inspector header[data-node="{left}"]')
    page.keyboard.press("2")
    page.wait_for_selector("#inspector .rows-panel")
    assert "tab=rows" in address(page)
    page.reload()
    page.wait_for_selector(f'#inspector header[data-node="{left}"]')
    expect(page.locator("#inspector .rows-panel")).to_be_visible()
    page.locator(f'.hit[data-node="{left}"]').focus()
    for _ in range(3):
        page.keyboard.press("+")
    until(page, f"({WITHIN})(document.querySelector('.hit:focus'), document.getElementById('view'))")
    page.keyboard.press("?")
    page.wait_for_selector("#keys[open]")


# Whether the first element lies within the second, which the page has from the beginning.
WITHIN = """(card, view) => { const [c, v] = [card, view].map((e) => e?.getBoundingClientRect());
    return c && v.left <= c.left && c.right <= v.right && v.top <= c.top && c.bottom <= v.bottom; }"""


def small_tree_node(page, node, side):
    return page.evaluate(
        "([n, side]) => document.getElementById('tree-figure').layout.meta.nodes.find((v) => v.id === n)[side]",
        [node, side],
    )


@pytest.mark.slow
def test_a_cell_of_the_confusion_matrix_opens_its_rows(opened, small):
    page = opened(small, "?mode=performance")
    cell = page.locator("td.c a").nth(1)
    count = int(cell.locator("b").inner_text().replace(",", ""))
    cell.click()
    page.wait_for_selector("#cell-rows .rows-panel")
    expect(page.locator("#cell-rows tbody tr")).to_have_count(count)
    page.wait_for_function(
        "document.querySelector('#cell-rows .rows-panel').getBoundingClientRect().top < innerHeight - 40"
    )
    expect(page.locator("#cell-rows .ways li").first).to_contain_text("leaf")
    page.wait_for_selector("#calibration .main-svg")
    page.wait_for_selector("#roc .main-svg")
    page.set_viewport_size({"width": 380, "height": 900})
    page.wait_for_function("document.getElementById('roc').clientWidth < 380")
    last = "[...document.querySelectorAll('#roc .xtick text')].filter((t) => t.checkVisibility()).at(-1).textContent"
    page.wait_for_function(f"{last}.startsWith('100')")
    page.set_viewport_size({"width": 1440, "height": 900})
    picture(page, "workspace-performance", whole=False)
    page.select_option("#group", "noise")
    page.wait_for_selector("#groups >> text=The tree does not ask about this column")
    paid = "document.querySelector('#costs-answer tbody tr').innerText"
    before = page.evaluate(paid)
    page.fill('#costs input[name="cost-0-1"]', "9")
    page.wait_for_function(f"t => {paid} !== t", arg=before)
    picture(page, "costs", part="#costs")
    assert violations(page) == []
    ends = page.locator("#cell-rows .ways li").count()
    page.click("#cell-rows >> text=in the tree")
    page.wait_for_selector("#hits .hit")
    assert len(page.get_attribute("#canvas", "data-leaf").split(",")) == ends
    expect(page.locator("text=The paths of these rows are marked.")).to_be_visible()
    picture(page, "cell-paths", whole=False)


def test_a_typed_row_is_predicted_in_place(opened, small):
    page = opened(small, "?mode=use")
    page.evaluate("window.same = true")
    asked = []
    page.on("request", lambda r: asked.append((r.method, r.url)))
    page.locator("#try input:visible").nth(0).fill("2.53125")
    page.click("#try button.primary")
    page.wait_for_selector("#try-answer >> text=So it is")
    page.locator("#try input:visible").nth(0).fill("wide")
    page.click("#try button.primary")
    page.wait_for_selector("#try-answer [role=alert]")
    assert page.evaluate("window.same")
    sent = [url for method, url in asked if method == "POST"]
    assert sent
    assert not any("2.53125" in url or "wide" in url for _, url in [*asked, ("", page.url)]), "no address holds a value"


def test_twenty_classes_are_distinguishable(opened, twenty):
    page = opened(twenty, "?mode=performance", width=1600)
    looks = page.evaluate(
        "[...document.querySelectorAll('.cm tbody th .sw')].map((e) => { const s = getComputedStyle(e); return s.backgroundColor + s.backgroundImage; })"
    )
    assert len(looks) == 20
    assert len(set(looks)) == 20
    assert page.evaluate(
        "document.querySelector('.cm').scrollWidth <= document.querySelector('.cm').parentElement.clientWidth"
    )


@pytest.mark.slow
def test_long_column_names_are_shortened_to_their_differences(opened, planes):
    page = opened(planes)
    page.wait_for_selector("#inspector >> text=Weighs")
    words = page.inner_text("#inspector .pane")
    assert "region_" in words
    page.click("#inspector summary")
    broken = "[...document.querySelectorAll('.terms td.q')].filter((e) => e.getBoundingClientRect().width < 120).length"
    assert page.evaluate(broken) == 0, "names are not broken in the middle of their words"
    rows = page.locator("#inspector details tbody tr").count()
    assert f"Weighs {rows} columns" in page.inner_text("#inspector header")
    assert "Best single column of all" in words
    assert violations(page) == []


@pytest.mark.slow
def test_phone_page_shows_inspector_below_chosen_line(opened, wide):
    page = opened(wide, width=380)
    page.locator(".outline a.rule").nth(2).click()
    chosen = page.locator(".outline a.rule").nth(2).get_attribute("data-choose")
    page.wait_for_selector(f'.outline [data-node="{chosen}"] > #inspector')
    assert not page.is_visible("#view")
    picture(page, "workspace-380", whole=False)
    page.goto(page.base + "?mode=proof")
    assert page.locator("#splits .q > span").count() == 63
    assert page.evaluate(
        "[...document.querySelectorAll('#splits .q > span')].every((s) => s.scrollWidth <= s.clientWidth)"
    )


@pytest.mark.slow
@pytest.mark.parametrize("width", [380, 1600])
def test_ticked_trees_are_shown_side_by_side(opened, small, owner, width):
    document = json.loads(small.document)
    registry.register(owner=owner, document=document, dataset=small.dataset, title="Small again")
    page = opened(small, "../", width=width, dark=width == 1600)
    assert violations(page) == []
    for box in page.locator('input[name="models"]').all():
        box.check()
    page.click("text=Compare those ticked")
    page.wait_for_selector("text=2 trees side by side")
    expect(page.locator("main")).to_contain_text("The two trees give the same answer")
    assert violations(page) == []
    for each in (1440, width):
        page.set_viewport_size({"width": each, "height": 900})
        assert overflow(page) <= 0
    page.goto(page.url.split("?")[0])
    page.wait_for_selector(".main-svg")
    assert violations(page) == []
    assert TreeModel.objects.count() == 2


@pytest.mark.slow
@pytest.mark.parametrize("width", [380, 1440])
def test_fields_of_columns_with_long_names_lie_beside_each_other(opened, wide, width):
    page = opened(wide, "?mode=use", width=width)
    page.wait_for_selector("#try .field")
    assert overflow(page) <= 0
    beyond = """[...document.querySelectorAll('#try .row-fields > .field')].filter((field) => {
        const box = field.getBoundingClientRect();
        const text = document.createRange();
        text.selectNodeContents(field.querySelector('label'));
        return [text, field.querySelector('input')].some((e) => e.getBoundingClientRect().right > box.right + 1);
    }).length"""
    assert page.locator("#try .field").count() >= 6
    assert page.evaluate(beyond) == 0
    page.goto(f"{page.base}?mode=performance")
    narrow = "[...document.querySelectorAll('#mistakes dd')].some((e) => e.getBoundingClientRect().width < 100)"
    assert not page.evaluate(narrow)
    page.goto(f"{page.base.split('/models/')[0]}/runs/new/?dataset={wide.dataset_id}")
    page.click("#constraints summary")
    # All positions are read in one script instead of 120 calls.
    reach = "names => names.map((e) => { const box = e.getBoundingClientRect(); return [box.top, box.bottom]; })"
    names = page.locator(".picker label").first.locator("xpath=../label")
    boxes = names.evaluate_all(reach)
    texts = names.locator("span").evaluate_all(reach)
    assert len(texts) == 60
    assert all(top <= y and end <= bottom for (top, bottom), (y, end) in zip(boxes, texts, strict=True)), (
        "no name lies over another"
    )


@pytest.mark.slow
@pytest.mark.parametrize("which", ["wide", "twenty"])
def test_cold_page_is_light_without_duplicate_requests(opened, request, which):
    """Sizes are those of files compressed like on the real server, because the test server does not compress them."""
    page = opened(request.getfixturevalue(which))
    page.goto("about:blank")  # requests of the previous page must not count
    answers = []
    # Playwright marks its listeners, which fails for a built-in such as `answers.append`
    page.on("response", lambda answer: answers.append(answer))
    page.goto(page.base)
    cards(page)
    page.wait_for_load_state("networkidle")
    sizes = {}
    for answer in answers:
        # The body is requested again, because the browser does not keep every body.
        body = page.context.request.get(answer.url).body() if answer.status == 200 else b""
        sizes[answer.url] = len(compress_body(body, "gzip")[0])
    assert any("plotly" in url for url in sizes)
    assert len(answers) == len(sizes), sorted(answer.url for answer in answers)
    assert sum(sizes.values()) <= MOST_BYTES, sorted((s, u) for u, s in sizes.items())[-6:]
    drawn = [url for url in sizes if "/figures/tree/" in url]
    assert len(drawn) == 1


def test_the_page_reads_numbers_by_the_rule_of_the_server(windows):
    page = windows.page()
    page.add_script_tag(path=str(settings.BASE_DIR / "static" / "typed_numbers.js"))
    for example in EXAMPLES:
        call = "e => { const n = typedNumber(e.text, e.unit, e.decimal_comma); return Number.isNaN(n) ? null : n; }"
        assert page.evaluate(call, example) == example["number"], example
