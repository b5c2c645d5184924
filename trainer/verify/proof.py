"""The proof that goes with a model: steps from which a bound follows, each checked by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainer.verify.findings import Finding
from trainer.verify.rows import Rows


def proof_findings(model: dict[str, Any], rows: Rows, proof_path: Path) -> list[Finding]:
    """What the proof shows of the bound of `model`; `rows` are those of the training."""
    words = f"'{proof_path.name}' has no format that this program reads."
    return [Finding(claim="proof", verdict="cannot be judged", detail=words, role="optimality")]
