"""Proofs that count errors for each number of leaves: their goals, and what these say of the cost of any tree.

See docs/proof-format.md, "Frontiers".
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from trainer.verify.subject import BadProof

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
