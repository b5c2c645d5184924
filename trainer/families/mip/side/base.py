"""Define side constraints, which every formulation accepts as objects.

Legend     b[v,f]=1 v branches on f;  p[v]=1 v is a leaf;  w[v,k] v predicts k;  s[i] score of row i (1: classified correctly)

Each object adds rows to a model and can check a finished tree. `labels`: it refers to predictions, so the model chooses labels, not the
majority. `exact_scores`: it needs s[i] = 1 whenever row i is correct, not only s[i] ≤ 1.

If constraints contradict each other, one of them (all of its class if `together`) is replaced by its relaxation `relax`, whose
objective is the required limit. One more solve then gives the smallest change that makes the problem feasible.

Side constraints invalidate the path-bound cuts (24)-(26), so (24') replaces them. Solvers have a relative tolerance of a millionth.
If that is too coarse, the rows of a constraint are slightly wider (`is_rough`), and trees that `holds` rejects are excluded one by
one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from trainer.constraints import Constraints
from trainer.data.problem import Problem
from trainer.dtypes import FloatArray
from trainer.errors import ParameterError
from trainer.families.mip.instance import ArrayTree, Instance
from trainer.milo import Expression, IntegerProgram, Variables


@dataclass(frozen=True, kw_only=True)
class NamedIndices:
    """Lookup of columns and classes by name, as indices of an instance."""

    problem: Problem
    instance: Instance

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """Column of each feature of the instance."""
        return tuple(self.problem.binary.features[h].column for h in self.instance.features.tolist())

    def features(self, name: str) -> tuple[int, ...]:
        """Return the features of a column."""
        column = self.problem.names.columns.index(name)
        return tuple(f for f, c in enumerate(self.columns) if c == column)

    def label(self, name: str, parameter: str) -> int:
        """Return the index of a class. Raises ParameterError if no training row has it."""
        place = np.flatnonzero(self.instance.labels == self.problem.names.classes.index(name))
        if not len(place):
            raise ParameterError({parameter: f"No training row has the class '{name}'. Choose another class."})
        return int(place[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """Interface of a formulation for constraints: branchings, and leaves and labels as variables or expressions."""

    instance: Instance
    model: IntegerProgram
    b: Variables
    p: Mapping[int, Expression]
    w: Mapping[tuple[int, int], Expression]
    score: Callable[[int], Expression]
    variables: dict[str, Variables] = field(default_factory=dict)


class SideConstraint(ABC):
    """A constraint that excludes trees from a formulation."""

    labels: ClassVar[bool] = False
    exact_scores: ClassVar[bool] = False
    together: ClassVar[bool] = False

    @abstractmethod
    def add(self, view: View) -> None:
        """Add the rows of the constraint to the model."""

    def fill(self, view: View, values: FloatArray, tree: ArrayTree) -> None:  # noqa: B027
        """Write the values of the constraint's own variables for a tree that satisfies it; most have none."""

    @abstractmethod
    def holds(self, instance: Instance, tree: ArrayTree) -> bool:
        """Return whether the tree satisfies the constraint, by exact counts."""

    def is_rough(self, instance: Instance) -> bool:
        """Return whether the rows admit trees that the constraint excludes."""
        return False

    @classmethod
    def relax(cls, given_up: Sequence[SideConstraint]) -> RelaxedConstraint | None:
        """Return the relaxation of constraints of this class; None if they have no limit."""
        return None

    def add_to_exact(self, constraints: Constraints, instance: Instance) -> Constraints:
        """Return the constraints of the exact search with this one, or unchanged if the search does not support it."""
        return constraints


class RelaxedConstraint(SideConstraint):
    """A constraint that every tree satisfies at a price; `of` names the quantity that the price measures."""

    of: ClassVar[str]

    @abstractmethod
    def price(self, instance: Instance, tree: ArrayTree) -> Fraction:
        """Return the exact price of a tree."""

    @abstractmethod
    def sentence(self, price: Fraction) -> str:
        """Return a sentence that says which limit can be met."""

    def holds(self, instance: Instance, tree: ArrayTree) -> bool:
        """Return True: every tree satisfies it at its price."""
        return True


def correct_rows(instance: Instance, tree: ArrayTree) -> np.ndarray:
    """Return which rows a tree classifies correctly."""
    return tree.label[instance.route(tree.feature)] == instance.y


def scores(view: View, rows: np.ndarray) -> Expression:
    """Return an expression for the weight of the correct rows among `rows`."""
    result = Expression()
    for i in rows.tolist():
        result.add(view.score(i), float(view.instance.weight[i]))
    return result
