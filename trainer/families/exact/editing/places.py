"""Write the steps that prove bounds of subproblems without wishes (docs/proof-format.md).

Below a split, columns may be banned that exclude its column on one path. Then splits that separate rows alike differ,
and a step
depends on the rows and on the remaining columns.
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
Pairs = Mapping[int, frozenset[int]]  # for each column, the columns that must not be tested on the same path
MOST_STEPS = 200_000
CHECKED_HEIGHT = 2  # children up to this height need no steps, because the checker counts them by itself


@dataclass(frozen=True)
class RowPlace:
    """A subproblem: rows, the height of trees, and the banned columns."""

    rows: np.ndarray
    height: int
    banned: frozenset[int]

    @property
    def key(self) -> tuple[object, ...]:
        """Key of the subproblem in caches."""
        return self.height, self.rows.tobytes(), self.banned


P = TypeVar("P", bound=RowPlace)


class Places:
    """Bounds of subproblems and of their children no and yes, from the search without restrictions. Raises SearchStopped."""

    def __init__(self, space: ExactSpace, pairs: Pairs, *, alike: bool = False) -> None:
        """Store the space; `alike` states whether splits that separate rows alike count as different."""
        self.space = space
        self.pairs = pairs
        self.alike = alike or bool(pairs)

    def questions(self, place: P) -> Iterator[tuple[int, tuple[P, P]]]:
        """Yield each split that separates the rows, with its children."""
        columns = self.space.questions.columns
        for question in self.space.candidates(place.rows, place.banned, [], alike=self.alike) if place.height else ():
            yes, no = self.space.split(place.rows, question)
            banned = place.banned | self.pairs.get(columns[question], frozenset())
            one, other = (replace(place, rows=rows, height=place.height - 1, banned=banned) for rows in (no, yes))
            yield question, (one, other)

    def floor(self, place: RowPlace) -> int:
        """Return the lower bound from class counts."""
        return self.space.floor(self.space.counts(place.rows), place.height)

    def floors(self, sides: tuple[RowPlace, RowPlace]) -> tuple[int, int]:
        """Return the lower bounds for both children from class counts."""
        return self.floor(sides[0]), self.floor(sides[1])

    def least(self, place: RowPlace, ub: int) -> int:
        """Return the least cost if it is below `ub`, else a bound of at least `ub`."""
        bound = self.space.solve(place.rows, None, place.height, place.banned, ub).lower
        if self.space.stopped():
            raise SearchStopped
        return bound

    def lows(self, sides: tuple[RowPlace, RowPlace], floors: tuple[int, int], ub: int) -> tuple[int, int]:
        """Return bounds of both children; they are the least costs if these add up to less than `ub`."""
        low = list(floors)
        for k in (0, 1):
            if low[0] + low[1] < ub:
                low[k] = max(low[k], self.least(sides[k], ub - low[1 - k]))
        return low[0], low[1]


def split_bound(bounds: tuple[int, int], floors: tuple[int, int], cost: int) -> tuple[int, int]:
    """Return bounds of two children that add up to `cost`, no higher than `bounds`; if one child suffices, the other gets its floor."""
    for k in (0, 1):
        if bounds[k] + floors[1 - k] >= cost:
            target = max(floors[k], cost - floors[1 - k])
            return (target, floors[1]) if k == 0 else (floors[0], target)
    return bounds[0], cost - bounds[0]


class FreeSteps:
    """A writer of steps for bounds without restrictions other than pairs of columns."""

    def __init__(self, space: ExactSpace, pairs: Pairs, stop: Callable[[], bool]) -> None:
        self.places = Places(space, pairs)
        self.stop = stop

    def of(self, place: RowPlace, cost: int) -> list[Step]:
        """Return the steps that prove the valid bound `cost`, with relative paths. Raises ExactProofTooLarge and SearchStopped."""
        if not self.places.pairs:
            return part_steps(
                self.places.space.search(place.banned, paths=False), place.rows, place.height, cost, self.stop
            )
        steps: list[Step] = []
        self._prove(place, [], cost, {}, steps)
        return steps

    def _prove(self, place: RowPlace, path: list[int], cost: int, proved: dict[Any, int], steps: list[Step]) -> None:
        if proved.get(place.key, 0) >= cost:
            return
        proved[place.key] = cost
        by = self._step_kind(place, cost)
        if by == "split" and place.height > CHECKED_HEIGHT + 1:
            self._sides(place, path, cost, proved, steps)
        if len(steps) >= MOST_STEPS or self.stop():
            raise ExactProofTooLarge
        steps.append({"path": path, "height": place.height, "bound": cost, "by": by})

    def _step_kind(self, place: RowPlace, cost: int) -> str:
        if self.places.floor(place) >= cost:
            return "floor"
        return "count" if place.height <= CHECKED_HEIGHT else "split"

    def _sides(self, place: RowPlace, path: list[int], cost: int, proved: dict[Any, int], steps: list[Step]) -> None:
        for question, sides in self.places.questions(place):
            floors = self.places.floors(sides)
            if floors[0] + floors[1] < cost:
                targets = split_bound(self.places.lows(sides, floors, cost), floors, cost)
                for yes in (0, 1):
                    if targets[yes] > floors[yes]:
                        self._prove(sides[yes], [*path, 2 * question + yes], targets[yes], proved, steps)
