"""The documentation in a browser: below /docs/ under the page policy, and from disk without a server."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.waiting import overflow, until
from tests.built_site import built_site, needs_mkdocs

PICTURES = os.environ.get("OCTWEB_PICTURES")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    needs_mkdocs,
]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    return built_site(tmp_path_factory)


@pytest.fixture
def opened(browser):
    """Provide a function that opens a URL in a window of a given width. It keeps what the browser complains about."""
    contexts = []

    def show(address: str, *, width: int = 1440):
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}))
        page = contexts[-1].new_page()
        page.set_default_timeout(120_000)
        page.problems = []
        page.on("console", lambda m: page.problems.append(m.text) if m.type in {"error", "warning"} else None)
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.goto(address, wait_until="networkidle")
        return page

    yield show
    for context in contexts:
        context.close()


def finds(page, word: str) -> None:
    """Check that the first page that the site's search finds has the word in its URL. While it is typed, others may come first."""
    box = page.locator("input.md-search__input")
    box.click()
    box.press_sequentially(word)
    expect(page.locator(".md-search-result__item a").first).to_have_attribute("href", re.compile(word))


def keep(page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png")


def test_site_works_below_the_application(built, settings, live_server, opened, media):
    settings.DOCS_DIR = built
    page = opened(f"{live_server.url}/docs/")
    keep(page, "docs-1440")
    assert page.locator("h1").inner_text().startswith("Start here")
    finds(page, "hyperplanes")
    page.goto(f"{live_server.url}/docs/methods/cart.html", wait_until="networkidle")
    keep(page, "docs-method")
    until(page, "[...document.images].every(image => image.naturalWidth > 0)")
    # works only if the scripts of the page may run under the content security policy
    page.locator("label[for=__palette_1]").click()
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    page.reload(wait_until="networkidle")
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    keep(page, "docs-dark")
    assert page.problems == []


@pytest.mark.parametrize("name", ["index", "which-method", "how-we-know", "gallery", "call", "methods/exact"])
def test_phone_page_has_no_horizontal_overflow(built, settings, live_server, opened, media, name):
    settings.DOCS_DIR = built
    page = opened(f"{live_server.url}/docs/{name}.html", width=380)
    keep(page, f"docs-380-{name.replace('/', '-')}")
    assert overflow(page) <= 0
    assert page.problems == []


def test_from_the_disk(built, opened):
    page = opened((built / "methods" / "cart.html").as_uri())
    finds(page, "hyperplanes")
    assert page.problems == []
