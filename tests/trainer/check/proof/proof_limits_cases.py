"""Cases and oracles of `test_proof_limits.py` that other tests use, too."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from trainer.check.proof.subject import ProofSpace


class Least:
    """Least costs of a table, by plain recursion.

    What is known of some rows holds below every path to them.
    """

    def __init__(self, space: ProofSpace, unit: int, leaf: int) -> None:
        self.space = space
        self.unit = unit
        self.leaf = leaf
        self.best = lru_cache(None)(self._best)

    def after(self, q: int, allowed: frozenset[int]) -> frozenset[int]:
        apart = self.space.apart
        return allowed if apart is None else frozenset(r for r in allowed if not apart[q, r])

    def _best(self, rows: frozenset[int], allowed: frozenset[int], left: int, t: int) -> int:
        space = self.space
        chosen = sorted(rows)
        sizes = np.bincount(space.labels[chosen], space.weights[chosen], space.classes)
        found = self.leaf + self.unit * int(sizes.sum() - sizes.max())
        for q in allowed if left and t > 1 else ():
            yes = frozenset(i for i in chosen if space.X[i, q])
            no = rows - yes
            if min(space.weights[sorted(side)].sum() for side in (yes, no)) < space.min_leaf:
                continue
            below = self.after(q, allowed)
            for a in range(1, t):
                found = min(found, self.best(yes, below, left - 1, a) + self.best(no, below, left - 1, t - a))
        return found

    def below(self, path: list[int], height: int, leaves: int) -> int:
        """Return the least cost below a path with at most this many leaves."""
        X = self.space.X
        allowed = frozenset(range(X.shape[1]))
        for literal in path:
            allowed = self.after(literal // 2, allowed)
        rows = frozenset(i for i in range(len(X)) if all(bool(X[i, q // 2]) == bool(q % 2) for q in path))
        return self.best(rows, allowed, height, leaves)
