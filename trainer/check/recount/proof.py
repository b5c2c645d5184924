"""The proof that goes with a model: steps from which a bound follows, each checked separately (docs/proof-format.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainer.check.proof.model import ModelTable, read_fraction
from trainer.check.proof.proof import proved_bounds
from trainer.check.proof.steps.lines import ProvedBounds
from trainer.check.proof.subject import BadProof, NoProof
from trainer.check.recount.findings import TOLERANCE, Finding, proof_finding, recounted

Errors = tuple[int, ...]  # of trees with at most 1, 2, … leaves, the least that a proof shows


def of_proof(model: dict[str, Any], rows: ModelTable, proof_path: Path) -> tuple[list[Finding], Errors]:
    """What the proof shows about the bound of `model`, and about trees of few leaves; `rows` are the rows of the training."""
    try:
        shows = proved_bounds(model, rows, proof_path)
    except NoProof as reason:
        return [_open(f"The proof was not checked: {reason}.")], ()
    except BadProof as reason:
        return [recounted("proof", False, f"{reason}.")], ()
    return [_proved_bound(model, shows, int(rows.weights.sum()))], shows.errors


def _proved_bound(model: dict[str, Any], shows: ProvedBounds, n: int) -> Finding:
    claimed = model["certificate"].get("bound")
    best = 1 - shows.cost / n  # the best objective that the proof leaves open
    steps = f"{shows.steps} steps hold" if shows.steps != 1 else "one step holds"
    if claimed is None:
        return _open(f"The proof shows that no tree exceeds {float(best):.12g}, and the file claims no bound.")
    words = f"{steps}: no tree exceeds {best} = {float(best):.12g}."
    if best > read_fraction(claimed) + TOLERANCE:
        return _open(f"{words} The file claims {claimed}, which the proof does not show.")
    return proof_finding("bound", "proved", words, best)


def _open(words: str) -> Finding:
    return proof_finding("bound", "cannot be judged", words)
