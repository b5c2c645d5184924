"""All good trees of a problem: how many, in order, a uniform sample, what they ask, and how they disagree."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from random import Random

import numpy as np

from trainer.editing.space import NONE_BANNED, SearchStopped
from trainer.errors import ParameterError
from trainer.families.exact.editing.rows import rows_with_values
from trainer.families.exact.editing.space import ExactSpace
from trainer.families.exact.kernels.column_usage import KeyUsage
from trainer.families.exact.rashomon.count import CountedTrees, Counter, accepted, accepted_number, first_counts
from trainer.families.exact.rashomon.filters import Filters, RateFilter
from trainer.families.exact.rashomon.importance import Importance
from trainer.families.exact.rashomon.levels import FirstColumn, first_columns
from trainer.families.exact.rashomon.listing import AnswerVectors, Lister, ListTooLong
from trainer.families.exact.rashomon.ranges import Ranges
from trainer.families.exact.rashomon.small import SideTrees
from trainer.families.exact.rashomon.votes import Votes
from trainer.tree.shapes import Shape

MOST_ANSWERS = 3_000_000  # sums of answers that are looked at


class GoodTrees:
    """The trees with cost ≤ limit that pass the filters; two trees differ if their shape or a question does.

    Costs count 1/Q of a row. `limit` applies to all trees, whatever the filters choose. Whatever is asked for is counted then, and
    raises SearchStopped if the space was told to stop.
    """

    def __init__(
        self, space: ExactSpace, *, least: int, limit: int, filters: Filters, base: Counter | None = None
    ) -> None:
        """`base`: a count of the same trees and more, with the same filters."""
        self.space = space
        self.least = least
        self.limit = limit
        self.filters = filters
        self.counter = Counter(space, filters, base=base)
        self.lister = Lister(self.counter)
        self.rows = space.all_rows

    @cached_property
    def root(self) -> CountedTrees:
        """The counts of the whole."""
        return self.counter.root(self.limit)

    @cached_property
    def levels(self) -> list[tuple[int, int, int]]:
        """(cost, key, count), ascending by cost."""
        return accepted(self.root, self.counter.keys, self.limit)

    @cached_property
    def count(self) -> int:
        """How many there are."""
        return sum(n for _, _, n in self.levels)

    @cached_property
    def without_idle(self) -> int:
        """How many trees there are without a question whose two sides are leaves of the same class."""
        return self._counted(Counter(self.space, self.filters, idle=False, base=self.counter))

    @cached_property
    def distinct(self) -> int:
        """How many there are if questions that separate the rows at a place alike count once.

        Raises SearchStopped for so many required columns that a key cannot hold what is needed of them.
        """
        try:
            counter = Counter(self.space, self.filters, reduce=True)
        except ParameterError:  # the same filters without it did fit
            raise SearchStopped from None
        return self._counted(counter)

    def _counted(self, counter: Counter) -> int:
        return accepted_number(counter.root(self.limit), counter.keys, self.limit)

    def at_least(self) -> int:
        """How many have been seen before the count was stopped."""
        return self.counter.partial

    @cached_property
    def first_questions(self) -> dict[int, int]:
        """How many ask each question first; the tree of one leaf asks none."""
        return first_counts(self.counter, self.root, self.limit)

    @cached_property
    def first_columns(self) -> dict[int, FirstColumn]:
        """By the column that they ask first: how many there are, and what they ask then on both sides; the tree of one leaf asks none."""
        return first_columns(self.lister, self.root, self.limit)

    def numbers(self) -> list[tuple[int, int]]:
        """(cost, how many trees cost at most that), ascending by cost."""
        found: dict[int, int] = {}
        seen = 0
        for cost, _, number in self.levels:
            seen += number
            found[cost] = seen
        return list(found.items())

    def asking(self, column: int) -> int:
        """How many ask a column."""
        if column in self.filters.without:
            return 0
        if column in self.filters.must:
            return self.count
        if self._ranges.exact:
            return self.count - int(self._accepted(self._asked.free)[:, column].sum())
        without = replace(self.filters, without=self.filters.without | {column})
        return self.count - self._counted(Counter(self.space, without))

    @cached_property
    def asked(self) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest weight of the rows with a path that asks about each column, int64 (columns,)."""
        lo = self._accepted(self._asked.lo)
        hi = self._accepted(self._asked.hi)
        if not len(lo):
            return np.zeros(lo.shape[1], np.int64), np.zeros(lo.shape[1], np.int64)
        return lo.min(axis=0), hi.max(axis=0)

    @cached_property
    def _ranges(self) -> Ranges:
        return Ranges(self.counter)

    @cached_property
    def _asked(self) -> KeyUsage:
        return self._ranges.of(self.root, self.rows)

    def _accepted(self, by_key: np.ndarray) -> np.ndarray:
        """The lines of an array with one for each key, ascending, of the keys that pass the filters."""
        return by_key[np.searchsorted(np.sort(self.root.keys), np.array([k for _, k, _ in self.levels], np.int64))]

    @cached_property
    def importance(self) -> list[tuple[int, int]]:
        """For each column the least and the largest importance over the trees, times n² (see `workbench.importance`)."""
        found = dict(self.importances())
        return [found[column] for column in range(len(self.space.problem.table.columns))]

    def importances(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """Each column with its range as it is known, those first that some tree asks for the most rows. Raises SearchStopped."""
        parts: dict[int, SideTrees | None] = {}
        for column in np.argsort(-self.asked[1], kind="stable").tolist() if self.count else range(len(self.asked[1])):
            yield column, self._importance(column, parts)

    def _importance(self, column: int, parts: dict[int, SideTrees | None]) -> tuple[int, int]:
        if not self.count or not self.asked[1][column]:
            return 0, 0
        shuffled = Importance(self.lister, column, parts)
        lo, hi = shuffled.of(self.root, self.rows, shuffled.all())
        return int(self._accepted(lo).min()), int(self._accepted(hi).max())

    def answers(self, most: int = MOST_ANSWERS) -> tuple[int, bool]:
        """How many different vectors of answers on the training rows, and whether all were seen."""
        if not self.count:
            return 0, True
        try:
            by_key = AnswerVectors(self.lister, most=most).of(self.root, self.rows)
        except ListTooLong:
            return self._sampled_answers()
        return len(set().union(*(by_key[k] for _, k, _ in self.levels))), True

    def _sampled_answers(self) -> tuple[int, bool]:
        """A number that is reached at least: the different answers of a sample."""
        seen = {self.said(tree).tobytes() for tree in self.sample(1000, seed=0)}
        return len(seen), False

    def trees(self) -> Iterator[tuple[int, Shape]]:
        """(cost, tree) in order of cost."""
        for cost, key, _ in self.levels:
            for tree in self.lister.trees(self.root, self.rows, key):
                yield cost, tree

    def first(self, most: int) -> Iterator[tuple[int, Shape]]:
        """The `most` best of them, (cost, tree) in order of cost.

        They are listed from a count up to the cost of the last one: each layer of costs above has far more that may stand at a place.
        """
        yield from itertools.islice(self._up_to(self._cost_of(most)).trees(), most)

    def _cost_of(self, number: int) -> int:
        """The cost of the tree with this number in order of cost, from 1; the limit where there are fewer."""
        seen = 0
        for cost, _, count in self.levels:
            seen += count
            if seen >= number:
                return cost
        return self.limit

    def _up_to(self, limit: int) -> GoodTrees:
        if limit >= self.limit:
            return self
        return GoodTrees(self.space, least=self.least, limit=limit, filters=self.filters, base=self.counter)

    def sample(self, size: int, *, seed: int = 0) -> list[Shape]:
        """Trees drawn uniformly, with replacement."""
        random = Random(seed)
        if not self.count:
            return []
        ends = list(itertools.accumulate(number for _, _, number in self.levels))
        out = []
        for _ in range(size):
            key = self.levels[bisect.bisect_right(ends, random.randrange(self.count))][1]
            out.append(self.lister.draw(self.root, self.rows, key, random))
        return out

    def said(self, tree: Shape) -> np.ndarray:
        """The class that a tree answers for each row of the instance, int32."""
        out = np.empty(len(self.rows), np.int32)

        def visit(part: Shape, rows: np.ndarray) -> None:
            if part is None:
                out[rows] = int(self.space.counts(rows).argmax())
                return
            yes, no = self.space.split(rows, part[0])
            visit(part[1], yes)
            visit(part[2], no)

        visit(tree, self.rows)
        return out

    @cached_property
    def votes(self) -> np.ndarray:
        """How many trees answer each class for each row of the instance, whole numbers (rows, classes)."""
        return Votes(self.lister).of(self.root, self.rows, self.levels)

    def disputed(self) -> list[tuple[int, np.ndarray]]:
        """Each row of the table whose answer depends on which of the trees was chosen, with the number of trees for each class.

        The most disputed first: by how many trees do not give the most frequent answer, then in the order of the table.
        """
        votes = self.votes
        others = self.count - votes.max(axis=1)
        place = rows_with_values(self.space.problem, self.space.origin)
        found = [(int(others[i]), row, i) for row, i in enumerate(place.tolist()) if i >= 0 and others[i]]
        return [(row, votes[i]) for _, row, i in sorted(found, key=lambda item: (-item[0], item[1]))]

    def shares(self) -> np.ndarray:
        """For each row of the instance the share of trees that answer each class, float64 (rows, classes)."""
        return np.array(self.votes / max(1, self.count), float)


def first_trees(space: ExactSpace, *, least: int, most: int, limit: int | None) -> Iterator[tuple[int, Shape]]:
    """The `most` best trees, (cost, tree) in order of cost, up to `limit` if there is one; the limit of the count grows as far as it must."""
    slack = max(1, least // 200)
    before = (0, 1)
    while True:
        upto = least + slack if limit is None else min(limit, least + slack)
        good = GoodTrees(space, least=least, limit=upto, filters=Filters())
        if good.count >= most or upto == limit or _limit_exceeds_all(space, good):
            yield from good.first(most)
            return
        slack, before = _wider(before, (slack, good.count), most), (slack, good.count)


def _wider(before: tuple[int, int], now: tuple[int, int], most: int) -> int:
    """The next slack, where two (slack, number of trees) are known: numbers grow about exponentially, and far too many take long.

    Where they grew less from one to the other than since the best tree, they stood between two layers of leaves.
    """
    growth = max((math.log(now[1]) - math.log(before[1])) / (now[0] - before[0]), math.log(now[1]) / now[0])
    wanted = (math.log(1.5 * most) - math.log(now[1])) / growth if growth > 0 else math.inf
    return now[0] + max(1, int(min(now[0], max(now[0] / 5, wanted))))


def _limit_exceeds_all(space: ExactSpace, good: GoodTrees) -> bool:
    """Whether the limit is above the cost of every tree."""
    g = space.instance
    return good.limit >= g.Q * g.total + (g.P << space.depth)


def limit_of(least: int, Q: int, *, slack: Fraction | None, slack_rows: Fraction | None, beyond: Fraction) -> int:
    """The largest cost, in 1/Q rows, within a share of the least cost or within some rows of it, exactly.

    `beyond`: rows that every tree costs more than is counted, which a share is taken of as well.
    """
    if slack_rows is not None:
        return int(least + slack_rows * Q)
    return int(least + (slack or Fraction(0)) * (least + beyond * Q))


__all__ = ["NONE_BANNED", "Filters", "GoodTrees", "RateFilter", "SearchStopped", "first_trees", "limit_of"]
