"""Attributes and classes that join pages, scripts and styles have a writer and a reader."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT
from tests.test_styles import sources

# Parts of Django's administration, which our style changes and another package writes.
OF_DJANGO = {"readonly", "flex-container", "errornote"}
# Plotly writes these; `field-…` is a row of the administration.
OF_OTHERS = re.compile(r"^(svg-container|main-svg|js-plotly-plot|plotly|modebar.*|field-.*|hoverlayer|drag.*)$")
# For the programs that show a notebook.
FOR_OTHERS = {"octweb-tree"}
WRITTEN = re.compile(r"(?<![\w\[-])data-([a-z][a-z-]*)(?=[\s=>\"'{/])")
DATASET = re.compile(r"(?<!self\.)\bdataset\.([a-z][a-zA-Z]*)")
CLASSES = re.compile(r'class=\\?"((?:\{%.*?%\}|\{\{.*?\}\}|[^"])*?)\\?"', re.S)
GAP = "\0"


def kebab(name: str) -> str:
    """Return the attribute of a member of `dataset`, without "data-"."""
    return re.sub(r"[A-Z]", lambda letter: f"-{letter[0].lower()}", name)


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|url\([^)]*\)", " ", text, flags=re.S)


def selectors(style: str) -> str:
    return " ".join(re.findall(r"([^{}]+)\{", without_comments(style)))


def split_by_kind(texts: dict[str, str]) -> tuple[str, str, str]:
    """Return the text of all styles, of all scripts, and of all pages with the code that writes pages."""
    styles = "\n".join(text for name, text in texts.items() if name.endswith(".css"))
    scripts = "\n".join(text for name, text in texts.items() if name.endswith(".js"))
    pages = "\n".join(text for name, text in texts.items() if not name.endswith((".css", ".js")))
    inline = "\n".join(re.findall(r"<script[^>]*>(.*?)</script>", pages, re.S))
    return styles, scripts + inline, pages


def attributes_without_reader(texts: dict[str, str]) -> set[str]:
    styles, scripts, pages = split_by_kind(texts)
    read = {kebab(name) for name in DATASET.findall(scripts)}
    read |= set(re.findall(r"data-([a-z][a-z-]*)", scripts + selectors(styles)))
    read |= set(re.findall(r"\[data-([a-z][a-z-]*)\]", pages))  # the targets of htmx
    return set(WRITTEN.findall(pages)) - read


def attributes_without_writer(texts: dict[str, str]) -> set[str]:
    styles, scripts, pages = split_by_kind(texts)
    read = {kebab(name) for name in DATASET.findall(scripts)}
    read |= set(re.findall(r"\[data-([a-z][a-z-]*)", scripts + selectors(styles)))
    written = set(WRITTEN.findall(pages)) | set(re.findall(r"[\"']data-([a-z][a-z-]*)[\"']", scripts + pages))
    written |= {kebab(name) for name in re.findall(r"dataset\.([a-z][a-zA-Z]*)\s*=(?!=)", scripts)}
    return read - written


def written_classes(pages: str) -> set[str]:
    """Return the classes in pages; a class that a template completes ends in GAP."""
    found: set[str] = set()
    for value in CLASSES.findall(pages):
        plain = re.sub(r"\{\{.*?\}\}", GAP, re.sub(r"\{%.*?%\}", " ", value, flags=re.S), flags=re.S)
        found |= {word for word in plain.split() if re.fullmatch(rf"[a-zA-Z_][\w-]*{GAP}?", word)}
    return found


def named(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def classes_without_reader(texts: dict[str, str]) -> set[str]:
    styles, scripts, pages = split_by_kind(texts)
    read = set(re.findall(r"\.([a-zA-Z_][\w-]*)", selectors(styles)))
    found = {name for name in written_classes(pages) if GAP not in name and name not in read}
    return {name for name in found if not named(scripts, name)} - OF_DJANGO - FOR_OTHERS


def classes_without_writer(texts: dict[str, str]) -> set[str]:
    styles, scripts, pages = split_by_kind(texts)
    read = set(re.findall(r"\.([a-zA-Z_][\w-]*)", re.sub(r'"[^"]*"', "", selectors(styles))))
    begun = tuple(name.rstrip(GAP) for name in written_classes(pages) if name.endswith(GAP))
    begun += tuple(re.findall(r"[`\"' ]([a-z][\w-]*)\$\{", scripts))
    unwritten = {name for name in read if not named(scripts + pages, name) and not name.startswith(begun)}
    return {name for name in unwritten if not OF_OTHERS.match(name)} - OF_DJANGO


CHECKS = [attributes_without_reader, attributes_without_writer, classes_without_reader, classes_without_writer]


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sources()}


@pytest.mark.parametrize("check", CHECKS)
def test_hooks_of_all_pages_have_two_ends(check, texts):
    assert check(texts) == set()


@pytest.mark.parametrize(
    ("check", "page", "script", "style", "found"),
    [
        (attributes_without_reader, '<p data-reload="9">', "", "", {"reload"}),
        (attributes_without_reader, '<p data-reload="9">', "e.dataset.reload", "", set()),
        (attributes_without_reader, "<p data-on-top>", "", "[data-on-top] { color: red }", set()),
        (attributes_without_writer, "", "e.dataset.onTop", "", {"on-top"}),
        (attributes_without_writer, "", "e.dataset.onTop; e.dataset.onTop = 1", "", set()),
        (attributes_without_writer, "", "", "p[data-dark] { color: red }", {"dark"}),
        (classes_without_reader, '<p class="a{% if b %} c{% endif %} d{{ e }}">', "", ".a { }", {"c"}),
        (classes_without_writer, '<p class="a c{{ e }}">', "", ".a .c1 { } .d { }", {"d"}),
    ],
)
def test_hook_with_one_end_is_found(check, page, script, style, found):
    assert check({"a.html": page, "b.js": script, "c.css": style}) == found
