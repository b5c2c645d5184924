"""Moving a threshold on a model page by mouse, keys, touch and text. The model must stay unchanged."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from octweb.registry.document.model_files import model_file
from octweb.workbench import actions
from octweb.workbench.models import Workbench
from tests.browser.accessible import violations
from tests.browser.test_workspace import ANSWERS, opened, small  # noqa: F401
from tests.browser.waiting import overflow, until
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401
from tests.octweb.workbench.conftest import model  # noqa: F401
from trainer.tree.splits import Threshold

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
HANDLE = "#threshold-handle:not([hidden])"
# Texts of the picture that change with the line, by name.
WORDS = """() => Object.fromEntries(document.getElementById('question-figure').layout.annotations
    .filter((a) => a.name).map((a) => [a.name, a.text]))"""
LINES = "() => document.getElementById('question-figure').layout.shapes.slice(0, 2).map((s) => s.x0)"
# How far the words of both sides reach beyond the picture, and the pixels between them.
BESIDE = """() => { const box = document.getElementById('question-figure').getBoundingClientRect();
    const [yes, no] = [...document.querySelectorAll('#question-figure .annotation-text')]
        .filter((e) => /^(yes|no) ·/.test(e.textContent)).map((e) => e.getBoundingClientRect());
    return { out: Math.max(box.left - yes.left, no.right - box.right), gap: no.left - yes.right }; }"""


def facts(page):
    """Return the data of the picture: stops with their counts."""
    page.wait_for_selector(HANDLE)
    return page.evaluate("document.getElementById('question-figure').layout.meta")


def shown(page, stop, held, own=False):
    """Check that the picture shows the counts of this stop on both sides of the line and at the curve, and its line."""
    value = held["cuts"][stop]
    wrong = held["wrong"][stop]
    until(page, f"({LINES})().every((x) => x === {value})")
    words = page.evaluate(WORDS)
    for side, rows in (("yes", held["yes"][stop]), ("no", held["rows"] - held["yes"][stop])):
        assert words[side] == f"{side} · {rows} row{'' if rows == 1 else 's'}"
    lowest = f"fewest, {min(held['wrong'])}, at "
    assert (f"if you move the line: {lowest}" if own else f": {wrong} ({lowest}") in words["wrong"]
    until(page, f"(({{ out, gap }}) => out <= 0 && gap > 8)(({BESIDE})())")


def grab(page):
    """Press the mouse button on the line."""
    box = page.locator(HANDLE).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 50)
    page.mouse.down()
    return box["y"] + 50


def pixel(page, value):
    """Return the horizontal position of a value on the screen."""
    return page.evaluate(
        "(v) => { const f = document.getElementById('question-figure'), x = f._fullLayout.xaxis; return f.getBoundingClientRect().left + x._offset + x.l2p(v); }",
        value,
    )


@pytest.mark.slow
def test_dragged_threshold_shows_cost_and_opens_workbench(opened, model):  # noqa: F811
    tree = model_file(model).tree
    before = model.document
    node = next(v for v in tree.branches if isinstance(v.split, Threshold))
    page = opened(model, f"?mode=tree&node={node.id}")
    held = facts(page)
    own = held["at"]
    last = len(held["cuts"]) - 1
    shown(page, own, held, own=True)
    for stop in (0, last):
        height = grab(page)
        page.mouse.move(pixel(page, held["cuts"][stop]), height, steps=3)
        shown(page, stop, held)
        # The cost appears when the line is released. From then on it follows the line.
        assert page.locator("#threshold-how").is_visible() == (stop == 0)
        page.mouse.up()
        more = held["wrong"][stop] - held["now"]
        said = page.locator("#threshold-says").inner_text()
        than = f"{abs(more)} {'more' if more > 0 else 'fewer'} than" if more else "as many as"
        assert f"{held['wrong'][stop]} rows of this node wrong, {than} at " in said
        assert said.endswith("The model stays as it is.")
    page.keyboard.press("Escape")
    shown(page, own, held, own=True)
    assert page.locator("#threshold-says").inner_text() == ""
    assert page.locator("#threshold-hold").is_hidden()
    stop = 0 if own else last
    height = grab(page)
    page.mouse.move(pixel(page, held["cuts"][stop]), height, steps=3)
    page.mouse.up()
    assert violations(page) == []
    page.get_by_role("button", name="Open in the workbench with this threshold").click()
    page.wait_for_url(re.compile("/workbenches/.*at="))
    bench = Workbench.objects.get()
    wishes, _ = actions.held_threshold(tree, node.id, 1.0 * held["cuts"][stop])
    assert actions.current_wishes(bench) == wishes
    assert wishes[-1].endswith(f"<= {float(held['cuts'][stop])!r}")
    model.refresh_from_db()
    assert model.document == before


@pytest.mark.slow
def test_keys_and_a_typed_value_move_the_line_also_in_the_dark(opened, small):  # noqa: F811
    page = opened(small, "?mode=tree&node=0", width=1600, dark=True)
    held = facts(page)
    own = held["at"]
    cuts = held["cuts"]
    handle = page.locator(HANDLE)
    field = page.locator("#threshold-try")
    says = page.locator("#threshold-says")
    handle.focus()
    for key, stop in (
        ("ArrowRight", own + 1),
        ("Shift+ArrowRight", own + 11),
        ("ArrowDown", own + 10),
        ("PageDown", own),
        ("End", len(cuts) - 1),
    ):
        page.keyboard.press(key)
        shown(page, stop, held, own=stop == own)
        assert float(handle.get_attribute("aria-valuenow")) == cuts[stop]
        wrong = held["wrong"][stop]
        assert re.search(
            rf"yes {held['yes'][stop]} rows, no \d+ rows?, {wrong} wrong", handle.get_attribute("aria-valuetext")
        )
    expect(page.locator("#threshold-handle")).to_be_focused()  # the arrow keys must not move the focus within the tree
    assert "CART has no workbench" in page.locator("#threshold-hold").inner_text()
    assert violations(page) == []
    page.keyboard.press("Escape")
    shown(page, own, held, own=True)
    # Between two stops the counts are those of the lower value, and the number stays as typed.
    value = (held["low"][own + 5] + held["high"][own + 5]) / 2
    for text in (repr(value), repr(value).replace(".", ",")):
        field.fill(text)
        assert f"{held['wrong'][own + 5]} rows of this node wrong" in says.inner_text()
    field.fill("-1e9")
    assert f"all rows answer no, {held['nobody']} rows" in says.inner_text()
    field.fill("1 2")
    assert "not a number with one meaning" in says.inner_text()
    field.press("Escape")
    shown(page, own, held, own=True)
    assert says.inner_text() == ""
    field.fill(repr((held["low"][own] + 3 * held["high"][own]) / 4))
    assert "every row of this node gets the same answer" in says.inner_text()
    page.emulate_media(color_scheme="light")  # the figure is drawn again, and the line must stay where it was moved
    until(page, f"({LINES})().every((x) => x !== {held['own']})")
    for width in (1440, 1600):  # picture, curve, words and both answers must be in sight without scrolling
        page.set_viewport_size({"width": width, "height": 900})
        page.get_by_role("button", name="Back").click() if width == 1440 else None
        until(page, ANSWERS)
    assert overflow(page) <= 0


@pytest.mark.slow
def test_touch_moves_threshold_without_blocking_scroll(opened, small):  # noqa: F811
    page = opened(small, "?mode=tree&node=0", width=380, has_touch=True, is_mobile=True)
    held = facts(page)
    handle = page.locator(HANDLE)
    handle.scroll_into_view_if_needed()
    assert handle.evaluate("e => getComputedStyle(e).touchAction") == "pan-y"
    box = handle.bounding_box()
    stop = held["at"] // 2
    assert box["width"] >= 44
    touch = page.context.new_cdp_session(page)
    height = box["y"] + 40
    for kind, x in (
        ("touchStart", box["x"] + 22),
        ("touchMove", box["x"] + 10),
        ("touchMove", pixel(page, held["cuts"][stop])),
    ):
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": height}]})
    shown(page, stop, held)
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.get_by_text(f"{held['wrong'][stop]} rows of this node wrong").wait_for()
    assert violations(page) == []
    assert overflow(page) <= 0
    tabs = page.evaluate(
        "(() => { const e = document.querySelector('.insp > .tabs'); return e.scrollWidth - e.clientWidth; })()"
    )
    assert tabs <= 0
