"""The documentation site builds strictly, requests nothing from other hosts, and has no dead links."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.built_site import built_site, needs_mkdocs
from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, needs_mkdocs]
LARGEST = 12_000_000  # bytes; the wheel carries the site


class Page(HTMLParser):
    """Resources, links, anchors and scripts of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.asked: set[str] = set()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.inside: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {v for v in (given.get("id"), given.get("name")) if v}
        self.inside += [name for name in given if name.startswith("on")]
        if tag == "a" and given.get("href"):
            self.links.add(given["href"])
        elif tag == "link" and given.get("rel") not in {"canonical", "prev", "next"}:
            self.asked.add(given["href"])
        elif given.get("src"):
            self.asked.add(given["src"])
        elif tag == "script" and given.get("type") != "application/json":
            self.inside.append("script")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    return built_site(tmp_path_factory)


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_each_document_is_a_page(site, pages):
    documents = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert documents <= {path.relative_to(site) for path in pages}


def test_nothing_is_asked_of_another_host(pages):
    for path, page in pages.items():
        assert [a for a in page.asked if urlsplit(a).netloc] == [], path


def test_styles_ask_for_nothing_outside(site):
    for path in site.rglob("*.css"):
        matches = re.findall(r"(?:url\(|@import )[\"']?(https?:[^\"')]+)", path.read_text(encoding="utf-8"))
        assert matches == [], path


def test_no_script_stands_inside_a_page(pages):
    """The application's policy refuses them."""
    assert {path.name: page.inside for path, page in pages.items() if page.inside} == {}


def test_every_link_inside_leads_somewhere(site, pages):
    broken = []
    seen = 0
    for path, page in pages.items():
        for link in page.links | page.asked:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            seen += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            inside = target.is_relative_to(site.resolve()) and target.is_file()
            anchored = not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].anchors
            if not (inside and anchored):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []
    assert seen > 1000


def test_the_search_knows_the_pages_and_needs_no_server(site):
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    assert '"location":"which-method.html"' in index.replace(": ", ":")
    assert (site / "search" / "search_index.js").read_text(encoding="utf-8").startswith("var __index = {")
    assert "location.protocol" in (site / "assets" / "iframe-worker.js").read_text(encoding="utf-8")


def test_the_site_is_small_enough_for_the_wheel(site):
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < LARGEST
    assert list(site.rglob("*.map")) == []


def test_a_list_or_table_is_not_left_as_text(pages):
    """The site's Markdown needs an empty line before a list, unlike other readers."""
    for path in pages:
        for text in re.findall(r"<p>(.*?)</p>", path.read_text(encoding="utf-8"), re.DOTALL):
            assert not re.search(r"^(?:- |1\. |\|)", text, re.MULTILINE), (path.name, text[:80])
