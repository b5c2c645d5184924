"""Search the trees of an incomplete topology: the rule `topology`.

The sides of a question may be swapped. See docs/proof-format.md, "Topologies".
"""

from __future__ import annotations

import itertools

from trainer.check.proof.steps.counting import Counting, FrameSides, PairFrame
from trainer.check.proof.steps.parts import ProofPart
from trainer.check.proof.subject import NoProof, Shape, depth_of, leaves_of

MOST_QUESTIONS = 100  # with more yes/no questions, topologies of depth four are not checked


def costs_at_least(c: Counting, part: ProofPart, shape: Shape, bound: int) -> bool:
    """Apply rule `topology`: return True if each tree of the topology costs at least `bound`.

    Raises NoProof if the topology is too large for this search.
    """
    depth = depth_of(shape)
    leaves = leaves_of(shape)
    if c.floor(part, depth, leaves) >= bound:
        return True
    if shape is None or depth <= 2:
        return c.count(part, depth, leaves, bound) >= bound
    # if the root separates nothing, the tree reduces to one of its sides, so both sides must hold on their own
    if c.leaf_cost(part) < bound or not all(costs_at_least(c, part, side, bound) for side in shape):
        return False
    frame = PairFrame(c, part)
    if not len(frame.columns):
        return True
    sizes = leaves_of(shape[0]), leaves_of(shape[1])
    # a topology of depth two or less is determined by its number of leaves, up to swapped sides, so its trees can be
    # counted
    if depth == 3:
        return FrameSides(c, frame, 2, list(dict.fromkeys([sizes, sizes[::-1]]))).unproved_question(bound) is None
    small, large = sorted(shape, key=depth_of)
    if depth_of(small) > 2 or depth > 4 or c.X.shape[1] > MOST_QUESTIONS:
        words = "topologies are checked up to depth four, and those of depth four only with a side of depth two"
        raise NoProof(f"{words} and at most {MOST_QUESTIONS} yes/no questions")
    sides = FrameSides(c, frame, 3, [(1, 1)])
    # the small side is counted exactly, so that the large side must cost at least the difference
    for q, yes in itertools.product(range(len(frame.columns)), (0, 1)):
        cost = c.count(sides.part(q, yes), depth_of(small), leaves_of(small), bound)
        if not costs_at_least(c, sides.part(q, 1 - yes), large, bound - cost):
            return False
    return True
