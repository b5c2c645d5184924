"""Check that the tree of a file satisfies its wishes."""

from __future__ import annotations

import math
from typing import Any

from trainer.check.proof.space.wishes import wishes_of
from trainer.check.proof.subject import ProofConstraint
from trainer.check.recount.findings import Finding, columns_of, recount_finding
from trainer.check.recount.tree import branches, places, under


def check_wishes(model: dict[str, Any]) -> list[Finding]:
    """Return one finding for each wish: whether the tree satisfies it."""
    return [recount_finding(f"wish '{w.text}'", *_is_satisfied(model, w)) for w in wishes_of(model)]


def _is_satisfied(model: dict[str, Any], wish: ProofConstraint) -> tuple[bool, str]:
    nodes = places(model["nodes"])
    if wish.place not in nodes:
        return wish.verb != "ask", "The tree does not have this place."
    node = nodes[wish.place]
    part = under(nodes, wish.place)
    if wish.verb == "leaf":
        stated = node.get("class")
        label = None if wish.label < 0 else model["classes"][wish.label]
        return "split" not in node and label in (None, stated), f"There is a leaf of class '{stated}' at this place."
    if wish.verb == "depth":
        height = max(map(len, part))
        return height <= wish.height, f"The part of the tree at this place has height {height}."
    name = model["columns"][wish.column]["name"]
    asks_column = "split" in node and columns_of(node["split"]) == [name]
    if wish.verb == "ask":
        if not asks_column:
            return False, f"There is no question about '{name}' at this place."
        return wish.split is None or _is_question_of(node["split"], wish), "The question at this place was compared."
    if wish.verb == "avoid":
        return not asks_column, "The question at this place was compared."
    asks = [v["split"] for v in branches(list(part.values())) if name in columns_of(v["split"])]
    if wish.verb == "forbid":
        return not asks, "Every question there and below was checked."
    assert wish.split is not None  # a wish that keeps categories together names them in its split
    sent = [wish.split[1] & frozenset(split.get("categories", ())) for split in asks]
    return all(stated in (frozenset(), wish.split[1]) for stated in sent), "Every question there and below was checked."


def _is_question_of(split: dict[str, Any], wish: ProofConstraint) -> bool:
    """Return True if a split is the question of a wish; the side of empty cells matters only if training rows have some."""
    assert wish.split is not None
    kind, value = wish.split
    if kind == "missing":
        return bool(split["kind"] == "missing")
    side = {None: None, True: "left", False: "right"}[wish.empty]
    if side is not None and split.get("missing_seen", True) and split.get("missing") != side:
        return False
    if kind == "<=":
        return split["kind"] == "threshold" and split["threshold"] == value
    if kind == "in":
        return split["kind"] == "subset" and frozenset(split["categories"]) == value
    low = -math.inf if split.get("low") is None else split["low"]
    high = math.inf if split.get("high") is None else split["high"]
    return split["kind"] == "interval" and (low, high) == value
