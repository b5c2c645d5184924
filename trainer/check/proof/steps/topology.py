"""Trees of a topology that is not complete, searched by the checker itself: which side of a question goes which way is free.

See docs/proof-format.md, "Topologies".
"""

from __future__ import annotations

import itertools

from trainer.check.proof.steps.counting import Counting, FrameSides, PairFrame
from trainer.check.proof.steps.parts import ProofPart
from trainer.check.proof.subject import NoProof, Shape, depth_of, leaves_of

MOST_QUESTIONS = 100  # of topologies that are four questions deep


def holds(c: Counting, part: ProofPart, shape: Shape, bound: int) -> bool:
    """Whether each tree of the topology costs `bound` at least. Raises NoProof where that is not looked at."""
    depth = depth_of(shape)
    leaves = leaves_of(shape)
    if c.floor(part, depth, leaves) >= bound:
        return True
    if shape is None or depth <= 2:
        return c.count(part, depth, leaves, bound) >= bound
    # a question that separates nothing is left out
    if c.leaf_cost(part) < bound or not all(holds(c, part, side, bound) for side in shape):
        return False
    frame = PairFrame(c, part)
    if not len(frame.columns):
        return True
    sizes = leaves_of(shape[0]), leaves_of(shape[1])
    if depth == 3:  # a topology of depth two or less is all trees of so many leaves, which are counted
        return FrameSides(c, frame, 2, list(dict.fromkeys([sizes, sizes[::-1]]))).short(bound) is None
    small, large = sorted(shape, key=depth_of)
    if depth_of(small) > 2 or depth > 4 or c.X.shape[1] > MOST_QUESTIONS:
        words = "topologies of four questions are checked with a side of at most two"
        raise NoProof(f"{words}, and up to {MOST_QUESTIONS} questions")
    sides = FrameSides(c, frame, 3, [(1, 1)])
    # one is counted, the other pays what is missing
    for q, yes in itertools.product(range(len(frame.columns)), (0, 1)):
        cost = c.count(sides.part(q, yes), depth_of(small), leaves_of(small), bound)
        if not holds(c, sides.part(q, 1 - yes), large, bound - cost):
            return False
    return True
