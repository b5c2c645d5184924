"""The texts of the project avoid words that are not plain English."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT

FOLDERS = ("trainer", "octweb", "templates", "docs", "benchmarks", "checker", "deploy", "static")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
SUFFIXES = {".py", ".html", ".txt", ".md", ".js", ".mjs"}
# what to write → pattern of what not to write, and an example
WORDS = {
    "a plain relative clause": (
        r"\b(?:that which|thereof|whereof|wherein|therein|whereby|thereupon|whence)\b",
        "whereby",
    ),
    "appears twice": (r"\bstands? (?:twice|[0-9]+ times)\b", "the header stands 3 times"),
    "for lack of": (r"\bfor want of\b", "for want of memory"),
    "again": (r"\banew\b", "drawn anew"),
}


def find_words(text: str) -> list[str]:
    """Return the replacement for each such word of a text."""
    return [f"{m.group()!r}: write {better!r}" for better, (bad, _) in WORDS.items() for m in re.finditer(bad, text)]


def test_texts_use_plain_words():
    paths = [ROOT / page for page in PAGES]
    for folder in FOLDERS:
        paths += [p for p in (ROOT / folder).rglob("*") if p.suffix in SUFFIXES and "vendor" not in p.parts]
    wrong = []
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            wrong += [f"{path.relative_to(ROOT)}:{number}: {message}" for message in find_words(line)]
    assert wrong == []


@pytest.mark.parametrize("better", WORDS)
def test_each_word_is_found_in_its_example(better):
    assert better in find_words(WORDS[better][1])[0]


def test_changelog_is_short_and_has_short_lines():
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    assert [line for line in lines if len(line) > 120] == []
    assert [
        line
        for line in lines
        if line.startswith("## ") and not re.fullmatch(r"## \d+\.\d+\.\d+ – \d{4}-\d\d-\d\d", line)
    ] == []
