"""Figures in a browser: drawn in both themes and on a phone, selected by click and keyboard."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from octweb.figures.frontier import frontier_figure
from octweb.figures.progress import progress_figure
from octweb.figures.split import split_figures
from tests.browser.waiting import overflow, until
from tests.octweb.figures.specimens import one_split, tree_of
from trainer.tree.render.figure import tree_figure

pytestmark = pytest.mark.browser


def specimens():
    """Return figures by name: trees of several sizes, every kind of split, and the frontier."""
    six = tree_of(6, classes=2, seed=6)
    figures = {
        "tree-6": tree_figure(six, path=six.path_to(six.leaves[-1].id), chosen=2),
        "tree-1": tree_figure(tree_of(1)),
        "tree-12": tree_figure(tree_of(12, classes=4, seed=2)),
        "tree-40": tree_figure(tree_of(40, classes=20, seed=3)),
        "frontier": frontier_figure(
            [
                {"name": "one split", "leaves": 2, "accuracy": 0.953, "sd": 0.012, "id": 1, "claim": "proved"},
                {
                    "name": "a tree of depth 2 (version 3)",
                    "leaves": 4,
                    "accuracy": 0.931,
                    "sd": 0.02,
                    "id": 2,
                    "claim": "gap",
                },
                {"name": "bivariate", "leaves": 6, "accuracy": 0.96, "sd": 0.021, "id": 3, "claim": "heuristic"},
            ]
        ),
        "progress": progress_figure(
            [
                {"t": 0.5, "incumbent": 0.8, "bound": 1.0},
                {"t": 3.0, "incumbent": 0.9, "bound": 0.97, "tree": [], "line": 2},
            ]
        ),
    }
    for kind, classes in (("threshold", 2), ("interval", 12), ("plane", 3), ("subset", 4), ("many", 2)):
        tree, X, codes = one_split(kind, classes=classes)
        for i, picture in enumerate(split_figures(tree, 0, X, codes)):
            figures[f"{kind}-{i}"] = picture["figure"]
    return figures


@pytest.mark.slow
@pytest.mark.parametrize("width", [380, 1440])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_figures_are_drawn_without_errors_or_page_overflow(figure_page, theme, width):
    figures = specimens()
    page = figure_page(figures, theme=theme, width=width)
    for name in figures:
        page.wait_for_selector(f"#{name} .main-svg")
    assert page.problems == []
    assert overflow(page) <= 0
    outside = """[...document.querySelectorAll('#frontier .textpoint text')].filter((name) =>
        name.getBoundingClientRect().right > name.closest('.figure').getBoundingClientRect().right + 1).map((e) => e.textContent)"""
    expect(page.locator("#frontier .textpoint text")).to_have_count(3)
    until(page, f"({outside}).length === 0")
    evaluation = page.evaluate(
        """() => ({ink: getComputedStyle(document.documentElement).getPropertyValue('--c1').trim(),
            bar: document.querySelector('#tree-6 .fills path.js-fill').style.fill})"""
    )
    assert _rgb(evaluation["ink"]) == evaluation["bar"].replace(" ", "")
    folder = os.environ.get("OCTWEB_SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"figures-{theme}-{width}.png", full_page=True)


def _rgb(colour: str) -> str:
    return "rgb(" + ",".join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5)) + ")"


def test_a_click_on_a_node_chooses_it(figure_page):
    tree = tree_of(6, classes=2, seed=6)
    figure = tree_figure(tree)
    page = figure_page({"tree": figure})
    page.evaluate("window.ids = []; document.addEventListener('octweb:node', (e) => ids.push(e.detail.id))")
    for node in (2, 0, 5):
        left, top, width, height = figure["layout"]["meta"]["nodes"][node]["box"]
        corner = page.locator("#tree .main-svg").first.bounding_box()
        page.mouse.click(corner["x"] + left + width / 2, corner["y"] + top + height / 2)
    assert page.evaluate("ids") == [2, 0, 5]
    until(page, "location.hash === '#node-5'")


def test_arrows_walk_and_enter_chooses(figure_page):
    tree = tree_of(6, classes=2, seed=6)
    page = figure_page({"tree": tree_figure(tree)})
    page.keyboard.press("Tab")
    for key in ("ArrowDown", "ArrowRight", "ArrowUp", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    until(page, f"location.hash === '#node-{tree.nodes[0].left}'")
    assert page.locator(".octweb-focus").count() == 1
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    until(page, f"location.hash === '#node-{tree.nodes[0].right}'")


def test_hover_shows_the_rule(figure_page):
    tree = tree_of(3, classes=2, seed=1)
    figure = tree_figure(tree)
    page = figure_page({"tree": figure})
    left, top, _, height = figure["layout"]["meta"]["nodes"][0]["box"]
    corner = page.locator("#tree .main-svg").first.bounding_box()
    page.mouse.move(corner["x"] + left + 15, corner["y"] + top + height / 2)
    page.mouse.move(corner["x"] + left + 20, corner["y"] + top + height / 2)
    page.wait_for_selector("#tree .hoverlayer .hovertext")
    expect(page.locator("#tree .hoverlayer")).to_contain_text("900 rows in all")


def test_a_change_of_theme_redraws(figure_page):
    page = figure_page({"tree": tree_figure(tree_of(3, classes=2))})
    colour = "document.querySelector('#tree .fills path.js-fill').style.fill"
    before = page.evaluate(colour)
    page.evaluate(
        "document.documentElement.dataset.theme = 'dark'; document.dispatchEvent(new CustomEvent('octweb:theme'))"
    )
    until(page, f"{colour} !== {json.dumps(before)}")
    assert page.problems == []


def test_figure_is_fetched_when_visible_and_on_reload(figure_page, site):
    file = site[1] / "figure.json"
    file.write_text(json.dumps(frontier_figure([{"name": "first", "leaves": 2, "accuracy": 0.9}])))
    body = '<div style="height: 4000px"></div><div id="late" class="figure" data-figure-url="figure.json"></div>'
    page = figure_page({}, body=body)
    page.wait_for_timeout(200)
    assert page.locator("#late .main-svg").count() == 0
    page.locator("#late").scroll_into_view_if_needed()
    page.wait_for_selector("#late .main-svg >> text=first")
    file.write_text(json.dumps(frontier_figure([{"name": "second", "leaves": 2, "accuracy": 0.9}])))
    page.evaluate("document.getElementById('late').dispatchEvent(new CustomEvent('octweb:reload', {bubbles: true}))")
    page.wait_for_selector("#late .main-svg >> text=second")
    assert page.problems == []


def test_unavailable_figure_shows_a_message(figure_page):
    page = figure_page({}, body='<div id="gone" class="figure" data-figure-url="gone.json"></div>')
    page.wait_for_selector("text=The picture could not be loaded")
    assert page.locator("#gone .main-svg").count() == 0


@pytest.mark.slow
@pytest.mark.parametrize("format", ["svg", "png"])
def test_a_picture_can_be_saved(figure_page, format):
    figure = tree_figure(tree_of(4, classes=2, seed=6))
    page = figure_page({"tree": figure})
    with page.expect_download() as download:
        page.click(f".take button:has-text('{format.upper()}')")
    content = Path(download.value.path()).read_bytes()
    assert download.value.suggested_filename == f"octweb.{format}"
    assert content.startswith(b"<svg" if format == "svg" else b"\x89PNG")
    assert page.problems == []
    page.evaluate("document.documentElement.dataset.theme = 'dark'; document.dispatchEvent(new Event('octweb:theme'))")
    assert page.locator(".take").count() == 1


def test_evaluation_page_works_standalone(windows, tmp_path):
    from tests.trainer.evaluate_cases import dataset, records_of, small
    from trainer.evaluate import report
    from trainer.evaluate.page import evaluation_page

    study = small(datasets=[dataset(), dataset(1, name="a <b> & c")], folds=2)
    values = {(d.name, v.label): [0.5, 0.7] for d in study.datasets for v in study.variants}
    path = tmp_path / "results.html"
    path.write_text(evaluation_page(report(study, records_of(study, values))))
    page = windows.page(offline=True)
    problems = []
    page.on("pageerror", lambda e: problems.append(str(e)))
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    page.goto(path.as_uri())
    until(page, "document.querySelectorAll('.js-plotly-plot .main-svg').length >= 3")
    assert "a <b> & c" in page.inner_text("table >> nth=0")
    assert problems == []


def scale_of(page, figure):
    return page.locator("#tree .main-svg").first.bounding_box()["width"] / figure["layout"]["width"]


def zoom(page, words):
    """Press one of the buttons below the tree, and wait until the tree is drawn in that size."""
    page.click(f"button:has-text('{words}')")
    expect(page.locator(f"button:has-text('{words}')")).to_have_attribute("aria-pressed", "true")


def test_a_small_tree_stands_in_the_middle(figure_page):
    page = figure_page({"tree": tree_figure(tree_of(4, classes=2, seed=6))})
    card, drawn = (page.locator(at).first.bounding_box() for at in ("#tree", "#tree .main-svg"))
    assert drawn["width"] < card["width"]
    assert abs((drawn["x"] + drawn["width"] / 2) - (card["x"] + card["width"] / 2)) <= 1
    assert not page.locator("[data-zoom]").first.is_visible()


def test_eight_leaves_fit_a_page_without_scrolling(figure_page):
    figure = tree_figure(tree_of(8, classes=2, seed=4))
    page = figure_page({"tree": figure}, width=1280)
    assert scale_of(page, figure) > 0.8
    assert page.evaluate(
        "document.querySelector('#tree').scrollWidth <= document.querySelector('#tree').clientWidth + 1"
    )


@pytest.mark.slow
def test_wide_tree_is_clickable_when_fitted_or_scrolled(figure_page):
    tree = tree_of(24, classes=2, seed=4)
    figure = tree_figure(tree)
    page = figure_page({"tree": figure}, width=900)
    page.evaluate("window.ids = []; document.addEventListener('octweb:node', (e) => ids.push(e.detail.id))")
    nodes = figure["layout"]["meta"]["nodes"]
    zoom(page, "Fit")
    card = page.locator("#tree").bounding_box()
    assert scale_of(page, figure) * figure["layout"]["width"] == pytest.approx(card["width"], abs=1)
    chosen = [0, tree.nodes[0].left, tree.nodes[0].right]
    for full in (False, True):
        if full:
            zoom(page, "100")
            assert scale_of(page, figure) == pytest.approx(1)
        for node in chosen:
            left, top, width, height = nodes[node]["box"]
            page.evaluate(
                "at => { const e = document.querySelector('#tree'); e.scrollLeft = at - e.clientWidth / 2; }",
                left + width / 2 if full else 0,
            )
            corner = page.locator("#tree .main-svg").first.bounding_box()
            scale = scale_of(page, figure)
            at = corner["x"] + scale * (left + width / 2), corner["y"] + scale * (top + height / 2)
            page.mouse.move(*at)
            page.mouse.move(at[0] + 1, at[1])
            expect(page.locator("#tree .hoverlayer")).to_contain_text(f"{tree.nodes[node].rows:,} rows in all")
            page.mouse.click(*at)
    assert page.evaluate("ids") == chosen * 2
    assert page.problems == []
