"""What can be reached where side constraints contradict each other: one kind is given up, and missed by as little as possible.

Each object replaces the constraints of its kind, frees their limit and makes the limit that is needed the objective.
Everything else stays, so one more solve tells the smallest change that makes the problem feasible.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from trainer.dtypes import FloatArray
from trainer.families.mip.instance import ArrayTree, Instance
from trainer.families.mip.side import (
    ClassRecall,
    EqualRates,
    MaxColumns,
    MaxLeaves,
    SideConstraint,
    View,
    right,
    scores,
)
from trainer.goal import lowered, upwards
from trainer.milo import total


class Relaxed(SideConstraint):
    """A kind of constraint that every tree satisfies, at a price; `of` says what the price is for."""

    of: ClassVar[str]

    @abstractmethod
    def price(self, instance: Instance, tree: ArrayTree) -> Fraction:
        """What a tree needs, exactly."""

    @abstractmethod
    def sentence(self, price: Fraction) -> str:
        """What a person should change."""

    def holds(self, instance: Instance, tree: ArrayTree) -> bool:
        """Every tree has its price."""
        return True


@dataclass(frozen=True, kw_only=True)
class RelaxedRecalls(Relaxed):
    """Recalls that may all fall short by the same amount, the variable `short`."""

    of: ClassVar[str] = "shortfall of the recalls"
    labels: ClassVar[bool] = True
    recalls: tuple[ClassRecall, ...]

    def add(self, view: View) -> None:
        """sum of the scores of the class ≥ (share - short) of its weight; maximises -short."""
        inst = view.instance
        short = view.own["short"] = view.model.continuous("short", ("",))
        for recall in self.recalls:
            rows = np.flatnonzero(inst.y == recall.label)
            size = int(inst.weight[rows].sum())
            view.model.add(scores(view, rows) + size * short[""] >= float(recall.share * size), "class-recall")
        view.model.maximize(-short[""])

    def price(self, instance: Instance, tree: ArrayTree) -> Fraction:
        """How far the worst of the recalls of a tree falls short."""
        correct = right(instance, tree)
        missing = [Fraction(0)]
        for recall in self.recalls:
            own = instance.y == recall.label
            reached = Fraction(int(instance.weight[own & correct].sum()), int(instance.weight[own].sum()))
            missing.append(recall.share - reached)
        return max(missing)

    def fill(self, view: View, values: FloatArray, tree: ArrayTree) -> None:
        """short is the shortfall of the tree."""
        values[view.own["short"].column("")] = float(self.price(view.instance, tree))

    def sentence(self, price: Fraction) -> str:
        """The common shortfall."""
        return lowered(price, len(self.recalls))


@dataclass(frozen=True, kw_only=True)
class RelaxedRates(Relaxed):
    """Rates of groups that may differ by `gap`, the smallest that is possible."""

    of: ClassVar[str] = "difference of rates"
    labels: ClassVar[bool] = True
    exact_scores: ClassVar[bool] = True
    rates: EqualRates

    def add(self, view: View) -> None:
        """rate(g) - rate(h) ≤ gap; maximises -gap."""
        gap = view.own["gap"] = view.model.continuous("gap", ("",))
        for g, h in itertools.permutations(self.rates.rates(view), 2):
            view.model.add(g - h <= gap[""], "equal-rates")
        view.model.maximize(-gap[""])

    def price(self, instance: Instance, tree: ArrayTree) -> Fraction:
        """The largest difference of two rates."""
        return self.rates.difference(instance, tree)

    def fill(self, view: View, values: FloatArray, tree: ArrayTree) -> None:
        """gap is the difference of the tree."""
        values[view.own["gap"].column("")] = float(self.price(view.instance, tree))

    def sentence(self, price: Fraction) -> str:
        """The difference that must be allowed."""
        return f"Everything else can be satisfied if the rates of groups may differ by {upwards(price)}."


@dataclass(frozen=True, kw_only=True)
class RelaxedLeaves(Relaxed):
    """As few leaves as possible."""

    of: ClassVar[str] = "leaves"

    def add(self, view: View) -> None:
        """Maximises - sum p[v]."""
        view.model.maximize(-total(view.p.values()))

    def price(self, instance: Instance, tree: ArrayTree) -> Fraction:
        """Number of leaves."""
        return Fraction(len(tree.leaves))

    def sentence(self, price: Fraction) -> str:
        """The number that must be allowed."""
        return f"Everything else can be satisfied with {price} leaves."


@dataclass(frozen=True, kw_only=True)
class RelaxedColumns(Relaxed):
    """As few columns as possible."""

    of: ClassVar[str] = "columns"

    columns: MaxColumns

    def add(self, view: View) -> None:
        """Maximises - sum used[c]."""
        view.model.maximize(-self.columns.used(view))

    def price(self, instance: Instance, tree: ArrayTree) -> Fraction:
        """Number of columns."""
        return Fraction(self.columns.count(tree))

    def fill(self, view: View, values: FloatArray, tree: ArrayTree) -> None:
        """As in the constraint."""
        self.columns.fill(view, values, tree)

    def sentence(self, price: Fraction) -> str:
        """The number that must be allowed."""
        return f"Everything else can be satisfied with {price} columns."


# a limit of its own that can be given up, and what takes its place; recalls are given up together
ALONE: Mapping[type[SideConstraint], Callable[[Any], Relaxed]] = {
    EqualRates: lambda rates: RelaxedRates(rates=rates),
    MaxLeaves: lambda _: RelaxedLeaves(),
    MaxColumns: lambda columns: RelaxedColumns(columns=columns),
}


def relaxations(side: Sequence[SideConstraint]) -> list[tuple[Relaxed, list[SideConstraint]]]:
    """For each kind of constraint with a limit: what takes its place, and the constraints that stay.

    Forbidden pairs and monotone columns have no limit to move, and a single leaf satisfies them.
    """
    recalls = [c for c in side if isinstance(c, ClassRecall)]
    given_up: list[tuple[Relaxed, list[ClassRecall] | list[SideConstraint]]] = []
    if recalls:
        given_up.append((RelaxedRecalls(recalls=tuple(recalls)), recalls))
    given_up += [(ALONE[type(c)](c), [c]) for c in side if type(c) in ALONE]
    return [(relaxed, [c for c in side if not any(c is g for g in gone)]) for relaxed, gone in given_up]
