"""What is claimed about a model, in one sentence and in figures."""

from __future__ import annotations

from typing import Any

from trainer.training.claims import (
    TRAINING_ONLY,
    claim_words,
    cost_sentence,
    goal_sentence,
    objective_words,
    price_sentence,
    read_claim,
)
from trainer.tree.file import ModelFile


def claim(file: ModelFile) -> dict[str, Any]:
    """The claim of the certificate; figures that it does not hold are None."""
    said = dict(file.certificate)
    whole = read_claim(said)
    return {
        "sentence": claim_words(said),
        "words": whole.words,
        "kind": whole.kind,
        "proved_optimal": whole.proved_optimal,
        "about": TRAINING_ONLY,
        "objective_is": objective_words(said),
        "cost_is": cost_sentence(said["costs"], priced=bool(said.get("column_prices"))) if said.get("costs") else None,
        "column_prices_are": price_sentence(said) or None,
        "goal_is": goal_sentence(said, file.parameters) or None,
        "scope": whole.scope or None,
        "wishes": list(whole.wishes),
        "price_rows": whole.price_rows,
        "price_words": whole.price_words,
        **{
            name: said.get(name)
            for name in (
                "objective", "bound", "gap", "mip_gap", "status", "guarantee", "leaf_penalty", "splits",
                "splits_proved", "unproved", "note", "seconds", "nodes", "solver", "solver_version",
            )
        },
    }  # fmt: skip
