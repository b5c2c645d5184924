"""The wishes of a tree from the workbench: read from their text, looked for in the tree, and as parts of a space.

A place is a word over y and n, the answers from the root; y is left. 'ask' demands a branch at its place; 'forbid', 'avoid', 'together',
'leaf' and 'depth' bind where the tree has their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trainer.verify.model import Rows
from trainer.verify.subject import Wish


def numbered(wishes: Sequence[Wish], encoded: int) -> tuple[tuple[Wish, ...], list[Wish]]:
    """The wishes with the numbers of their questions, and one wish for each such question."""
    named: dict[Any, Wish] = {}
    for w in wishes:
        if w.verb == "ask" and w.split is not None:
            named.setdefault((w.column, w.split), w)
    place = {key: encoded + i for i, key in enumerate(named)}
    own = tuple(
        replace(w, number=place[w.column, w.split]) if w.verb == "ask" and w.split is not None else w for w in wishes
    )
    return own, list(named.values())


def with_parted(wish: Wish, X: np.ndarray, columns: Sequence[int], rows: np.ndarray) -> Wish:
    """The wish with the questions about its column that give `rows` (bool) both answers; X bool (n, m)."""
    own = [q for q, column in enumerate(columns) if column == wish.column and len(np.unique(X[rows, q])) > 1]
    return replace(wish, parted=tuple(own))


def wishes_of(model: dict[str, Any]) -> list[Wish]:
    """The wishes of the certificate; raises ValueError or LookupError if one cannot be read."""
    return [_read(str(record["wish"]), model) for record in model["certificate"].get("wishes") or ()]


def _read(text: str, model: dict[str, Any]) -> Wish:
    verb, place, *rest = text.split(None, 2)
    tail = rest[0].strip() if rest else ""
    word = "" if place == "root" else place
    if set(word) - {"y", "n"} or verb not in ("ask", "forbid", "avoid", "together", "leaf", "depth"):
        raise ValueError(f"the wish {text[:80]!r} is not understood")
    names = [c["name"] for c in model["columns"]]
    if verb in ("forbid", "avoid"):
        return Wish(text, verb, word, names.index(tail))
    if verb == "leaf":
        if tail and tail not in model["classes"]:
            raise ValueError(f"the wish {text[:80]!r} names no class")
        return Wish(text, verb, word, label=model["classes"].index(tail) if tail else -1)
    if verb == "depth":
        return Wish(text, verb, word, height=int(tail))
    if tail in names and verb == "ask":
        return Wish(text, verb, word, names.index(tail))
    for j in sorted(range(len(names)), key=lambda j: -len(names[j])):
        if tail.startswith(names[j] + " "):
            split = _split(tail[len(names[j]) :].strip(), model["columns"][j])
            if split is not None and (verb == "ask" or split[0] == "in"):
                return Wish(text, verb, word, j, split)
    raise ValueError(f"the wish {text[:80]!r} names no question")


def _split(tail: str, column: dict[str, Any]) -> tuple[str, Any] | None:
    if tail.startswith("<="):
        return "<=", float(tail[2:])
    if tail.startswith("between "):
        low, high = tail[8:].split(" and ")
        return "between", (float(low), float(high))
    if tail.startswith("in "):
        named = tail[3:].strip()
        known = column.get("categories") or []
        return "in", frozenset([named] if named in known else (part.strip() for part in named.split("|")))
    return None


def answers(wish: Wish, model: dict[str, Any], rows: Rows) -> np.ndarray:
    """The answers of the rows to the question that a wish names."""
    assert wish.split is not None
    values, (kind, value) = rows.columns[wish.column], wish.split
    if kind == "in":
        known = model["columns"][wish.column]["categories"]
        return np.isin(values, [known.index(name) for name in value])
    if kind == "between":
        return (values > value[0]) & (values <= value[1])
    return values <= value
