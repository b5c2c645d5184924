"""Cases and oracles of `test_proof_planes.py` that other tests use, too."""

from __future__ import annotations

import copy
import random
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.check.proof.steps.planes import check_planes
from trainer.check.proof.subject import BadProof, PlaneSpace

Lines = list[dict[str, Any]]
# Distances that planes must keep from the points.
TOUCHING = 0.0
GAP_OF_POINTS = 0.3


def never() -> bool:
    return False


def scaled(X: np.ndarray) -> np.ndarray:
    return (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1)


def accepted(lines: Lines, space: PlaneSpace) -> Fraction | None:
    try:
        return check_planes(iter(list(enumerate(lines))), space).cost
    except BadProof:
        return None


def changes(step: dict[str, Any], draw: random.Random, size: int) -> Lines:
    """Return the step with each of its members changed a little."""
    found = []
    for name, value in step.items():
        for _ in range(3):
            own = copy.deepcopy(step)
            own[name] = _changed(value, draw, size)
            found.append(own)
    return [own for own in found if own != step]


def _changed(value: Any, draw: random.Random, size: int) -> Any:
    if isinstance(value, str):
        return draw.choice(["side", "meet", "sum", "errors", "vector", "trust me"])
    if isinstance(value, int):
        return draw.choice([value + 1, value - 1, draw.randrange(size), -1, 2 * value])
    if not value:
        return [0]
    k = draw.randrange(len(value))
    return draw.choice(
        [value[:k] + value[k + 1 :], [*value[:k], _changed(value[k], draw, size), *value[k + 1 :]], value + value[k:]]
    )
