"""Prove bounds under wishes and limits on the tree (docs/proof-format.md).

The checker searches children of height two by itself, so a proof of depth three is one step. For deeper trees, a split gets a
step for each child if the children's bounds are too low. The step states a bound, and the vectors of the trees that cost less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.constraints import Constraints, column_pairs
from trainer.data.problem import Problem
from trainer.editing.prefix import Prefix, Spot
from trainer.editing.questions import asked_questions
from trainer.editing.space import INFINITE_COST, SearchStopped
from trainer.editing.wishes import EditConstraint, held_questions
from trainer.families.exact.editing.fronts import TreeLimits
from trainer.families.exact.editing.limited import LimitedCompleter
from trainer.families.exact.editing.places import CHECKED_HEIGHT, MOST_STEPS, FreeSteps, RowPlace
from trainer.families.exact.editing.space import ExactSpace
from trainer.families.exact.search.constraints import exact_constraints
from trainer.families.exact.search.proof import ExactProofTooLarge
from trainer.families.exact.workbench import Workbench
from trainer.methods.base import NotProved, ProofSteps, Settings

Step = dict[str, Any]


def restricted_proof(
    bench: Workbench, wishes: Sequence[EditConstraint], bound: Fraction, depth: int, stop: Callable[[], bool]
) -> ProofSteps | None:
    """Return the proof that no tree with these wishes within the limits of the bench costs less than `bound` rows.

    None if it is stopped or has too many steps. Raises NotProved if the bound is wrong.
    """
    g = bench.space.instance
    cost = -(-bound.numerator * g.Q // bound.denominator)
    goal = g.scale * cost + (1 if g.scale > 1 else 0)  # a tree has at least one leaf, which adds 1 to its scaled cost
    bench.space.begin(None, stop)
    # a tree that separates r distinct rows has at most depth r - 1
    writer = _Writer(bench, wishes, min(depth, bench.space.depth), stop)
    try:
        writer.cases(frozenset(), writer.every, goal)
    except (SearchStopped, ExactProofTooLarge):
        return None
    return ProofSteps(scale=g.scale, goal=goal, steps=writer.steps)


def constrained_bench(problem: Problem, settings: Settings) -> Workbench:
    """Build a workbench with the constraints of a method's settings, to prove a bound."""
    limits = TreeLimits(
        constraints=exact_constraints(problem, settings) or Constraints(max_leaves=settings["max_leaves"]),
        pairs=column_pairs(problem, settings),
    )
    banned = str(settings.get("forbidden") or "")
    return Workbench(
        problem,
        depth=settings["depth"],
        min_leaf=int(settings.get("min_leaf") or 1),
        without=[name.strip() for name in banned.split(";") if name.strip()],
        limits=limits,
    )


