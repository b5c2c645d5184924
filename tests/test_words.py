"""The texts that people read are plain English: the worst habits, which a pattern can find, do not come back."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT

FOLDERS = ("trainer", "octweb", "templates", "docs", "benchmarks", "checker", "deploy", "static")
SUFFIXES = {".py", ".html", ".txt", ".md", ".js", ".mjs"}
NOUN = (
    r"(?:row|column|leaf|node|run|method|case|fold|split|line|call|file|class|pair|level|question|feature|table|cell|set|round|model|user"
    r"|request|category|depth|instance|point|label|process|session|tree|variant|worker|page|path|job|data set)"
)
UNIT = r"(?:bytes|bits|seconds|minutes|ms|MB|megabytes|thresholds|categories|points|coefficients)"
WORDS = {  # what to write: what not to write
    "is not an X, or there is no X": r"(?<!here )\b(?:is|are|was|were) no (?!longer|more|less|fewer|better|worse|larger|smaller|already|other)\w+",
    "one per row": rf"\b(?:(?<!without )one|one (?!is |of |in |over |on |by |as |if |side )\w+|[0-9]+ {UNIT}|{UNIT}|[a-z]+ {UNIT}) an? {NOUN}\b(?! (?:has|is|asks|can|may|of|that|with)\b)",
    "once per row": rf"\bonce an? {NOUN}\b(?! \w+s\b| is\b)",
    "the subject first": r"\b(?:may|can|must|should|does|do) (?:they|he|she) \w+|(?<=[.;] )(?:Never|Nor|Neither|Nowhere|Rarely|Seldom) (?:is|are|does|do|has|have|can|may)\b",
    "a plain relative clause": r"\b(?:that which|that of which|thereof|whereof|wherein|therein|whereby|thereupon|whence|whose own)\b",
    "appears twice": r"\bstands? (?:twice|[0-9]+ times)\b",
    "except for": r"(?<!,) \b(?:but|save) for (?=[a-z`])",
    "for lack of": r"\bfor want of\b",
    "again": r"\banew\b",
    "is about, refers to": r"\b(?:speaks?|speaking) of\b",
}
BAD = {
    "is not an X, or there is no X": ["The file is no table.", "weights that are no integers"],
    "one per row": [
        "one object a row, column → value",
        "32 bits a row over the columns",
        "4 thresholds a column",
        "120 seconds a method",
    ],
    "once per row": ["sorted once a pair"],
    "the subject first": ["how far from it may they be", "It is killed. Never is a run lost."],
    "a plain relative clause": ["or in that which its first bytes tell", "a node whose own bound"],
    "appears twice": ["a name stands twice in it", "the header stands 3 times"],
    "except for": ["read-only but for `/data`"],
    "for lack of": ["for want of memory"],
    "again": ["the planes are drawn anew"],
    "is about, refers to": ["The claim speaks of the training rows."],
}
GOOD = [
    "There is no such column.", "It is no longer served.", "Choose one a tree can use; once a tree is chosen it stays.", "the points a leaf has",
    "one row per case", "What does it do? They may wait.", "not for want", "It is good, but for each row it takes long.",
]  # fmt: skip


def found(text: str) -> list[str]:
    """What to write instead, for each bad habit in a line."""
    return [f"{m.group()!r}: write {better!r}" for better, bad in WORDS.items() for m in re.finditer(bad, text)]


def test_texts_are_plain():
    places = [ROOT / "README.md"]
    for folder in FOLDERS:
        places += [p for p in (ROOT / folder).rglob("*") if p.suffix in SUFFIXES and "vendor" not in p.parts]
    wrong = []
    for path in places:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            wrong += [f"{path.relative_to(ROOT)}:{number}: {said}" for said in found(line)]
    assert wrong == []


@pytest.mark.parametrize("better", WORDS)
def test_each_habit_is_found(better):
    assert all(any(better in said for said in found(line)) for line in BAD[better])


def test_plain_lines_pass():
    assert [said for line in GOOD for said in found(line)] == []
