"""Documentation that is missing or stale fails here."""

from __future__ import annotations

import re

import pytest

from docs.modules import made
from tests.conftest import ROOT
from trainer.methods import METHODS
from trainer.reference import page_with_table

DOCS = ROOT / "docs"


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.id)
def test_every_method_has_a_page_with_todays_parameters(method):
    page = (DOCS / "methods" / f"{method.id}.md").read_text(encoding="utf-8")
    assert page == page_with_table(page, method), "stale; run `manage.py methods --write docs/methods`"


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.id)
def test_the_readme_lists_every_method(method):
    assert f"| `{method.id}` |" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_setting_is_documented():
    code = (ROOT / "octweb" / "settings.py").read_text(encoding="utf-8")
    names = set(re.findall(r'"((?:OCTWEB_)[A-Z_]+)"', code))
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    assert sorted(name for name in names if f"`{name}`" not in page) == []


def test_links_of_the_documentation_lead_somewhere():
    broken = []
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http:", "https:")) and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def test_no_path_of_a_machine_and_no_unfinished_mark():
    marks = re.compile(r"(?<![\w./])/(?:home|root|work)/\w|\bTO" + r"DO\b|\bFIX" + r"ME\b")
    found = []
    for folder in ("trainer", "octweb", "templates", "static", "docs", "benchmarks"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".html", ".js", ".css", ".md"} and "min.js" not in path.name:
                text = path.read_text(encoding="utf-8", errors="replace")
                found += [f"{path.relative_to(ROOT)}: {m.group()}" for m in marks.finditer(text)]
    assert found == []


@pytest.mark.parametrize("path", made(), ids=lambda path: path.name)
def test_the_graph_of_modules_is_todays(path):
    assert path.read_text(encoding="utf-8") == made()[path], "stale; run `python -m docs.modules`"
