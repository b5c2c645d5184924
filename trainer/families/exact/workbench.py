"""Edit trees under wishes with prices and proofs: `Workbench`.

It also lists all good trees. One problem is searched with shared caches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Unpack

from trainer.constraints import Constraints, column_pairs
from trainer.data.problem import Problem
from trainer.editing.bench import Bench, cache_bytes
from trainer.editing.complete import Completer
from trainer.editing.prefix import Prefix
from trainer.editing.space import NONE_BANNED, SearchStopped
from trainer.errors import ParameterError
from trainer.families.exact.editing.fronts import ExactVectorSearch, TreeLimits
from trainer.families.exact.editing.limited import LimitedCompleter
from trainer.families.exact.editing.space import ExactSpace
from trainer.families.exact.rashomon.chosen import GoodTreeFilter, amount, filters_of
from trainer.families.exact.rashomon.good import GoodTrees, first_trees, limit_of
from trainer.families.exact.search.constraints import exact_constraints
from trainer.methods.base import Settings
from trainer.tree.shapes import Shape

MOST_DEPTH = 20
GOOD_TREES_WORDS = (
    "good trees are counted around the best tree without limits on leaves, recalls, pairs or numbers of columns. "
    "Leave the limits out and choose by filters."
)


class Workbench(Bench):
    """Edit trees of depth ≤ `depth` over the binary features of the problem's encoding.

    Parameters
    ----------
    problem : Problem
        The rows and their encoding.
    depth : int
        Largest depth, at most MOST_DEPTH.
    min_leaf : int
        Minimum weight of rows in a leaf.
    without : sequence of str
        Columns that no tree tests.
    limits : TreeLimits, optional
        Limits on leaves, recalls and columns, for completions and prices.
    memory : int
        Most bytes of the caches.

    Raises
    ------
    ParameterError, DataError
        The exact search does not support these settings or rows.

    Notes
    -----
    Not thread-safe.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        depth: int = 3,
        min_leaf: int = 1,
        without: Sequence[str] = (),
        limits: TreeLimits | None = None,
        memory: int = 1 << 30,
    ) -> None:
        if not 0 <= depth <= MOST_DEPTH:
            raise ParameterError({"depth": f"must lie between 0 and {MOST_DEPTH}. It is {depth}."})
        banned = frozenset(problem.names.columns.index(problem.names.column(name, "without")) for name in without)
        space = ExactSpace(problem, depth=depth, min_leaf=min_leaf, banned=banned, memory=memory)
        prefix = Prefix(space)
        super().__init__(
            problem,
            space,
            Completer(prefix) if limits is None else LimitedCompleter(ExactVectorSearch(prefix, space, limits)),
        )
        self.space: ExactSpace = space
        self.limits = limits

    def good_trees(
        self,
        *,
        slack: Fraction | str | None = None,
        slack_rows: Fraction | str | int | None = None,
        slack_cost: Fraction | str | int | None = None,
        time_limit: float | None = None,
        stop: Callable[[], bool] | None = None,
        **choice: Unpack[GoodTreeFilter],
    ) -> GoodTrees:
        """Return all trees whose cost is within a share `slack` of the least cost, or within an amount of it.

        Parameters
        ----------
        slack, slack_rows, slack_cost : Fraction or str
            Exactly one of the three: a share, a number of rows or, if answers have costs, an amount in their unit. Decimals
            are exact, so floats are not accepted.
        time_limit : float, optional
            In seconds.
        stop : callable, optional
            Returns True to end the search.
        **choice : GoodTreeFilter
            Filters of these trees.

        Raises
        ------
        ParameterError
            A number or filter is invalid, or the workbench has limits.
        SearchStopped
            The time limit or `stop` ended the search.
        """
        costs = self._costs
        if sum(given is not None for given in (slack, slack_rows, slack_cost)) != 1:
            raise ParameterError(
                {
                    "slack": "give exactly one of slack (a share of the least cost), slack_rows (a number of rows) and slack_cost (an amount)."
                }
            )
        if slack_rows is not None and costs is not None:
            raise ParameterError(
                {"slack_rows": "trees are compared by their costs. Give a share, or an amount in slack_cost."}
            )
        if slack_cost is not None and costs is None:
            raise ParameterError({"slack_cost": "no answer has a cost. Give costs, or a share or a number of rows."})
        filters = filters_of(self.problem, choice)
        self.space.begin(time_limit, stop)
        share = None if slack is None else amount(slack, "slack")
        rows = None if slack_rows is None else amount(slack_rows, "slack_rows")
        if slack_cost is not None and costs is not None:
            rows = amount(slack_cost, "slack_cost") / costs.step / costs.price_of(Fraction(1)) * self.problem.n
        beyond = self.rows_beyond

        @cache
        def limit(least: int) -> int:  # cached, because it is called twice for each split of the root
            return limit_of(least, self.space.instance.Q, slack=share, slack_rows=rows, beyond=beyond)

        least = self._least(limit)
        return GoodTrees(self.space, least=least, limit=limit(least), filters=filters)

    def best_trees(
        self, most: int, *, time_limit: float | None = None, stop: Callable[[], bool] | None = None
    ) -> list[tuple[Fraction, Shape]]:
        """Return the `most` best trees with their costs in rows, in order of cost.

        Parameters
        ----------
        most : int
            Number of trees.
        time_limit : float, optional
            In seconds.
        stop : callable, optional
            Returns True to end the search.

        Returns
        -------
        list of tuple of Fraction and Shape
            Fewer than `most` if there are no more trees.

        Raises
        ------
        ParameterError
            If the workbench has limits.
        SearchStopped
            If the time limit or `stop` ended the search.
        """
        self.space.begin(time_limit, stop)
        Q = self.space.instance.Q
        trees = first_trees(self.space, least=self._least(), most=most, limit=None)
        return [(Fraction(cost, Q), tree) for cost, tree in trees]

    def _least(self, limit: Callable[[int], int] | None = None) -> int:
        """Return the least cost of all trees, in 1/Q rows. Raises ParameterError if the workbench has limits.

        limit: maps the least cost to the cost up to which trees will be counted, so that one search serves both.
        """
        if self.limits is not None:
            raise ParameterError({"limits": GOOD_TREES_WORDS})
        search = self.space.search(NONE_BANNED, paths=True)
        scale = self.space.instance.scale
        before = search.pruning_threshold
        if limit is not None:
            search.pruning_threshold = lambda cost: (limit(cost // scale) + 1) * scale
        try:
            optimum = self.space.solve(self.space.all_rows, (), self.space.depth, NONE_BANNED)
        finally:
            search.pruning_threshold = before
        if not optimum.exact:
            raise SearchStopped
        return optimum.lower // self.space.instance.scale


def check_depth(settings: Settings) -> None:
    """Raise ParameterError for settings without a limit of depth."""
    if settings["depth"] is None:
        words = f"the workbench and good trees need a number of questions from 0 to {MOST_DEPTH}, not 'none'."
        raise ParameterError({"depth": words})


def exact_bench(problem: Problem, settings: Settings) -> Workbench:
    """Build a workbench with the settings of the method. Raises ParameterError for limits that no row can satisfy."""
    check_depth(settings)
    constraints = exact_constraints(problem, settings)
    if constraints is None and settings["max_leaves"]:
        constraints = Constraints(max_leaves=settings["max_leaves"])
    pairs = column_pairs(problem, settings)
    limits = None
    if constraints is not None or pairs:
        limits = TreeLimits(constraints=constraints or Constraints(), pairs=pairs)
    return Workbench(
        problem,
        depth=settings["depth"],
        min_leaf=settings["min_leaf"],
        without=[name.strip() for name in settings["forbidden"].split(";") if name.strip()],
        limits=limits,
        memory=cache_bytes(settings),
    )
