"""Resolve solvers of other families at first use.

Families do not import each other. Names are resolved lazily, like entry points, so that each family can be imported and tested by itself.
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
INTERVALS = "trainer.families.numeric.intervals"
SIZED = "trainer.families.numeric.sized"


class BinaryTreeFound(Protocol):
    """Result of a search over binary features: a tree (None: one leaf) and a lower bound on the cost of all trees, in rows."""

    @property
    def shape(self) -> LabelledShape: ...
    @property
    def bound(self) -> Fraction: ...


class ConstrainedTreeFound(BinaryTreeFound, Protocol):
    """Result of a search under constraints; a stopped search may have `found` no tree."""

    @property
    def found(self) -> bool: ...


def method(method_id: str) -> Method:
    """Return a method of the registry. Raises ParameterError if it is unknown."""
    declaration: Method = import_module(METHODS).get(method_id)
    return declaration


def method_for(role: Role) -> Method:
    """Return the registered method with this role."""
    declaration: Method = import_module(METHODS).method_for(role)
    return declaration


def solve_binary(problem: BinaryProblem, *, limits: SearchLimits) -> BinaryTreeFound:
    """Call `trainer.families.exact.search.solve.solve_binary`: the best tree over binary features, with its bound."""
    result: BinaryTreeFound = import_module(SEARCH).solve_binary(problem, limits=limits)
    return result


def solve_constrained(problem: BinaryProblem, constraints: Any, *, limits: SearchLimits) -> ConstrainedTreeFound:
    """Call `trainer.families.exact.search.constrained.solve_constrained`: the same under constraints. Raises InfeasibleError."""
    result: ConstrainedTreeFound = import_module(CONSTRAINED).solve_constrained(problem, constraints, limits=limits)
    return result


def numeric_search(*arguments: Any) -> Any:
    """Create a `trainer.families.numeric.intervals.NumericSearch`: the best tree over all thresholds for the rows of a node."""
    return import_module(INTERVALS).NumericSearch(*arguments)


def sized_search(plain: Any, min_leaf: int) -> Any:
    """Create a `trainer.families.numeric.sized.SizedSearch`: the search `plain`, for trees whose leaves weigh at least `min_leaf`."""
    return import_module(SIZED).SizedSearch(plain, min_leaf)


def numeric_time_over() -> type[Exception]:
    """Return the exception that ends a numeric search at a limit."""
    error: type[Exception] = import_module(INTERVALS).TimeOver
    return error
