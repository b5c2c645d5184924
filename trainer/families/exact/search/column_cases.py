"""Store and prove the cases of the branch and bound over columns.

A case covers the trees that test all required columns and only usable ones. Its own bound closes it, or its two children do:
one requires a further column, the other forbids it. The search stores its cases, so the proof repeats no search (docs/proof-format.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trainer.families.exact.search.search import ExactSearch
from trainer.methods.base import ProofSteps

Step = dict[str, Any]
Columns = frozenset[int]
CHECKED_DEPTH = 3  # the checker searches a case by itself for trees up to this depth


@dataclass
class Case:
    """The trees that test all `required` columns and only `usable` ones; none costs less than `bound` rows."""

    required: Columns
    usable: Columns
    bound: Fraction = Fraction(0)
    column: int = -1  # column on which the case branches: one child requires it, the other forbids it
    sides: tuple[Case, Case] | None = None
    search: ExactSearch | None = None  # the search of the case with its caches, if memory allows

    def branch(self, column: int) -> tuple[Case, Case]:
        """Create the children: one requires the column, the other forbids it."""
        with_column = Case(self.required | {column}, self.usable)
        without_column = Case(self.required, self.usable - {column})
        self.column = column
        self.sides = (with_column, without_column)
        return self.sides


@dataclass(frozen=True, kw_only=True)
class CasesProof:
    """The proof of `bound`, in rows, from the cases of a search of trees of this depth with at most `leaves` leaves.

    `close` returns the steps that prove a goal for the trees of a case, or None. Only trees deeper than CHECKED_DEPTH need it.
    """

    root: Case
    bound: Fraction
    depth: int
    leaves: int | None
    Q: int  # costs are integer multiples of 1/Q
    scale: int  # factor of the costs in the steps of `close`
    close: Callable[[Case, int], list[Step] | None]
    stop: Callable[[], bool]
    priced: bool = False

    def build_steps(self) -> ProofSteps | None:
        """Return the proof; None if `stop` ended it or the cases do not prove the bound."""
        cost = -(-self.bound.numerator * self.Q // self.bound.denominator)
        scale = self.scale if self.depth > CHECKED_DEPTH else 1
        goal = scale * cost + (1 if scale > 1 else 0)  # a tree has at least one leaf, which adds 1 to its scaled cost
        steps: list[Step] = []
        for step in self._steps(self.root, goal):
            if step is None or self.stop():
                return None
            steps.append(step)
        return ProofSteps(scale=scale, goal=goal, steps=steps, priced=self.priced)

    def _steps(self, case: Case, goal: int) -> Iterator[Step | None]:
        """Yield the steps of a case, None for a missing one."""
        columns = {} if case.usable == self.root.usable else {"columns": sorted(case.usable)}
        if case.bound >= self.bound:
            for step in self._closing_steps(case, goal):
                yield None if step is None else step | columns
        elif case.sides is None:
            yield None
        else:
            for side in case.sides:
                yield from self._steps(side, goal)
            step = {"path": [], "height": self.depth, "bound": goal, "by": "cases", "column": case.column}
            yield step | {"with": sorted(case.required)} | columns

    def _closing_steps(self, case: Case, goal: int) -> Iterator[Step | None]:
        """Yield the steps that prove the bound of a case, without its columns."""
        if self.depth <= CHECKED_DEPTH:
            step = {"path": [], "height": self.depth, "bound": goal, "by": "split" if self.depth > 2 else "count"}
            few = self.leaves is not None and self.leaves < 1 << self.depth
            yield step | ({"leaves": self.leaves} if few else {})
            return
        steps = self.close(case, goal)
        yield from [None] if steps is None else steps
