"""Proofs with a limit of leaves or with pairs of columns that no path may hold: bounds of the sides for each number of leaves.

Up to depth three the checker counts by itself, so that a proof is one step.  For depth four each side of a question gets one for each
number of leaves that it may be dealt.  Where the best tree without limits keeps them, its proof is enough.  Where recalls or limits of
columns make the best tree worse, and for deeper trees, the steps over vectors prove it.  The format is docs/proof-format.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.constraints import Constraints
from trainer.dtypes import BitArray, CodeArray, CountArray
from trainer.families.exact.search.constrained import solve_constrained
from trainer.families.exact.search.solve import prove_binary
from trainer.methods.base import Proof

DEEPEST = 4
Step = dict[str, Any]


def limited_proof(
    X: BitArray, y: CodeArray, constraints: Constraints, *, n_classes: int, depth: int, leaf_cost: Fraction,
    weights: CountArray | None, min_leaf: int, allowed: BitArray, bound: Fraction, stop: Callable[[], bool],
    vectors: Callable[[], Proof | None],
) -> Proof | None:  # fmt: skip
    """The proof of `bound`, in rows, for all trees within the constraints; None if it is stopped.

    Arguments as for `solve_constrained`.  `vectors` makes a proof for what these steps do not prove.
    """
    forbidden = depth >= DEEPEST and constraints.conflict is not None  # are some paths that its steps may follow
    free = None if forbidden else prove_binary(
        X, y, bound, n_classes=n_classes, depth=depth, leaf_cost=leaf_cost, weights=weights, min_leaf=min_leaf, allowed=allowed,
        stop=stop,
    )  # fmt: skip
    if free is not None and free.goal >= bound * free.scale * leaf_cost.denominator:  # the limits cost nothing
        return free
    if stop():
        return None
    if depth > DEEPEST:
        return vectors()
    kept = replace(constraints, recalls=(), max_columns=None, columns=None)
    own = np.ones(len(y), np.int64) if weights is None else weights
    used = own > 0
    writer = _Writer(
        X[used], y[used], own[used], kept, stop,
        {"n_classes": n_classes, "leaf_cost": leaf_cost, "min_leaf": min_leaf, "stop": stop},
    )  # fmt: skip
    every = np.ones(int(used.sum()), bool)
    goal = writer.cost(every, allowed.astype(np.uint8), depth, kept.max_leaves)
    if stop():
        return None
    if goal < bound * leaf_cost.denominator:
        return vectors()
    if depth == DEEPEST:
        writer.sides(allowed.astype(np.uint8), goal)
    writer.write([], depth, kept.max_leaves, goal)
    return None if stop() else Proof(scale=1, goal=goal, steps=writer.steps)


class _Writer:
    def __init__(
        self, X: BitArray, y: CodeArray, weights: CountArray, constraints: Constraints, stop: Callable[[], bool],
        common: dict[str, Any],
    ) -> None:  # fmt: skip
        self.X = X
        self.y = y
        self.weights = weights
        self.constraints = constraints
        self.stop = stop
        self.common = common
        self.steps = list[Step]()

    def cost(self, rows: np.ndarray, allowed: BitArray, depth: int, leaves: int | None) -> int:
        """The least cost of a tree for the rows in 1/Q of a row, Q being the denominator of a leaf's price."""
        limits = replace(self.constraints, max_leaves=leaves)
        found = solve_constrained(
            self.X[rows], self.y[rows], limits, depth=depth, weights=self.weights[rows], allowed=allowed, **self.common
        )
        return int(found.bound * self.common["leaf_cost"].denominator)

    def sides(self, allowed: BitArray, goal: int) -> None:
        """Steps for both sides of each question that separates the rows, as far as their sum must reach the goal."""
        height = DEEPEST - 1
        most = self.constraints.max_leaves
        conflict = self.constraints.conflict
        total = int(self.weights.sum())
        done: set[bytes] = set()
        for q in np.flatnonzero(allowed).tolist():
            if self.stop():
                return
            yes = self.X[:, q] == 1
            held = int(self.weights[yes].sum())
            least = max(1, self.common["min_leaf"])
            # with pairs, questions of the same answers may leave different ones
            key = min(np.packbits(yes).tobytes(), np.packbits(~yes).tobytes()) + (
                b"" if conflict is None else bytes([q])
            )
            if min(held, total - held) < least or (conflict is None and key in done):
                continue
            done.add(key)
            below = allowed if conflict is None else allowed & (1 - conflict[q])
            for answer, rows in ((0, ~yes), (1, yes)):
                for leaves in _leaf_shares(most, 1 << height):
                    bound = min(goal, self.cost(rows, below, height, leaves))
                    self.write([2 * q + answer], height, leaves, bound)

    def write(self, path: list[int], height: int, leaves: int | None, bound: int) -> None:
        step = {"path": path, "height": height, "bound": bound, "by": "split" if height > 2 else "count"}
        self.steps.append(step if leaves is None or leaves >= 1 << height else {**step, "leaves": leaves})


def _leaf_shares(most: int | None, largest: int) -> list[int | None]:
    """How many leaves a side may be dealt; None for as many as its height allows."""
    if most is None or most >= 2 * largest:
        return [None]
    return [t if t < largest else None for t in range(max(1, most - largest), min(largest, most - 1) + 1)]
