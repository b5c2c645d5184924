"""The documentation is complete and up to date."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from docs.modules import build_files
from docs.pictures import FOLDER, WALKS, picture_names
from tests.browser.pictures import MOST_BYTES
from tests.conftest import ROOT
from trainer.registry import METHODS
from trainer.training.method_pages import (
    SHARED_PAGE,
    model_path,
    page_with_shared_table,
    page_with_table,
    page_with_tree,
    picture,
    shared_rows,
)
from trainer.tree.file import read_model

DOCS = ROOT / "docs"
STALE = "stale; run `manage.py methods --write docs/methods`"


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.id)
def test_every_method_has_a_page_with_todays_parameters(method):
    page = (DOCS / "methods" / f"{method.id}.md").read_text(encoding="utf-8")
    assert page == page_with_table(page, method), STALE


def test_page_of_shared_parameters_is_of_today():
    page = (DOCS / "methods" / SHARED_PAGE).read_text(encoding="utf-8")
    assert page == page_with_shared_table(page), STALE


def test_each_parameter_is_explained_once_or_on_the_shared_page():
    shared = (DOCS / "methods" / SHARED_PAGE).read_text(encoding="utf-8")
    rows = shared_rows()
    assert all(row in shared for row in rows)
    for method in METHODS:
        page = (DOCS / "methods" / f"{method.id}.md").read_text(encoding="utf-8")
        elsewhere = [row for row, ids in rows.items() if method.id in ids]
        rest = [p.name for p in method.parameters if f"`{p.name}`" not in page]
        assert [name for name in rest if not any(row.startswith(f"| `{name}` |") for row in elsewhere)] == []


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.id)
def test_every_method_shows_a_tree_and_its_paper(method):
    path = model_path(DOCS / "methods", method)
    page = (DOCS / "methods" / f"{method.id}.md").read_text(encoding="utf-8")
    model = read_model(path)
    assert model.method == method.id
    assert method.paper in page
    assert page == page_with_tree(page, method, model), STALE
    assert path.with_suffix(".svg").read_text(encoding="utf-8") == picture(model), STALE


def test_no_tree_is_left_of_a_method_that_is_gone():
    kept = {path.stem for path in (DOCS / "methods" / "trees").iterdir()}
    assert kept == {method.id for method in METHODS}


def test_every_page_is_in_the_navigation_of_the_site():
    """Also, every page of the navigation exists. A new page gets its line in mkdocs.yml."""
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert set(listed(config["nav"])) == pages


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: path.stem)
def test_each_page_begins_with_its_readers(path):
    title, _, first = path.read_text(encoding="utf-8").splitlines()[:3]
    assert title.startswith("# ")
    assert re.match(r"For [a-z].*[a-z]", first), first


def listed(nav: object) -> Iterator[str]:
    """Yield the pages of a navigation in the form of MkDocs."""
    if isinstance(nav, str):
        yield nav
    else:
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from listed(part)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.id)
def test_the_readme_lists_every_method(method):
    assert f"| `{method.id}` |" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_setting_is_documented():
    code = (ROOT / "octweb" / "settings.py").read_text(encoding="utf-8")
    names = set(re.findall(r'"((?:OCTWEB_)[A-Z_]+)"', code))
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    assert sorted(name for name in names if f"`{name}`" not in page) == []


def test_links_of_the_documentation_resolve():
    broken = []
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http:", "https:")) and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def test_every_results_page_is_linked_and_its_links_resolve():
    results = {path.name: path for path in (ROOT / "benchmarks" / "results").glob("*.md")}
    pages = "".join(path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md"))
    assert [name for name in results if f"benchmarks/results/{name})" not in pages] == []
    broken = []
    for path in results.values():
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8")):
            if not target.startswith(("http:", "https:")) and not (path.parent / target).exists():
                broken.append(f"{path.name}: {target}")
    assert broken == []


def lacking(text: str) -> list[str]:
    """Return the files and folders of the project that a page names in code marks and that do not exist."""
    matches = re.findall(
        r"`((?:trainer|octweb|tests|templates|benchmarks|tools|deploy|static|checker)/[\w./-]+)`", text
    )
    return [path for path in matches if not (ROOT / path).exists()]


def test_files_that_the_documentation_names_exist():
    """This excludes the files that the examples in adding.md create."""
    pages = {page: page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *DOCS.rglob("*.md")]}
    found = {page.relative_to(ROOT).as_posix(): lacking(text) for page, text in pages.items()}
    assert found.pop("docs/adding.md") == [
        "trainer/families/greedy/majority.py",
        "trainer/constraints/rules.py",
        "trainer/families/mip/side/rules.py",
    ]
    assert {page: paths for page, paths in found.items() if paths} == {}
    assert lacking("`trainer/training/run.py` and `trainer/no_such_file.py`") == ["trainer/no_such_file.py"]


def unknown(text: str) -> list[str]:
    """Return the modules and their members that a page names in code marks and that do not exist."""
    matches = re.findall(r"`((?:trainer|octweb|docs|tests|tools)(?:\.[a-zA-Z_]\w*)+)`", text)
    return [name for name in matches if not (_module(name) or _member(*name.rsplit(".", 1)))]


def _module(name: str) -> Path | None:
    place = ROOT / name.replace(".", "/")
    found = [path for path in (place / "__init__.py", place.with_suffix(".py")) if path.exists()]
    return found[0] if found else None


def _member(home: str, name: str) -> bool:
    """Return whether a module, or a class in one, has the name."""
    path = _module(home) or _module(home.rpartition(".")[0])
    return path is not None and re.search(rf"\b{name}\b", path.read_text(encoding="utf-8")) is not None


def test_modules_that_the_documentation_names_exist():
    pages = {page: page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *DOCS.rglob("*.md")]}
    found = {page.relative_to(ROOT).as_posix(): unknown(text) for page, text in pages.items()}
    assert found.pop("docs/demo.md") == ["octweb.demo.E001"]  # the name of a check of Django
    assert {page: names for page, names in found.items() if names} == {}
    assert unknown("`trainer.training.run.train`, `octweb.no_such`, `trainer.training.run.no_such`") == [
        "octweb.no_such",
        "trainer.training.run.no_such",
    ]


def test_architecture_names_every_part_and_app():
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    parts = [p for p in (ROOT / "trainer").iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()]
    parts += [p.parent for p in (ROOT / "octweb").glob("*/__init__.py")]
    assert [p.stem for p in parts if not p.name.startswith("_") and not re.search(rf"`{p.stem}/?`", page)] == []


def test_docs_have_no_machine_path_or_todo():
    marks = re.compile(r"(?<![\w./])/(?:home|root|work)/\w|\bTO" + r"DO\b|\bFIX" + r"ME\b")
    found = []
    for folder in ("trainer", "octweb", "templates", "static", "docs", "benchmarks"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".html", ".js", ".css", ".md"} and "min.js" not in path.name:
                text = path.read_text(encoding="utf-8", errors="replace")
                found += [f"{path.relative_to(ROOT)}: {m.group()}" for m in marks.finditer(text)]
    assert found == []


@pytest.mark.parametrize("path", build_files(), ids=lambda path: path.name)
def test_module_graph_is_current(path):
    assert path.read_text(encoding="utf-8") == build_files()[path], "stale; run `python -m docs.modules`"


def test_every_screenshot_is_small_and_made_by_a_walk():
    names = picture_names()
    assert sorted(path.stem for path in FOLDER.glob("*.webp")) == sorted(names)
    assert all((FOLDER / f"{name}.webp").stat().st_size <= MOST_BYTES for name in names)
    walks = "".join((ROOT / "tests" / "browser" / name).read_text(encoding="utf-8") for name in WALKS)
    made_by = [re.sub(r"\{[^}]*\}", "[a-z0-9-]+", text) for text in re.findall(r'picture\([^"]*f?"([^"]+)"', walks)]
    assert [name for name in names if not any(re.fullmatch(pattern, name) for pattern in made_by)] == []
