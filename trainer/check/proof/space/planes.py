"""Build the points of a hyperplane proof from model and rows.

A point stands for all equal rows and counts their classes. Nothing is rounded. See docs/proof-format.md, "Hyperplanes".
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from trainer.check.proof.model import Model, ModelTable, active_parameter, has_margin, read_fraction
from trainer.check.proof.space.questions import filled_features
from trainer.check.proof.space.space import digest, has_empty_cell
from trainer.check.proof.subject import NoProof, PlaneSpace

BESIDE = Fraction(1, 10**9)  # parsing decimals moves a row by at most this: a hundredth of the margin of the planes
HALF_A_UNIT = Fraction(1, 1 << 53)  # relative distance of a double from the shortest decimal that rounds to it
NORMAL = sys.float_info.min  # smaller doubles have fewer significant digits, so that HALF_A_UNIT would not hold
DISTANCE = Fraction(5, 1000)
SLACK = Fraction(1, 10**9)  # tolerance: rows that miss the distance by less than this do not count as inseparable
ROBUST = 4
FARTHEST = 1000
DEEPEST = 8


def plane_space(model: Model, rows: ModelTable) -> PlaneSpace:
    """Build the space of a model of hyperplanes over its training rows.

    Raises NoProof if the trees are too deep, or if decimals cannot represent the numbers of a column.
    """
    depth = int(model["parameters"]["depth"])
    if depth > DEEPEST:
        raise NoProof(f"its trees have depth {depth}; trees of hyperplanes are checked up to depth {DEEPEST}")
    keeps_distance = has_margin(model)
    certificate = model["certificate"]
    weighted_rows = np.flatnonzero(rows.weights > 0)
    n = int(rows.weights.sum())
    places: dict[tuple[float, ...], int] = {}
    table = (
        zip(*(_comparable(values[weighted_rows]) for values in rows.columns), strict=True)
        if rows.columns
        else [()] * len(weighted_rows)
    )
    point = np.array([places.setdefault(values, len(places)) for values in table])
    counts = np.zeros((len(places), len(model["classes"])), np.int64)
    np.add.at(counts, (point, rows.labels[weighted_rows]), rows.weights[weighted_rows])
    first = weighted_rows[np.unique(point, return_index=True)[1]]
    features = [values for _, values in filled_features(model, rows)]
    if not keeps_distance:
        _near_decimals(features)
    robust = active_parameter(model, "scaling") == "robust"
    return PlaneSpace(
        values=np.column_stack([values[first] for values in features]) if features else np.zeros((len(first), 0)),
        exactly=Fraction if keeps_distance else _decimal,
        near=[_unit(values, robust) * (DISTANCE - SLACK) if keeps_distance else Fraction(0) for values in features],
        counts=counts,
        depth=depth,
        leaves=_most_leaves(model, counts, depth),
        penalty=read_fraction(certificate.get("leaf_penalty") or 0) * n,
        charge=read_fraction(certificate.get("coefficient_penalty") or 0) * n,
        digest=digest(model, rows),
        empty=has_empty_cell(rows),
        min_leaf=min(int(active_parameter(model, "min_leaf") or 1), n),
    )


def _comparable(values: np.ndarray) -> list[float]:
    """Return the values with one number for all empty cells, so that equal rows compare equal."""
    comparable: list[float] = np.where(np.isnan(values), np.inf, values).tolist()
    return comparable


def _most_leaves(model: Model, counts: np.ndarray, depth: int) -> int:
    """Return the largest useful number of leaves: empty leaves and sibling leaves of one class are useless."""
    if np.count_nonzero(counts.any(axis=0)) < 2:
        return 1
    most = active_parameter(model, "max_leaves")
    useful = min(1 << depth, len(counts))
    return useful if most is None else min(useful, int(most))


@lru_cache(1 << 16)
def _decimal(value: float) -> Fraction:
    """Return the shortest decimal of a double as a fraction."""
    return Fraction(repr(value))


def _near_decimals(columns: Sequence[np.ndarray]) -> None:
    """Raise NoProof if a hyperplane may pass between the numbers of a row and their decimals."""
    largest = (Fraction(max(float(np.abs(values).max()), NORMAL)) for values in columns)
    moved = sum(HALF_A_UNIT * size / _unit(values, False) for size, values in zip(largest, columns, strict=True))
    if moved > BESIDE:
        raise NoProof("the range of some column is too small to tell its numbers from their neighbours")


def _unit(values: np.ndarray, robust: bool) -> Fraction:
    """Return the unit of a column: its range, or with `robust` less if it has outliers."""
    levels = np.unique(values)
    last = len(levels) - 1
    low, first, third, high = (Fraction(float(levels[k])) for k in (0, last // 4, -(-3 * last // 4), last))
    width = high - low
    return max(min(width, ROBUST * (third - first)), width / FARTHEST) if robust else width
