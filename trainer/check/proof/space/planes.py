"""The points that a proof about hyperplanes is about, made from the model document and the rows: different rows and their classes.

See docs/proof-format.md, "Hyperplanes".  Nothing is rounded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from trainer.check.proof.model import Model, ModelTable, active_parameter, distant, exact
from trainer.check.proof.space.questions import filled_features
from trainer.check.proof.space.space import digest, has_empty_cell
from trainer.check.proof.subject import NoProof, PlaneSpace

BESIDE = Fraction(1, 10**9)  # what reading numbers as decimals may move a row: a hundredth of what planes keep from it
HALF_A_UNIT = Fraction(1, 1 << 53)  # how far a number may lie from the shortest decimal that gives it, as a share of it
NORMAL = sys.float_info.min  # smaller numbers have fewer digits
DISTANCE = Fraction(5, 1000)
SLACK = Fraction(1, 10**9)  # rows that nearly keep the distance are not called inseparable
ROBUST = 4
FARTHEST = 1000
DEEPEST = 8


def plane_space(model: Model, rows: ModelTable) -> PlaneSpace:
    """The space of a model of hyperplanes over its training rows; raises NoProof where its numbers are not decimals."""
    depth = int(model["parameters"]["depth"])
    if depth > DEEPEST:
        raise NoProof(f"trees of hyperplanes deeper than {DEEPEST} are not checked")
    far = distant(model)
    certificate = model["certificate"]
    kept = np.flatnonzero(rows.weights > 0)
    n = int(rows.weights.sum())
    places: dict[tuple[float, ...], int] = {}
    table = (
        zip(*(_comparable(values[kept]) for values in rows.columns), strict=True) if rows.columns else [()] * len(kept)
    )
    point = np.array([places.setdefault(values, len(places)) for values in table])
    counts = np.zeros((len(places), len(model["classes"])), np.int64)
    np.add.at(counts, (point, rows.labels[kept]), rows.weights[kept])
    first = kept[np.unique(point, return_index=True)[1]]
    made = [values for _, values in filled_features(model, rows)]
    if not far:
        _near_decimals(made)
    robust = active_parameter(model, "scaling") == "robust"
    return PlaneSpace(
        values=np.column_stack([values[first] for values in made]) if made else np.zeros((len(first), 0)),
        exactly=Fraction if far else _decimal,
        near=[_unit(values, robust) * (DISTANCE - SLACK) if far else Fraction(0) for values in made],
        counts=counts,
        depth=depth,
        leaves=_most_leaves(model, counts, depth),
        penalty=exact(certificate.get("leaf_penalty") or 0) * n,
        charge=exact(certificate.get("coefficient_penalty") or 0) * n,
        digest=digest(model, rows),
        empty=has_empty_cell(rows),
        min_leaf=min(int(active_parameter(model, "min_leaf") or 1), n),
    )


def _comparable(values: np.ndarray) -> list[float]:
    """Numbers that are equal where cells agree: empty cells are one more value."""
    found: list[float] = np.where(np.isnan(values), np.inf, values).tolist()
    return found


def _most_leaves(model: Model, counts: np.ndarray, depth: int) -> int:
    """A leaf without rows, or the second of two leaves of one class below a question, does nothing."""
    most = active_parameter(model, "max_leaves")
    alone = np.count_nonzero(counts.any(axis=0)) < 2
    return 1 if alone else min(1 << depth, len(counts), 1 << depth if most is None else int(most))


@lru_cache(1 << 16)
def _decimal(value: float) -> Fraction:
    """The decimal that a number is written as."""
    return Fraction(repr(value))


def _near_decimals(columns: Sequence[np.ndarray]) -> None:
    """Raises NoProof if the decimals of a row may lie so far from its numbers that a hyperplane passes between them."""
    largest = (Fraction(max(float(np.abs(values).max()), NORMAL)) for values in columns)
    moved = sum(HALF_A_UNIT * size / _unit(values, False) for size, values in zip(largest, columns, strict=True))
    if moved > BESIDE:
        raise NoProof("the range of some column is so small that its numbers cannot be told from their neighbours")


def _unit(values: np.ndarray, robust: bool) -> Fraction:
    """The unit of a column: its range; `robust`: or less if a few values lie far from all others."""
    levels = np.unique(values)
    last = len(levels) - 1
    low, first, third, high = (Fraction(float(levels[k])) for k in (0, last // 4, -(-3 * last // 4), last))
    width = high - low
    return max(min(width, ROBUST * (third - first)), width / FARTHEST) if robust else width
