"""What a proof is about, in numbers: rows, questions or points, prices and limits. The program that checks proofs sees nothing else of a model file.

See docs/proof-format.md, "The space".  The other modules of this package make these from the model document and the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

Shape = tuple["Shape", "Shape"] | None  # of a topology; None is a leaf


class NoProof(Exception):
    """No step of the format fits what the model claims; the text says why."""


class BadProof(Exception):
    """A proof does not hold; the text names the line and the reason."""


def require(holds: object, words: str) -> None:
    """Raises BadProof with these words unless it holds."""
    if not holds:
        raise BadProof(words)


@dataclass(frozen=True)
class ProofConstraint:
    """What a wish asks, seen from a place above it: `split` is the question of `ask`, None for any about the column, and names what
    stays `together`.
    """

    text: str
    verb: str
    place: str
    column: int = -1
    split: tuple[str, Any] | None = (
        None  # ("<=", value), ("in", categories), ("between", (low, high)), ("missing", None)
    )
    empty: bool | None = None  # the answer of empty cells to the question; None: either
    label: int = -1  # of the class; -1: none is named
    height: int = -1
    numbers: tuple[int, ...] = ()  # of the questions that keep `ask`, behind those of the encoding
    parted: tuple[int, ...] = ()  # numbers of the questions that part what stays together


class RateLimit(NamedTuple):
    """The shares of the rows of each group that are predicted `label` lie at most `delta` apart.

    `group`: int64 (n,), from 0; -1 for rows that are not compared. `sizes`: the weight of each group, above 0.
    """

    label: int
    delta: Fraction
    group: np.ndarray
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class ProofSpace:
    """Rows of positive weight, the questions they answer, and the price of errors and leaves: unit * errors + leaf * leaves."""

    kind: str  # "questions": X is bool (n, m); "thresholds": X is float64 (n, F)
    X: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    classes: int
    depth: int
    penalty: Fraction  # of a leaf, in rows
    min_leaf: int
    max_leaves: int | None
    allowed: np.ndarray  # bool (m,): questions that may be asked; thresholds: bool (F,)
    apart: np.ndarray | None  # bool (m, m): the second may not follow the first on a path
    digest: str  # of the rows
    columns: np.ndarray | None = None  # int (m,): the column of each question
    yes_left: np.ndarray | None = None  # bool (m,): the answer yes is the side y of places, as it is without this
    listed: np.ndarray = field(default_factory=lambda: np.ones(1, bool))  # bool (m,): not only where a wish asks them
    wishes: tuple[ProofConstraint, ...] = ()
    recalls: tuple[tuple[int, int], ...] = ()  # classes with the most weight of each that may be classified wrongly
    max_columns: int | None = None
    shape: Shape = None  # the topology, where it is given
    rates: RateLimit | None = None
    empty: bool = False  # some row has an empty cell
    rising: np.ndarray | None = None  # int (m,): 1 if yes must not predict lower classes than no, -1 if not higher ones

    def most_leaves(self, height: int) -> int:
        """The most leaves of a tree of this height."""
        most = 1 << min(height, 62)
        return most if self.max_leaves is None else min(most, self.max_leaves)

    @property
    def column_of(self) -> np.ndarray:
        return np.arange(self.X.shape[1]) if self.columns is None else self.columns


def depth_of(shape: Shape) -> int:
    """Questions on the longest path of a topology."""
    return 0 if shape is None else 1 + max(map(depth_of, shape))


def leaves_of(shape: Shape) -> int:
    """The most leaves of its trees."""
    return 1 if shape is None else sum(map(leaves_of, shape))


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
    min_leaf: int = 1
    empty: bool = False  # some row has an empty cell
