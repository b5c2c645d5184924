"""What is claimed about a model, in one sentence and in figures."""

from __future__ import annotations

from typing import Any

from trainer.certificate import Guarantee, proves
from trainer.claims import TRAINING_ONLY, claim_words, objective_words
from trainer.editing.words import wish_lines
from trainer.tree.file import ModelFile


def claim(file: ModelFile) -> dict[str, Any]:
    """The claim of the certificate; figures that it does not hold are None."""
    said = dict(file.certificate)
    return {
        "sentence": claim_words(said),
        "proved_optimal": said.get("guarantee") == Guarantee.TREE and proves(str(said.get("status")), said.get("gap")),
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
