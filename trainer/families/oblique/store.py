"""Cache inseparable sets, hyperplanes and lemmas of the case analysis.

The case analysis is in `cases`; docs/proof-format.md describes the lines of the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainer.dtypes import BoolArray, CountArray
from trainer.families.oblique.hulls import Hulls, Meeting, Separation

Labels = int | tuple["Labels", "Labels"]  # a class, or the pair of the children's labels
Step = dict[str, Any]  # as in the proof file; vectors and lemmas are named by their index in the store
Columns = tuple[int, ...]
MAX_CASES = 50_000
MAX_WORK = 50_000_000  # limit on points × columns over all linear programs, plus steps of exact fractions
MAX_CACHED_CELLS = 50_000_000  # limit on points × (cached vectors and hyperplanes)


class UndecidedCases(Exception):
    """The case analysis cannot be completed: a better tree, an undecided set, or a limit."""


@dataclass(frozen=True, eq=False)
class Lemma:
    """Two leaves make at least `bound` errors on the points of a vector."""

    vector: int
    labels: Labels
    bound: int


class Store:
    """Vectors of inseparable sets, separating hyperplanes and lemmas over fixed points."""

    def __init__(self, hulls: Hulls, counts: CountArray, stop: Callable[[], bool], seed: int = 0) -> None:
        self.hulls = hulls
        self.counts = counts
        self.stop = stop
        self.random = np.random.default_rng(seed)
        size = len(counts)
        self.vectors: list[Meeting] = []
        self.meeting_numbers: dict[tuple[frozenset[int], frozenset[int]], int] = {}
        self.sides = np.zeros((2, 64, size), np.float32)  # points of each vector on its left and on its right
        # points on each side of every hyperplane; points too near to it are on neither side
        self.partings = np.zeros((2, 64, size), bool)
        self.separations = 0
        self.cases = 0
        self.most_cases = MAX_CASES
        self.lemmas: dict[tuple[int, Labels], int] = {}
        self.lemma_list: list[Lemma] = []
        self.narrow: dict[Columns, Store] = {}  # stores for hyperplanes with coefficients only in these columns

    def narrowed(self, columns: Columns) -> Store:
        """Return the store of the same points for hyperplanes with coefficients in these columns only."""
        if len(columns) == self.hulls.Z.shape[1]:
            return self
        if columns not in self.narrow:
            some = list(columns)
            hulls = self.hulls
            hulls_within = Hulls(hulls.X[:, some], hulls.Z[:, some], hulls.least, hulls.stop)
            self.narrow[columns] = Store(hulls_within, self.counts, self.stop)
        return self.narrow[columns]

    def restart(self, stop: Callable[[], bool], most_cases: int = MAX_CASES) -> Store:
        """Reset the limits for further cases, and return the store."""
        self.stop = self.hulls.stop = stop
        self.cases = 0
        self.hulls.work = 0
        self.most_cases = most_cases
        return self

    def find_meeting(self, left: BoolArray, right: BoolArray) -> int | None:
        """Return the index of a vector within these sets; None if they are separable or one is empty.

        Raises UndecidedCases if the test has no result or a limit is exceeded.
        """
        if not left.any() or not right.any() or self._is_separated(left, right):
            return None
        self.check_limits()
        result = self.hulls.test(np.flatnonzero(left), np.flatnonzero(right))
        if result is None:
            raise UndecidedCases
        if isinstance(result, Separation):
            self._add_separation(result)
            return None
        return self._add_meeting(result)

    def check_limits(self) -> None:
        """Raise UndecidedCases if the time, the work or the cache exceeds its limit."""
        cells = (len(self.vectors) + self.separations) * len(self.counts)
        if self.stop() or cells > MAX_CACHED_CELLS or self.cases > self.most_cases or self.hulls.work > MAX_WORK:
            raise UndecidedCases

    def _is_separated(self, left: BoolArray, right: BoolArray) -> bool:
        one, two = self.partings[:, : self.separations]
        outside = (
            (~one[:, left]).any(axis=1) | (~two[:, right]).any(axis=1),
            (~two[:, left]).any(axis=1) | (~one[:, right]).any(axis=1),
        )
        return not all(way.all() for way in outside)

    def _add_separation(self, parting: Separation) -> None:
        if self.separations == self.partings.shape[1]:
            self.partings = np.concatenate([self.partings, np.zeros_like(self.partings)], axis=1)
        self.partings[0, self.separations] = parting.left
        self.partings[1, self.separations] = parting.right
        self.separations += 1

    def _add_meeting(self, meeting: Meeting) -> int:
        key = frozenset(meeting.left), frozenset(meeting.right)
        if key in self.meeting_numbers:
            return self.meeting_numbers[key]
        place = self.meeting_numbers[key] = self.meeting_numbers[key[::-1]] = len(self.vectors)
        if place == self.sides.shape[1]:
            self.sides = np.concatenate([self.sides, np.zeros_like(self.sides)], axis=1)
        self.sides[0, place, list(meeting.left)] = self.sides[1, place, list(meeting.right)] = 1.0
        self.vectors.append(meeting)
        return place

    def lemma(self, vector: int, labels: Labels, bound: int) -> int:
        """Return the index of a lemma; add it if it is new."""
        key = vector, labels
        if key not in self.lemmas:
            self.lemmas[key] = len(self.lemma_list)
            self.lemma_list.append(Lemma(vector, labels, bound))
        return self.lemmas[key]


def lemma_steps(meeting: Meeting, place: int) -> Sequence[Step]:
    """Return the steps of a lemma: each point goes to the side that its class prefers, and the sides are inseparable."""
    points = [*meeting.left, *meeting.right]
    return [*({"by": "side", "point": p} for p in points), {"by": "meet", "of": place, "at": 1}]
