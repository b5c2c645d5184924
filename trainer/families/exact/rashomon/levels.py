"""What good trees ask first and then: the number of trees by the column of the root, and of the questions on its two sides."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from trainer.editing.space import SearchStopped
from trainer.families.exact.rashomon.count import Bag, CountedTrees, _part, _root_parts, accepted_number
from trainer.families.exact.rashomon.listing import Lister

Sides = tuple[dict[int | None, int], dict[int | None, int]]


@dataclass
class FirstColumn:
    """The trees that ask a column first: how many, and how many of them ask each column then on the side yes and no; None: a leaf."""

    trees: int = 0
    yes: dict[int | None, int] = field(default_factory=dict)
    no: dict[int | None, int] = field(default_factory=dict)


def first_columns(lister: Lister, root: CountedTrees, limit: int) -> dict[int, FirstColumn]:
    """By the column of the first question. Raises SearchStopped."""
    counter = lister.counter
    space = lister.space
    out: dict[int, FirstColumn] = {}
    for question, yes, no in _root_parts(counter, root, limit):
        if space.stopped():
            raise SearchStopped
        bit = int(counter.keys.layout.bits[question])
        below = _below(lister, question, (yes, no), bit, limit)
        trees = sum(below[0].values())
        if trees:
            own = out.setdefault(space.questions.columns[question], FirstColumn())
            own.trees += trees
            for total, numbers in ((own.yes, below[0]), (own.no, below[1])):
                for column, n in numbers.items():
                    total[column] = total.get(column, 0) + n
    return out


def _below(lister: Lister, question: int, sides: tuple[CountedTrees, CountedTrees], bit: int, limit: int) -> Sides:
    """How many trees with this question first ask each column then, on the side yes and on the side no."""
    counter = lister.counter
    found: Sides = ({}, {})
    rows = lister.space.split(lister.space.all_rows, question)
    for s, other in ((0, sides[1]), (1, sides[0])):
        for column, part in _tops(lister, sides[s], rows[s]).items():
            bag = Bag(int(counter.keys.layout.low))
            bag.pairs(part, other, bit, limit, counter.space.flag)
            number = accepted_number(_part(bag, part.height + 1, limit), counter.keys, limit)
            if number:
                found[s][column] = number
    return found


def _tops(lister: Lister, entry: CountedTrees, rows: np.ndarray) -> dict[int | None, CountedTrees]:
    """The trees of a subproblem by the column of their first question, None for its leaf."""
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
    return {column: _part(bag, entry.height, entry.budget) for column, bag in bags.items()}
