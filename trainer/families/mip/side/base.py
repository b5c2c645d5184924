"""Side constraints as named objects that every flow or Benders formulation accepts.

Legend     b[v,f]=1 v branches on f;  p[v]=1 v is a leaf;  w[v,k] v predicts k;  s[i] score of row i (1: classified correctly)

Each object writes rows into a model and can judge a finished tree. `labels` says that it is about predictions, so that labels
are chosen by the model and not by majority; `exact_scores` that it needs s[i] = 1 whenever row i is right, not only s[i] ≤ 1.
Where constraints contradict each other, one of them is given up (all of its class if they belong `together`), and `relaxed` takes its place:
its limit is free, and the limit that is needed is the objective. Everything else stays, so one more solve tells the smallest change that makes
the problem feasible.
A constraint switches off what it makes invalid: path-bound cuts (24)-(26) give way to (24').
A solver sees a row to a millionth of its size only. Where that is too coarse the rows of a constraint are wider by a hair (`rough`),
and trees that `holds` does not admit are cut off one by one when they are met.
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
    """Columns and classes by name, as places of an instance."""

    problem: Problem
    instance: Instance

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """The column of each feature of the instance."""
        return tuple(self.problem.binary.features[h].column for h in self.instance.features.tolist())

    def features(self, name: str) -> tuple[int, ...]:
        """The features that ask about a column."""
        column = self.problem.names.columns.index(name)
        return tuple(f for f, c in enumerate(self.columns) if c == column)

    def label(self, name: str, parameter: str) -> int:
        """The place of a class; raises ParameterError if no training row has it."""
        place = np.flatnonzero(self.instance.labels == self.problem.names.classes.index(name))
        if not len(place):
            raise ParameterError({parameter: f"No training row has the class '{name}'."})
        return int(place[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """What constraints refer to: the branchings of a formulation, and its leaves and labels as variables or expressions."""

    instance: Instance
    model: IntegerProgram
    b: Variables
    p: Mapping[int, Expression]
    w: Mapping[tuple[int, int], Expression]
    score: Callable[[int], Expression]
    variables: dict[str, Variables] = field(default_factory=dict)


class SideConstraint(ABC):
    """A restriction of the set of trees."""

    labels: ClassVar[bool] = False
    exact_scores: ClassVar[bool] = False
    together: ClassVar[bool] = False

    @abstractmethod
    def add(self, view: View) -> None:
        """Write the rows of the constraint."""

    def fill(self, view: View, values: FloatArray, tree: ArrayTree) -> None:  # noqa: B027
        """Give values to variables of the constraint's own, for a tree that satisfies it; most have none."""

    @abstractmethod
    def holds(self, instance: Instance, tree: ArrayTree) -> bool:
        """True if the tree satisfies the constraint, from exact counts."""

    def is_rough(self, instance: Instance) -> bool:
        """True if the rows admit some trees that the constraint does not."""
        return False

    @classmethod
    def relax(cls, given_up: Sequence[SideConstraint]) -> RelaxedConstraint | None:
        """What takes the place of constraints of this class; None if they have no limit to move."""
        return None

    def add_to_exact(self, constraints: Constraints, instance: Instance) -> Constraints:
        """`kept`, with what the exact search can keep of this constraint; most it cannot keep."""
        return constraints


class RelaxedConstraint(SideConstraint):
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


def correct_rows(instance: Instance, tree: ArrayTree) -> np.ndarray:
    """Which rows a tree classifies correctly."""
    return tree.label[instance.route(tree.feature)] == instance.y


def scores(view: View, rows: np.ndarray) -> Expression:
    """Weight of the correct rows among `rows`."""
    result = Expression()
    for i in rows.tolist():
        result.add(view.score(i), float(view.instance.weight[i]))
    return result
