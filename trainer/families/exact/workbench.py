"""`Workbench`: wishes with prices and proofs, and all good trees, on one problem; what was searched stays for what comes next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Unpack

from trainer.constraints import Constraints
from trainer.data.problem import Problem
from trainer.editing.bench import Bench, cache_bytes
from trainer.editing.complete import Completer
from trainer.editing.prefix import Prefix
from trainer.editing.space import NONE_BANNED, SearchStopped
from trainer.errors import ParameterError
from trainer.families.exact.editing.fronts import TreeLimits
from trainer.families.exact.editing.limited import LimitedCompleter
from trainer.families.exact.editing.space import ExactSpace
from trainer.families.exact.rashomon.chosen import GoodTreeFilter, amount, filters_of
from trainer.families.exact.rashomon.good import GoodTrees, first_trees, limit_of
from trainer.families.exact.search.constraints import column_pairs, exact_constraints
from trainer.methods.base import Settings
from trainer.tree.shapes import Shape

MOST_DEPTH = 20
GOOD_TREES_WORDS = (
    "good trees lie around the best tree of all, and are not counted within limits on leaves, recalls, pairs or numbers of columns. "
    "Leave the limits out and choose by filters."
)


class Workbench(Bench):
    """Trees of depth ≤ `depth` over the yes/no questions of the problem's encoding.

    `min_leaf`: the smallest weight of rows in a leaf; `without`: columns that are never asked; `limits`: on leaves, recalls and columns
    of the whole tree, which bind completions and prices. `memory`: bytes that caches may take. Raises ParameterError or DataError for
    what the exact search cannot take. Not for several threads at once.
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
            raise ParameterError({"depth": f"it must lie between 0 and {MOST_DEPTH}; it is {depth}."})
        banned = frozenset(problem.names.columns.index(problem.names.column(name, "without")) for name in without)
        space = ExactSpace(problem, depth=depth, min_leaf=min_leaf, banned=banned, memory=memory)
        prefix = Prefix(space)
        super().__init__(
            problem, space, Completer(prefix) if limits is None else LimitedCompleter(prefix, space, limits)
        )
        self.space: ExactSpace = space
        self.limits = limits

    def good_trees(
        self,
        *,
        slack: Fraction | str | None = None,
        slack_rows: Fraction | str | int | None = None,
        beyond: Fraction = Fraction(0),
        time_limit: float | None = None,
        stop: Callable[[], bool] | None = None,
        **choice: Unpack[GoodTreeFilter],
    ) -> GoodTrees:
        """All trees whose cost is within a share `slack` of the least cost, or within `slack_rows` rows of it.

        Decimals are taken as written (texts or fractions, no floats). `beyond`: rows that every tree costs more than these rows
        say, negative if it costs less. `choice` says which of these trees are meant, by the names of
        `GoodTreeFilter`: must, without, max_leaves, recalls, difference, groups, rate, favoured, agrees, agree_rows. Raises ParameterError, and
        Stopped where the time is over.
        """
        if (slack is None) == (slack_rows is None):
            raise ParameterError({"slack": "give either a share of the least cost or a number of rows."})
        filters = filters_of(self.problem, choice)
        self.space.begin(time_limit, stop)
        share = None if slack is None else amount(slack, "slack")
        rows = None if slack_rows is None else amount(slack_rows, "slack_rows")

        @cache
        def limit(least: int) -> int:  # asked twice for each question at the root
            return limit_of(least, self.space.instance.Q, slack=share, slack_rows=rows, beyond=beyond)

        least = self._least(limit)
        return GoodTrees(self.space, least=least, limit=limit(least), filters=filters)

    def best_trees(
        self, most: int, *, time_limit: float | None = None, stop: Callable[[], bool] | None = None
    ) -> list[tuple[Fraction, Shape]]:
        """The `most` best trees with their costs in rows, in order of cost. Raises SearchStopped."""
        self.space.begin(time_limit, stop)
        Q = self.space.instance.Q
        found = first_trees(self.space, least=self._least(), most=most, limit=None)
        return [(Fraction(cost, Q), tree) for cost, tree in found]

    def _least(self, limit: Callable[[int], int] | None = None) -> int:
        """The least cost of all trees, in 1/Q rows. Raises ParameterError where limits bind the whole tree.

        limit: up to which cost trees are counted afterwards, by the least cost: what lies below the root is searched once for both.
        """
        if self.limits is not None:
            raise ParameterError({"limits": GOOD_TREES_WORDS})
        search = self.space.search(NONE_BANNED, paths=True)
        scale = self.space.instance.scale
        before = search.pruning_threshold
        if limit is not None:
            search.pruning_threshold = lambda cost: (limit(cost // scale) + 1) * scale
        try:
            known = self.space.solve(self.space.all_rows, (), self.space.depth, NONE_BANNED)
        finally:
            search.pruning_threshold = before
        if not known.exact:
            raise SearchStopped
        return known.lower // self.space.instance.scale


def exact_bench(problem: Problem, settings: Settings) -> Workbench:
    """Build a workbench with the settings of the method. Raises ParameterError for limits that the rows cannot meet."""
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
