"""Every custom CSS property in use is defined, in both themes."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT
from tests.styles_cases import sources

STATIC = ROOT / "static"
DEFINED = re.compile(r"(?<![\w-])(--[a-z][\w-]*)\s*:")
# Templates and scripts complete some names, like var(--c{{ look }}). Such a name ends before the gap.
USED = re.compile(r"var\(\s*(--[a-z][\w-]*)\s*([),{]|\$\{)|getPropertyValue\(\s*[\"'](--[a-z][\w-]*)[\"']")


def used(text: str) -> set[str]:
    """Return the names that are used without a fallback value."""
    return {m[3] or m[1] for m in USED.finditer(text) if m[3] or m[2] == ")"}


def defined(text: str) -> set[str]:
    return set(DEFINED.findall(text))


def undefined(styles: dict[str, str], pages: dict[str, str]) -> list[str]:
    """Return 'file: --name' for each name that neither a style nor the file itself defines."""
    known = set().union(*(defined(text) for text in styles.values()))
    # A page may set a property that the style of its elements reads.
    known |= set().union(*(set(re.findall(r"(--[a-z][\w-]*):", text)) for text in pages.values()))
    return [f"{name}: {v}" for name, text in (styles | pages).items() for v in sorted(used(text) - known)]


def test_every_used_property_is_defined():
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sources()}
    styles = {name: text for name, text in texts.items() if name.endswith(".css")}
    pages = {name: text for name, text in texts.items() if name not in styles}
    assert sum(len(used(text)) for text in styles.values()) > 100
    assert undefined(styles, pages) == []


@pytest.mark.parametrize("rule", ["color: var(--accent);", "background: linear-gradient(var( --surface ), red)"])
def test_undefined_css_property_is_found(rule):
    styles = {"a.css": ":root { --ink: #000; } p { color: var(--ink); }", "b.css": f"a {{ {rule} }}"}
    assert len(undefined(styles, {"c.html": '<i style="--tint: var(--c{{ look }})">'})) == 1


def test_both_dark_themes_are_equal_and_define_no_new_name():
    blocks = re.findall(
        r"(:root[^{]*)\{((?:[^{}]|/\*.*?\*/)*)\}", (STATIC / "tokens.css").read_text(encoding="utf-8"), re.S
    )
    values = [dict(re.findall(r"(--[\w-]+):\s*([^;]+);", text)) for _, text in blocks]
    light, by_system, by_choice = values
    assert by_system == by_choice
    assert set(by_choice) < set(light)


def test_templates_are_short_enough_to_read():
    """A card above a certain size has a separate template."""
    pages = {path: path.read_text(encoding="utf-8").splitlines() for path in (ROOT / "templates").rglob("*.html")}
    assert [str(path) for path, lines in pages.items() if len(lines) > 125] == []
    assert [f"{path}:{i}" for path, lines in pages.items() for i, line in enumerate(lines, 1) if len(line) > 170] == []
