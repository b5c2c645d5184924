"""The wishes of a tree from the workbench: read from their text, looked for in the tree, and as parts of a space.

A place is a word over y and n, the answers from the root; y is left. 'ask' demands a branch at its place; 'forbid', 'avoid', 'together',
'leaf' and 'depth' bind where the tree has their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trainer.check.proof.model import Model, ModelTable
from trainer.check.proof.subject import ProofConstraint


def numbered(
    wishes: Sequence[ProofConstraint], encoded: int, rows: ModelTable
) -> tuple[tuple[ProofConstraint, ...], list[ProofConstraint]]:
    """The wishes with the numbers of their questions, and one wish for each such question.

    A wish that leaves the side of empty cells open has two questions, first the one to which they answer no.
    """
    named: dict[Any, ProofConstraint] = {}
    place: dict[Any, int] = {}
    made = []
    for w in wishes:
        asked = _with_sides(w, rows) if w.verb == "ask" and w.split is not None else []
        for one in asked:
            key = one.column, one.split, one.empty
            named.setdefault(key, one)
            place.setdefault(key, encoded + len(place))
        made.append(replace(w, numbers=tuple(place[one.column, one.split, one.empty] for one in asked)))
    return tuple(made), list(named.values())


def _with_sides(wish: ProofConstraint, rows: ModelTable) -> list[ProofConstraint]:
    open_side = wish.empty is None and wish.split is not None and wish.split[0] in ("<=", "between")
    if open_side and np.isnan(rows.columns[wish.column]).any():
        return [replace(wish, empty=answer) for answer in (False, True)]
    return [wish]


def with_parted(wish: ProofConstraint, X: np.ndarray, columns: np.ndarray, rows: np.ndarray) -> ProofConstraint:
    """The wish with the questions about its column that give `rows` (bool) both answers; X bool (n, m)."""
    parts = X[rows].any(axis=0) & ~X[rows].all(axis=0) & (columns == wish.column)
    return replace(wish, parted=tuple(np.flatnonzero(parts).tolist()))


def wishes_of(model: Model) -> list[ProofConstraint]:
    """The wishes of the certificate; raises ValueError or LookupError if one cannot be read."""
    return [_parse_wish(str(record["wish"]), model) for record in model["certificate"].get("wishes") or ()]


def _parse_wish(text: str, model: Model) -> ProofConstraint:
    verb, place, tail = (*text.split(None, 2), "")[:3]
    tail = tail.strip()
    own = ProofConstraint(text, verb, "" if place == "root" else place)
    names = [c["name"] for c in model["columns"]]
    classes = model["classes"]
    if set(own.place) - {"y", "n"}:
        raise ValueError(f"the wish {text[:80]!r} is not understood")
    if verb in ("forbid", "avoid") or (verb == "ask" and tail in names):
        return replace(own, column=names.index(tail))
    if verb == "leaf":
        return replace(own, label=classes.index(tail) if tail else -1)
    if verb == "depth":
        return replace(own, height=int(tail))
    for name in sorted(names, key=len, reverse=True):
        if verb in ("ask", "together") and tail.startswith(name + " "):
            question, empty = _empty_answer(tail[len(name) :].strip())
            split = _split(question, model["columns"][names.index(name)])
            if split is not None and (verb == "ask" or split[0] == "in"):
                return replace(own, column=names.index(name), split=split, empty=empty)
    raise ValueError(f"the wish {text[:80]!r} names no question")


def _empty_answer(tail: str) -> tuple[str, bool | None]:
    """The text of a question of numbers, and the answer of empty cells that it ends with, None without one."""
    if tail.startswith(("<=", "between ")):
        for word, answer in ((" empty yes", True), (" empty no", False)):
            if tail.endswith(word):
                return tail.removesuffix(word), answer
    return tail, None


def _split(tail: str, column: Model) -> tuple[str, Any] | None:
    if tail == "is empty":
        return "missing", None
    if tail.startswith("<="):
        return "<=", float(tail[2:])
    if tail.startswith("between "):
        low, high = map(float, tail[8:].split(" and "))
        return "between", (low, high)
    named = tail[3:].strip()
    known = column.get("categories") or []
    parts = [named] if named in known else [part.strip() for part in named.split("|")]
    return ("in", frozenset(parts)) if tail.startswith("in ") else None


def answers(wish: ProofConstraint, model: Model, rows: ModelTable) -> np.ndarray:
    """The answers of the rows to the question that a wish names."""
    assert wish.split is not None
    values, (kind, value) = rows.columns[wish.column], wish.split
    if kind == "in":
        known = model["columns"][wish.column]["categories"]
        return np.isin(values, [known.index(name) for name in value])
    if kind == "missing":
        return np.isnan(values)
    yes = (values > value[0]) & (values <= value[1]) if kind == "between" else values <= value
    return np.where(np.isnan(values), bool(wish.empty), yes)
