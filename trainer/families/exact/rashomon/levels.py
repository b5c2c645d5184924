"""Count good trees by the columns of their first two levels."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from trainer.editing.space import SearchStopped
from trainer.families.exact.rashomon.count import Bag, CountedTrees, accepted_number, entry_of_bag, root_parts
from trainer.families.exact.rashomon.listing import Lister

Sides = tuple[dict[int | None, int], dict[int | None, int]]


@dataclass
class FirstColumn:
    """The number of trees with a column at the root, and by the columns of the children yes and no; None: a leaf."""

    trees: int = 0
    yes: dict[int | None, int] = field(default_factory=dict)
    no: dict[int | None, int] = field(default_factory=dict)


def first_columns(lister: Lister, root: CountedTrees, limit: int) -> dict[int, FirstColumn]:
    """Return the numbers by the column of the root. Raises SearchStopped."""
    counter = lister.counter
    space = lister.space
    out: dict[int, FirstColumn] = {}
    for question, yes, no in root_parts(counter, root, limit):
        if space.stopped():
            raise SearchStopped
        bit = int(counter.keys.layout.bits[question])
        below = _below(lister, question, (yes, no), bit, limit)
        trees = sum(below[0].values())
        if trees:
            first = out.setdefault(space.questions.columns[question], FirstColumn())
            first.trees += trees
            for total, numbers in ((first.yes, below[0]), (first.no, below[1])):
                for column, n in numbers.items():
                    total[column] = total.get(column, 0) + n
    return out


def _below(lister: Lister, question: int, sides: tuple[CountedTrees, CountedTrees], bit: int, limit: int) -> Sides:
    """Count the trees with this root split by the columns of the children yes and no."""
    counter = lister.counter
    numbers: Sides = ({}, {})
    rows = lister.space.split(lister.space.all_rows, question)
    for s, other in ((0, sides[1]), (1, sides[0])):
        for column, part in _tops(lister, sides[s], rows[s]).items():
            bag = Bag(int(counter.keys.layout.low))
            bag.pairs(part, other, bit, limit, counter.space.flag)
            trees = accepted_number(entry_of_bag(bag, part.height + 1, limit), counter.keys, limit)
            if trees:
                numbers[s][column] = trees
    return numbers


def _tops(lister: Lister, entry: CountedTrees, rows: np.ndarray) -> dict[int | None, CountedTrees]:
    """Return the trees of a subproblem by the column of their root, None for a leaf."""
    bags: dict[int | None, Bag] = {}
    layout = lister.counter.keys.layout
    columns = lister.space.questions.columns

    def bag_of(column: int | None) -> Bag:
        return bags.setdefault(column, Bag(int(layout.low)))

    if entry.height > lister.counter.counted:
        cost = dict(zip(entry.keys.tolist(), entry.costs.tolist(), strict=True))
        if entry.leaf is not None:
            bag_of(None).put(entry.leaf[0], cost[entry.leaf[0]], 1)
        for question, yes, no in entry.parts:
            bit = int(layout.bits[question])
            bag_of(columns[question]).pairs(yes, no, bit, entry.budget, lister.space.flag)
    else:
        choices = lister.choices(entry, rows)
        for key, cost in zip(entry.keys.tolist(), entry.costs.tolist(), strict=True):
            for choice in choices.get(key, ()):
                if choice is None:
                    bag_of(None).put(key, cost, 1)
                else:
                    bag_of(columns[choice.question]).put(key, cost, choice.weight)
    return {column: entry_of_bag(bag, entry.height, entry.budget) for column, bag in bags.items()}
