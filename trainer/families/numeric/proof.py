"""A proof of the bound of the search over all thresholds: the sides of thresholds that a second pass had to look at.

The pass starts from the known bound, so that it finds no tree and only closes intervals; the thresholds between follow from their
neighbours.  Trees of depth two are checked by sweeps.  The format is docs/proof-format.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trainer.families.numeric.kernels.orders import divide
from trainer.families.numeric.search import NumericSearch, Prepared, Stopped, _Found
from trainer.method import Proof

Step = dict[str, Any]
MOST_STEPS = 2_000_000


class ProofTooLarge(Exception):
    """The proof has more steps than are written."""


def made(prepared: Prepared, depth: int, stop: Callable[[], bool]) -> Proof | None:
    """The proof of the bound of a search that has been run; None if it has too many steps or is stopped."""
    if prepared.lower <= prepared.search.leaf:  # every tree has a leaf; a search that ended early has not all columns
        return Proof(scale=prepared.scale, goal=prepared.lower, steps=[])
    prepared.search.flag, prepared.search.stop = np.zeros(1, np.int64), stop
    try:
        steps = prove_thresholds(prepared, depth, prepared.lower)
    except (ProofTooLarge, Stopped):
        return None
    return Proof(scale=prepared.scale, goal=prepared.lower, steps=steps)


def prove_thresholds(prepared: Prepared, depth: int, bound: int) -> list[Step]:
    """The steps that prove the integer cost `bound`, which must be true, for all trees of the depth.

    Raises ProofTooLarge beyond two million steps; the search's stop ends the pass with its exception.
    """
    writer = _Writer(prepared.search)
    writer.prove(prepared.order, [], depth, bound)
    return writer.steps


class _Writer:
    def __init__(self, search: NumericSearch) -> None:
        self.search, self.steps = search, list[Step]()
        self.starts = np.cumsum([0, *(int(r.max()) for r in search.rank)])

    def prove(self, order: np.ndarray, path: list[int], height: int, bound: int) -> None:
        """Write what proves that no tree for the rows of `order` costs less than `bound`."""
        if height <= 2:
            return self._write(path, height, bound, "count")
        looked: list[tuple[int, int, list[Any]]] = []

        def note(at: int, f: int, t: int, found: list[Any]) -> None:
            if at == height:
                looked.append((f, t, found))

        s = self.search
        s.note = note
        s.search(order, height, _Found(bound, None, False), 0)
        s.note = None
        for f, t, found in looked:
            parts = divide(order, s.rank, f, t)
            for yes in (0, 1):
                if found[yes] is not None:
                    literal = 2 * (int(self.starts[f]) + t) + yes
                    self.prove(parts[yes], [*path, literal], height - 1, found[yes].cost)
        return self._write(path, height, bound, "split")

    def _write(self, path: list[int], height: int, bound: int, by: str) -> None:
        if len(self.steps) >= MOST_STEPS:
            raise ProofTooLarge
        self.steps.append({"path": path, "height": height, "bound": int(bound), "by": by})
