"""Keep limits on the whole tree beside wishes from counts: leaves, recalls, and pairs of columns on a path."""

from __future__ import annotations

import numpy as np

from trainer.constraints import Constraints, column_pairs, recalls
from trainer.counts.recalls import RecallSearch, front_shape
from trainer.counts.search import TreeSearch
from trainer.counts.space import CountedSpace
from trainer.data.problem import Problem
from trainer.editing.complete import Completer
from trainer.editing.prefix import Prefix, Spot
from trainer.editing.space import INFINITE_COST
from trainer.families.exact.editing.fronts import TreeLimits, Vectors, VectorSearch
from trainer.families.exact.editing.limited import LimitedCompleter
from trainer.families.exact.kernels.pareto import AUX
from trainer.methods.base import Settings


def completer_of(space: CountedSpace, within: TreeSearch, settings: Settings) -> Completer:
    """Return the completer of wishes for the limits of the settings.

    `within` is the search that keeps forbidden pairs; the space itself does not.
    """
    prefix = Prefix(space)
    problem = space.problem
    limits = _limits(problem, settings)
    if limits is None:
        return Completer(prefix)
    required = RecallSearch(
        search=within, recalls=limits.constraints.recalls, price=space.leaf_rows, max_leaves=settings["max_leaves"]
    )
    return LimitedCompleter(_CountedVectors(prefix, limits, space, required))


def _limits(problem: Problem, settings: Settings) -> TreeLimits | None:
    names = problem.names
    required = tuple((names.classes.index(name), share) for name, share in recalls(settings, names))
    pairs = column_pairs(problem, settings)
    if not (required or pairs or settings["max_leaves"]):
        return None
    return TreeLimits(constraints=Constraints(max_leaves=settings["max_leaves"], recalls=required), pairs=pairs)


class _CountedVectors(VectorSearch):
    """The search for fronts over counts; `required` has the fronts of nodes of height two."""

    def __init__(self, prefix: Prefix, limits: TreeLimits, space: CountedSpace, required: RecallSearch) -> None:
        super().__init__(prefix, limits, required.caps[: len(required.recalls)])
        self.counted = space
        self.required = required

    def common(self, spot: Spot, ub: int) -> Vectors:
        space = self.counted
        node = space.without(spot.rows, spot.banned)
        if not self.bounded:
            return self._fewest(spot)
        if spot.height > 2:
            return self.search(spot, ub)
        costs = np.array([space.unit, space.leaf], np.int64)
        front = self.required.front(node, spot.height, costs, self.most(ub))
        return Vectors(front.vectors, front.aux, ub, common=lambda at: space.as_questions(front_shape(front, at)))

    def _fewest(self, spot: Spot) -> Vectors:
        """Return the least cost for each number of leaves, which holds for all costs at once."""
        space = self.counted
        node = space.without(spot.rows, spot.banned)
        search = self.required.search
        costs = space.cost_by_leaves(node, spot.height, search)[: self.limits.constraints.max_leaves]
        sizes = [size for size, cost in enumerate(costs, 1) if cost < min([INFINITE_COST, *costs[: size - 1]])]
        if self.limits.constraints.max_leaves is None:
            sizes = sizes[-1:]
        vectors = np.array([[costs[size - 1], size] for size in sizes], np.int64).reshape(len(sizes), 2)
        return Vectors(
            vectors[:, : len(self.caps) + 1],
            np.full((len(sizes), AUX), -1, np.int64),
            INFINITE_COST,
            common=lambda at: space.as_questions(search.shape_of(node, spot.height, sizes[at])),
        )