class _Writer:
    def __init__(
        self, bench: Workbench, wishes: Sequence[EditConstraint], depth: int, stop: Callable[[], bool]
    ) -> None:
        self.space: ExactSpace = bench.space
        self.prefix: Prefix = bench.prefix
        self.depth = depth
        self.stop = stop
        self.completer = bench.completer if isinstance(bench.completer, LimitedCompleter) else None
        self.fronts = None if self.completer is None else self.completer.fronts
        limits = None if self.fronts is None else self.fronts.limits
        self.pairs = {} if limits is None else limits.pairs
        self.most = None if limits is None else limits.constraints.max_columns
        self.items = frozenset(w.item for w in wishes) | held_questions(wishes, self.space.questions)
        self.every = frozenset(range(len(self.space.problem.table.names)))
        self.steps: list[Step] = []
        self.proved: dict[Any, int] = {}
        self.columns: list[int] | None = None
        self.free = FreeSteps(self.space, self.pairs, stop)
        self.literal = _literals(self.space, wishes)

    # -- all rows --------------------------------------------------------------------------------------------------------

    def cases(self, required: frozenset[int], usable: frozenset[int], goal: int) -> None:
        """Prove that no tree that uses all `required` and only `usable` columns costs less than the goal."""
        full = self.most is not None and len(required) >= self.most
        within = required if full else usable
        if self.completer is not None and self.most is not None:
            best = self.completer.best_within(self.items, self.every - within, goal, False)
            if self.stop():
                raise SearchStopped
            if best.cost < INFINITE_COST:
                unused = {self.space.questions.columns[q] for q in asked_questions(best.tree)} - required
                if full or not unused:
                    raise NotProved(
                        "The proof found a better tree than the claimed bound allows. Report this model with its data."
                    )
                column = min(unused)
                self.cases(required | {column}, usable, goal)
                self.cases(required, usable - {column}, goal)
                step: Step = {"path": [], "height": self.depth, "bound": goal, "by": "cases", "column": column}
                self._add(step | {"with": sorted(required)}, None if usable == self.every else sorted(usable))
                return
        self.columns = None if within == self.every else sorted(within)
        top = self.prefix.settle(replace(self.prefix.top(self.items), banned=self.every - within))
        self.prove(top, [], self.depth, goal)

    # -- a subproblem ----------------------------------------------------------------------------------------------------

    def prove(self, spot: Spot, path: list[int], height: int, cost: int) -> None:
        """Write the steps that cover the trees of a settled subproblem with costs below `cost`."""
        if self.stop():
            raise SearchStopped
        key = (min(spot.height, height), spot.rows.tobytes(), spot.banned, spot.items)
        if self.proved.get(key, -1) >= cost:
            return
        self.proved[key] = cost
        has_held = any(i.verb == "held" for i in spot.items)
        free = not has_held and (not spot.items or spot.height <= CHECKED_HEIGHT + 1)
        if free and self.space.solve(spot.rows, None, spot.height, spot.banned, cost).lower >= cost:
            for step in self.free.of(RowPlace(spot.rows, spot.height, spot.banned), cost):
                self._add(step | {"path": [*path, *map(self.literal, step["path"])]}, self.columns)
            return
        vectors = self.cover(spot, cost)
        if self.stop():
            raise SearchStopped
        if spot.height > CHECKED_HEIGHT + 1:
            self.sides(spot, path, height, cost)
        step = {"path": path, "height": height, "bound": cost, "by": "within"}
        self._add(step | ({"vectors": vectors.tolist()} if len(vectors) else {}), self.columns)

    def cover(self, spot: Spot, cost: int) -> np.ndarray:
        """Return the vectors of the trees that cost less than `cost`."""
        if self.fronts is not None:
            return np.asarray(self.fronts.front(spot, cost).vectors)
        value = self.prefix.value(spot, cost)
        return np.array([[value.lower]] if value.exact and value.lower < cost else [], np.int64).reshape(-1, 1)

    def sides(self, spot: Spot, path: list[int], height: int, cost: int) -> None:
        """Write steps for the children of all candidate splits whose floors are too low."""
        for question in self.prefix.candidates(spot, alike=True):
            side = self.prefix._sides(spot, question)
            apart = self.pairs.get(self.space.questions.columns[question], frozenset())
            spots = [replace(s, banned=s.banned | apart) for s in side.spots]
            floors = list(side.bounds)
            if floors[0] + floors[1] >= cost:
                continue
            values = [self.prefix.value(s, cost - floors[1 - k]).lower for k, s in enumerate(spots)]
            targets = [cost - floors[1], cost - floors[0]]
            if values[0] + values[1] >= cost:  # the bounds of both children suffice, so prove no more than needed
                first = 0 if values[0] + floors[1] >= cost or values[1] + floors[0] < cost else 1
                targets[first] = min(values[first], cost - floors[1 - first])
                targets[1 - first] = cost - targets[first]
            for k in (0, 1):
                if spots[k].height > CHECKED_HEIGHT and targets[k] > floors[k]:
                    answer = self.literal(2 * question + 1 - k)
                    self.prove(self.prefix.settle(spots[k]), [*path, answer], height - 1, targets[k])

    def _add(self, step: Step, columns: list[int] | None) -> None:
        if len(self.steps) >= MOST_STEPS:
            raise SearchStopped
        self.steps.append(step if columns is None else step | {"columns": columns})


def _literals(space: ExactSpace, wishes: Sequence[EditConstraint]) -> Callable[[int], int]:
    """Return a function that renumbers answers for the format: encoding, then questions of wishes, then mirrored ones."""
    questions = space.questions
    problem = space.problem
    m = questions.encoded
    plain = problem.binary.bits(problem.table)
    turned = [not np.array_equal(plain[:, q] > 0, questions.answers(q)) for q in range(m)]
    wish_questions = list(dict.fromkeys(q for w in wishes if w.item.verb == "ask" for q in w.item.questions))
    numbers = {q: m + len(wish_questions) + i for i, q in enumerate(questions.mirrors.values())}
    numbers |= {q: m + i for i, q in enumerate(wish_questions)}

    def literal(answer: int) -> int:
        q, yes = divmod(answer, 2)
        return 2 * q + (yes ^ turned[q]) if q < m else 2 * numbers[q] + yes

    return literal
