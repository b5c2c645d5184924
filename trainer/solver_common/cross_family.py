"""What one family of methods takes from another: a first tree, a bound. Families do not import each other.

Names are resolved at the first use, like entry points, so that a family can be read, tested and imported by itself.
"""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module
from typing import Any, Protocol

from trainer.methods.base import Method
from trainer.methods.capabilities import Role
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits
from trainer.tree.shapes import LabelledShape

METHODS = "trainer.registry"
SEARCH = "trainer.families.exact.search.solve"
CONSTRAINED = "trainer.families.exact.search.constrained"


class BinaryTreeFound(Protocol):
    """What a search over binary features gives: a tree (None is the tree of one leaf) and a lower bound of every tree's cost, in rows."""

    @property
    def shape(self) -> LabelledShape: ...
    @property
    def bound(self) -> Fraction: ...


class ConstrainedTreeFound(BinaryTreeFound, Protocol):
    """The same under constraints, if a stopped search may have no tree yet."""

    @property
    def found(self) -> bool: ...


def method(method_id: str) -> Method:
    """A method of the list; raises ParameterError for an unknown one."""
    found: Method = import_module(METHODS).get(method_id)
    return found


def method_for(role: Role) -> Method:
    """Return the method of the list that has a role."""
    found: Method = import_module(METHODS).method_for(role)
    return found


def solve_binary(problem: BinaryProblem, *, limits: SearchLimits) -> BinaryTreeFound:
    """`trainer.families.exact.search.solve.solve_binary`: the best tree over binary features, with its bound."""
    found: BinaryTreeFound = import_module(SEARCH).solve_binary(problem, limits=limits)
    return found


def solve_constrained(problem: BinaryProblem, constraints: Any, *, limits: SearchLimits) -> ConstrainedTreeFound:
    """`trainer.families.exact.search.constrained.solve_constrained`: the same under constraints; raises InfeasibleError."""
    found: ConstrainedTreeFound = import_module(CONSTRAINED).solve_constrained(problem, constraints, limits=limits)
    return found
