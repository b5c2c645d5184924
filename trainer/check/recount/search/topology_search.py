"""Search `odt` trees with wishes in an incomplete topology.

The search is for small spaces and uses no steps. A tree fits a topology if the sides of its question fit below one of
the topology's nodes, in either order. A question of the topology that separates no rows may stand above any part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from trainer.check.proof.steps.counting import Counting, PairFrame
from trainer.check.proof.steps.parts import ANY, INFINITE_COST, ProofPart
from trainer.check.proof.subject import Shape, depth_of, leaves_of
from trainer.check.recount.search.exhaustive_search import ExhaustiveSearch


class TopologySearch:
    """A search for the least errors of trees in a topology within the wishes, over at most `most` subproblems."""

    def __init__(self, counting: Counting, most: int) -> None:
        self.c = counting
        self.plain = ExhaustiveSearch(counting, most)
        self.memo: dict[tuple[object, ...], int] = {}

    def least(self, part: ProofPart, shape: Shape) -> int:
        """Return the least errors; INFINITE_COST if no tree satisfies the wishes."""
        depth = depth_of(shape)
        # the topology then allows every tree with this many leaves, which can be counted directly
        if not part.wishes and depth <= 2 and part.span == ANY:
            height = min(depth, part.max_height)
            return self.c.count(part, height, min(leaves_of(shape), 1 << height), 0)
        key = shape, *part.restricted_key
        if key not in self.memo:
            self.plain.visit(1)
            self.memo[key] = self._search(part, shape)
        return self.memo[key]

    def _search(self, part: ProofPart, shape: Shape) -> int:
        leaf = self.plain.vectors(part, 0, INFINITE_COST, None, None)
        best = int(leaf[0, 0]) if len(leaf) else INFINITE_COST
        if shape is None or part.max_height <= 0 or any(w.verb == "leaf" and not w.place for w in part.wishes):
            return best
        for one, other in self._sides(part):
            for a, b in places(shape):
                self.plain.visit(1)
                low = self._floor(one, a) + self._floor(other, b)
                if low < best and (first := self.least(one, a)) < best:
                    best = min(best, first + self.least(other, b))
        return best

    def _sides(self, part: ProofPart) -> Iterator[tuple[ProofPart, ProofPart]]:
        """Yield the no side and the yes side of each question that may stand here and separates the rows."""
        frame = PairFrame(self.c, part, alike=True)
        for q in frame.columns[self.plain._usable_questions(part)[frame.columns]].tolist():
            yes = part.rows & (self.c.X[:, q] > 0)
            yield self.c.below(part, q, 0, part.rows & ~yes), self.c.below(part, q, 1, yes)

    def _floor(self, part: ProofPart, shape: Shape) -> int:
        return self.c.floor(part, depth_of(shape), leaves_of(shape))


@cache
def places(shape: Shape) -> tuple[tuple[Shape, Shape], ...]:
    """Return the pairs of topologies that the sides of a question may fit, each once."""
    if shape is None:
        return ()
    one, other = shape
    return tuple(dict.fromkeys([(one, other), (other, one), *places(one), *places(other)]))
