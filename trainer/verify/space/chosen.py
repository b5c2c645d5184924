"""The columns that a claim of `odt` is about where the data chose them: its scope lists them."""

from __future__ import annotations

import re

from trainer.verify.model import Model, asked

BEFORE = re.compile(
    r" columns, numeric ones in at most [0-9]+ bins, no other columns than (?:those that a CART tree uses )?\("
)
MOST_WAYS = 5000


def chosen_columns(model: Model) -> list[bool] | None:
    """For each column whether the claim is about it, all True where nothing chose; None if the scope does not say so in one way only.

    A name may have a comma or a bracket in it, so that a list might be read in two ways.
    """
    if model["method"] != "odt" or asked(model, "select") is None:
        return [True] * len(model["columns"])
    said = str(model["certificate"].get("scope") or "")
    start = BEFORE.search(said)
    if start is None:
        return None
    names, text = [str(column["name"]) for column in model["columns"]], said[start.end() :]

    def closed(end: int) -> bool:
        return text[end:] == ")" or text.startswith("), ", end)

    # lists that the text begins with, and where they end; those that a bracket closes
    ways, listed = [(0, frozenset[int]())], [frozenset[int]()] if closed(0) else []
    for j, name in enumerate(names):
        for at, way in list(ways):
            word = f", {name}" if way else name
            if text.startswith(word, at):
                ways.append((at + len(word), way | {j}))
                listed += [way | {j}] if closed(at + len(word)) else []
        if len(ways) > MOST_WAYS or len(listed) > 1:
            return None
    return [j in listed[0] for j in range(len(names))] if listed else None
