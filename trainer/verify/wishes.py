"""The wishes of a tree from the workbench: read from their text, looked for in the tree, and searched with again if that is small.

A place is a word over y and n, the answers from the root; y is left. 'ask' demands a branch at its place; 'forbid', 'leaf' and 'depth'
bind where the tree has their place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.verify.findings import Finding, asked, recounted
from trainer.verify.questions import questions
from trainer.verify.recount import penalty
from trainer.verify.rows import Rows
from trainer.verify.search import RESTRICTIONS, WORK, plain
from trainer.verify.structure import columns_of


@dataclass(frozen=True)
class Wish:
    """What a wish asks, seen from a place above it: `split` is the question of `ask`, None for any about the column."""

    text: str
    verb: str
    place: str
    column: int = -1
    split: tuple[str, Any] | None = None  # ("<=", value), ("in", categories), ("between", (low, high))
    label: str | None = None
    height: int = -1


def wishes_of(model: dict[str, Any]) -> list[Wish]:
    """The wishes of the certificate; raises ValueError or LookupError if one cannot be read."""
    return [_read(str(record["wish"]), model) for record in model["certificate"].get("wishes") or ()]


def _read(text: str, model: dict[str, Any]) -> Wish:
    verb, place, *rest = text.split(None, 2)
    tail = rest[0].strip() if rest else ""
    word = "" if place == "root" else place
    if set(word) - {"y", "n"} or verb not in ("ask", "forbid", "leaf", "depth"):
        raise ValueError(f"the wish {text[:80]!r} is not understood")
    names = [c["name"] for c in model["columns"]]
    if verb == "forbid":
        return Wish(text, verb, word, names.index(tail))
    if verb == "leaf":
        if tail and tail not in model["classes"]:
            raise ValueError(f"the wish {text[:80]!r} names no class")
        return Wish(text, verb, word, label=tail or None)
    if verb == "depth":
        return Wish(text, verb, word, height=int(tail))
    if tail in names:
        return Wish(text, verb, word, names.index(tail))
    for j in sorted(range(len(names)), key=lambda j: -len(names[j])):
        if tail.startswith(names[j] + " "):
            split = _split(tail[len(names[j]) :].strip(), model["columns"][j])
            if split is not None:
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


# -- kept by the tree --------------------------------------------------------------------------------------------------


def kept(model: dict[str, Any]) -> list[Finding]:
    """One finding for each wish: whether the tree keeps it."""
    return [recounted(f"wish '{w.text}'", *_holds(model, w)) for w in wishes_of(model)]


def _holds(model: dict[str, Any], wish: Wish) -> tuple[bool, str]:
    nodes, at = model["nodes"], 0
    for letter in wish.place:
        if "split" not in nodes[at]:
            return wish.verb != "ask", "The tree does not have this place."
        at = nodes[at]["left" if letter == "y" else "right"]
    node = nodes[at]
    if wish.verb == "ask":
        name = model["columns"][wish.column]["name"]
        if "split" not in node or columns_of(node["split"]) != [name]:
            return False, f"There is no question about '{name}' at this place."
        return wish.split is None or _is(node["split"], wish.split), "The question at this place was compared."
    if wish.verb == "leaf":
        own = node.get("class")
        return "split" not in node and wish.label in (None, own), f"There is a leaf of class '{own}' at this place."
    below = _below(nodes, at)
    if wish.verb == "depth":
        height = max(level for level, _ in below)
        return height <= wish.height, f"The part of the tree at this place has height {height}."
    name = model["columns"][wish.column]["name"]
    used = {column for _, v in below if "split" in v for column in columns_of(v["split"])}
    return name not in used, "Every question there and below was checked."


def _is(split: dict[str, Any], wanted: tuple[str, Any]) -> bool:
    kind, value = wanted
    if kind == "<=":
        return split["kind"] == "threshold" and split["threshold"] == value
    if kind == "in":
        return split["kind"] == "subset" and frozenset(split["categories"]) == value
    ends = (
        -math.inf if split.get("low") is None else split["low"],
        math.inf if split.get("high") is None else split["high"],
    )
    return split["kind"] == "interval" and ends == value


def _below(nodes: Sequence[dict[str, Any]], at: int, level: int = 0) -> list[tuple[int, dict[str, Any]]]:
    node = nodes[at]
    found = [(level, node)]
    if "split" in node:
        for side in ("left", "right"):
            found += _below(nodes, node[side], level + 1)
    return found


# -- searched again ----------------------------------------------------------------------------------------------------


def best(model: dict[str, Any], rows: Rows) -> tuple[Fraction | None, str]:
    """The best objective of all trees that keep the wishes, or None and the reason why it was not searched."""
    if restricted := [name for name in RESTRICTIONS if name != "forbidden" and asked(model, name) is not None]:
        return None, f"the trees were restricted ({restricted[0]})"
    search = _Search(model, rows)
    depth = min(int(model["parameters"]["depth"]), len(rows))
    if float(max(1, len(search.columns))) ** depth * len(rows) * len(model["classes"]) > WORK / 10:
        return None, "it is too large for a plain search with wishes"
    every = np.ones(len(rows), bool)
    cost = search.value(every, depth, frozenset(search.banned), tuple(wishes_of(model)))
    if cost is None:
        return Fraction(-1), "no tree keeps the wishes"
    n = int(rows.weights.sum())
    return (n - cost) / n, ""


class _Search:
    """The recursion over wishes, without any trick."""

    def __init__(self, model: dict[str, Any], rows: Rows) -> None:
        self.model, self.rows = model, rows
        encoded = questions(model, rows)
        self.columns = encoded.columns.tolist()
        self.answers = [self._turned(q, encoded.matrix[:, q]) for q in range(len(self.columns))]
        names = [c["name"] for c in model["columns"]]
        listed = str(asked(model, "forbidden") or "").split(";")
        self.banned = {names.index(name.strip()) for name in listed if name.strip()}
        self.Y = np.zeros((len(rows), len(model["classes"])))
        self.Y[np.arange(len(rows)), rows.labels] = rows.weights
        self.price = penalty(model) * int(rows.weights.sum())
        self.min_leaf = int(asked(model, "min_leaf") or 1)

    def _turned(self, q: int, answers: np.ndarray) -> np.ndarray:
        """The answers with yes on the left: numbers go left if they are small."""
        values = self.rows.columns[self.columns[q]]
        categorical = self.model["columns"][self.columns[q]]["kind"] == "categorical"
        return ~answers if not categorical and answers[values == values.max()].any() else answers

    def value(self, at: np.ndarray, height: int, banned: frozenset[int], wishes: tuple[Wish, ...]) -> Fraction | None:
        """errors + price * leaves, the least; None if no tree keeps the wishes."""
        here = [w for w in wishes if not w.place]
        banned = banned | {w.column for w in here if w.verb == "forbid"}
        height = min([height, *(w.height for w in here if w.verb == "depth")])
        wishes = tuple(w for w in wishes if w.place or w.verb in ("ask", "leaf"))
        asks = any(w.verb == "ask" for w in wishes)
        leaf = [w for w in wishes if w.verb == "leaf" and not w.place]
        if leaf:
            labels = {w.label for w in leaf} - {None}
            return None if asks or len(labels) > 1 else self._leaf(at, next(iter(labels), None))
        if not wishes:
            free = [q for q, column in enumerate(self.columns) if column not in banned]
            X = np.array([self.answers[q][at] for q in free], dtype=float).reshape(len(free), int(at.sum())).T
            return plain(X, self.Y[at], min(height, len(free)), self.price, self.min_leaf)
        found = [] if asks else [self._leaf(at, None)]
        for yes in self._allowed(at, banned, here) if height else ():
            sides: list[Fraction] = []
            for letter, side in (("y", at & yes), ("n", at & ~yes)):
                below = tuple(replace(w, place=w.place[1:]) for w in wishes if w.place[:1] == letter)
                cost = self.value(side, height - 1, banned, below)
                if cost is None:
                    break
                sides.append(cost)
            if len(sides) == 2:
                found.append(sides[0] + sides[1])
        return min(found, default=None)

    def _leaf(self, at: np.ndarray, label: str | None) -> Fraction:
        counts = self.Y[at].sum(axis=0)
        right = counts.max() if label is None else counts[self.model["classes"].index(label)]
        return Fraction(int(counts.sum() - right)) + self.price

    def _allowed(self, at: np.ndarray, banned: frozenset[int], here: Sequence[Wish]) -> list[np.ndarray]:
        asks = [w for w in here if w.verb == "ask"]
        named = [w for w in asks if w.split is not None]
        found = []
        if named:
            exact = {(w.column, w.split) for w in named}
            if len(exact) == 1 and named[0].column not in banned and all(w.column == named[0].column for w in asks):
                found = [self._question(named[0])]
        else:
            wanted = {w.column for w in asks}
            found = [
                answers
                for answers, column in zip(self.answers, self.columns, strict=True)
                if column not in banned and wanted <= {column}
            ]
        return [yes for yes in found if self._parts(at, yes)]

    def _question(self, wish: Wish) -> np.ndarray:
        """The answers to the question that a wish names."""
        assert wish.split is not None
        values, (kind, value) = self.rows.columns[wish.column], wish.split
        if kind == "in":
            known = self.model["columns"][wish.column]["categories"]
            return np.isin(values, [known.index(name) for name in value])
        if kind == "between":
            return (values > value[0]) & (values <= value[1])
        return values <= value

    def _parts(self, at: np.ndarray, yes: np.ndarray) -> bool:
        weights = self.rows.weights
        sides = (int(weights[at & yes].sum()), int(weights[at & ~yes].sum()))
        return min(sides) >= max(1, self.min_leaf)
