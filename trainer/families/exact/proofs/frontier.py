"""Prove a frontier of leaves against errors.

No tree with at most t leaves makes fewer errors than its point t. Up to depth three the checker counts by itself, with
one step for each number of leaves. For deeper trees each child of a split gets the bounds that its parent needs, down
to height three. The format is docs/proof-format.md, "Frontiers".
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

CHECKED_HEIGHT = 3  # the checker counts subtrees up to this height by itself
ALWAYS_PROVED_DEPTH = 4  # up to this depth, a frontier is proved for any number of features
MOST_PATHS = 1000  # limit on the paths from the root of a deeper tree to subtrees that the checker counts
Step = dict[str, Any]


def frontier_proof(
    problem: BinaryProblem, errors: list[int], *, most: int, stop: Callable[[], bool]
) -> ProofSteps | None:
    """Prove that trees with at most t leaves make at least `errors[t - 1]` errors, and those with up to `most` leaves the last number.

    None if the proof is too large or was stopped.
    """
    depth = problem.depth
    features = np.flatnonzero(problem.allowed_features)
    if (depth > ALWAYS_PROVED_DEPTH and len(features) ** (depth - CHECKED_HEIGHT) > MOST_PATHS) or stop():
        return None
    goals = np.minimum.accumulate(errors).tolist()
    steps: list[Step] = []
    if depth > CHECKED_HEIGHT:
        sides = _Sides(problem.with_positive_weights(), stop)
        for step in sides.steps(np.ones(len(sides.y), bool), [], depth, goals, most):
            steps.append(step)
            if stop():
                return None
    for t, goal in enumerate(goals, start=1):
        if t == len(goals) or goals[t] < goal:  # a step with an equal goal for more leaves would imply this one
            last = most if t == len(goals) else t
            leaves = {"leaves": last} if last < 1 << depth else {}
            steps.append({"path": [], "height": depth, "bound": goal, "by": "split" if depth > 2 else "count"} | leaves)
    paid = min(goal + t * problem.leaf_cost for t, goal in enumerate(goals, start=1))
    goal = paid * problem.leaf_cost.denominator
    return ProofSteps(scale=1, goal=int(goal), steps=steps, goals=goals)


class _Sides:
    """A writer of the steps for the children of each split, down to the subtrees that the checker counts."""

    def __init__(self, problem: BinaryProblem, stop: Callable[[], bool]) -> None:
        self.problem = problem
        self.X = problem.X
        self.y = problem.y
        self.weights = problem.row_weights
        self.features = np.flatnonzero(problem.allowed_features)
        self.min_leaf = max(1, problem.min_leaf)
        self.stop = stop
        self.excess = excess_of(self.X, self.y, self.weights, problem.n_classes)
        self.proved: dict[tuple[int, bytes], CountArray] = {}  # proved bounds for each height and row set

    def steps(self, rows: BoolArray, path: list[int], height: int, goals: list[int], most: int) -> Iterator[Step]:
        """Yield steps for all children of these rows whose floors are below their goals for 1, 2, … leaves."""
        seen: set[bytes] = set()
        total = int(self.weights[rows].sum())
        largest = 1 << (height - 1)
        for q in self.features.tolist():
            sides = [rows & (self.X[:, q] == answer) for answer in (0, 1)]
            weight = int(self.weights[sides[1]].sum())
            key = min(np.packbits(side).tobytes() for side in sides)
            if self.stop() or min(weight, total - weight) < self.min_leaf or key in seen:
                continue
            seen.add(key)
            floors = [self._floors(side, largest) for side in sides]
            goals_of_sides = _side_goals(goals, most, floors)
            for answer, side in enumerate(sides):
                if (goals_of_sides[answer] > floors[answer]).any():
                    yield from self._side(
                        side, [*path, 2 * q + answer], height - 1, goals_of_sides[answer], floors[answer]
                    )

    def _side(
        self, rows: BoolArray, path: list[int], height: int, side_goals: CountArray, floors: CountArray
    ) -> Iterator[Step]:
        side = replace(self.problem.among(rows), depth=height)
        points = solve_frontier(side, limits=SearchLimits(stop=self.stop))
        most = 1 << height
        least = np.array([points[min(t, len(points) - 1)].bound for t in range(most)])
        bounds = np.minimum(least, side_goals)
        bounds[bounds <= floors] = 0
        key = height, np.packbits(rows).tobytes()
        proved_bounds = self.proved.get(key)
        if proved_bounds is not None and (proved_bounds >= bounds).all():
            return
        self.proved[key] = bounds if proved_bounds is None else np.maximum(bounds, proved_bounds)
        if height > CHECKED_HEIGHT:
            yield from self.steps(rows, path, height, bounds.tolist(), most)
        for t in range(most):
            if bounds[t] and (t == most - 1 or bounds[t + 1] < bounds[t]):
                leaves = {} if t == most - 1 else {"leaves": t + 1}
                yield {"path": path, "height": height, "bound": int(bounds[t]), "by": "split"} | leaves

    def _floors(self, rows: BoolArray, most: int) -> CountArray:
        """Return lower bounds on errors for 1, 2, … leaves from equal rows and class counts, int64 (most,)."""
        sizes = np.sort(np.bincount(self.y[rows], self.weights[rows], self.problem.n_classes).astype(np.int64))[::-1]
        left = int(sizes.sum()) - np.cumsum(sizes)
        wide = np.concatenate([left, np.zeros(most, np.int64)])[:most]
        return np.maximum(wide, int(self.excess[rows].sum()))


def _side_goals(goals: list[int], most: int, floors: list[CountArray]) -> list[CountArray]:
    """Return goals of both children for 1, 2, … leaves, such that each reaches the parent's goals together with the other's floor."""
    side_goals = [floor.copy() for floor in floors]
    largest = len(floors[0])
    for t in range(2, min(most, 2 * largest) + 1):
        goal = goals[min(t, len(goals)) - 1]
        for a in range(max(1, t - largest), min(largest, t - 1) + 1):
            for side, leaves, other in ((0, a, t - a), (1, t - a, a)):
                lacking = goal - int(floors[1 - side][other - 1])
                side_goals[side][leaves - 1] = max(side_goals[side][leaves - 1], lacking)
    return side_goals
