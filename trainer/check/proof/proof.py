"""What a proof shows of a model: the space of its trees, made from the document and the rows, and the steps about it."""

from __future__ import annotations

from pathlib import Path

from trainer.check.proof.model import OBLIQUE, Model, ModelTable
from trainer.check.proof.space.planes import plane_space
from trainer.check.proof.space.space import read_space
from trainer.check.proof.steps.lines import ProvedBounds, read_proof
from trainer.check.proof.steps.planes import check_planes
from trainer.check.proof.steps.steps import check_proof


def proved_bounds(model: Model, rows: ModelTable, path: Path) -> ProvedBounds:
    """What each tree of the model's space costs at least, as the proof at `path` shows it; `rows` are the rows of the training.

    Raises BadProof where a step does not hold, NoProof where there are no steps for the space.
    """
    if model["method"] in OBLIQUE:
        return check_planes(read_proof(path), plane_space(model, rows))
    return check_proof(read_proof(path), read_space(model, rows))
