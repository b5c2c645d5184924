"""Count, list and summarise all good trees (the Rashomon set)."""

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
from trainer.families.exact.rashomon.count import CountedTrees, Counter, accepted_levels, accepted_number, first_counts
from trainer.families.exact.rashomon.filters import Filters, RateFilter
from trainer.families.exact.rashomon.importance import Importance
from trainer.families.exact.rashomon.levels import FirstColumn, first_columns
from trainer.families.exact.rashomon.listing import AnswerVectors, Lister, ListTooLong
from trainer.families.exact.rashomon.ranges import Ranges
from trainer.families.exact.rashomon.small import SideTrees
from trainer.families.exact.rashomon.votes import Votes
from trainer.tree.shapes import Shape

MAX_ANSWER_PAIRS = 3_000_000  # limit on the pairs of prediction hashes that are combined


class GoodTrees:
    """The trees with cost ≤ limit that pass the filters; two trees differ if their shape or a split does.

    Costs are in 1/Q of a row. The filters do not change `limit`. Results are computed at their first access, and raise SearchStopped if
    the search was stopped.
    """

    def __init__(
        self, space: ExactSpace, *, least: int, limit: int, filters: Filters, base: Counter | None = None
    ) -> None:
        """Prepare the count; `base` is a count of a superset with the same filters."""
        self.space = space
        self.least = least
        self.limit = limit
        self.filters = filters
        self.counter = Counter(space, filters, base=base)
        self.lister = Lister(self.counter)
        self.rows = space.all_rows

    @cached_property
    def root(self) -> CountedTrees:
        """The counts at the root."""
        return self.counter.root(self.limit)

    @cached_property
    def levels(self) -> list[tuple[int, int, int]]:
        """The accepted keys as (cost, key, count), ascending by cost."""
        return accepted_levels(self.root, self.counter.keys, self.limit)

    @cached_property
    def count(self) -> int:
        """Number of trees."""
        return sum(n for _, _, n in self.levels)

    @cached_property
    def without_idle(self) -> int:
        """Number of trees without a split whose children are leaves of the same class."""
        return self._number_of(Counter(self.space, self.filters, idle=False, base=self.counter))

    @cached_property
    def distinct(self) -> int:
        """Number of trees if splits that separate the rows of a node alike count once.

        Raises SearchStopped if a key cannot hold all required columns.
        """
        try:
            counter = Counter(self.space, self.filters, reduce=True)
        except ParameterError:  # with `reduce` the filters may need keys that are too large
            raise SearchStopped from None
        return self._number_of(counter)

    def _number_of(self, counter: Counter) -> int:
        return accepted_number(counter.root(self.limit), counter.keys, self.limit)

    def at_least(self) -> int:
        """Return the number of trees that were counted before the stop."""
        return self.counter.partial

    @cached_property
    def first_questions(self) -> dict[int, int]:
        """Numbers of trees by root split; the tree of one leaf has none."""
        return first_counts(self.counter, self.root, self.limit)

    @cached_property
    def first_columns(self) -> dict[int, FirstColumn]:
        """Numbers of trees by the column of the root, and by the columns of its children."""
        return first_columns(self.lister, self.root, self.limit)

    def numbers(self) -> list[tuple[int, int]]:
        """Return (cost, number of trees of at most this cost), ascending by cost."""
        numbers: dict[int, int] = {}
        total = 0
        for cost, _, number in self.levels:
            total += number
            numbers[cost] = total
        return list(numbers.items())

    def asking(self, column: int) -> int:
        """Return the number of trees that test a column."""
        if column in self.filters.without:
            return 0
        if column in self.filters.must:
            return self.count
        if self._ranges.exact:
            return self.count - int(self._accepted_lines(self._usage.free)[:, column].sum())
        without = replace(self.filters, without=self.filters.without | {column})
        return self.count - self._number_of(Counter(self.space, without))

    @cached_property
    def tested_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest weight of the rows whose path tests each column, int64 (columns,)."""
        lo = self._accepted_lines(self._usage.lo)
        hi = self._accepted_lines(self._usage.hi)
        if not len(lo):
            return np.zeros(lo.shape[1], np.int64), np.zeros(lo.shape[1], np.int64)
        return lo.min(axis=0), hi.max(axis=0)

    @cached_property
    def _ranges(self) -> Ranges:
        return Ranges(self.counter)

    @cached_property
    def _usage(self) -> KeyUsage:
        return self._ranges.of(self.root, self.rows)

    def _accepted_lines(self, by_key: np.ndarray) -> np.ndarray:
        """Select the lines of the keys that pass the filters; by_key: a line for each key, ascending."""
        return by_key[np.searchsorted(np.sort(self.root.keys), np.array([k for _, k, _ in self.levels], np.int64))]

    @cached_property
    def importance(self) -> list[tuple[int, int]]:
        """For each column the least and largest importance over the trees, times n² (see `rashomon.importance`)."""
        ranges = dict(self.importances())
        return [ranges[column] for column in range(len(self.space.problem.table.columns))]

    def importances(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """Yield each column with its range, ordered by the most rows on which a tree tests it. Raises SearchStopped."""
        parts: dict[int, SideTrees | None] = {}
        for column in (
            np.argsort(-self.tested_weights[1], kind="stable").tolist()
            if self.count
            else range(len(self.tested_weights[1]))
        ):
            yield column, self._importance(column, parts)

    def _importance(self, column: int, parts: dict[int, SideTrees | None]) -> tuple[int, int]:
        if not self.count or not self.tested_weights[1][column]:
            return 0, 0
        shuffled = Importance(self.lister, column, parts)
        lo, hi = shuffled.of(self.root, self.rows, shuffled.all())
        return int(self._accepted_lines(lo).min()), int(self._accepted_lines(hi).max())

    def answers(self, most: int = MAX_ANSWER_PAIRS) -> tuple[int, bool]:
        """Return the number of different prediction vectors on the training rows, and whether it is exact."""
        if not self.count:
            return 0, True
        try:
            by_key = AnswerVectors(self.lister, most=most).of(self.root, self.rows)
        except ListTooLong:
            return self._sampled_answers()
        return len(set().union(*(by_key[k] for _, k, _ in self.levels))), True

    def _sampled_answers(self) -> tuple[int, bool]:
        """Return a lower bound: the different prediction vectors of a sample."""
        vectors = {self.predict(tree).tobytes() for tree in self.sample(1000, seed=0)}
        return len(vectors), False

    def trees(self) -> Iterator[tuple[int, Shape]]:
        """Yield (cost, tree) in order of cost."""
        for cost, key, _ in self.levels:
            for tree in self.lister.trees(self.root, self.rows, key):
                yield cost, tree

    def first(self, most: int) -> Iterator[tuple[int, Shape]]:
        """Yield the `most` best trees, (cost, tree) in order of cost.

        They are listed from a count up to the cost of the last one, since each higher cost adds many more subtrees.
        """
        yield from itertools.islice(self._up_to(self._cost_of(most)).trees(), most)

    def _cost_of(self, number: int) -> int:
        """Return the cost of the tree with this rank, from 1; the limit if there are fewer."""
        total = 0
        for cost, _, count in self.levels:
            total += count
            if total >= number:
                return cost
        return self.limit

    def _up_to(self, limit: int) -> GoodTrees:
        if limit >= self.limit:
            return self
        return GoodTrees(self.space, least=self.least, limit=limit, filters=self.filters, base=self.counter)

    def sample(self, size: int, *, seed: int = 0) -> list[Shape]:
        """Draw trees uniformly, with replacement."""
        random = Random(seed)
        if not self.count:
            return []
        ends = list(itertools.accumulate(number for _, _, number in self.levels))
        out = []
        for _ in range(size):
            key = self.levels[bisect.bisect_right(ends, random.randrange(self.count))][1]
            out.append(self.lister.draw(self.root, self.rows, key, random))
        return out

    def predict(self, tree: Shape) -> np.ndarray:
        """Return the predicted class of each row of the instance, int32."""
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
        """Numbers of trees by row of the instance and predicted class, integers (rows, classes)."""
        return Votes(self.lister).of(self.root, self.rows, self.levels)

    def disputed_rows(self) -> list[tuple[int, np.ndarray]]:
        """Return the rows of the table on which the trees disagree, with the number of trees by class.

        Rows are ordered by the number of trees outside the majority, descending, then by position in the table.
        """
        votes = self.votes
        others = self.count - votes.max(axis=1)
        place = rows_with_values(self.space.problem, self.space.origin)
        rows = [(int(others[i]), row, i) for row, i in enumerate(place.tolist()) if i >= 0 and others[i]]
        return [(row, votes[i]) for _, row, i in sorted(rows, key=lambda item: (-item[0], item[1]))]

    def shares(self) -> np.ndarray:
        """Return the share of trees by row of the instance and predicted class, float64 (rows, classes)."""
        return np.array(self.votes / max(1, self.count), float)


def first_trees(space: ExactSpace, *, least: int, most: int, limit: int | None) -> Iterator[tuple[int, Shape]]:
    """Yield the `most` best trees, (cost, tree) in order of cost, up to `limit`; the count's own limit grows until it suffices."""
    slack = max(1, least // 200)
    before = (0, 1)
    while True:
        upto = least + slack if limit is None else min(limit, least + slack)
        good = GoodTrees(space, least=least, limit=upto, filters=Filters())
        if good.count >= most or upto == limit or _limit_exceeds_all(space, good):
            yield from good.first(most)
            return
        slack, before = _next_slack(before, (slack, good.count), most), (slack, good.count)


def _next_slack(before: tuple[int, int], now: tuple[int, int], most: int) -> int:
    """Return the next slack from two pairs (slack, number of trees); numbers grow about exponentially, and too many take long.

    A growth below the mean growth since the best tree means a plateau between two numbers of leaves, so the larger one is used.
    """
    growth = max((math.log(now[1]) - math.log(before[1])) / (now[0] - before[0]), math.log(now[1]) / now[0])
    step = (math.log(1.5 * most) - math.log(now[1])) / growth if growth > 0 else math.inf
    return now[0] + max(1, int(min(now[0], max(now[0] / 5, step))))


def _limit_exceeds_all(space: ExactSpace, good: GoodTrees) -> bool:
    """Return whether the limit is above the cost of every tree."""
    g = space.instance
    return good.limit >= g.Q * g.total + (g.P << space.depth)


def limit_of(least: int, Q: int, *, slack: Fraction | None, slack_rows: Fraction | None, beyond: Fraction) -> int:
    """Return the largest cost, in 1/Q rows, within a share of the least cost or within some rows of it, exactly.

    `beyond`: the fixed cost of every tree, in rows; `slack` is a share of the cost that includes it.
    """
    if slack_rows is not None:
        return int(least + slack_rows * Q)
    return int(least + (slack or Fraction(0)) * (least + beyond * Q))


__all__ = ["NONE_BANNED", "Filters", "GoodTrees", "RateFilter", "SearchStopped", "first_trees", "limit_of"]
