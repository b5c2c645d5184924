"""Define the subject of a proof: rows, questions or points, prices, limits.

The checker of steps sees nothing else of a model file. The package `space` builds these records from the model document and the rows.
See docs/proof-format.md, "The space".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

Shape = tuple["Shape", "Shape"] | None  # a topology: the pair of its sides, or None for a leaf


class NoProof(Exception):
    """No step of the format can prove the model's claim; the text says why."""


class BadProof(Exception):
    """A proof does not hold; the text names the line and the reason."""


def require(holds: object, words: str) -> None:
    """Raise BadProof with these words unless the condition holds."""
    if not holds:
        raise BadProof(words)


@dataclass(frozen=True)
class ProofConstraint:
    """A wish of the workbench, with its place relative to a node above it.

    `split` is the question of the verb `ask`; None allows any question about the column. With `together` it names the categories.
    """

    text: str
    verb: str
    place: str
    column: int = -1
    split: tuple[str, Any] | None = (
        None  # ("<=", value), ("in", categories), ("between", (low, high)), ("missing", None)
    )
    empty: bool | None = None  # the answer that empty cells give to the question; None allows both
    label: int = -1  # code of the class; -1: the wish names no class
    height: int = -1
    # numbers of the questions that satisfy `ask`; they follow the questions of the encoding
    numbers: tuple[int, ...] = ()
    separating: tuple[int, ...] = ()  # numbers of the questions that would separate categories that must stay together


class RateLimit(NamedTuple):
    """A fairness constraint: the rates of `label` among the predictions of any two groups differ by at most `delta`.

    `group` is int64 of shape (n,), from 0, and -1 for rows that are not compared. `sizes` holds the weight of each group, above 0.
    """

    label: int
    delta: Fraction
    group: np.ndarray
    sizes: tuple[int, ...]


class CountedSets(NamedTuple):
    """The weight of each class that answers yes to all questions of a set, for sets of at most `depth` questions.

    `numbers` are int64 of shape (classes, sets): the empty set, then singles, pairs and triples, each in lexicographic order.
    For each question of a space, `base` is the counted question; if it is `mirrored`, its answers are the opposite ones.
    """

    depth: int
    numbers: np.ndarray
    base: np.ndarray = np.zeros(0, np.int64)
    mirrored: np.ndarray = np.zeros(0, bool)


@dataclass(frozen=True)
class ProofSpace:
    """Rows of positive weight, their answers to the questions, prices and limits.

    A tree costs unit * errors + leaf * leaves.
    """

    kind: str  # "questions": X is bool (n, m); "thresholds": X is float64 (n, F)
    X: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    classes: int
    depth: int
    penalty: Fraction  # price of a leaf, in rows
    min_leaf: int
    max_leaves: int | None
    allowed: np.ndarray  # bool (m,): whether a question is allowed; for thresholds bool (F,)
    apart: np.ndarray | None  # bool (m, m): [p, q] is True if q must not follow p on a path
    digest: str  # SHA-256 of the rows
    columns: np.ndarray | None = None  # int (m,): the column of each question
    yes_left: np.ndarray | None = None  # bool (m,): whether yes goes to side y of a place; None if it always does
    # bool (m,): False for questions that are allowed only where a wish asks for them
    listed: np.ndarray = field(default_factory=lambda: np.ones(1, bool))
    wishes: tuple[ProofConstraint, ...] = ()
    # for each limited class, its code and the largest weight that may be misclassified
    recalls: tuple[tuple[int, int], ...] = ()
    max_columns: int | None = None
    shape: Shape = None  # the topology, if the parameters fix it
    rates: RateLimit | None = None
    empty: bool = False  # whether some row has an empty cell
    any_depth: bool = False  # the depth is unlimited; `depth` is then a value that no tree exceeds
    prices: Mapping[int, Fraction] = field(default_factory=dict)  # by column, its price for one unit of weight, in rows
    # int (m,): 1 if yes must not predict a lower class than no, -1 if not a higher one
    rising: np.ndarray | None = None
    sets: CountedSets | None = None  # counts in place of rows: X has no row, and `weights` are those of the classes

    def most_leaves(self, height: int) -> int:
        """Return the most leaves of a tree of this height."""
        most = 1 << min(height, 62)
        if self.any_depth:  # every leaf has at least one row
            most = min(most, len(self.X))
        return most if self.max_leaves is None else min(most, self.max_leaves)

    @property
    def column_of(self) -> np.ndarray:
        return np.arange(self.X.shape[1]) if self.columns is None else self.columns


def depth_of(shape: Shape) -> int:
    """Count the questions on the longest path of a topology."""
    return 0 if shape is None else 1 + max(map(depth_of, shape))


def leaves_of(shape: Shape) -> int:
    """Count the leaves of a topology, the most that its trees have."""
    return 1 if shape is None else sum(map(leaves_of, shape))


@dataclass(frozen=True)
class PlaneSpace:
    """Points and the trees of hyperplanes over them; a leaf costs `penalty` and a branching at least `charge`, in rows.

    `values` are the coordinates, float64 of shape (points, m), and `exactly` reads one of them as a fraction. Two means are equal in a
    coordinate if they do not differ, or by less than its `near` where this is above 0.
    """

    values: np.ndarray
    exactly: Callable[[float], Fraction]
    near: list[Fraction]
    counts: np.ndarray  # int64 (points, classes)
    depth: int
    leaves: int  # most leaves of a tree
    penalty: Fraction
    charge: Fraction
    digest: str
    min_leaf: int = 1
    empty: bool = False  # whether some row has an empty cell
