"""Hold instance, prices and time limit of a hyperplane search."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from trainer.certificate import relative_gap
from trainer.data.problem import Problem
from trainer.families.oblique.instance import DepthTwoErrors, ObliqueInstance, ObliqueTree
from trainer.families.oblique.plan import SolvePlan
from trainer.families.oblique.units import make_instance
from trainer.methods.base import Settings
from trainer.methods.monitor import Monitor
from trainer.milo.lattice import NOISE, Lattice, Prices, same_order, tie_price


class Target:
    """The instance, units and prices of a hyperplane search.

    Internal values are in rows at the price of the search; `objective` and `upper` convert them to the unit of the
    objective.
    """

    def __init__(self, problem: Problem, settings: Settings, plan: SolvePlan) -> None:
        self.problem = problem
        self.settings = settings
        instance, self.units = make_instance(problem, settings["depth"], complete=plan.complete, robust=plan.robust)
        # a requested gap refers to the true price, so do not round the price then
        exact = not instance.charge and not settings["mip_gap"]
        kappa = same_order(instance.kappa, instance.most_leaves) if exact else instance.kappa
        if settings.get("then_fewest"):
            kappa += tie_price(kappa, instance.most_leaves)
        self.instance: ObliqueInstance = replace(
            instance, kappa=kappa, max_leaves=settings.get("max_leaves"), min_leaf=min(settings["min_leaf"], problem.n)
        )
        self.prices = Prices(asked=instance.kappa, used=kappa, leaves=self.instance.most_leaves)
        self.lattice = Lattice(
            kappa=kappa, leaves=self.instance.most_leaves, charge=instance.charge, columns=instance.Z.shape[1]
        )
        # a solver's bound may lie below the optimum by the solver's tolerance
        self.noise = max(NOISE, Fraction(instance.total, 10**7)) if instance.charge else NOISE

    @property
    def max_correct(self) -> int:
        """Upper bound on the correct rows of trees of any size: equal rows share a leaf."""
        return int(self.instance.counts.max(axis=1).sum())

    @property
    def splittable(self) -> bool:
        """True if trees may have a split: a depth and a column exist."""
        return bool(self.instance.depth and self.instance.Z.shape[1])

    @property
    def absolute_gap(self) -> float:
        """Absolute gap at which a solver may stop; 0 if values are too near to each other."""
        return 0.0 if self.instance.charge and self.lattice.step < 20 * self.noise else self.lattice.gap

    def objective(self, value: Fraction, leaves: int) -> float:
        """Convert an internal value to the objective."""
        return float(self.prices.value(value, leaves) / self.instance.total)

    def upper(self, bound: Fraction) -> float:
        """Convert an internal bound to a bound of the objective."""
        return float(self.prices.bound(bound) / self.instance.total)

    def round_down(self, bound: float) -> Fraction:
        """Round a solver's bound down to a value that a tree can have."""
        return self.lattice.floor(bound, self.noise)

    def meets(self, tree: ObliqueTree, bound: Fraction) -> bool:
        """Return whether a tree meets the bound, or is within the requested gap."""
        value = self.instance.value(tree)
        if value >= bound:
            return True
        gap = relative_gap(self.objective(value, tree.leaves), self.upper(bound))
        gap_limit = self.settings["mip_gap"]
        return gap_limit > 0 and gap is not None and gap <= gap_limit

    def pack(self, packed: tuple[DepthTwoErrors, ...]) -> None:
        """Add sets of rows with known errors to the instance, which tighten its bound."""
        self.instance = replace(self.instance, packed=packed)


class SearchClock:
    """Time limit of the search: that of the run minus `reserved` seconds for drawing."""

    def __init__(self, monitor: Monitor, reserved: float) -> None:
        self.monitor = monitor
        self.end = time.perf_counter() + monitor.remaining() - reserved

    def is_over(self) -> bool:
        """Return whether the search must end: the run is stopped, or only the reserved time remains."""
        return self.monitor.stopped() or time.perf_counter() > self.end

    def remaining(self) -> float:
        """Return the remaining seconds of the search."""
        return max(0.0, self.end - time.perf_counter())

    def until(self, seconds: float) -> Callable[[], bool]:
        """Return a stop condition after `seconds`, or at the end of this clock."""
        end = min(self.end, time.perf_counter() + seconds)
        return lambda: self.monitor.stopped() or time.perf_counter() > end
