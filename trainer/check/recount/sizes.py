"""Check that the chosen number of leaves follows from the stated numbers."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from trainer.check.proof.model import read_fraction
from trainer.check.recount.findings import TOLERANCE, Finding, recount_finding

CLAIM = "sizes"
SIZE = {"leaves", "leaf_penalty", "unseen", "error", "chosen"}
MEMBERS = {"reason", "tried"}
CHOICE = MEMBERS | {"measure", "folds", "repeats"}
REASONS = re.compile(
    "|".join(
        (
            r"The best tree of each size is not searched with [a-z_ ]+\.",
            r"Sizes are judged by accuracy or costs, not by [A-Z0-9a-z' ]+\.",
            r"All training rows have one class\.",
            r"There are [0-9]+ training rows; folds inside them need at least [0-9]+\.",
            r"Sizes are chosen for depths from 1 to [0-9]+\.",
            r"The table is too large to search trees of all sizes in each fold( within half of the time limit of [0-9.e+-]+ s)?\.",
            r"The groups or times of the rows allow no two folds inside the training rows\.",
            r"(The training ended|Half of the time limit was over) before the trees of all sizes were judged\.",
            r"A fold inside the training rows cannot be trained\. .+",
        )
    )
)


def check_sizes(model: dict[str, Any]) -> list[Finding]:
    """Check the choice of the size; return no finding if the settings stated the leaf penalty."""
    sizes = model.get("sizes")
    if sizes is None:
        return []
    trouble = _trouble(model, sizes)
    words = f"Chosen among {len(sizes['tried'])} sizes by the rule. How often their trees were right cannot be counted again."
    if sizes["reason"]:
        words = f"No size was chosen. {sizes['reason']}"
    return [recount_finding(CLAIM, not trouble, trouble or words)]


def _trouble(model: dict[str, Any], sizes: dict[str, Any]) -> str:
    """Return a contradiction of the choice; empty if there is none."""
    penalty = read_fraction(model["parameters"].get("leaf_penalty") or 0)
    tried = sizes["tried"]
    if sizes["reason"] or not tried:
        open_ = REASONS.fullmatch(sizes["reason"]) and not tried and set(sizes) == MEMBERS and not penalty
        return "" if open_ else "The reason for choosing no size is unknown, or contradicts another member."
    if set(sizes) != CHOICE or any(set(one) != SIZE for one in tried):
        return "Members are missing, or are not known."
    measure = "cost_per_row" if model["certificate"].get("costs") else "accuracy"
    if sizes["measure"] != measure or sizes["folds"] < 2 or sizes["repeats"] < 1:
        return "The sizes were judged by another measure than the training, or by too few folds."
    leaves = [one["leaves"] for one in tried]
    penalties = [read_fraction(one["leaf_penalty"]) for one in tried]
    if leaves != sorted(set(leaves)) or penalties != sorted(set(penalties), reverse=True) or penalties[-1] < 0:
        return "More leaves do not have a lower leaf penalty."
    if any(one["error"] < 0 or one["unseen"] < 0 or (measure == "accuracy" and one["unseen"] > 1) for one in tried):
        return "A size states a share outside 0 to 1, or a negative error."
    chosen = [k for k, one in enumerate(tried) if one["chosen"] is True]
    if chosen != [_rule(tried, measure)]:
        return "The rule chooses another size."
    if penalties[chosen[0]] != penalty:
        return "The tree was not trained with the leaf penalty of the chosen size."
    return ""


def _rule(tried: list[dict[str, Any]], measure: str) -> int:
    """Return the first size within half a standard error of the best."""
    sign = 1 if measure == "accuracy" else -1
    worth = [sign * read_fraction(one["unseen"]) for one in tried]
    best = max(range(len(worth)), key=worth.__getitem__)
    least = worth[best] - read_fraction(tried[best]["error"]) * Fraction(1, 2) - TOLERANCE
    return next(k for k, value in enumerate(worth) if value >= least)
