"""Make warm starts from known, greedy or exact trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from trainer.constraints import Constraints
from trainer.data.problem import Problem
from trainer.errors import DataError, InfeasibleError, ParameterError
from trainer.families.mip import greedy
from trainer.families.mip.instance import CUT, LEAF, ArrayTree, Instance, route_rows
from trainer.families.mip.side.base import SideConstraint
from trainer.methods.base import AUTO, Parameter
from trainer.solver_common.binary_problem import SearchLimits
from trainer.solver_common.cross_family import solve_binary, solve_constrained
from trainer.solver_common.warm_start import BinaryTree, binary_tree
from trainer.tree.nodes import Draft
from trainer.tree.shapes import LabelledShape

Halted = Callable[[], bool]


def never_halt() -> bool:
    """Return False: the default of `halted`, which builds the complete model."""
    return False


@dataclass(frozen=True, kw_only=True)
class Start:
    """Start trees and a known upper bound in rows (None: none)."""

    trees: tuple[ArrayTree, ...] = ()
    bound: Fraction | None = None


def make_start(
    instance: Instance, kind: str, seconds: float, stopped: Halted = never_halt, side: Sequence[SideConstraint] = ()
) -> Start:
    """Make the warm start `none`, `cart` (pruned with the leaf penalty) or `exact` (searched for some seconds).

    The exact search respects the side constraints that it supports. Its trees are a superset of the admitted ones, so its bound is valid.
    `auto` is `exact` without its errors: where the exact search refuses an instance, the solver still solves it.
    """
    if kind == "none":
        return Start()
    trees = (greedy.cart(instance), instance.majority_leaf())
    if kind == "cart":
        return Start(trees=trees)
    try:
        return _search_start(instance, _exact_constraints(instance, side), trees, seconds, stopped)
    except (DataError, ParameterError):
        if kind != AUTO:
            raise
        return Start(trees=trees)


def start_kind(problem: Problem, wanted: str) -> str:
    """Return the kind of warm start that a setting means for a problem.

    Two questions for each threshold make a model of columns with empty cells many times slower than the exact search,
    so `auto` stays `auto` for them. Otherwise it means `cart`.
    """
    if wanted != AUTO:
        return wanted
    return AUTO if any(feature.empty is not None for feature in problem.binary.features) else "cart"


def _search_start(
    instance: Instance, constraints: Constraints | None, trees: tuple[ArrayTree, ...], seconds: float, stopped: Halted
) -> Start:
    """Return the start of the exact search: its tree before the other trees, and its bound."""
    problem = instance.binary_problem()
    limits = SearchLimits(time_limit=seconds, stop=stopped)
    if constraints is None:
        free = solve_binary(problem, limits=limits)
        return Start(trees=(_to_array_tree(instance, free.shape), *trees), bound=instance.total - free.bound)
    try:
        result = solve_constrained(problem, constraints, limits=limits)
    except InfeasibleError:  # the model proves this again, and then shows which limits are reachable
        return Start(trees=trees)
    incumbent = (_to_array_tree(instance, result.shape),) if result.found else ()
    return Start(trees=(*incumbent, *trees), bound=instance.total - result.bound)


def _exact_constraints(instance: Instance, side: Sequence[SideConstraint]) -> Constraints | None:
    """Return the side constraints that the exact search supports; None if it supports none of them."""
    nothing = constraints = Constraints()
    for constraint in side:
        constraints = constraint.add_to_exact(constraints, instance)
    return None if constraints is nothing else constraints


def known_trees(problem: Problem, instance: Instance, *, labelled: bool = False) -> tuple[ArrayTree, ...]:
    """Return the problem's warm start over the features of the instance, if it has one.

    `labelled`: also return it with the labels of the draft.
    """
    if problem.warm_start is None:
        return ()
    places = {int(f): j for j, f in enumerate(instance.features)}
    feature = np.full(2 << instance.depth, CUT, np.int32)

    def plant(part: BinaryTree, v: int) -> None:
        # `binary_tree` uses no feature that is constant over the rows, so the instance has all features of the tree
        feature[v] = LEAF if part is None else places[part[0]]
        if part is not None:
            plant(part[1], 2 * v)
            plant(part[2], 2 * v + 1)

    plant(binary_tree(problem.warm_start, problem, depth=instance.depth), 1)
    tree = instance.label_leaves(feature)
    return (tree, _keep_labels(problem, problem.warm_start, instance, tree)) if labelled else (tree,)


def _keep_labels(problem: Problem, draft: Draft, instance: Instance, tree: ArrayTree) -> ArrayTree:
    """Label each leaf by the draft's most frequent prediction for its rows, which a constraint may require."""
    predictions = problem.tree(draft).predict(problem.matrix)
    classes = np.searchsorted(instance.labels, predictions).clip(max=instance.classes - 1)
    counted_rows = (instance.labels[classes] == predictions) & (problem.row_weights > 0)
    bits = problem.binary.bits(problem.table)[:, instance.features]
    at = route_rows(bits, tree.feature, instance.depth)
    votes = np.zeros((len(tree.feature), instance.classes))
    np.add.at(votes, (at[counted_rows], classes[counted_rows]), problem.row_weights[counted_rows])
    return ArrayTree(tree.feature, np.where(votes.any(axis=1), votes.argmax(axis=1), tree.label).astype(np.int32))


def _to_array_tree(instance: Instance, shape: LabelledShape) -> ArrayTree:
    """Convert a tree of the exact search; leaves without a label get their majority class."""
    feature = np.full(2 << instance.depth, CUT, np.int32)
    labels: dict[int, int] = {}

    def plant(part: LabelledShape, v: int) -> None:
        feature[v] = LEAF
        if isinstance(part, tuple):
            feature[v] = part[0]
            plant(part[1], 2 * v)
            plant(part[2], 2 * v + 1)
        elif part is not None:
            labels[v] = part

    plant(shape, 1)
    tree = instance.label_leaves(feature)
    label = tree.label.copy()
    label[list(labels)] = list(labels.values())
    return ArrayTree(tree.feature, label)


WARM_START = Parameter(
    name="first_tree",
    type="choice",
    default=AUTO,
    choices=(AUTO, "cart", "exact", "none"),
    label="First tree",
    help="The tree that the search starts from: a pruned greedy tree (cart), the tree and the bound of the exact search "
    "(which satisfies the side constraints that it supports), or none. auto: exact if columns have empty cells, else cart.",
    advanced=True,
)
EXACT_SECONDS = Parameter(
    name="exact_seconds",
    type="number",
    default=5.0,
    minimum=0,
    maximum=86_400,
    label="Exact search first",
    help="How long the exact search may look for the first tree and a bound, with first_tree=exact or auto.",
    unit="s",
    advanced=True,
)
