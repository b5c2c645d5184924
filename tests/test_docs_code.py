"""Commands in the documentation exist with their options, and the Python of the first pages runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import CommandError

from tests.conftest import ROOT
from tests.docs_code_cases import NEED_A_SERVER, commands, fences
from tests.processes import manage

DOCS = ROOT / "docs"
# written for a reader to type as they are
TYPED = ("index", "which-method", "how-we-know", "argue", "explain-a-decision", "approve", "call", "tutorial")
PYTHON_PAGES = ("README.md", "docs/how-we-know.md", "docs/library.md")
RUN_IN_ORDER = [
    "README.md",
    *(
        f"docs/{name}.md"
        for name in ("index", "install", "which-method", "how-we-know", "argue", "explain-a-decision", "approve")
    ),
]
# packages of the test environment that the wheel does not bring
WITHOUT_EXTRAS = """
import sys
class NoExtras:
    def find_spec(name, path=None, target=None):
        if name in {"pandas", "polars", "plotly", "matplotlib", "tqdm", "onnx", "gurobipy"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoExtras)
"""


def parser_of(name: str):
    """Return the parser of a command. Raises KeyError if there is none."""
    return load_command_class(get_commands()[name], name).create_parser("octweb", name)


PAGES = sorted({ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_exist_with_their_options(page):
    wrong = []
    for name, *words in commands(page):
        if name not in get_commands():
            wrong.append(name)
            continue
        known = parser_of(name)._option_string_actions
        said = [re.match(r"\[?(--[a-z-]+)", word) for word in words]
        wrong += [f"{name} {m[1]}" for m in said if m and m[1] not in known and m[1] != "--data"]
    assert wrong == []


@pytest.mark.parametrize("page", TYPED)
def test_commands_to_type_are_complete(page):
    wrong = []
    parsed = 0
    for name, *words in commands(DOCS / f"{page}.md"):
        try:
            parser_of(name).parse_args(words)
            parsed += 1
        except CommandError as error:
            wrong.append(f"{name} {' '.join(words)}: {error}")
    assert wrong == []
    assert parsed, "no command was found on this page"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (".venv/bin/python manage.py train a.csv --target b   # said", ["train", "a.csv", "--target", "b"]),
        ("trees/bin/octweb serve", ["serve"]),
        ("PORT=1 manage.py rules 'a b.json' | head", ["rules", "a b.json"]),
        ("trees/bin/python -m pip install octweb-1.whl", None),
    ],
)
def test_a_command_is_recognised(tmp_path, line, words):
    page = tmp_path / "page.md"
    page.write_text(f"```\n{line}\n```\n")
    assert list(commands(page)) == ([words] if words else [])


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN_IN_ORDER)
def test_commands_of_a_page_run_in_order(page, tmp_path):
    """All commands of a page, typed one after the other in an empty folder."""
    ran = 0
    for words in commands(ROOT / page):
        if words[0] not in NEED_A_SERVER:
            done = manage(*words, folder=tmp_path)
            assert done.returncode == 0, f"{words}: {done.stderr}"
            assert done.stdout or "--output" in words, words
            ran += 1
    assert ran, "no command of this page ran"


@pytest.mark.slow
def test_first_explanation_shows_a_change(tmp_path):
    """The first `explain` of the page names a smallest change."""
    for words in commands(DOCS / "explain-a-decision.md"):
        done = manage(*words, folder=tmp_path)
        if words[0] == "explain":
            break
    assert "The smallest change: the answer would be virginica" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("page", PYTHON_PAGES)
def test_python_of_a_page_runs_without_extras(page, tmp_path):
    """All blocks of a page in their order, without packages that the wheel does not bring."""
    blocks = list(fences(ROOT / page, {"python"}))
    assert blocks
    code = (
        WITHOUT_EXTRAS
        + "".join(blocks)
        + "assert tree.certificate_.status in ('optimal', 'heuristic'), tree.certificate_.status\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr


@pytest.mark.slow
def test_commands_of_contributing_work():
    """Each pytest target and each tool of the page exists; ruff passes."""
    lines = [line for code in fences(ROOT / "CONTRIBUTING.md", {""}) for line in code.splitlines()]
    assert lines
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in lines:
        program, *words = shlex.split(line)
        if program == "make":
            assert f"{words[0].replace('.venv', '$(VENV)')}:" in targets, line
        elif words[:2] == ["-m", "pytest"]:
            command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *words[2:]]
            assert subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0, line
        else:
            command = [str(Path(sys.executable).with_name(Path(program).name)), *words]
            assert subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0, line
