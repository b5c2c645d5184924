"""Trees of a topology that is not complete, searched by the checker itself: which side of a question goes which way is free.

See docs/proof-format.md, "Topologies".
"""

from __future__ import annotations

from trainer.verify.steps.counting import Counting, Frame, Sides
from trainer.verify.steps.parts import Part
from trainer.verify.subject import NoProof, Shape, depth_of, leaves_of

MOST_QUESTIONS = 100  # of topologies that are four questions deep


class Topologies:
    """Lower bounds of the errors of the trees of a topology."""

    def __init__(self, counting: Counting) -> None:
        self.c = counting

    def holds(self, part: Part, shape: Shape, bound: int) -> bool:
        """Whether each tree of the topology costs `bound` at least. Raises NoProof where that is not looked at."""
        c, depth = self.c, depth_of(shape)
        if c.floor(part, depth, leaves_of(shape)) >= bound:
            return True
        if c.leaf_cost(part) < bound:
            return False
        if shape is None or depth <= 2:
            return c.count(part, depth, leaves_of(shape), bound) >= bound
        # a question that separates nothing is left out
        if not all(self.holds(part, side, bound) for side in shape):
            return False
        frame = Frame(c, part, part.allowed)
        return not len(frame.columns) or (self._three if depth == 3 else self._four)(part, frame, shape, bound)

    def _three(self, part: Part, frame: Frame, shape: tuple[Shape, Shape], bound: int) -> bool:
        """Both sides are counted: a topology of depth two or less is all trees of so many leaves."""
        a, b = map(leaves_of, shape)
        sides = Sides(self.c, frame, 2, [(a, b)] if a == b else [(a, b), (b, a)])
        return sides.short(bound) is None

    def _four(self, part: Part, frame: Frame, shape: tuple[Shape, Shape], bound: int) -> bool:
        """One side is counted, and the other one must cost what is missing."""
        small, large = sorted(shape, key=depth_of)
        if depth_of(small) > 2 or depth_of(large) > 3 or self.c.X.shape[1] > MOST_QUESTIONS:
            words = "topologies of four questions are checked with a side of at most two"
            raise NoProof(f"{words}, and up to {MOST_QUESTIONS} questions")
        yes = frame.X != 0
        for a in range(len(frame.columns)):
            for answer in (False, True):
                one, two = (part.rows.copy() for _ in range(2))
                one[frame.index], two[frame.index] = yes[:, a] == answer, yes[:, a] != answer
                cost = self.c.count(Part(one, part.allowed), depth_of(small), leaves_of(small), bound)
                if not self.holds(Part(two, part.allowed), large, bound - cost):
                    return False
        return True
