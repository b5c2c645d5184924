"""State the claim about a model in sentences and figures."""

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
    """Return the claim of the certificate; figures that it lacks are None."""
    certificate = dict(file.certificate)
    parts = read_claim(certificate)
    return {
        "sentence": claim_words(certificate),
        "words": parts.words,
        "kind": parts.kind,
        "proved_optimal": parts.proved_optimal,
        "about": TRAINING_ONLY,
        "objective_is": objective_words(certificate),
        "cost_is": cost_sentence(certificate["costs"], priced=bool(certificate.get("column_prices"))) if certificate.get("costs") else None,
        "column_prices_are": price_sentence(certificate) or None,
        "goal_is": goal_sentence(certificate, file.parameters) or None,
        "scope": parts.scope or None,
        "wishes": list(parts.wishes),
        "price_rows": parts.price_rows,
        "price_words": parts.price_words,
        **{
            name: certificate.get(name)
            for name in (
                "objective", "bound", "gap", "mip_gap", "status", "guarantee", "leaf_penalty", "splits",
                "splits_proved", "subtrees", "subtrees_proved", "unproved", "note", "seconds", "nodes", "solver", "solver_version",
            )
        },
    }  # fmt: skip
