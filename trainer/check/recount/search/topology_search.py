"""Trees of `odt` with wishes within a topology that is not complete: a plain search of small spaces, without steps.

A tree has room in a topology if the sides of its question have room below one of its nodes, either way round: a question of the topology
that parts no rows may stand above any part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from trainer.check.proof.steps.counting import Counting, PairFrame
from trainer.check.proof.steps.parts import ANY, INFINITE_COST, ProofPart
from trainer.check.proof.subject import Shape, depth_of, leaves_of
from trainer.check.recount.search.exhaustive_search import ExhaustiveSearch


class TopologySearch:
    """The least errors of a tree in a topology, which keeps the wishes of its part; raises TooLarge beyond so many subproblems."""

    def __init__(self, counting: Counting, most: int) -> None:
        self.c = counting
        self.plain = ExhaustiveSearch(counting, most)
        self.memo: dict[tuple[object, ...], int] = {}

    def least(self, part: ProofPart, shape: Shape) -> int:
        """FAR if no tree keeps the wishes."""
        depth = depth_of(shape)
        if not part.wishes and depth <= 2 and part.span == ANY:  # all trees of so many leaves
            height = min(depth, part.max_height)
            return self.c.count(part, height, min(leaves_of(shape), 1 << height), 0)
        key = shape, *part.restricted_key
        if key not in self.memo:
            self.plain.visit(1)
            self.memo[key] = self._searched(part, shape)
        return self.memo[key]

    def _searched(self, part: ProofPart, shape: Shape) -> int:
        leaf = self.plain.vectors(part, 0, INFINITE_COST, None, None)
        found = int(leaf[0, 0]) if len(leaf) else INFINITE_COST
        if shape is None or part.max_height <= 0 or any(w.verb == "leaf" and not w.place for w in part.wishes):
            return found
        for one, other in self._sides(part):
            for a, b in places(shape):
                self.plain.visit(1)
                low = self._floor(one, a) + self._floor(other, b)
                if low < found and (first := self.least(one, a)) < found:
                    found = min(found, first + self.least(other, b))
        return found

    def _sides(self, part: ProofPart) -> Iterator[tuple[ProofPart, ProofPart]]:
        """The no side and the yes side of each question that may stand here and parts the rows."""
        frame = PairFrame(self.c, part, alike=True)
        for q in frame.columns[self.plain._usable_questions(part)[frame.columns]].tolist():
            yes = part.rows & (self.c.X[:, q] > 0)
            yield self.c.below(part, q, 0, part.rows & ~yes), self.c.below(part, q, 1, yes)

    def _floor(self, part: ProofPart, shape: Shape) -> int:
        return self.c.floor(part, depth_of(shape), leaves_of(shape))


@cache
def places(shape: Shape) -> tuple[tuple[Shape, Shape], ...]:
    """What the sides of a question may have room in, each pair once."""
    if shape is None:
        return ()
    one, other = shape
    return tuple(dict.fromkeys([(one, other), (other, one), *places(one), *places(other)]))
