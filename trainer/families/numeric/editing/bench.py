"""Define `NumericWorkbench`, which finds and prices trees under wishes over all thresholds."""

from __future__ import annotations

from trainer.constraints.forbidden import forbidden_columns
from trainer.data.problem import Problem
from trainer.editing.bench import Bench, cache_bytes
from trainer.editing.complete import ColumnCompleter
from trainer.editing.space import NONE_BANNED
from trainer.families.numeric.editing.prefix import NumericPrefix
from trainer.families.numeric.editing.space import NumericSpace
from trainer.families.numeric.limits import is_restricted
from trainer.families.numeric.restricted import questions_bench
from trainer.methods.base import Settings


class NumericWorkbench(Bench):
    """A workbench for trees of depth ≤ `depth` over all thresholds of numeric columns and single categories of the
    others.

    `banned`: columns that no tree tests. `memory`: most bytes of the caches. Raises DataError for weights or penalties that have too many digits for exact
    costs.
    """

    def __init__(
        self, problem: Problem, *, depth: int = 2, banned: frozenset[int] = NONE_BANNED, memory: int = 1 << 30
    ) -> None:
        space = NumericSpace(problem, depth=depth, banned=banned, memory=memory)
        super().__init__(problem, space, ColumnCompleter(NumericPrefix(space)))


def numeric_bench(problem: Problem, settings: Settings) -> Bench:
    """Build a workbench with the settings of the method.

    With limits of leaves, paths or whole trees it is that of the exact search over all thresholds as yes/no questions.
    """
    if is_restricted(settings):
        return questions_bench(problem, settings)
    banned = frozenset(problem.names.columns.index(name) for name in forbidden_columns(settings, problem.names))
    return NumericWorkbench(problem, depth=settings["depth"], banned=banned, memory=cache_bytes(settings))
