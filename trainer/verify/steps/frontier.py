"""Proofs that count errors for each number of leaves: their goals, and what they show of the frontiers of a model.

See docs/proof-format.md, "Frontiers".
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from trainer.verify.findings import Finding, shown
from trainer.verify.space.space import BadProof

VERSION = 4
LARGEST = 1 << 53
MOST_GOALS = 1 << 12


def read_goals(header: dict[str, Any], most: int) -> list[int] | None:
    """Errors for at most 1, 2, … leaves, None if the header has one goal; `most` leaves at most. Raises BadProof."""
    goals = header.get("goals")
    if goals is None and header.get("version") != VERSION:
        return None
    if header.get("version") != VERSION or header.get("scale") != 1 or type(header["scale"]) is not int:
        raise BadProof(f"a proof with goals for each number of leaves is of version {VERSION} and scale 1")
    fits = isinstance(goals, list) and 1 <= len(goals) <= min(most, MOST_GOALS)
    if not isinstance(goals, list) or not fits or not all(type(g) is int and 0 <= g < LARGEST for g in goals):
        raise BadProof("'goals' are not whole numbers, at most one for each number of leaves")
    return goals


def cost_of(goals: Sequence[int], leaf: Fraction, branching: Fraction = Fraction(0)) -> Fraction:
    """What each tree costs at least, in rows: with t leaves it has t - 1 branchings."""
    return min(errors + t * leaf + (t - 1) * branching for t, errors in enumerate(goals, start=1))


def frontier_findings(model: dict[str, Any], goals: Sequence[int], n: int) -> list[Finding]:
    """A line for each frontier of the model whose bounds follow from the goals."""
    found = []
    for part in model["certificate"].get("evidence") or []:
        kind = part.get("kind")
        if kind == "leaf-frontier":
            claims = by_leaves(part)
        elif kind == "coefficient-frontier":  # each question has a coefficient
            claims = [(p["coefficients"] + 1, p["bound"]) for p in part["points"]]
        else:
            continue
        open_ = next((t for t, right in claims if n - goals[min(t, len(goals)) - 1] > right), None)
        if open_ is None:
            found.append(shown(kind, "proved", "Steps: No tree of any size has more rows right than it says."))
        else:
            found.append(shown(kind, "cannot be judged", f"Steps: Nothing proves what it says of {open_} leaves."))
    return found


def by_leaves(part: dict[str, Any]) -> list[tuple[int, int]]:
    """Numbers of leaves, and the most rows that a tree of at most so many can have right: a size without a point is like the one before."""
    points = {p["leaves"]: p for p in part["points"]}
    open_ = {u["leaves"]: u["bound"] for u in part.get("unsettled", [])}
    claims, known = [], 0
    for t in range(1, int(part["most"]) + 1):
        claims.append((t, points[t]["bound"] if t in points else open_.get(t, known)))
        known = points[t]["correct"] if t in points else known
    return claims
