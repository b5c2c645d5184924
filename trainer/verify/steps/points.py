"""The points that a proof about hyperplanes is about: different rows, their classes, and when the hulls of two sets of them meet.

See docs/proof-format.md, "Hyperplanes".  Nothing is rounded: coordinates are whole numbers, weights of points whole numbers too.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from trainer.verify.findings import asked, exact
from trainer.verify.space.questions import features
from trainer.verify.space.space import NoProof, digest, distant
from trainer.verify.table.rows import Rows

BESIDE = Fraction(1, 10**9)  # what reading numbers as decimals may move a row: a hundredth of what planes keep from it
HALF_A_UNIT = Fraction(1, 1 << 53)  # how far a number may lie from the shortest decimal that gives it, as a share of it
NORMAL = sys.float_info.min  # smaller numbers have fewer digits
DISTANCE = Fraction(5, 1000)
SLACK = Fraction(1, 10**9)  # rows that nearly keep the distance are not called inseparable
ROBUST, FARTHEST = 4, 1000
DEEPEST = 8
Weights = Mapping[int, int]  # points with their weights, whole numbers above 0


@dataclass(frozen=True)
class PlaneSpace:
    """Points and the trees over them; a leaf costs `penalty` and a branching at least `charge`, in rows.

    `values` are the coordinates, float64 (points, m), and `exactly` reads one of them. Two means are equal if they differ by nothing, or, where
    `near` is above 0 for a coordinate, by less than that.
    """

    values: np.ndarray
    exactly: Callable[[float], Fraction]
    near: list[Fraction]
    counts: np.ndarray  # int64 (points, classes)
    depth: int
    leaves: int  # the most of a tree
    penalty: Fraction
    charge: Fraction
    digest: str

    @property
    def present(self) -> list[int]:
        """The classes that occur; no leaf does better with another label."""
        return [int(k) for k in np.flatnonzero(self.counts.any(axis=0))]

    def wrong(self, labels: Collection[int]) -> np.ndarray:
        """Of each point the weight that is wrong at least where only these classes are predicted."""
        return self.counts.sum(axis=1) - self.counts[:, sorted(labels)].max(axis=1)

    def meets(self, left: Weights, right: Weights) -> bool:
        """True if these weighted means show that no hyperplane of the space parts the points."""
        one, two = sum(left.values()), sum(right.values())
        points = [*left, *right]
        signed = [two * w for w in left.values()] + [-one * w for w in right.values()]
        for j, near in enumerate(self.near):
            read = [self.exactly(value) for value in self.values[points, j].tolist()]
            scale = math.lcm(*(number.denominator for number in read))
            whole = (w * x.numerator * (scale // x.denominator) for w, x in zip(signed, read, strict=True))
            gap = abs(sum(whole))
            if gap and gap >= near * scale * one * two:
                return False
        return True

    def needed(self, goal: Fraction, leaves: int) -> int:
        """The errors that a tree of so many leaves must make to cost at least the goal, in rows."""
        return max(0, math.ceil(goal - self.penalty * leaves - self.charge * (leaves - 1)))


def plane_space(model: dict[str, Any], rows: Rows) -> PlaneSpace:
    """The space of a model of hyperplanes over its training rows; raises NoProof where its numbers are not decimals."""
    depth = int(model["parameters"]["depth"])
    if depth > DEEPEST:
        raise NoProof(f"trees of hyperplanes deeper than {DEEPEST} are not checked")
    far = distant(model)
    kept, n = rows.weights > 0, int(rows.weights.sum())
    places: dict[tuple[float, ...], int] = {}
    table = np.column_stack([column[kept] for column in rows.columns]).tolist() if rows.columns else [[]] * kept.sum()
    point = [places.setdefault(tuple(values), len(places)) for values in table]
    counts = np.zeros((len(places), len(model["classes"])), np.int64)
    np.add.at(counts, (np.array(point), rows.labels[kept]), rows.weights[kept])
    first = np.flatnonzero(kept)[np.unique(np.array(point), return_index=True)[1]]
    made = [values for _, values in features(model, rows)]
    if not far:
        _near_decimals(made)
    robust = far and asked(model, "scaling") == "robust"
    certificate = model["certificate"]
    return PlaneSpace(
        values=np.column_stack([values[first] for values in made]) if made else np.zeros((len(first), 0)),
        exactly=Fraction if far else _decimal,
        near=[_unit(values, robust) * (DISTANCE - SLACK) if far else Fraction(0) for values in made],
        counts=counts,
        depth=depth,
        leaves=_most_leaves(model, counts, depth),
        penalty=exact(certificate.get("leaf_penalty") or 0) * n,
        charge=exact(certificate.get("coefficient_penalty") or 0) * n,
        digest=digest(rows),
    )


def _most_leaves(model: dict[str, Any], counts: np.ndarray, depth: int) -> int:
    """A leaf without rows, or the second of two leaves of one class below a question, does nothing."""
    most = asked(model, "max_leaves")
    alone = np.count_nonzero(counts.any(axis=0)) < 2
    return 1 if alone else min(1 << depth, len(counts), 1 << depth if most is None else int(most))


@lru_cache(1 << 16)
def _decimal(value: float) -> Fraction:
    """The decimal that a number is written as."""
    return Fraction(repr(value))


def _near_decimals(columns: Sequence[np.ndarray]) -> None:
    """Raises NoProof if the decimals of a row may lie so far from its numbers that a hyperplane passes between them."""
    moved = Fraction(0)
    for values in columns:
        span = Fraction(float(values.max())) - Fraction(float(values.min()))
        moved += HALF_A_UNIT * Fraction(max(float(np.abs(values).max()), NORMAL)) / span
    if moved > BESIDE:
        raise NoProof("the range of some column is so small that its numbers cannot be told from their neighbours")


def _unit(values: np.ndarray, robust: bool) -> Fraction:
    """The unit of a column: its range; `robust`: or less if a few values lie far from all others."""
    levels = np.unique(values)
    ends = [Fraction(float(v)) for v in (levels[0], levels[-1])]
    if not robust:
        return ends[1] - ends[0]
    last = len(levels) - 1
    quartiles = [Fraction(float(levels[k])) for k in (last // 4, -(-3 * last // 4))]
    width = ends[1] - ends[0]
    return max(min(width, ROBUST * (quartiles[1] - quartiles[0])), width / FARTHEST)
