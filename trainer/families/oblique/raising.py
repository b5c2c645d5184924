"""A better bound by cases: before the solver begins, the analysis that writes proofs raises the bound of the search itself.

Goals rise by one row, then by twice as much after each that was proved, so that all goals before the last one take about as long as
it does. What was learnt for one goal (sets that nothing parts, hyperplanes) serves the next. Cases that end at a tree give that tree to the search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.families.oblique.instance import ObliqueTree
from trainer.families.oblique.local import LocalSearch
from trainer.families.oblique.proving import PlaneProof, analysis, cost_in_units, weighted_points
from trainer.families.oblique.refit import drawn_tree
from trainer.families.oblique.separable import Separator
from trainer.families.oblique.store import Step, Store
from trainer.families.oblique.target import SearchClock, Target
from trainer.methods.base import ProofSteps

SHARE = 0.5  # of the time that is left
LONGEST = 60.0  # seconds
MOST_CASES = 1_000_000


class BoundRaising:
    """The case analysis of one training. `bound` is the best value that it leaves open, None at first.

    `store` is what is known from an analysis of the same points.
    """

    def __init__(
        self, target: Target, search: LocalSearch, least: float, clock: SearchClock, store: Store | None = None
    ) -> None:
        self.target = target
        self.search = search
        self.seconds = min(LONGEST, SHARE * clock.remaining())
        self.stopped = clock.until(self.seconds)
        self.proof: PlaneProof = analysis(target.problem, target.instance, target.units, least, self.stopped)
        self.proof.store = (store or self.proof.store).until(self.stopped, MOST_CASES)
        self.bound: Fraction | None = None
        self.steps: list[Step] = []
        self.errors: dict[int, int] = {}  # what the steps prove for trees with so many leaves

    def run(self, bound: Fraction, tell: Callable[[Fraction], None]) -> None:
        """Raise goals above what is proved already, until the best tree is reached or time is over; `tell` hears each new bound."""
        total = self.target.instance.total
        step = Fraction(1)
        while bound > self.search.value and step >= 1 and not self.stopped():
            goal = max(self.search.value, bound - step)
            steps = self.proof.steps(total - goal)
            if steps is not None:
                bound = self.bound = self.target.lattice.floor(goal, Fraction(0))
                self.steps, self.errors = steps, dict(self.proof.needed(total - goal))
                step *= 2
                tell(bound)
            elif self.proof.fewer is None or not self._better(self.proof.fewer):
                step /= 2

    def _better(self, fewer: np.ndarray) -> bool:
        """Whether the tree at which the cases ended is better than the best one; then it is the best one."""
        at = np.ones(len(self.target.instance.Z), np.int64)  # points without weight are nowhere below the root
        at[weighted_points(self.target.problem, self.target.instance)] = fewer
        tree: ObliqueTree | None = drawn_tree(self.target.instance, at, Separator(self.target.instance.Z))
        return tree is not None and self.search.consider(tree)

    def record(self) -> dict[str, Any]:
        """What the evidence says of it."""
        store = self.proof.store
        bound = None if self.bound is None else str(self.bound)
        return {"cases": {"bound": bound, "cases": store.cases, "sets": len(store.vectors)}}

    def kept(self, objective: Fraction, stop: Callable[[], bool]) -> ProofSteps | None:
        """The steps as the proof that no tree has a better objective, at the prices that were asked for; None if they show less."""
        if self.bound is None or stop():
            return None
        problem = self.target.problem
        unit, cost = cost_in_units(problem, objective)
        instance = replace(self.target.instance, kappa=problem.kappa)
        plain = analysis(problem, instance, self.target.units, 0.0, stop)
        shown = all(
            errors <= max((most for s, most in self.errors.items() if s >= t), default=0)
            for t, errors in plain.needed(Fraction(cost, unit))
        )
        return ProofSteps(scale=1, goal=cost, steps=self.steps) if shown else None
