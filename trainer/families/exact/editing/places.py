"""Subproblems without wishes, the questions that part their rows, and the steps that prove their bounds (docs/proof-format.md).

Below a question columns may be banned that may not stand on one path with its own.  Then questions that part rows alike are not the
same, and a step is about rows and about the columns that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from trainer.editing.space import SearchStopped
from trainer.families.exact.editing.space import ExactSpace
from trainer.families.exact.search.proof import ExactProofTooLarge, part_steps

Step = dict[str, Any]
Pairs = Mapping[int, frozenset[int]]  # for a column those that no path asks beside it
MOST_STEPS = 200_000
COUNTED = 2  # height of sides that the checker counts by itself


@dataclass(frozen=True)
class RowPlace:
    """Rows, the height of their trees, and the columns that these do not ask."""

    rows: np.ndarray
    height: int
    banned: frozenset[int]

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it apart from others."""
        return self.height, self.rows.tobytes(), self.banned


P = TypeVar("P", bound=RowPlace)


class Places:
    """What the search without restrictions knows of places and of their sides, no and yes. Raises SearchStopped."""

    def __init__(self, space: ExactSpace, pairs: Pairs, *, alike: bool = False) -> None:
        """`alike`: questions that part rows alike are not the same."""
        self.space = space
        self.pairs = pairs
        self.alike = alike or bool(pairs)

    def questions(self, place: P) -> Iterator[tuple[int, tuple[P, P]]]:
        """Each question that parts the rows of a place, with its sides."""
        columns = self.space.questions.columns
        for question in self.space.candidates(place.rows, place.banned, [], alike=self.alike) if place.height else ():
            yes, no = self.space.split(place.rows, question)
            banned = place.banned | self.pairs.get(columns[question], frozenset())
            one, other = (replace(place, rows=rows, height=place.height - 1, banned=banned) for rows in (no, yes))
            yield question, (one, other)

    def floor(self, place: RowPlace) -> int:
        """What the classes alone cost."""
        return self.space.floor(self.space.counts(place.rows), place.height)

    def floors(self, sides: tuple[RowPlace, RowPlace]) -> tuple[int, int]:
        """The same of both sides."""
        return self.floor(sides[0]), self.floor(sides[1])

    def least(self, place: RowPlace, ub: int) -> int:
        """The least cost if it is below `ub`, else a bound of at least `ub`."""
        found = self.space.solve(place.rows, None, place.height, place.banned, ub).lower
        if self.space.stopped():
            raise SearchStopped
        return found

    def lows(self, sides: tuple[RowPlace, RowPlace], floors: tuple[int, int], ub: int) -> tuple[int, int]:
        """Bounds of both sides, which are their least costs if these add up to less than `ub`."""
        low = list(floors)
        for k in (0, 1):
            if low[0] + low[1] < ub:
                low[k] = max(low[k], self.least(sides[k], ub - low[1 - k]))
        return low[0], low[1]


def shared(known: tuple[int, int], floors: tuple[int, int], cost: int) -> tuple[int, int]:
    """Bounds of two sides that add up to `cost`, no higher than what is known; where one side is enough, the other's is its floor."""
    for k in (0, 1):
        if known[k] + floors[1 - k] >= cost:
            needed = max(floors[k], cost - floors[1 - k])
            return (needed, floors[1]) if k == 0 else (floors[0], needed)
    return known[0], cost - known[0]


class FreeSteps:
    """The steps for bounds that hold without restrictions other than pairs of columns."""

    def __init__(self, space: ExactSpace, pairs: Pairs, stop: Callable[[], bool]) -> None:
        self.places = Places(space, pairs)
        self.stop = stop

    def of(self, place: RowPlace, cost: int) -> list[Step]:
        """What proves that no tree costs less, which must be true; paths begin at the place. Raises ExactProofTooLarge and Stopped."""
        if not self.places.pairs:
            return part_steps(
                self.places.space.search(place.banned, paths=False), place.rows, place.height, cost, self.stop
            )
        steps: list[Step] = []
        self._prove(place, [], cost, {}, steps)
        return steps

    def _prove(self, place: RowPlace, path: list[int], cost: int, held: dict[Any, int], steps: list[Step]) -> None:
        if held.get(place.key, 0) >= cost:
            return
        held[place.key] = cost
        by = "floor" if self.places.floor(place) >= cost else "count" if place.height <= COUNTED else "split"
        if by == "split" and place.height > COUNTED + 1:
            self._sides(place, path, cost, held, steps)
        if len(steps) >= MOST_STEPS or self.stop():
            raise ExactProofTooLarge
        steps.append({"path": path, "height": place.height, "bound": cost, "by": by})

    def _sides(self, place: RowPlace, path: list[int], cost: int, held: dict[Any, int], steps: list[Step]) -> None:
        for question, sides in self.places.questions(place):
            floors = self.places.floors(sides)
            if floors[0] + floors[1] < cost:
                needed = shared(self.places.lows(sides, floors, cost), floors, cost)
                for yes in (0, 1):
                    if needed[yes] > floors[yes]:
                        self._prove(sides[yes], [*path, 2 * question + yes], needed[yes], held, steps)
