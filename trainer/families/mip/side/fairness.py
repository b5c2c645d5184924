"""Keep prediction rates similar between groups: the constraint `fairness`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from trainer.constraints import read_fairness
from trainer.dtypes import FloatArray
from trainer.families.mip.instance import ArrayTree, Instance
from trainer.families.mip.side.base import NamedIndices, RelaxedConstraint, SideConstraint, View, scores
from trainer.goal import upwards
from trainer.methods.base import Settings, exact_fraction
from trainer.milo import Expression

MAX_PARTS = 20_000  # limit on the denominator that solvers can resolve in a row
# if finer differences are rounded: the sum of the coefficients, and the amount by which the limit is widened
COEFFICIENT_SCALE = 1000.0
RATE_TOLERANCE = 1e-5


@dataclass(frozen=True, kw_only=True)
class EqualRates(SideConstraint):
    """The rates at which rows of two groups are predicted `label` differ by at most `delta`, for any two groups.

    `only_label` compares rows of that class only (equal opportunity), else all rows (statistical parity, two classes).
    """

    labels: ClassVar[bool] = True
    exact_scores: ClassVar[bool] = True
    label: int
    delta: Fraction
    only_label: bool = False

    def groups(self, instance: Instance) -> list[np.ndarray]:
        """Return the compared rows of each group."""
        compared = instance.y == self.label if self.only_label else np.ones(instance.n, bool)
        groups = [np.flatnonzero(compared & (instance.group == g)) for g in np.unique(instance.group)]
        return [rows for rows in groups if len(rows)]

    def rates(self, view: View) -> list[Expression]:
        """Return an expression for the rate of each group."""
        inst = view.instance
        rates = []
        for rows in self.groups(inst):
            in_label = rows[inst.y[rows] == self.label]
            other = rows[inst.y[rows] != self.label]
            predicted = scores(view, in_label) + int(inst.weight[other].sum()) - scores(view, other)
            rates.append(predicted / int(inst.weight[rows].sum()))
        return rates

    def add(self, view: View) -> None:
        """Add rate(g) - rate(h) ≤ delta for all ordered pairs of groups.

        Differences are integer multiples of 1 / lcm of the sizes. The row counts these multiples, with a limit halfway to the next one. If
        the lcm is too large, the row is slightly wider instead.
        """
        sizes = self._sizes(view.instance)
        for (g, m), (h, n) in itertools.permutations(zip(self.rates(view), sizes, strict=True), 2):
            parts = math.lcm(m, n)
            if parts <= MAX_PARTS:
                view.model.add(parts * (g - h) <= math.floor(self.delta * parts) + 0.5, "equal-rates")
            else:
                view.model.add(
                    COEFFICIENT_SCALE * (g - h) <= COEFFICIENT_SCALE * (float(self.delta) + RATE_TOLERANCE),
                    "equal-rates",
                )

    def _sizes(self, instance: Instance) -> list[int]:
        return [int(instance.weight[rows].sum()) for rows in self.groups(instance)]

    def is_rough(self, instance: Instance) -> bool:
        """Return whether differences of rates are too fine for the tolerance of a row."""
        return any(math.lcm(m, n) > MAX_PARTS for m, n in itertools.combinations(self._sizes(instance), 2))

    def difference(self, instance: Instance, tree: ArrayTree) -> Fraction:
        """Return the largest difference of two rates of a tree."""
        predicted = tree.label[instance.route(tree.feature)] == self.label
        rates = [
            Fraction(int(instance.weight[rows[predicted[rows]]].sum()), int(instance.weight[rows].sum()))
            for rows in self.groups(instance)
        ]
        return max(rates) - min(rates) if rates else Fraction(0)

    def holds(self, instance: Instance, tree: ArrayTree) -> bool:
        """Return whether the largest difference is at most `delta`."""
        return self.difference(instance, tree) <= self.delta

    @classmethod
    def relax(cls, given_up: Sequence[SideConstraint]) -> RelaxedConstraint | None:
        """Return the relaxation: minimise the difference."""
        return next((RelaxedRates(rates=c) for c in given_up if isinstance(c, cls)), None)


@dataclass(frozen=True, kw_only=True)
class RelaxedRates(RelaxedConstraint):
    """Rates of groups that may differ by the variable `gap`, which is minimised."""

    of: ClassVar[str] = "difference of rates"
    labels: ClassVar[bool] = True
    exact_scores: ClassVar[bool] = True
    rates: EqualRates

    def add(self, view: View) -> None:
        """Add rate(g) - rate(h) ≤ gap; maximise -gap."""
        gap = view.variables["gap"] = view.model.continuous("gap", ("",))
        for g, h in itertools.permutations(self.rates.rates(view), 2):
            view.model.add(g - h <= gap[""], "equal-rates")
        view.model.maximize(-gap[""])

    def price(self, instance: Instance, tree: ArrayTree) -> Fraction:
        """Return the largest difference of two rates."""
        return self.rates.difference(instance, tree)

    def fill(self, view: View, values: FloatArray, tree: ArrayTree) -> None:
        """Set gap to the difference of the tree."""
        values[view.variables["gap"].column("")] = float(self.price(view.instance, tree))

    def sentence(self, price: Fraction) -> str:
        """Return the difference that must be allowed, as a sentence."""
        return f"Everything else can be satisfied if the rates of groups may differ by {upwards(price)}."


def fairness_constraints(at: NamedIndices, settings: Settings) -> Iterator[SideConstraint]:
    favoured_class = read_fairness(settings, at.problem.names)
    if favoured_class is not None:
        name = favoured_class[1] or at.problem.names.classes[int(at.instance.labels[-1])]
        delta = exact_fraction(settings["fairness_delta"])
        only = settings["fairness"] != "parity"
        yield EqualRates(label=at.label(name, "fairness_class"), delta=delta, only_label=only)
