"""Define the parts of a hyperplane method and shared parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from trainer.data.problem import Problem
from trainer.dtypes import FloatArray
from trainer.families.oblique.instance import ObliqueInstance, ObliqueTree
from trainer.families.oblique.refit import STYLES
from trainer.methods.base import (
    ANSWER_COSTS,
    COMMON,
    DEPTH,
    LEAF_PENALTY,
    MIN_LEAF,
    MIP_GAP,
    PAPER_LAMBDA,
    SOLVER,
    Parameter,
    having,
)
from trainer.milo import Hooks, IntegerProgram

SCOPE = "questions that weigh all columns at once, each parting its rows by at least 1e-7 (columns scaled to [0, 1])"
FILLED = ", empty cells filled with the training median, with an indicator"
LEAVES_OPEN = "that no tree of the same objective has fewer leaves"


class Master(Protocol):
    """A master model that converts trees to points and points to trees."""

    model: IntegerProgram

    def assignment(self, tree: ObliqueTree) -> FloatArray | None:
        """Return the values of all variables for a tree; None if the tree is infeasible in the model."""

    def read(self, values: FloatArray) -> ObliqueTree:
        """Return the tree of an integral point."""


def scope_words(scope: str, problem: Problem) -> str:
    """Return the scope of a method, with the treatment of empty cells if there are any."""
    return scope + (FILLED if problem.has_empty else "")


Improve = Callable[[ObliqueTree], "ObliqueTree | None"]
Make = Callable[[ObliqueInstance, Callable[[], bool]], Master]
MakeHooks = Callable[[Any, Improve], Hooks]


@dataclass(frozen=True, kw_only=True)
class SolvePlan:
    """Parts of a method: model, hooks, minimum distance of its planes, and scope."""

    make: Make
    hooks: MakeHooks
    complete: bool = False
    scope: str = SCOPE
    least: float = 0.0  # distance of planes from correctly classified points; 0 if the model allows all trees
    robust: bool = False  # whether a column with outliers is scaled by less than its range


HYPERPLANES = Parameter(
    name="hyperplanes",
    type="choice",
    default="margin",
    choices=STYLES,
    label="Hyperplanes",
    help="How a hyperplane is placed between its rows: with the widest margin, with a soft margin (as in the paper), or "
    "with the fewest columns, also among other equally good trees.",
)
FIRST_TREES = Parameter(
    name="first_trees",
    type="choice",
    default="all",
    choices=("all", "cart", "none"),
    label="First trees",
    help="The trees that the local search starts from: the trees of cart, exact, bivariate and oc1 (all), only the tree of cart, or none.",
    advanced=True,
)
SEARCH_SECONDS = Parameter(
    name="search_seconds",
    type="number",
    default=30.0,
    minimum=0,
    maximum=86_400,
    label="Local search",
    help="Time for first trees and local search before the solver starts, at most half of the time limit.",
    unit="s",
    advanced=True,
)
OBLIQUE_DEPTH = having(DEPTH, default=2, maximum=6)
HEAD = (OBLIQUE_DEPTH, LEAF_PENALTY, PAPER_LAMBDA, MIN_LEAF, HYPERPLANES)
TAIL = (FIRST_TREES, SEARCH_SECONDS, SOLVER, MIP_GAP, *ANSWER_COSTS, *COMMON)
