"""Define `NumericWorkbench`, which finds and prices trees under wishes over all thresholds."""

from __future__ import annotations

from trainer.constraints import active_constraints
from trainer.data.problem import Problem
from trainer.editing.bench import Bench, cache_bytes
from trainer.editing.complete import ColumnCompleter
from trainer.families.numeric.editing.prefix import NumericPrefix
from trainer.families.numeric.editing.space import NumericSpace
from trainer.families.numeric.restricted import questions_bench
from trainer.methods.base import Settings


class NumericWorkbench(Bench):
    """A workbench for trees of depth ≤ `depth` over all thresholds of numeric columns and single categories of the
    others.

    `memory`: most bytes of the caches. Raises DataError for weights or penalties that have too many digits for exact
    costs.
    """

    def __init__(self, problem: Problem, *, depth: int = 2, memory: int = 1 << 30) -> None:
        space = NumericSpace(problem, depth=depth, memory=memory)
        super().__init__(problem, space, ColumnCompleter(NumericPrefix(space)))


def numeric_bench(problem: Problem, settings: Settings) -> Bench:
    """Build a workbench with the settings of the method.

    With recalls or forbidden pairs it is that of the exact search over all thresholds as yes/no questions.
    """
    if active_constraints(settings):
        return questions_bench(problem, settings)
    return NumericWorkbench(problem, depth=settings["depth"], memory=cache_bytes(settings))
