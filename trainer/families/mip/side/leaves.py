"""Limit the number of leaves: the constraint `max_leaves`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from trainer.constraints import Constraints
from trainer.families.mip.instance import ArrayTree, Instance
from trainer.families.mip.side.base import NamedIndices, RelaxedConstraint, SideConstraint, View
from trainer.methods.base import Settings
from trainer.methods.scope import count_noun
from trainer.milo import total


@dataclass(frozen=True, kw_only=True)
class MaxLeaves(SideConstraint):
    """The tree has at most `limit` leaves."""

    limit: int

    def add(self, view: View) -> None:
        """Add sum p[v] ≤ limit."""
        view.model.add(total(view.p.values()) <= self.limit, "max-leaves")

    def holds(self, instance: Instance, tree: ArrayTree) -> bool:
        """Return whether the number of leaves is within the limit."""
        return len(tree.leaves) <= self.limit

    @classmethod
    def relax(cls, given_up: Sequence[SideConstraint]) -> RelaxedConstraint:
        """Return the relaxation: minimise the number of leaves."""
        return RelaxedLeaves()

    def add_to_exact(self, constraints: Constraints, instance: Instance) -> Constraints:
        """Add the limit; the lowest one counts."""
        return replace(
            constraints,
            max_leaves=min(self.limit, self.limit if constraints.max_leaves is None else constraints.max_leaves),
        )


@dataclass(frozen=True, kw_only=True)
class RelaxedLeaves(RelaxedConstraint):
    """The relaxation of the limit on leaves: use as few leaves as possible."""

    of: ClassVar[str] = "leaves"

    def add(self, view: View) -> None:
        """Maximise - sum p[v]."""
        view.model.maximize(-total(view.p.values()))

    def price(self, instance: Instance, tree: ArrayTree) -> Fraction:
        """Return the number of leaves."""
        return Fraction(len(tree.leaves))

    def sentence(self, price: Fraction) -> str:
        """Return a sentence that states the smallest feasible limit."""
        return f"Everything else can be satisfied with {count_noun(int(price), 'leaf', 'leaves')}."


def leaf_constraints(at: NamedIndices, settings: Settings) -> Iterator[SideConstraint]:
    if settings["max_leaves"] is not None:
        yield MaxLeaves(limit=settings["max_leaves"])
