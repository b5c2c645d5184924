"""`NumericWorkbench`: wishes with prices and proofs on one problem, over all thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trainer.data.problem import Problem
from trainer.editing.bench import Bench
from trainer.editing.complete import Completer, QuestionPrice
from trainer.editing.space import FAR
from trainer.editing.wishes import Item, Wish
from trainer.families.numeric.workbench.prefix import NumericPrefix
from trainer.families.numeric.workbench.space import NumericSpace
from trainer.tree.shapes import LabelledShape


class NumericWorkbench(Bench):
    """Trees of depth ≤ `depth` over all thresholds of numeric columns and single categories of the others.

    `memory`: bytes that caches may take. Raises DataError for weights or penalties that have too many digits for exact costs.
    """

    def __init__(self, problem: Problem, *, depth: int = 2, memory: int = 1 << 30) -> None:
        space = NumericSpace(problem, depth=depth, memory=memory)
        super().__init__(problem, space, NumericCompleter(NumericPrefix(space)))


class NumericCompleter(Completer):
    """Answers about wishes over all thresholds."""

    def price_list(self, wishes: Sequence[Wish], tree: LabelledShape, place: str) -> Iterator[QuestionPrice]:
        """One line for each column: its cheapest question at the place, of all thresholds that could stand there."""
        spot = self.spot(wishes, tree, place)
        least = self.prefix.value(spot)
        base = self.space.exact_cost(least.lower if least.exact else min(least.upper, FAR - 1))
        for column in range(len(self.space.problem.table.names)):
            asking = self.prefix.settle(replace(spot, items=spot.items | {Item("ask", "", -1, column)}))
            numbers = self.prefix.candidates(asking)
            if not numbers:
                continue
            found = self.prefix.value(asking)
            if found.exact and found.upper < FAR:
                side = self.prefix._sides(asking, found.choice)
                yield self._question(found.choice, side.spots, found.upper, base, least.exact)
            elif found.lower < FAR:
                price = max(base * 0, self.space.exact_cost(found.lower) - base)
                yield QuestionPrice(question=numbers[0], price=price, proved=False)
