"""Count the good trees (the Rashomon set) from counts, as exact integers.

A tree is good if its cost, errors plus the price of its leaves, is at most a limit. Two trees differ if their shape or
a split does. No split leaves a side empty, and each leaf has its majority class, as in `good-trees` over rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from trainer.counts.folder import Counts
from trainer.counts.objective import counted_objective
from trainer.counts.search import Counted, TreeSearch
from trainer.counts.train import cheapest, counted_settings, setting_names, tree_search
from trainer.dtypes import CountArray
from trainer.errors import InfeasibleError, ParameterError

MOST_QUESTIONS = 300  # at depth 3 more could give numbers of trees above 2^63
REFUSED = (
    "max_leaves",
    "forbidden_pairs",
    "recall",
    "costs",
    "cost_unit",
)  # settings of a training from counts that the count does not support


class Numbers(NamedTuple):
    """Numbers of trees by cost, both int64 and ascending by cost."""

    costs: CountArray
    trees: CountArray


@dataclass(frozen=True, kw_only=True)
class CountedGoodTrees:
    """The number of good trees, and of those in which no split has two leaves of one class below it.

    `optimum` and `limit` are the highest and the lowest objective that counts. `first_questions` are the numbers of
    trees by the question of the root.
    """

    count: int
    count_without_idle: int
    optimum: float
    limit: float
    first_questions: dict[str, int]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class _TreeCounter:
    """A count of the trees below a node; costs are 1/`scale` of a row, and a leaf costs `price`."""

    search: TreeSearch
    scale: int
    price: int
    idle: bool  # whether splits with two leaves of one class are counted

    def roots(self, budget: int) -> Iterator[tuple[int | None, int]]:
        """Yield each question of the root, None for a single leaf, with its number of trees of at most this cost."""
        yield None, int(self._leaf(self.search.root.own.total)[0] <= budget)
        for question, numbers in self._splits(self.search.root, self.search.depth, budget):
            yield question, int(numbers.trees.sum())

    def _splits(self, node: Counted, depth: int, budget: int) -> Iterator[tuple[int, Numbers]]:
        """Yield each question of a node that leaves rows on both sides, with the trees of at most this cost below it."""
        if depth == 0:
            return
        for question in np.flatnonzero(self.search.allowed).tolist():
            sides = self.search.sides(node, question, depth)
            if min(int(side.own.total.sum()) for side in sides) < self.search.min_leaf:
                continue
            below = [self._below(side, depth - 1, budget) for side in sides]
            numbers = _convolve(below[0], below[1], budget)
            leaves = [self._leaf(side.own.total) for side in sides]
            if not self.idle and leaves[0][1] == leaves[1][1]:
                numbers = _without_one(numbers, leaves[0][0] + leaves[1][0])
            yield question, numbers

    def _below(self, node: Counted, depth: int, budget: int) -> Numbers:
        """Return the numbers of trees of at most this cost below a node."""
        leaf = np.array([self._leaf(node.own.total)[0]])
        parts = [Numbers(leaf, np.ones(1, np.int64))]
        if depth == 1:
            parts.append(self._single_splits(node))
        else:
            parts += [numbers for _, numbers in self._splits(node, depth, budget)]
        return _merge(parts, budget)

    def _single_splits(self, node: Counted) -> Numbers:
        """Return the trees of one split, of all questions at once."""
        yes = node.own.one
        no = node.own.total[:, None] - yes
        enough = self.search.allowed.copy()
        enough &= np.minimum(yes.sum(axis=0), no.sum(axis=0)) >= self.search.min_leaf
        if not self.idle:
            enough &= yes.argmax(axis=0) != no.argmax(axis=0)
        errors = node.own.total.sum() - yes.max(axis=0) - no.max(axis=0)
        costs: CountArray = (self.scale * errors + 2 * self.price)[enough]
        return Numbers(costs, np.ones(len(costs), np.int64))

    def _leaf(self, counts: CountArray) -> tuple[int, int]:
        """Return the cost and the class of a leaf."""
        label = int(counts.argmax())
        return self.scale * int(counts.sum() - counts[label]) + self.price, label


def _merge(parts: Sequence[Numbers], budget: int) -> Numbers:
    costs = np.concatenate([part.costs for part in parts])
    trees = np.concatenate([part.trees for part in parts])
    cheap = costs <= budget
    return _sorted(costs[cheap], trees[cheap])


def _sorted(costs: CountArray, trees: CountArray) -> Numbers:
    if not len(costs):
        return Numbers(costs, trees)
    order = np.argsort(costs, kind="stable")
    costs = costs[order]
    starts = np.flatnonzero(np.diff(costs, prepend=costs[0] - 1))
    return Numbers(costs[starts], np.add.reduceat(trees[order], starts))


def _convolve(one: Numbers, two: Numbers, budget: int) -> Numbers:
    """Return the numbers of pairs of trees by the sum of their costs, up to a budget."""
    costs = one.costs[:, None] + two.costs
    cheap = costs <= budget
    return _sorted(costs[cheap], (one.trees[:, None] * two.trees)[cheap])


def _without_one(numbers: Numbers, cost: int) -> Numbers:
    """Return the numbers without one tree of this cost."""
    return Numbers(numbers.costs, numbers.trees - (numbers.costs == cost))


def count_good_trees(
    counts: Counts,
    parameters: Mapping[str, Any] | None = None,
    *,
    slack: Fraction | None = None,
    slack_rows: Fraction | None = None,
) -> CountedGoodTrees:
    """Count the trees with cost ≤ (1 + `slack`) · least cost, or ≤ least cost + `slack_rows` rows.

    Parameters
    ----------
    counts : Counts
    parameters : Mapping, optional
        Settings as for `train_counts`, without max_leaves and costs.
    slack, slack_rows : Fraction
        Tolerance, one of the two: as a share, or in rows.

    Raises
    ------
    ParameterError
        If a setting needs more than the counts have, or numbers of the counts are secret.
    InfeasibleError
        If no tree satisfies the settings.
    """
    start = time.monotonic()
    settings = counted_settings(parameters or {}, asked=counts.questions.asked, depth=counts.depth)
    if refused := [name for name in REFUSED if settings[name]]:
        raise ParameterError({refused[0]: "good trees from counts do not support it. Leave it out."})
    if counts.suppress:
        raise ParameterError({"suppress": "small numbers of these counts are secret, so trees cannot be counted."})
    total = counts.total[0]
    search = tree_search(counts, settings, total, total)
    if search.depth == 3 and int(search.allowed.sum()) > MOST_QUESTIONS:
        raise ParameterError(
            {"depth": f"at depth 3 at most {MOST_QUESTIONS} questions are possible. Count with fewer, or set depth 2."}
        )
    objective = counted_objective(settings, setting_names(counts), total[:, 0], rows=counts.rows, suppressed=False)
    leaves = cheapest(search.best, objective.price, None)
    if search.best.correct[leaves - 1] < 0:
        raise InfeasibleError(f"No tree has {settings['min_leaf']} rows or more in each leaf. Set a lower min_leaf.")
    scale = objective.price.denominator
    price = objective.price.numerator
    least = scale * (counts.rows - search.best.correct[leaves - 1]) + price * leaves
    limit = int(least + slack_rows * scale) if slack_rows is not None else int(least * (1 + (slack or Fraction(0))))
    counter = _TreeCounter(search=search, scale=scale, price=price, idle=True)
    by_root = dict(counter.roots(limit))
    names = [feature.name for feature in counts.questions.encoding.features]
    first = sorted(((n, q) for q, n in by_root.items() if q is not None and n), key=lambda item: -item[0])
    plain = _TreeCounter(search=search, scale=scale, price=price, idle=False)
    return CountedGoodTrees(
        count=sum(by_root.values()),
        count_without_idle=sum(n for _, n in plain.roots(limit)),
        optimum=float(1 - Fraction(least, scale * counts.rows)),
        limit=float(1 - Fraction(limit, scale * counts.rows)),
        first_questions={names[q]: n for n, q in first},
        seconds=time.monotonic() - start,
    )
