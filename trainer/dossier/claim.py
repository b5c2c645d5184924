"""What is claimed about a model, in one sentence and in figures."""

from __future__ import annotations

from typing import Any

from trainer.certificate import OPTIMAL_GAP, Guarantee, Status
from trainer.claims import TRAINING_ONLY, claim_words, objective_words
from trainer.editing.words import wish_lines
from trainer.tree.file import ModelFile


def claim(file: ModelFile) -> dict[str, Any]:
    """The claim of the certificate; figures that it does not hold are None."""
    said = dict(file.certificate)
    gap = said.get("gap")
    proved = said.get("guarantee") == Guarantee.TREE and said.get("status") == Status.OPTIMAL
    return {
        "sentence": claim_words(said),
        "proved_optimal": bool(proved and gap is not None and gap <= OPTIMAL_GAP),
        "about": TRAINING_ONLY,
        "objective_is": objective_words(said),
        "wishes": wish_lines(said),
        **{
            name: said.get(name)
            for name in (
                "objective", "bound", "gap", "mip_gap", "scope", "status", "guarantee", "leaf_penalty", "splits",
                "splits_proved", "unproved", "note", "seconds", "nodes", "solver", "solver_version",
            )
        },
    }  # fmt: skip
