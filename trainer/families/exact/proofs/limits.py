"""Prove bounds under a leaf limit or forbidden pairs of columns.

Up to depth three the checker counts by itself, so a proof is one step. For depth four each child of a split gets a step for each
number of leaves that it may have. If the best tree without limits satisfies them, its proof is enough. Steps over vectors prove deeper
trees, and optima that recalls or column limits make worse. The format is docs/proof-format.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.constraints import Constraints
from trainer.dtypes import BoolArray
from trainer.families.exact.search.constrained import solve_constrained
from trainer.families.exact.search.solve import prove_binary
from trainer.methods.base import ProofSteps
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits

DEEPEST = 4
Step = dict[str, Any]
MakeProof = Callable[[], ProofSteps | None]


def limited_proof(
    problem: BinaryProblem, constraints: Constraints, bound: Fraction, *, stop: Callable[[], bool], vectors: MakeProof
) -> ProofSteps | None:
    """Prove `bound`, in rows, for all trees within the constraints; None if it is stopped.

    `vectors` builds the proof if these steps are not enough.
    """
    Q = problem.leaf_cost.denominator
    # a proof without constraints may have steps on paths that forbidden pairs exclude
    may_follow_forbidden_paths = problem.depth >= DEEPEST and constraints.conflict is not None
    if not may_follow_forbidden_paths:
        free = prove_binary(problem, bound, stop=stop)
        # the limits do not change the optimum, so the plain proof suffices
        if free is not None and free.goal >= bound * free.scale * Q:
            return free
    if stop():
        return None
    if problem.depth > DEEPEST:
        return vectors()
    limits = replace(constraints, recalls=(), max_columns=None, columns=None)
    writer = _Writer(problem.with_positive_weights(), limits, stop)
    goal = writer.least_cost(writer.problem, limits.max_leaves)
    if stop():
        return None
    if goal < bound * Q:
        return vectors()
    if problem.depth == DEEPEST:
        writer.write_sides(goal)
    writer.write([], problem.depth, limits.max_leaves, goal)
    return None if stop() else ProofSteps(scale=1, goal=goal, steps=writer.steps)


class _Writer:
    """Writes the steps of one proof; costs are in 1/Q of a row, where Q is the denominator of the leaf penalty."""

    def __init__(self, problem: BinaryProblem, constraints: Constraints, stop: Callable[[], bool]) -> None:
        self.problem = problem
        self.constraints = constraints
        self.stop = stop
        self.steps = list[Step]()

    def least_cost(self, problem: BinaryProblem, leaves: int | None) -> int:
        """Return the least cost of a tree with at most `leaves` leaves."""
        limits = replace(self.constraints, max_leaves=leaves)
        solution = solve_constrained(problem, limits, limits=SearchLimits(stop=self.stop))
        return int(solution.bound * problem.leaf_cost.denominator)

    def write_sides(self, goal: int) -> None:
        """Write steps for both children of each split, with bounds of at most the goal."""
        problem = self.problem
        conflict = self.constraints.conflict
        height = DEEPEST - 1
        least = max(1, problem.min_leaf)
        total = int(problem.row_weights.sum())
        seen: set[bytes] = set()
        for q in np.flatnonzero(problem.allowed_features).tolist():
            if self.stop():
                return
            is_one = problem.X[:, q] == 1
            weight = int(problem.row_weights[is_one].sum())
            key = self._split_key(q, is_one)
            if min(weight, total - weight) < least or key in seen:
                continue
            seen.add(key)
            below = problem.allowed_features
            if conflict is not None:
                below = below & (1 - conflict[q])
            for answer, rows in ((0, ~is_one), (1, is_one)):
                side = replace(problem.among(rows), depth=height, allowed=below)
                for leaves in _leaf_shares(self.constraints.max_leaves, 1 << height):
                    self.write([2 * q + answer], height, leaves, min(goal, self.least_cost(side, leaves)))

    def _split_key(self, q: int, is_one: BoolArray) -> bytes:
        """Return a key that splits share if they need the same steps."""
        key = min(np.packbits(is_one).tobytes(), np.packbits(~is_one).tobytes())
        if self.constraints.conflict is None:
            return key
        # splits that separate the same rows may belong to columns with different forbidden partners
        return key + b"%d" % q

    def write(self, path: list[int], height: int, leaves: int | None, bound: int) -> None:
        step = {"path": path, "height": height, "bound": bound, "by": "split" if height > 2 else "count"}
        self.steps.append(step if leaves is None or leaves >= 1 << height else {**step, "leaves": leaves})


def _leaf_shares(most: int | None, largest: int) -> list[int | None]:
    """Return the numbers of leaves that a child may have; None for as many as its height allows."""
    if most is None or most >= 2 * largest:
        return [None]
    return [t if t < largest else None for t in range(max(1, most - largest), min(largest, most - 1) + 1)]
