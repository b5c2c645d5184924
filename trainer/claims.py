"""What a certificate claims, as sentences: in dossiers and in notebooks the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.certificate import Guarantee, proves
from trainer.goal import Goal
from trainer.tree.describe import number_text

TRAINING_ONLY = "The claim is about the training rows and the trees that were searched, not about new rows."


def claim_words(said: Mapping[str, Any]) -> str:
    """The claim about the whole tree in a sentence."""
    guarantee, gap = said.get("guarantee"), said.get("gap")
    if guarantee == Guarantee.TREE and proves(str(said.get("status")), gap):
        return "Proved optimal: no tree of the searched space has a better objective on the training rows."
    if guarantee == Guarantee.TREE and gap is not None and said.get("bound") is not None:
        return (
            f"Not proved optimal: no tree of the searched space is better than {number_text(float(said['bound']), 6)}."
        )
    if guarantee == Guarantee.SPLITS and said.get("splits"):
        return (
            f"{said.get('splits_proved') or 0} of {said['splits']} splits are proved best for the rows that reach them."
        )
    return "Heuristic: nothing is claimed about how close the tree is to the best one."


def objective_words(said: Mapping[str, Any]) -> str:
    """What the objective is: the goal, or the share of rows right less the penalties."""
    if said.get("goal"):
        return Goal.from_json(dict(said["goal"])).words()
    words = f"share of training rows right − {said.get('leaf_penalty') or 0} × leaves"
    return words + (f" − {said['coefficient_penalty']} × coefficients" if said.get("coefficient_penalty") else "")
