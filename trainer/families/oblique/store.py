"""What is known of points and hyperplanes while cases are told apart: sets that nothing parts, hyperplanes that were met, and lemmas.

The cases themselves are in `cases`; docs/proof-format.md has the lines that are made of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainer.dtypes import BoolArray, CountArray
from trainer.families.oblique.hulls import Hulls, Meeting, Separation

Labels = int | tuple["Labels", "Labels"]  # a class, or the two sides of a question
Step = dict[str, Any]  # as in the file; vectors and sets that add up are named by their place in the store
Columns = tuple[int, ...]
MOST_CASES = 50_000
MOST_WORK = 50_000_000  # points times columns of all linear programs, and what their fractions take
MOST_HELD = 50_000_000  # points times vectors and hyperplanes that are kept


class UndecidedCases(Exception):
    """The cases cannot be completed: a tree makes fewer errors, or rounding leaves a set open, or time is over."""


@dataclass(frozen=True, eq=False)
class Lemma:
    """Two leaves err by `bound` at least on the points of a vector."""

    vector: int
    labels: Labels
    bound: int


class Store:
    """What is known of the points: vectors of sets that nothing parts, hyperplanes that were met, and lemmas on sets."""

    def __init__(self, hulls: Hulls, counts: CountArray, stop: Callable[[], bool], seed: int = 0) -> None:
        self.hulls = hulls
        self.counts = counts
        self.stop = stop
        self.random = np.random.default_rng(seed)
        size = len(counts)
        self.vectors: list[Meeting] = []
        self.known: dict[tuple[frozenset[int], frozenset[int]], int] = {}
        self.sides = np.zeros((2, 64, size), np.float32)  # of each vector: its points on the left, on the right
        self.partings = np.zeros((2, 64, size), bool)  # of each hyperplane the same, points too near to it on neither
        self.parted = 0
        self.cases = 0
        self.most_cases = MOST_CASES
        self.lemmas: dict[tuple[int, Labels], int] = {}
        self.made: list[Lemma] = []
        self.narrow: dict[Columns, Store] = {}  # of hyperplanes that weigh these columns only

    def within(self, columns: Columns) -> Store:
        """The same points for hyperplanes that weigh only these columns."""
        if len(columns) == self.hulls.Z.shape[1]:
            return self
        if columns not in self.narrow:
            some = list(columns)
            hulls = self.hulls
            own = Hulls(hulls.X[:, some], hulls.Z[:, some], hulls.least, hulls.stop)
            self.narrow[columns] = Store(own, self.counts, self.stop)
        return self.narrow[columns]

    def until(self, stop: Callable[[], bool], most_cases: int = MOST_CASES) -> Store:
        """The same store for further cases, which end otherwise; what was done before does not count."""
        self.stop = self.hulls.stop = stop
        self.cases = 0
        self.hulls.work = 0
        self.most_cases = most_cases
        return self

    def cannot(self, left: BoolArray, right: BoolArray) -> int | None:
        """The place of a vector within these sets, or None if a hyperplane parts them; raises UndecidedCases."""
        if not left.any() or not right.any() or self._seen(left, right):
            return None
        self.pause()
        found = self.hulls.test(np.flatnonzero(left), np.flatnonzero(right))
        if found is None:
            raise UndecidedCases
        if isinstance(found, Separation):
            self._keep(found)
            return None
        return self._place(found)

    def pause(self) -> None:
        """Raises UndecidedCases if time is over, or too much was done or is kept."""
        held = (len(self.vectors) + self.parted) * len(self.counts)
        if self.stop() or held > MOST_HELD or self.cases > self.most_cases or self.hulls.work > MOST_WORK:
            raise UndecidedCases

    def _seen(self, left: BoolArray, right: BoolArray) -> bool:
        one, two = self.partings[:, : self.parted]
        outside = (
            (~one[:, left]).any(axis=1) | (~two[:, right]).any(axis=1),
            (~two[:, left]).any(axis=1) | (~one[:, right]).any(axis=1),
        )
        return not all(way.all() for way in outside)

    def _keep(self, parting: Separation) -> None:
        if self.parted == self.partings.shape[1]:
            self.partings = np.concatenate([self.partings, np.zeros_like(self.partings)], axis=1)
        self.partings[0, self.parted], self.partings[1, self.parted] = parting.left, parting.right
        self.parted += 1

    def _place(self, found: Meeting) -> int:
        key = frozenset(found.left), frozenset(found.right)
        if key in self.known:
            return self.known[key]
        place = self.known[key] = self.known[key[::-1]] = len(self.vectors)
        if place == self.sides.shape[1]:
            self.sides = np.concatenate([self.sides, np.zeros_like(self.sides)], axis=1)
        self.sides[0, place, list(found.left)] = self.sides[1, place, list(found.right)] = 1.0
        self.vectors.append(found)
        return place

    def lemma(self, vector: int, labels: Labels, bound: int) -> int:
        """The place of a lemma."""
        key = vector, labels
        if key not in self.lemmas:
            self.lemmas[key] = len(self.made)
            self.made.append(Lemma(vector, labels, bound))
        return self.lemmas[key]


def lemma_steps(meeting: Meeting, place: int) -> Sequence[Step]:
    """The cases of a lemma: each point goes where its class asks, and nothing parts them."""
    points = [*meeting.left, *meeting.right]
    return [*({"by": "side", "point": p} for p in points), {"by": "meet", "of": place, "at": 1}]
