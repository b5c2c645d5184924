"""The problem as the methods with hyperplanes see it: scaled points, prices of leaves, and the values that trees can have."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from trainer.certificate import relative_gap
from trainer.data.problem import Problem
from trainer.families.oblique.instance import DepthTwoErrors, ObliqueInstance, ObliqueTree
from trainer.families.oblique.plan import SolvePlan
from trainer.families.oblique.units import instance_of
from trainer.methods.base import Settings
from trainer.methods.monitor import Monitor
from trainer.milo.lattice import NOISE, Lattice, Prices, same_order, tie_price


class Target:
    """Instance, units and prices; values inside are in rows at the price that is searched with, outside in the objective's unit."""

    def __init__(self, problem: Problem, settings: Settings, plan: SolvePlan) -> None:
        self.problem = problem
        self.settings = settings
        instance, self.units = instance_of(problem, settings["depth"], complete=plan.complete, robust=plan.robust)
        # a gap that is asked for is one of the values at the true price
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
        # a solver's bound may lie below the optimum by its tolerance
        self.noise = max(NOISE, Fraction(instance.total, 10**7)) if instance.charge else NOISE

    @property
    def everything(self) -> int:
        """Rows that a tree of any size can classify correctly: equal rows go together."""
        return int(self.instance.counts.max(axis=1).sum())

    @property
    def splittable(self) -> bool:
        """Whether there is anything to ask: a depth and a column."""
        return bool(self.instance.depth and self.instance.Z.shape[1])

    @property
    def absolute_gap(self) -> float:
        """The gap at which a solver may stop; 0 if values are too near to each other."""
        return 0.0 if self.instance.charge and self.lattice.step < 20 * self.noise else self.lattice.gap

    def objective(self, value: Fraction, leaves: int) -> float:
        """An internal value as the objective of the contract."""
        return float(self.prices.value(value, leaves) / self.instance.total)

    def upper(self, bound: Fraction) -> float:
        """An internal bound as a bound of the objective."""
        return float(self.prices.bound(bound) / self.instance.total)

    def rounded(self, bound: float) -> Fraction:
        """A bound of the solver, rounded down onto the values that a tree can have."""
        return self.lattice.floor(bound, self.noise)

    def near(self, tree: ObliqueTree, bound: Fraction) -> bool:
        """True if a tree meets the bound, or is within the requested gap."""
        value = self.instance.value(tree)
        if value >= bound:
            return True
        gap = relative_gap(self.objective(value, tree.leaves), self.upper(bound))
        wanted = self.settings["mip_gap"]
        return wanted > 0 and gap is not None and gap <= wanted

    def pack(self, packed: tuple[DepthTwoErrors, ...]) -> None:
        """Let sets of rows with counted errors lower the instance's own bound."""
        self.instance = replace(self.instance, packed=packed)


class SearchClock:
    """The time of the search: the time of the run, less `kept` seconds for drawing."""

    def __init__(self, monitor: Monitor, kept: float) -> None:
        self.monitor = monitor
        self.end = time.perf_counter() + monitor.remaining() - kept

    def halted(self) -> bool:
        """True once the search must end: the run is stopped, or what is left of its time is for drawing."""
        return self.monitor.stopped() or time.perf_counter() > self.end

    def remaining(self) -> float:
        """Seconds that are left for the search."""
        return max(0.0, self.end - time.perf_counter())

    def until(self, seconds: float) -> Callable[[], bool]:
        """A separate clock that ends after `seconds`, or with this one."""
        end = min(self.end, time.perf_counter() + seconds)
        return lambda: self.monitor.stopped() or time.perf_counter() > end
