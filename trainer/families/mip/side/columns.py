"""Limit the number of different columns: the constraint `max_columns`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from trainer.constraints import Constraints
from trainer.dtypes import FloatArray
from trainer.families.mip.instance import ArrayTree, Instance
from trainer.families.mip.side.base import NamedIndices, RelaxedConstraint, SideConstraint, View
from trainer.methods.base import Settings
from trainer.methods.scope import count_noun
from trainer.milo import Expression, total, weighted


@dataclass(frozen=True, kw_only=True)
class MaxColumns(SideConstraint):
    """The tree uses at most `limit` different columns; `columns` maps every feature to its column."""

    limit: int
    columns: tuple[int, ...]

    def count_columns(self, view: View) -> Expression:
        """Return an expression for the number of used columns.

        Adds, for each branch node v and column c, used[c] ≥ sum of b[v,f] over the features f of c.
        """
        groups = sorted(set(self.columns))
        used = view.variables["used"] = view.model.binary("used", groups)
        for c in groups:
            features = [f for f, column in enumerate(self.columns) if column == c]
            for v in view.instance.tree.branch_nodes:
                splits = weighted(view.b.columns[v - 1, features], np.ones(len(features)))
                view.model.add(splits <= used[c], "max-columns")
        return total(used.values())

    def add(self, view: View) -> None:
        """Add sum used ≤ limit."""
        view.model.add(self.count_columns(view) <= self.limit, "max-columns")

    def fill(self, view: View, values: FloatArray, tree: ArrayTree) -> None:
        """Set used[c] = 1 if the tree uses a feature of c."""
        for f in tree.feature.tolist():
            if f >= 0:
                values[view.variables["used"].column(self.columns[f])] = 1.0

    def holds(self, instance: Instance, tree: ArrayTree) -> bool:
        """Return whether the number of columns is within the limit."""
        return self.count(tree) <= self.limit

    def count(self, tree: ArrayTree) -> int:
        """Return the number of columns of a tree."""
        return len({self.columns[f] for f in tree.feature.tolist() if f >= 0})

    @classmethod
    def relax(cls, given_up: Sequence[SideConstraint]) -> RelaxedConstraint | None:
        """Return the relaxation that minimises the number of columns; None if no limit on columns was given up."""
        return next((RelaxedColumns(columns=c) for c in given_up if isinstance(c, cls)), None)

    def add_to_exact(self, constraints: Constraints, instance: Instance) -> Constraints:
        """Add the limit unless the search has one already, since it supports only one."""
        if constraints.max_columns is not None:
            return constraints
        return replace(constraints, max_columns=self.limit, columns=np.array(self.columns, np.int64))


@dataclass(frozen=True, kw_only=True)
class RelaxedColumns(RelaxedConstraint):
    """The relaxation of `MaxColumns`: use as few columns as possible."""

    of: ClassVar[str] = "columns"

    columns: MaxColumns

    def add(self, view: View) -> None:
        """Maximise - sum used[c]."""
        view.model.maximize(-self.columns.count_columns(view))

    def price(self, instance: Instance, tree: ArrayTree) -> Fraction:
        """Return the number of columns of a tree."""
        return Fraction(self.columns.count(tree))

    def fill(self, view: View, values: FloatArray, tree: ArrayTree) -> None:
        """Set the same values as the constraint."""
        self.columns.fill(view, values, tree)

    def sentence(self, price: Fraction) -> str:
        """Return a sentence that states the smallest feasible limit."""
        return f"Everything else can be satisfied with {count_noun(int(price), 'column')}."


def column_constraints(at: NamedIndices, settings: Settings) -> Iterator[SideConstraint]:
    if settings["max_columns"] is not None:
        yield MaxColumns(limit=settings["max_columns"], columns=at.columns)
