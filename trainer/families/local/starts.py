"""Make the trees from which the local search starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from trainer.certificate import Limits
from trainer.data.problem import Problem
from trainer.families.local.subproblem import Shape, Subproblems
from trainer.methods.base import Settings
from trainer.methods.capabilities import Role
from trainer.methods.monitor import Monitor
from trainer.solver_common.cross_family import method_for
from trainer.tree.nodes import Draft, DraftLeaf
from trainer.tree.prune import prune
from trainer.tree.splits import goes_left

MEASURES = ("gini", "entropy")  # impurities of the first two starts
SHARE = 0.7  # share of the rows from which a further start grows


def grown_trees(problem: Problem, settings: Settings, number: int, monitor: Monitor) -> Iterator[Draft]:
    """Yield greedy trees, pruned with the leaf penalty: from all rows, then from random samples of them."""
    rng = np.random.default_rng(settings["seed"])
    rows = np.arange(len(problem.y))
    for k in range(number):
        size = max(1, round(SHARE * len(rows)))
        sample = rows if k < len(MEASURES) else np.sort(rng.choice(rows, size, replace=False))
        draft = grow(problem, settings, sample, MEASURES[k % len(MEASURES)], monitor)
        yield pruned(problem, draft, problem.leaf_penalty)


def grow(problem: Problem, settings: Settings, sample: np.ndarray, measure: str, monitor: Monitor) -> Draft:
    """Return the greedy tree of some rows; a leaf if they have one class."""
    if np.unique(problem.y[sample]).size < 2:
        return DraftLeaf()
    part = replace(
        problem,
        table=problem.table.take(sample),
        labels=problem.labels.take(sample),
        weights=None if problem.weights is None else problem.weights[sample],
        quantile_weights=None,
        warm_start=None,
    )
    greedy = method_for(Role.ONE_QUICK)
    parameters = {"depth": settings["depth"], "min_leaf": settings["min_leaf"], "impurity": measure}
    seconds = monitor.remaining()
    limits = Limits(time=None if np.isinf(seconds) else seconds)
    return greedy.solve(part, greedy.settings(parameters), Monitor(limits)).draft


def pruned(problem: Problem, draft: Draft, penalty: Fraction) -> Draft:
    """Return the cheapest tree that pruning makes of a draft, with the penalty as a share of the rows."""
    return prune(problem.tree(draft), penalty)


def shape_of(draft: Draft, problem: Problem, subproblems: Subproblems) -> Shape:
    """Return a draft over the numeric features; a split that they do not have becomes the most similar one."""
    matrix = problem.matrix[problem.row_weights > 0]

    def visit(part: Draft, order: np.ndarray) -> Shape:
        leaf = subproblems.leaf(order).shape
        if isinstance(part, DraftLeaf):
            return leaf
        at = order[0]
        is_high = np.zeros(len(matrix), bool)
        is_high[at] = ~goes_left(part.split, matrix[at])
        split = subproblems.best_split(order, is_high)
        if split is None:
            return leaf
        low, high = subproblems.divide(order, *split)
        # the sides may be swapped
        exchanged = is_high[low[0]].mean() > is_high[high[0]].mean()
        sides = (part.right, part.left) if exchanged else (part.left, part.right)
        if min(subproblems.rows.weights[side[0]].sum() for side in (low, high)) < subproblems.min_leaf:
            return leaf
        return *split, visit(sides[0], low), visit(sides[1], high)

    return visit(draft, subproblems.rows.order)
