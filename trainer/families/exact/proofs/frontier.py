"""The proof of a frontier of leaves against errors: for each number of leaves, no tree of at most so many makes fewer errors.

Up to depth three the checker counts by itself: one step for each number of leaves. For deeper trees each side of a question gets the
bounds that these need of it, and so on down to height three. The format is docs/proof-format.md, "Frontiers".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from trainer.dtypes import BoolArray, CountArray
from trainer.families.exact.search.frontier import solve_frontier
from trainer.families.exact.search.row_bounds import excess_of
from trainer.methods.base import ProofSteps
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits

COUNTED = 3  # height up to which the checker counts by itself
ALWAYS = 4  # depth of trees whose frontier is proved whatever the number of questions
MOST_PATHS = 1000  # of others: ways to ask questions down to what the checker counts
Step = dict[str, Any]


def frontier_proof(
    problem: BinaryProblem, errors: list[int], *, most: int, stop: Callable[[], bool]
) -> ProofSteps | None:
    """Prove that trees with at most t leaves make `errors[t - 1]` errors, and all up to `most` leaves the last number.

    None if the proof is too large or was stopped.
    """
    depth = problem.depth
    features = np.flatnonzero(problem.allowed_features)
    if (depth > ALWAYS and len(features) ** (depth - COUNTED) > MOST_PATHS) or stop():
        return None
    goals = np.minimum.accumulate(errors).tolist()
    steps: list[Step] = []
    if depth > COUNTED:
        sides = _Sides(problem.with_positive_weights(), stop)
        for step in sides.steps(np.ones(len(sides.y), bool), [], depth, goals, most):
            steps.append(step)
            if stop():
                return None
    for t, goal in enumerate(goals, start=1):
        if t == len(goals) or goals[t] < goal:  # else the next one says more
            last = most if t == len(goals) else t
            leaves = {"leaves": last} if last < 1 << depth else {}
            steps.append({"path": [], "height": depth, "bound": goal, "by": "split" if depth > 2 else "count"} | leaves)
    paid = min(goal + t * problem.leaf_cost for t, goal in enumerate(goals, start=1))
    goal = paid * problem.leaf_cost.denominator
    return ProofSteps(scale=1, goal=int(goal), steps=steps, goals=goals)


class _Sides:
    """The steps of the sides of each question, down to those that the checker counts."""

    def __init__(self, problem: BinaryProblem, stop: Callable[[], bool]) -> None:
        self.problem = problem
        self.X = problem.X
        self.y = problem.y
        self.weights = problem.row_weights
        self.features = np.flatnonzero(problem.allowed_features)
        self.min_leaf = max(1, problem.min_leaf)
        self.stop = stop
        self.excess = excess_of(self.X, self.y, self.weights, problem.n_classes)
        self.held: dict[tuple[int, bytes], CountArray] = {}  # what is proved, by height and rows

    def steps(self, rows: BoolArray, path: list[int], height: int, goals: list[int], most: int) -> Iterator[Step]:
        """For the sides of these rows, as far as what is known of any rows falls short of the goals for 1, 2, … leaves."""
        done: set[bytes] = set()
        total = int(self.weights[rows].sum())
        largest = 1 << (height - 1)
        for q in self.features.tolist():
            sides = [rows & (self.X[:, q] == answer) for answer in (0, 1)]
            held = int(self.weights[sides[1]].sum())
            key = min(np.packbits(side).tobytes() for side in sides)
            if self.stop() or min(held, total - held) < self.min_leaf or key in done:
                continue
            done.add(key)
            floors = [self._floors(side, largest) for side in sides]
            needed = _needed(goals, most, floors)
            for answer, side in enumerate(sides):
                if (needed[answer] > floors[answer]).any():
                    yield from self._side(side, [*path, 2 * q + answer], height - 1, needed[answer], floors[answer])

    def _side(
        self, rows: BoolArray, path: list[int], height: int, needed: CountArray, floors: CountArray
    ) -> Iterator[Step]:
        side = replace(self.problem.among(rows), depth=height)
        points = solve_frontier(side, limits=SearchLimits(stop=self.stop))
        most = 1 << height
        least = np.array([points[min(t, len(points) - 1)].bound for t in range(most)])
        bounds = np.minimum(least, needed)
        bounds[bounds <= floors] = 0
        key = height, np.packbits(rows).tobytes()
        known = self.held.get(key)
        if known is not None and (known >= bounds).all():
            return
        self.held[key] = bounds if known is None else np.maximum(bounds, known)
        if height > COUNTED:
            yield from self.steps(rows, path, height, bounds.tolist(), most)
        for t in range(most):
            if bounds[t] and (t == most - 1 or bounds[t + 1] < bounds[t]):
                leaves = {} if t == most - 1 else {"leaves": t + 1}
                yield {"path": path, "height": height, "bound": int(bounds[t]), "by": "split"} | leaves

    def _floors(self, rows: BoolArray, most: int) -> CountArray:
        """Errors for 1, 2, … leaves by equal rows and classes, int64 (most,)."""
        sizes = np.sort(np.bincount(self.y[rows], self.weights[rows], self.problem.n_classes).astype(np.int64))[::-1]
        left = int(sizes.sum()) - np.cumsum(sizes)
        wide = np.concatenate([left, np.zeros(most, np.int64)])[:most]
        return np.maximum(wide, int(self.excess[rows].sum()))


def _needed(goals: list[int], most: int, floors: list[CountArray]) -> list[CountArray]:
    """What the sides must have for 1, 2, … leaves if the other side has its floor; both together then reach each goal, where they can."""
    needed = [floor.copy() for floor in floors]
    largest = len(floors[0])
    for t in range(2, min(most, 2 * largest) + 1):
        goal = goals[min(t, len(goals)) - 1]
        for a in range(max(1, t - largest), min(largest, t - 1) + 1):
            for side, own, other in ((0, a, t - a), (1, t - a, a)):
                lacking = goal - int(floors[1 - side][other - 1])
                needed[side][own - 1] = max(needed[side][own - 1], lacking)
    return needed
