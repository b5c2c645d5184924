"""A proof of the bound of the search over all thresholds: the sides of the thresholds that the search looked at.

The thresholds between follow from their neighbours, and trees of depth two are checked by sweeps.  A search that kept what it looked at
has nothing to do again.  One that kept too little is run once more from the known bound, so that it finds no tree and only closes
intervals.  The format is docs/proof-format.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trainer.families.numeric.search import Looks, NumericSearch, PreparedSearch, TimeOver, _NodeResult
from trainer.methods.base import ProofSteps

Step = dict[str, Any]
MOST_STEPS = 2_000_000


class NumericProofTooLarge(Exception):
    """The proof has more steps than are written."""


def build_proof(prepared: PreparedSearch, depth: int, stop: Callable[[], bool]) -> ProofSteps | None:
    """The proof of the bound of a search that has been run; None if it has too many steps or is stopped."""
    if prepared.lower <= prepared.search.leaf:  # every tree has a leaf; a search that ended early has not all columns
        return ProofSteps(scale=prepared.scale, goal=prepared.lower, steps=[])
    try:
        looks = prepared.looks if depth <= 2 or prepared.looks is not None else _looked_at(prepared, depth, stop)
        writer = _Writer(prepared.search)
        writer.write([], depth, prepared.lower, looks)
    except (NumericProofTooLarge, TimeOver):
        return None
    return ProofSteps(scale=prepared.scale, goal=prepared.lower, steps=writer.steps)


def _looked_at(prepared: PreparedSearch, depth: int, stop: Callable[[], bool]) -> Looks:
    """What a search for a tree below the bound, of which there is none, looks at.

    Raises NumericProofTooLarge where that is more than a proof may hold, and Stopped.
    """
    search = prepared.search
    search.flag = np.zeros(1, np.int64)
    search.stop = stop
    search.looks = []
    search.looked = 0
    search.most_looks = MOST_STEPS // 2
    found = search.search(prepared.order, depth, _NodeResult(prepared.lower, None, False), 0)
    if search.looked > search.most_looks or found.looks is None:
        raise NumericProofTooLarge
    return found.looks


class _Writer:
    def __init__(self, search: NumericSearch) -> None:
        self.steps = list[Step]()
        self.starts = np.cumsum([0, *(int(r.max()) for r in search.rank)])

    def write(self, path: list[int], height: int, bound: int, looks: Looks | None) -> None:
        """The steps which show that no tree for the rows at the end of the path costs less than `bound`."""
        for f, t, sides in looks or ():
            literal = 2 * (int(self.starts[f]) + t)
            for yes, side in enumerate(sides):
                if side is not None:
                    self.write([*path, literal + yes], height - 1, *side)
        if len(self.steps) >= MOST_STEPS:
            raise NumericProofTooLarge
        self.steps.append(
            {"path": path, "height": height, "bound": int(bound), "by": "count" if height <= 2 else "split"}
        )
