"""Write the proof of a bound over all thresholds.

Its steps bound the children of visited thresholds. Bounds of the other thresholds follow from their neighbours, and the
checker sweeps trees of depth two. If the search stored its visits, they are the proof. Otherwise it runs again from the
known bound, finds no better tree, and stores the visits that close the intervals. The format is docs/proof-format.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trainer.families.numeric.intervals import NodeResult, TimeOver, Visits
from trainer.families.numeric.search import PreparedSearch
from trainer.methods.base import ProofSteps

Step = dict[str, Any]
MOST_STEPS = 2_000_000


class NumericProofTooLarge(Exception):
    """The proof needs more than MOST_STEPS steps."""


def build_proof(prepared: PreparedSearch, depth: int, stop: Callable[[], bool]) -> ProofSteps | None:
    """Return the proof of the bound of a search that has ended; None if it is too large or stopped."""
    if prepared.lower <= prepared.search.leaf:  # a single leaf proves this bound, and a stopped search may lack columns
        return ProofSteps(scale=prepared.scale, goal=prepared.lower, steps=[])
    try:
        visits = prepared.visits
        if depth > 2 and visits is None:
            visits = _repeat_search(prepared, depth, stop)
        writer = _Writer(prepared.starts)
        writer.write([], depth, prepared.lower, visits)
    except (NumericProofTooLarge, TimeOver):
        return None
    return ProofSteps(scale=prepared.scale, goal=prepared.lower, steps=writer.steps)


def _repeat_search(prepared: PreparedSearch, depth: int, stop: Callable[[], bool]) -> Visits:
    """Search for a tree below the bound, which does not exist, and return the visited thresholds.

    Raises NumericProofTooLarge if they are too many for a proof, and TimeOver.
    """
    search = prepared.search
    search.flag = np.zeros(1, np.int64)
    search.stop = stop
    search.visits = []
    search.visited = 0
    search.most_visits = MOST_STEPS // 2
    result = search.search(prepared.order, depth, NodeResult(prepared.lower, None, False), 0)
    if search.visited > search.most_visits or result.visits is None:
        raise NumericProofTooLarge
    return result.visits


class _Writer:
    def __init__(self, starts: np.ndarray) -> None:
        self.steps = list[Step]()
        self.starts = starts

    def write(self, path: list[int], height: int, bound: int, visits: Visits | None) -> None:
        """Write the steps that prove `bound` for the rows at the end of the path."""
        for f, t, sides in visits or ():
            literal = 2 * (int(self.starts[f]) + t)
            for yes, side in enumerate(sides):
                if side is not None:
                    self.write([*path, literal + yes], height - 1, *side)
        if len(self.steps) >= MOST_STEPS:
            raise NumericProofTooLarge
        self.steps.append(
            {"path": path, "height": height, "bound": int(bound), "by": "count" if height <= 2 else "split"}
        )
