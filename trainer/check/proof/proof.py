"""Check the proof of a model.

Build the space of its trees, then check the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from trainer.check.proof.model import OBLIQUE, Model, ModelTable
from trainer.check.proof.space.planes import plane_space
from trainer.check.proof.space.space import read_space
from trainer.check.proof.steps.lines import ProvedBounds, read_proof
from trainer.check.proof.steps.planes import check_planes
from trainer.check.proof.steps.steps import check_proof


def proved_bounds(
    model: Model, rows: ModelTable, path: Path, prices: Mapping[int, Fraction] | None = None
) -> ProvedBounds:
    """Check the proof at `path` and return its lower bounds on all trees of the model's space.

    `rows` are the training rows. `prices` are those of columns for one unit of weight, in rows. Raises BadProof if a step does not hold, and NoProof if the format has no steps for this space.
    """
    if model["method"] in OBLIQUE:
        return check_planes(read_proof(path), plane_space(model, rows))
    return check_proof(read_proof(path), replace(read_space(model, rows), prices=prices or {}))
