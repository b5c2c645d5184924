"""What a limit of different columns leaves open, case by case: the branch and bound over columns, and the proof that it leaves behind.

A case is about the trees that ask all of some columns and none outside others. It is closed by a bound of its own, or by its two sides: a
further column is asked, or may not be asked. The search keeps its cases, so that the proof searches nothing again (docs/proof-format.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trainer.families.exact.search.proof import build_proof
from trainer.families.exact.search.search import ExactSearch
from trainer.methods.base import ProofSteps

Step = dict[str, Any]
Columns = frozenset[int]
COUNTED = 3  # depth of trees up to which the checker searches a case by itself


@dataclass
class Case:
    """The trees that ask all of `required` and only `usable` columns; none costs less than `bound`, in rows."""

    required: Columns
    usable: Columns
    bound: Fraction = Fraction(0)
    column: int = -1  # the one that its sides tell apart
    sides: tuple[Case, Case] | None = None
    search: ExactSearch | None = None  # with what it has learned, where there is room for it

    def part(self, column: int) -> tuple[Case, Case]:
        """Its sides: the column is asked, or may not be asked."""
        asked = Case(self.required | {column}, self.usable)
        left = Case(self.required, self.usable - {column})
        self.column = column
        self.sides = (asked, left)
        return self.sides


@dataclass(frozen=True, kw_only=True)
class CasesProof:
    """The proof of `bound`, in rows, from the cases of a search of trees of this depth with at most `leaves` leaves.

    `search` gives the search among some columns of a case that kept none; it is needed for trees deeper than COUNTED.
    """

    root: Case
    bound: Fraction
    depth: int
    leaves: int | None
    Q: int  # costs are whole multiples of 1/Q
    search: Callable[[Columns], ExactSearch]
    stop: Callable[[], bool]

    def made(self) -> ProofSteps | None:
        """None if it is stopped, or if the cases do not show the bound by themselves."""
        cost = -(-self.bound.numerator * self.Q // self.bound.denominator)
        scale = 1
        if self.depth > COUNTED:
            g = (self.root.search or self.search(self.root.usable)).instance
            scale = g.scale
        goal = scale * cost + (1 if scale > 1 else 0)  # a tree of that cost has a leaf
        steps: list[Step] = []
        for step in self._steps(self.root, goal):
            if step is None or self.stop():
                return None
            steps.append(step)
        return ProofSteps(scale=scale, goal=goal, steps=steps)

    def _steps(self, case: Case, goal: int) -> Iterator[Step | None]:
        """The steps of a case, None in place of what is missing."""
        columns = {} if case.usable == self.root.usable else {"columns": sorted(case.usable)}
        if case.bound >= self.bound:
            for step in self._closed(case, goal):
                yield None if step is None else step | columns
        elif case.sides is None:
            yield None
        else:
            for side in case.sides:
                yield from self._steps(side, goal)
            step = {"path": [], "height": self.depth, "bound": goal, "by": "cases", "column": case.column}
            yield step | {"with": sorted(case.required)} | columns

    def _closed(self, case: Case, goal: int) -> Iterator[Step | None]:
        """The steps that show its bound, without its columns."""
        if self.depth <= COUNTED:
            step = {"path": [], "height": self.depth, "bound": goal, "by": "split" if self.depth > 2 else "count"}
            few = self.leaves is not None and self.leaves < 1 << self.depth
            yield step | ({"leaves": self.leaves} if few else {})
            return
        found = build_proof(case.search or self.search(case.usable), goal, self.stop)
        yield from [None] if found is None else found.steps
