"""Change single fields of the lines of a proof."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[4]
REASONS = ("floor", "count", "split", "similar", "cases", "within")
Line = dict[str, Any]


def changed_lines(line: Line) -> Iterator[Line]:
    """Yield the line with one field changed: smaller, larger, shorter, longer, another reason, or without the field."""
    for name, value in line.items():
        values: list[Any] = []
        if name == "by":
            values = [by for by in REASONS if by != value]
        elif isinstance(value, int):
            values = [value + change for change in (-1, 1, 7)]
        elif isinstance(value, list) and all(isinstance(v, int) for v in value):
            values = [[*value, 0], *(value[:i] + value[i + 1 :] for i in range(len(value)))]
            values += [[*value[:i], value[i] ^ 1, *value[i + 1 :]] for i in range(len(value))]
        yield from ({**line, name: other} for other in values)
        yield {key: other for key, other in line.items() if key != name}


def changed_proofs(lines: list[Line]) -> Iterator[list[Line]]:
    """Yield proofs with one changed field, or without one line; the fields of `lines` in a header, too."""
    for k, line in enumerate(lines):
        for other in changed_lines(line):
            yield [*lines[:k], other, *lines[k + 1 :]]
        for i, part in enumerate(line.get("lines") or ()):
            for other in changed_lines(part):
                parts = [*line["lines"][:i], other, *line["lines"][i + 1 :]]
                yield [*lines[:k], {**line, "lines": parts}, *lines[k + 1 :]]
        if k:
            yield [*lines[:k], *lines[k + 1 :]]


def page_verdicts(cases: list[tuple[str, str, str]]) -> list[list[tuple[bool | None, str]]]:
    """Return what the page says of each case of model, proof and data."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    command = [node, str(ROOT / "tests/trainer/check/proof/proof_cases.mjs"), str(ROOT / "checker/check_octweb.html")]
    process = subprocess.run(command, input=json.dumps(cases), capture_output=True, text=True, check=True, timeout=600)
    said: list[list[tuple[bool | None, str]]] = json.loads(process.stdout)
    return said


def page(cases: list[tuple[str, str, str]]) -> list[bool]:
    """Return whether the page accepts each case."""
    return [all(holds for holds, _ in said) for said in page_verdicts(cases)]
