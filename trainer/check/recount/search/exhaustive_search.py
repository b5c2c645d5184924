"""Find the best tree of a small space by recursion over vectors."""

from __future__ import annotations

from trainer.check.proof.steps.counting import Counting
from trainer.check.proof.steps.parts import INFINITE_COST, ProofPart
from trainer.check.proof.steps.within import VectorRecursion


class SearchTooLarge(Exception):
    """A search exceeded its limit of subproblems."""


class ExhaustiveSearch(VectorRecursion):
    """A search of at most `most` subproblems; it raises SearchTooLarge beyond."""

    def __init__(self, counting: Counting, most: int) -> None:
        super().__init__(counting)
        self.left = most

    def visit(self, subproblems: int) -> None:
        """Count visited subproblems; raise SearchTooLarge beyond the limit."""
        self.left -= subproblems
        if self.left < 0:
            raise SearchTooLarge

    def optimum(self, part: ProofPart, height: int) -> int | None:
        """Return the least cost of a tree; None if no tree satisfies the restrictions."""
        most = self.c.unit * int(self.c.weight.sum()) + (self.c.leaf << min(height, 40)) + 1
        cost, more = (self.c.floor(part, height, INFINITE_COST), self.c.unit) if self.groups else (0, INFINITE_COST)
        while True:  # with groups there are many vectors, but few cheap ones, so the cost limit rises step by step
            cost = min(cost + more, most)
            more = 2 * more
            vectors = self.cover(part, height, cost)
            if len(vectors) or cost == most:
                return int(vectors[:, 0].min()) if len(vectors) else None
