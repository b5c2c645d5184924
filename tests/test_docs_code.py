"""What the documentation tells a reader to type: commands exist with their options, and the Python of the first pages runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import CommandError

from tests.conftest import ROOT

DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|\s)(?:\S*bin/)?(?:octweb|(?:\S*python\S* )?(?:\S*/)?manage\.py) (?P<rest>[a-z].*)$")
# written for a reader to type as they are
TYPED = ("index", "which-method", "how-we-know", "argue", "explain-a-decision", "approve", "call")
RUN = ("index", "how-we-know")


def fences(page: Path, languages: set[str]) -> Iterator[str]:
    """The code of the fenced blocks in one of these languages."""
    for block in FENCE.finditer(page.read_text(encoding="utf-8")):
        if block["language"] in languages:
            yield block["code"]


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each command of octweb in the page's blocks, without the program."""
    for code in fences(page, {"", "sh", "bash", "shell", "text"}):
        for line in code.replace("\\\n", " ").splitlines():
            found = COMMAND.search(re.sub(r"\s#.*$", "", line))
            if found:
                yield shlex.split(re.split(r"\s(?:\||>|&)\s?", found["rest"])[0])


def parser_of(name: str):
    """The parser of a command; raises KeyError where there is none."""
    return load_command_class(get_commands()[name], name).create_parser("octweb", name)


PAGES = sorted({ROOT / "README.md", *DOCS.rglob("*.md")})


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
    wrong, parsed = [], 0
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


@pytest.mark.parametrize("page", RUN)
def test_python_of_a_page_runs(page):
    """All blocks of a page in their order, as a reader would type them."""
    blocks = list(fences(DOCS / f"{page}.md", {"python"}))
    assert blocks
    names: dict[str, object] = {}
    for code in blocks:
        exec(compile(code, f"docs/{page}.md", "exec"), names)
    assert names["tree"].certificate_.status == "optimal"
