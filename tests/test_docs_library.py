"""The library reference is up to date, complete, and covers all imports on other pages and in notebooks."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator

import pytest

import trainer
from docs import library
from tests.conftest import ROOT

DOCS = ROOT / "docs"
IMPORT = re.compile(r"^ *from ((?:trainer|octweb)[\w.]*) import \(?([\w, ]+)", re.MULTILINE)
INSIDE = {"adding.md", "architecture.md", "modules.md", "decisions.md"}  # for those who change the library itself


@pytest.fixture(scope="module")
def page() -> str:
    return library.PAGE.read_text(encoding="utf-8")


def test_generated_page_is_current(page):
    assert page == library.build_page(), "stale; run `python -m docs.library`"


def test_reference_lists_all_names_of_trainer(page):
    """`dir(trainer)` has its names and the classifiers of all methods, which a table links to their methods."""
    for name in dir(trainer):
        getattr(trainer, name)
        assert f"### `{name}`\n" in page or re.search(rf"^\| `{name}` \| \[`[\w-]+`\]\(methods/", page, re.MULTILINE), (
            name
        )


@pytest.mark.parametrize("module", library.MODULES)
def test_every_public_name_of_a_module_is_explained(page, module):
    part = page.partition(f"\n## {module}\n")[2].partition("\n## ")[0]
    assert part, module
    explained = set(re.findall(r"^- `(\w+)`: \S", part.partition("\n### Exceptions\n")[2], re.MULTILINE))
    for name in library.names_of(module):
        if library.is_exception(getattr(importlib.import_module(module), name)):
            assert name in explained
            continue
        text = part.partition(f"### `{name}`\n")[2].partition("\n### ")[0]
        assert re.search(r"^[A-Za-z`][^`\n]*\w", re.sub(r"^`[^\n]*`$", "", text.strip(), flags=re.MULTILINE).strip()), (
            name
        )
        assert re.findall(r"^- `[^`]*`$", text, re.MULTILINE) == [], name  # members without a description


def imports() -> Iterator[tuple[str, str, str]]:
    """Yield file, module and name of every import from the library that a page or a notebook shows."""
    for path in [ROOT / "README.md", *DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]:
        if path.name in INSIDE:
            continue
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
        for module, names in IMPORT.findall(text):
            # `octweb` offers the names of `trainer`
            named = "trainer" if module == "octweb" else module
            yield from ((path.name, named, name.split()[0]) for name in names.split(",") if name.strip())


def test_imports_in_docs_and_notebooks_are_public():
    found = list(imports())
    assert len(found) > 5
    strange = []
    for file, module, name in found:
        inner = f"{module}.{name}"
        if inner not in library.MODULES and name not in (*library.MODULES.get(module, ()), *public(module)):
            strange.append(f"{file}: from {module} import {name}")
    assert strange == []


def public(module: str) -> list[str]:
    return library.names_of(module) + (dir(trainer) if module == "trainer" else []) if module in library.MODULES else []
