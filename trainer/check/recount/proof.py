"""Check a model's proof and compare its bound with the file's.

See docs/proof-format.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from trainer.check.proof.model import ModelTable, read_fraction
from trainer.check.proof.proof import proved_bounds
from trainer.check.proof.steps.lines import ProvedBounds
from trainer.check.proof.subject import BadProof, NoProof
from trainer.check.recount.findings import TOLERANCE, Finding, proof_finding, recount_finding

Errors = tuple[int, ...]  # entry t - 1 is a lower bound on the errors of trees with at most t leaves


def check_model_proof(
    model: dict[str, Any], rows: ModelTable, proof_path: Path, prices: Mapping[int, Fraction] | None = None
) -> tuple[list[Finding], Errors]:
    """Check the proof of a model over its training rows; return the findings and the errors of trees with few leaves.

    `prices` are those of columns for one unit of weight, in rows.
    """
    try:
        bounds = proved_bounds(model, rows, proof_path, prices)
    except NoProof as reason:
        return [_open(f"The proof was not checked: {reason}.")], ()
    except BadProof as reason:
        return [recount_finding("proof", False, f"{reason}.")], ()
    return [_proved_bound(model, bounds, int(rows.weights.sum()))], bounds.errors


def _proved_bound(model: dict[str, Any], bounds: ProvedBounds, n: int) -> Finding:
    claimed = model["certificate"].get("bound")
    best = 1 - bounds.cost / n  # no tree has a better objective, by the proof
    steps = f"{bounds.steps} steps hold" if bounds.steps != 1 else "one step holds"
    if claimed is None:
        return _open(f"The proof shows that no tree exceeds {float(best):.12g}, and the file claims no bound.")
    words = f"{steps}: no tree exceeds {best} = {float(best):.12g}."
    if best > read_fraction(claimed) + TOLERANCE:
        return _open(f"{words} The file claims {claimed}, which the proof does not show.")
    return proof_finding("bound", "proved", words, best)


def _open(words: str) -> Finding:
    return proof_finding("bound", "cannot be judged", words)
