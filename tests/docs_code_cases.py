"""Cases and oracles of `test_docs_code.py` that other tests use, too."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

FENCE = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|\s)(?:\S*bin/)?(?:octweb|(?:\S*python\S* )?(?:\S*/)?manage\.py) (?P<rest>[a-z].*)$")
NEED_A_SERVER = ("serve", "audit", "token", "worker")  # these need the database of an installation


def fences(page: Path, languages: set[str]) -> Iterator[str]:
    """Yield the code of the fenced blocks in one of these languages."""
    for block in FENCE.finditer(page.read_text(encoding="utf-8")):
        if block["language"] in languages:
            yield block["code"]


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of each command of octweb in the page's blocks, without the program."""
    for code in fences(page, {"", "sh", "bash", "shell", "text"}):
        for line in code.replace("\\\n", " ").splitlines():
            match = COMMAND.search(re.sub(r"\s#.*$", "", line))
            if match:
                yield shlex.split(re.split(r"\s(?:\||>|&)\s?", match["rest"])[0])
