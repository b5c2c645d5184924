"""What a tree from counts maximises: correct rows, or the savings of its answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from trainer.data.cost_text import read_costs
from trainer.data.costs import MOST_COST, RowCosts
from trainer.data.problem import SettingNames
from trainer.dtypes import CountArray
from trainer.errors import ParameterError
from trainer.methods.base import Settings, exact_fraction


@dataclass(frozen=True, kw_only=True)
class CountedObjective:
    """The maximised gain of the leaves: their correct rows, or with `costs` the savings of their answers in steps.

    `costs` has one row for each class, with the number of its rows as weight. This is exact, since all rows of a class
    have the same costs. `rows` is the number of rows, and `penalty` the price of a leaf as the user stated it.
    """

    rows: int
    penalty: Fraction
    costs: RowCosts | None = None

    @property
    def gains(self) -> CountArray | None:
        """The saving of each answer in a row of each class, int64 (answers, classes); None for correct rows."""
        if self.costs is None:
            return None
        values = self.costs.values
        gains: CountArray = (values.max(axis=1, keepdims=True) - values).T
        return gains

    @property
    def total(self) -> int:
        """The gain that is an objective of 1: all rows, or the savings of all answers in all rows."""
        return self.rows if self.gains is None or self.costs is None else int((self.gains @ self.costs.weights).sum())

    @property
    def price(self) -> Fraction:
        """The price of a leaf as a gain."""
        return self.penalty * (self.rows if self.costs is None else min(self.costs.constants))

    def gain_of(self, class_rows: CountArray) -> CountArray:
        """Return the gain of each answer in rows, int64 (classes,)."""
        gains: CountArray = class_rows if self.gains is None else self.gains @ class_rows
        return gains

    def value(self, gain: int, leaves: int) -> Fraction:
        """Return the objective of a tree."""
        return (gain - self.price * leaves) / self.total

    def of_rows(self, class_rows: CountArray) -> CountedObjective:
        """Return the objective for other rows, with their number of each class."""
        costs = None if self.costs is None else replace(self.costs, weights=class_rows)
        return replace(self, rows=int(class_rows.sum()), costs=costs)


def counted_objective(
    settings: Settings, names: SettingNames, class_rows: CountArray, *, rows: int, suppressed: bool
) -> CountedObjective:
    """Return the objective of the settings for rows of these numbers in each class, int64 (classes,).

    Raises ParameterError for costs that counts do not determine: from a column, of each row, or with suppressed counts.
    """
    penalty = exact_fraction(settings["leaf_penalty"] or 0)
    matrix = read_costs(settings, names)
    if matrix is None:
        return CountedObjective(rows=rows, penalty=penalty)
    if suppressed:
        raise ParameterError(
            {"costs": "small numbers of these counts are secret, so costs are not known. Leave them out."}
        )
    of_columns = [term.column for row in matrix.terms for term in row if term.column is not None]
    if matrix.each_row or of_columns:
        source = f"the column '{of_columns[0]}'" if of_columns else "an array"
        raise ParameterError(
            {
                "costs": f"{source} gives each row its own costs, which counts do not know. Write numbers, or train from the table."
            }
        )
    step = Fraction(1, math.lcm(*(term.factor.denominator for row in matrix.terms for term in row)))
    values = [[int(term.factor / step) for term in row] for row in matrix.terms]
    if max(map(max, values)) * rows * len(values) > MOST_COST:
        raise ParameterError({"costs": "the sum of the costs is too large. Use a larger unit, or fewer digits."})
    costs = RowCosts(values=np.array(values, np.int64), weights=class_rows, step=step, error=0.0, matrix=matrix)
    objective = CountedObjective(rows=rows, penalty=penalty, costs=costs)
    if not objective.total:
        raise ParameterError(
            {"costs": "all answers cost the same in all rows, so every tree is as good. Correct the costs."}
        )
    costs.leaf_share(penalty)  # refuses a leaf that costs more than any tree saves
    return objective
