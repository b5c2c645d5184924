"""Read the wishes of a model and add them to a space.

A place is a word over y and n, the answers from the root; y is left. 'ask' requires a branch at its place. 'forbid', 'avoid',
'together', 'leaf' and 'depth' apply only if the tree has their place. See docs/proof-format.md, "Wishes".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trainer.check.proof.model import Model, ModelTable
from trainer.check.proof.subject import ProofConstraint


def number_questions(
    wishes: Sequence[ProofConstraint], encoded: int, rows: ModelTable
) -> tuple[tuple[ProofConstraint, ...], list[ProofConstraint]]:
    """Return the wishes with the numbers of their questions, and one wish for each of these questions.

    A wish that leaves the side of empty cells open has two questions. The first is the one to which empty cells answer no.
    """
    question_wishes: dict[Any, ProofConstraint] = {}
    numbers: dict[Any, int] = {}
    numbered_wishes = []
    for w in wishes:
        sided = _with_sides(w, rows) if w.verb == "ask" and w.split is not None else []
        for one in sided:
            key = one.column, one.split, one.empty
            question_wishes.setdefault(key, one)
            numbers.setdefault(key, encoded + len(numbers))
        numbered_wishes.append(replace(w, numbers=tuple(numbers[one.column, one.split, one.empty] for one in sided)))
    return tuple(numbered_wishes), list(question_wishes.values())


def _with_sides(wish: ProofConstraint, rows: ModelTable) -> list[ProofConstraint]:
    open_side = wish.empty is None and wish.split is not None and wish.split[0] in ("<=", "between")
    if open_side and np.isnan(rows.columns[wish.column]).any():
        return [replace(wish, empty=answer) for answer in (False, True)]
    return [wish]


def with_separating_questions(
    wish: ProofConstraint, X: np.ndarray, columns: np.ndarray, rows: np.ndarray
) -> ProofConstraint:
    """Return the wish with the questions about its column that separate `rows`; X is bool of shape (n, m)."""
    parts = X[rows].any(axis=0) & ~X[rows].all(axis=0) & (columns == wish.column)
    return replace(wish, separating=tuple(np.flatnonzero(parts).tolist()))


def wishes_of(model: Model) -> list[ProofConstraint]:
    """Read the wishes of the certificate; raise ValueError or LookupError if one cannot be read."""
    return [_parse_wish(str(record["wish"]), model) for record in model["certificate"].get("wishes") or ()]


def _parse_wish(text: str, model: Model) -> ProofConstraint:
    verb, place, tail = (*text.split(None, 2), "")[:3]
    tail = tail.strip()
    wish = ProofConstraint(text, verb, "" if place == "root" else place)
    names = [c["name"] for c in model["columns"]]
    classes = model["classes"]
    if set(wish.place) - {"y", "n"}:
        raise ValueError(f"the wish {text[:80]!r} has a place that is neither 'root' nor made of y and n")
    if verb in ("forbid", "avoid") or (verb == "ask" and tail in names):
        return replace(wish, column=names.index(tail))
    if verb == "leaf":
        return replace(wish, label=classes.index(tail) if tail else -1)
    if verb == "depth":
        return replace(wish, height=int(tail))
    for name in sorted(names, key=len, reverse=True):
        if verb in ("ask", "together") and tail.startswith(name + " "):
            question, empty = _empty_answer(tail[len(name) :].strip())
            split = _split(question, model["columns"][names.index(name)])
            if split is not None and (verb == "ask" or split[0] == "in"):
                return replace(wish, column=names.index(name), split=split, empty=empty)
    raise ValueError(f"the wish {text[:80]!r} names no question")


def _empty_answer(tail: str) -> tuple[str, bool | None]:
    """Split off the answer of empty cells from the text of a numeric question; None without one."""
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
    category_text = tail[3:].strip()
    categories = column.get("categories") or []
    parts = [category_text] if category_text in categories else [part.strip() for part in category_text.split("|")]
    return ("in", frozenset(parts)) if tail.startswith("in ") else None


def wish_answers(wish: ProofConstraint, model: Model, rows: ModelTable) -> np.ndarray:
    """Return the answers of the rows to the question of a wish, bool of shape (n,)."""
    assert wish.split is not None
    kind, value = wish.split
    values = rows.columns[wish.column]
    if kind == "in":
        categories = model["columns"][wish.column]["categories"]
        return np.isin(values, [categories.index(name) for name in value])
    if kind == "missing":
        return np.isnan(values)
    yes = (values > value[0]) & (values <= value[1]) if kind == "between" else values <= value
    return np.where(np.isnan(values), bool(wish.empty), yes)
