"""The proof that goes with a model: steps from which a bound follows, each checked separately (docs/proof-format.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainer.verify.findings import TOLERANCE, Finding, exact, recounted, shown
from trainer.verify.space.space import BadProof, NoProof, read_space
from trainer.verify.space.structure import OBLIQUE
from trainer.verify.steps.frontier import frontier_findings
from trainer.verify.steps.planes import check_planes
from trainer.verify.steps.points import plane_space
from trainer.verify.steps.steps import check_proof, read_proof
from trainer.verify.table.rows import Rows


def proof_findings(model: dict[str, Any], rows: Rows, proof_path: Path) -> list[Finding]:
    """What the proof shows about the bound of `model`; `rows` are the rows of the training."""
    claimed = model["certificate"].get("bound")
    try:
        if model["method"] in OBLIQUE:
            proved = check_planes(read_proof(proof_path), plane_space(model, rows))
        else:
            proved = check_proof(read_proof(proof_path), read_space(model, rows))
    except NoProof as reason:
        return [_open(f"The proof was not checked: {reason}.")]
    except BadProof as reason:
        return [recounted("proof", False, f"{reason}.")]
    n = int(rows.weights.sum())
    best = 1 - proved.cost / n  # the best objective that the proof leaves open
    steps = f"{proved.steps} steps hold" if proved.steps != 1 else "one step holds"
    if claimed is None:
        return [_open(f"The proof shows that no tree exceeds {float(best):.12g}, and the file claims no bound.")]
    words = f"{steps}: no tree exceeds {best} = {float(best):.12g}."
    if best > exact(claimed) + TOLERANCE:
        return [_open(f"{words} The file claims {claimed}, which the proof does not show.")]
    return [shown("bound", "proved", words)] + (frontier_findings(model, proved.errors, n) if proved.errors else [])


def _open(words: str) -> Finding:
    return shown("bound", "cannot be judged", words)
