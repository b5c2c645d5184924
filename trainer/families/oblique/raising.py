"""Tighten the bound by case analysis before the solver starts.

Steps start at one row and double after each proved goal, so that all earlier goals together take about as long as the last.
Inseparable sets and hyperplanes of one goal are reused for the next. If the cases end at a tree, the search considers that tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.families.oblique.instance import ObliqueTree
from trainer.families.oblique.local import LocalSearch
from trainer.families.oblique.proving import PlaneProof, cost_in_units, make_plane_proof, weighted_points
from trainer.families.oblique.refit import separate_leaves
from trainer.families.oblique.separable import Separator
from trainer.families.oblique.store import Step, Store
from trainer.families.oblique.target import SearchClock, Target
from trainer.methods.base import ProofSteps

TIME_SHARE = 0.5  # share of the remaining time
MAX_SECONDS = 60.0
MAX_CASES = 1_000_000


class BoundRaising:
    """Case analysis of one training. `bound` is its upper bound on the value, None at first.

    `store` comes from an earlier analysis of the same points.
    """

    def __init__(
        self, target: Target, search: LocalSearch, least: float, clock: SearchClock, store: Store | None = None
    ) -> None:
        self.target = target
        self.search = search
        self.seconds = min(MAX_SECONDS, TIME_SHARE * clock.remaining())
        self.stopped = clock.until(self.seconds)
        self.proof: PlaneProof = make_plane_proof(target.problem, target.instance, target.units, least, self.stopped)
        self.proof.store = (store or self.proof.store).restart(self.stopped, MAX_CASES)
        self.bound: Fraction | None = None
        self.steps: list[Step] = []
        self.errors: dict[int, int] = {}  # maps a number of leaves to the errors that are proved for it

    def run(self, bound: Fraction, tell: Callable[[Fraction], None]) -> None:
        """Tighten the bound until it meets the incumbent or the time is over; `tell` receives each new bound."""
        total = self.target.instance.total
        step = Fraction(1)
        while bound > self.search.value and step >= 1 and not self.stopped():
            goal = max(self.search.value, bound - step)
            steps = self.proof.steps(total - goal)
            if steps is not None:
                bound = self.bound = self.target.lattice.floor(goal, Fraction(0))
                self.steps = steps
                self.errors = dict(self.proof.required_errors(total - goal))
                step *= 2
                tell(bound)
            elif self.proof.fewer is None or not self._use_better_tree(self.proof.fewer):
                step /= 2

    def _use_better_tree(self, fewer: np.ndarray) -> bool:
        """Build the tree at which the cases ended and offer it to the search; return whether it is better."""
        at = np.ones(len(self.target.instance.Z), np.int64)  # points without weight stay at the root
        at[weighted_points(self.target.problem, self.target.instance)] = fewer
        tree: ObliqueTree | None = separate_leaves(self.target.instance, at, Separator(self.target.instance.Z))
        return tree is not None and self.search.consider(tree)

    def record(self) -> dict[str, Any]:
        """Return the record of the analysis for the evidence."""
        store = self.proof.store
        bound = None if self.bound is None else str(self.bound)
        return {"cases": {"bound": bound, "cases": store.cases, "sets": len(store.vectors)}}

    def make_proof(self, objective: Fraction, stop: Callable[[], bool]) -> ProofSteps | None:
        """Return the steps as a proof of `objective` at the requested prices; None if they prove less."""
        if self.bound is None or stop():
            return None
        problem = self.target.problem
        unit, cost = cost_in_units(problem, objective)
        instance = replace(self.target.instance, kappa=problem.kappa)
        plain = make_plane_proof(problem, instance, self.target.units, 0.0, stop)
        is_shown = all(
            errors <= max((most for s, most in self.errors.items() if s >= t), default=0)
            for t, errors in plain.required_errors(Fraction(cost, unit))
        )
        return ProofSteps(scale=1, goal=cost, steps=self.steps) if is_shown else None
