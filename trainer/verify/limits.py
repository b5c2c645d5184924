"""The part of the independent check that looks at the restrictions a tree was searched under: columns, leaves, recalls, weights.

As `trainer.verify`, nothing here is shared with the code that trains.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

MAX_DIGITS, MAX_EXPONENT = 200, 400
Verdict = Literal["verified", "consistent", "unverifiable", "refuted"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One claim and what became of it."""

    claim: str
    verdict: Verdict
    detail: str

    def to_json(self) -> dict[str, str]:
        """The record as a dictionary."""
        return {"claim": self.claim, "verdict": self.verdict, "detail": self.detail}


def exact(value: object) -> Fraction:
    """A number of the file as it is written; raises ValueError where it is none, or of so many digits that it takes minutes to build."""
    text = str(value).strip()
    exponent = int(text.lower().partition("e")[2] or 0)
    if len(text) > MAX_DIGITS or abs(exponent) > MAX_EXPONENT:
        raise ValueError(f"'{text[:80]}' has too many digits")
    return Fraction(text)


def class_factors(sizes: list[int], model: dict[str, Any]) -> list[int]:
    """What a row of each class counts: 1, or the smallest integers that make all classes equally heavy."""
    if model.get("parameters", {}).get("class_weight") != "balanced":
        return [1] * len(sizes)
    whole = math.lcm(*(size for size in sizes if size))
    return [whole // size if size else 0 for size in sizes]


def restrictions(model: dict[str, Any], counts: list[list[int]]) -> list[Finding]:
    """One finding for each restriction that the parameters name; `counts` are the class counts of the nodes."""
    asked = model.get("parameters", {})
    leaves = [v for v in model["nodes"] if "split" not in v]
    found: list[tuple[str, bool, str]] = []
    if asked.get("max_leaves") is not None:
        found.append(("max_leaves", len(leaves) <= asked["max_leaves"], f"{len(leaves)} leaves"))
    columns = {name for v in model["nodes"] for name in _columns(v)}
    if asked.get("max_columns") is not None:
        found.append(("max_columns", len(columns) <= asked["max_columns"], f"{len(columns)} columns are asked"))
    if banned := set(_items(asked.get("forbidden"))):
        found.append(("forbidden", not banned & columns, "None of the columns is asked."))
    if int(asked.get("max_card") or 0) > 0:
        found.append(("max_card", *_few_categories(model, int(asked["max_card"]))))
    if _items(asked.get("forbidden_pairs")):
        pairs = [tuple(name.strip() for name in text.split("+")) for text in _items(asked["forbidden_pairs"])]
        apart = all(_apart(model["nodes"], a, b) for a, b in pairs)
        found.append(("forbidden_pairs", apart, "Every path was looked at."))
    for text in _items(asked.get("recall")):
        name, _, share = text.rpartition(":")
        found.append((f"recall {text}", *_recall(model, counts, name.strip(), exact(share))))
    if int(asked.get("min_leaf") or 1) > 1:
        least = min(sum(counts[v["id"]]) for v in leaves)
        found.append(
            ("min_leaf", least >= asked["min_leaf"] or len(leaves) == 1, f"the smallest leaf has {least} rows")
        )
    return [
        Finding(claim=claim, verdict="verified" if holds else "refuted", detail=detail)
        for claim, holds, detail in found
    ]


def _items(text: object) -> list[str]:
    return [item.strip() for item in str(text or "").split(";") if item.strip()]


def _columns(node: dict[str, Any]) -> list[str]:
    if "split" not in node:
        return []
    return list(node["split"].get("features") or [node["split"]["feature"]])


def _few_categories(model: dict[str, Any], most: int) -> tuple[bool, str]:
    """Whether each subset, or its complement in the column, has at most `most` categories."""
    sizes = {c["name"]: len(c.get("categories") or ()) for c in model["columns"]}
    for node in model["nodes"]:
        split = node.get("split") or {}
        if split.get("kind") != "subset":
            continue
        few, size = len(set(split["categories"])), sizes[split["feature"]]
        if min(few, size - few) > most:
            return False, f"Node {node['id']} sends {few} of {size} categories to the left."
    return True, "Every subset was counted."


def _apart(nodes: list[dict[str, Any]], first: str, second: str) -> bool:
    """True if no path asks a question about `first` and another one about `second`."""

    def visit(v: int, path: tuple[str, ...]) -> bool:
        node = nodes[v]
        own = _columns(node)
        if (first in own and second in path) or (second in own and first in path):
            return False
        inner = (*path, *own)
        return "split" not in node or (visit(node["left"], inner) and visit(node["right"], inner))

    return visit(0, ())


def _recall(model: dict[str, Any], counts: list[list[int]], name: str, share: Fraction) -> tuple[bool, str]:
    k = model["classes"].index(name)
    right = sum(counts[v["id"]][k] for v in model["nodes"] if "split" not in v and v["class"] == name)
    return right >= share * counts[0][k], f"{right} of {counts[0][k]} rows of the class are right"


def terms(model: dict[str, Any]) -> int:
    """How many terms the splits weigh: those of a sum; of a set of categories the smaller of it and the others, at least one."""
    levels = {c["name"]: len(c.get("categories") or []) for c in model["columns"]}
    found = 0
    for split in (v["split"] for v in model["nodes"] if "split" in v):
        if split["kind"] == "linear":
            found += len(split["features"])
        elif split["kind"] == "subset":
            own = len(split["categories"])
            found += max(1, min(own, levels[split["feature"]] - own))
        else:
            found += 1
    return found
