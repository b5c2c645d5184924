"""The recursion over vectors without steps that lead it: the best tree of a small space within all of its restrictions."""

from __future__ import annotations

from trainer.check.proof.steps.counting import Counting
from trainer.check.proof.steps.parts import INFINITE_COST, ProofPart
from trainer.check.proof.steps.within import VectorRecursion


class SearchTooLarge(Exception):
    """A search had more subproblems than it may."""


class ExhaustiveSearch(VectorRecursion):
    """A search of so many subproblems at most; raises SearchTooLarge beyond."""

    def __init__(self, counting: Counting, most: int) -> None:
        super().__init__(counting)
        self.left = most

    def visit(self, subproblems: int) -> None:
        """Raises SearchTooLarge where no more may be looked at."""
        self.left -= subproblems
        if self.left < 0:
            raise SearchTooLarge

    def optimum(self, part: ProofPart, height: int) -> int | None:
        """The least cost of a tree of all rows, None if no tree keeps the restrictions."""
        most = self.c.unit * int(self.c.weight.sum()) + (self.c.leaf << min(height, 40)) + 1
        cost, more = (self.c.floor(part, height, INFINITE_COST), self.c.unit) if self.groups else (0, INFINITE_COST)
        while True:  # vectors of groups are many, and few of them are cheap
            cost = min(cost + more, most)
            more = 2 * more
            found = self.cover(part, height, cost)
            if len(found) or cost == most:
                return int(found[:, 0].min()) if len(found) else None
