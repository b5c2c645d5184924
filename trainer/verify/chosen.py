"""The columns that a claim of `odt` is about where the data chose them: its scope lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from trainer.verify.findings import asked

BEFORE = re.compile(
    r" columns, numeric ones in at most [0-9]+ bins, no other columns than (?:those that a CART tree uses )?\("
)
MOST_STEPS = 100_000


def chosen_columns(model: dict[str, Any]) -> list[bool] | None:
    """For each column whether the claim is about it, all True where nothing chose; None if the scope does not say so in one way only.

    A name may have a comma or a bracket in it, so that a list might be read in two ways.
    """
    if model["method"] != "odt" or asked(model, "select") is None:
        return [True] * len(model["columns"])
    said = str(model["certificate"].get("scope") or "")
    start = BEFORE.search(said)
    if start is None:
        return None
    names = [str(column["name"]) for column in model["columns"]]
    ways = []
    for step, way in enumerate(_ways(said[start.end() :], names)):
        if way is not None:
            ways.append(set(way))
        if step > MOST_STEPS or len(ways) > 1:
            return None
    return [j in ways[0] for j in range(len(names))] if ways else None


def _ways(text: str, names: Sequence[str]) -> Iterator[tuple[int, ...] | None]:
    """Every list of columns, in their order, that the text begins with and a bracket closes; None for each attempt that ends otherwise."""
    if text == ")" or text.startswith("), "):
        yield ()
    stack: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    while stack:
        at, way = stack.pop()
        for j in range(way[-1] + 1 if way else 0, len(names)):
            end = at + len(names[j])
            if not text.startswith(names[j], at):
                continue
            if text[end:] == ")" or text.startswith("), ", end):
                yield (*way, j)
            if text.startswith(", ", end):
                stack.append((end + 2, (*way, j)))
        yield None
