"""Count and list the good trees (the Rashomon set) from counts; the numbers are exact integers.

A tree is good if its cost, errors plus the price of its leaves, is at most a limit. Two trees differ if their shape or
a split does. No split leaves a side empty, and each leaf has its majority class, as in `good-trees` over rows.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from trainer.counts.folder import Counts
from trainer.counts.objective import CountedObjective, counted_objective
from trainer.counts.search import Counted, Shape, TreeSearch
from trainer.counts.train import cheapest, counted_settings, setting_names, tree_of, tree_search
from trainer.dtypes import CountArray
from trainer.errors import InfeasibleError, ParameterError
from trainer.tree.nodes import Tree

LEAVES = 16  # above the most leaves of a tree
NO_KEY = 1 << 61  # above the key of any tree
MOST_MUST = 6  # limit on required columns; each doubles the time
MOST_LISTED = 1000
MOST_ENUMERATED = 50_000  # most trees that are listed to find those of a choice
UNKNOWN = ("answers", "rows")  # members of the record that need rows
NO_COLUMNS: frozenset[int] = frozenset()
MOST_QUESTIONS = 300  # at depth 3 more could give numbers of trees above 2^63
REFUSED = (
    "max_leaves",
    "forbidden_pairs",
    "recall",
    "costs",
    "cost_unit",
)  # settings of a training from counts that the count does not support


class Numbers(NamedTuple):
    """Numbers of trees by key, both int64 and ascending by key."""

    keys: CountArray
    trees: CountArray


@dataclass(frozen=True, kw_only=True)
class CountedGoodTrees:
    """The number of good trees, and of those in which no split has two leaves of one class below it.

    `optimum` and `limit` are the highest and the lowest objective that counts, over all trees. `first_questions` are the
    numbers of trees by the question of the root, `columns` those of trees that test a column. `trees` lists the best ones.
    """

    count: int
    count_without_idle: int
    optimum: float
    limit: float
    first_questions: dict[str, int]
    columns: dict[str, dict[str, int | None]]
    trees: list[dict[str, Any]]
    counted_rows: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the record of `good-trees --json`; what needs rows is None, and the status says so."""
        return (
            asdict(self)
            | dict.fromkeys(UNKNOWN)
            | {"status": f"left (counts): {', '.join(UNKNOWN)}, shares of columns"}
        )


class _Candidate(NamedTuple):
    """A question of a node, a lower bound on the keys of its trees, and for each side its counts and a lower bound."""

    bound: int
    question: int
    sides: tuple[Counted, Counted]
    least: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class _TreeCounter:
    """A count of the trees below a node. Costs are 1/`scale` of a row, and a leaf costs `price`.

    A key is LEAVES times the cost of a tree plus its number of leaves, so keys of sides add up.
    """

    search: TreeSearch
    scale: int
    price: int
    idle: bool  # whether splits with two leaves of one class are counted

    def roots(self, budget: int, most: int) -> Iterator[tuple[int | None, int]]:
        """Yield each question of the root, None for a single leaf, with its number of trees of at most this key and `most` leaves."""
        root = self.search.root
        yield None, int(self._leaf(root.own.total)[0] <= budget)
        for question, numbers in self._splits(root, self.search.depth, budget):
            yield question, int(numbers.trees[numbers.keys % LEAVES <= most].sum())

    def listed(self, node: Counted, depth: int, budget: int, most: int) -> list[tuple[int, Shape]]:
        """Return the trees of the lowest keys up to `budget`, at most `most`, ascending by key."""
        leaf = self._leaf(node.own.total)[0]
        found: list[tuple[int, Shape]] = [(leaf, -1)] if leaf <= budget else []
        limit = budget
        if depth == 1:
            keys, questions = self._single_splits(node)
            for at in np.argsort(keys, kind="stable")[:most].tolist():
                found.append((int(keys[at]), (int(questions[at]), -1, -1)))
        for candidate in sorted(self._candidates(node, depth, budget)) if depth > 1 else ():
            found.sort(key=_key)
            del found[most:]
            if len(found) == most:
                limit = min(limit, found[-1][0] - 1)
            if candidate.bound > limit:
                break
            no, yes = (
                self.listed(side, depth - 1, limit - other, most)
                for side, other in zip(candidate.sides, candidate.least[::-1], strict=True)
            )
            # a pair of ranks i and j has (i + 1)(j + 1) pairs that cost no more, itself included
            found += [
                (low[0] + high[0], (candidate.question, low[1], high[1]))
                for i, low in enumerate(no)
                for high in yes[: most // (i + 1)]
                if low[0] + high[0] <= limit
            ]
        found = [item for item in found if item[0] <= budget]
        return sorted(found, key=_key)[:most]

    def _candidates(self, node: Counted, depth: int, budget: int) -> Iterator[_Candidate]:
        """Yield the questions of a node that leave enough rows on both sides and have trees of at most this key."""
        if depth == 0:
            return
        allowed = node.allowed if depth > 2 else node.allowed & (self._split_bounds(node, depth) <= budget)
        for question in np.flatnonzero(allowed).tolist():
            sides = self.search.sides(node, question, depth)
            if min(int(side.own.total.sum()) for side in sides) < self.search.min_leaf:
                continue
            least = (self._least(sides[0], depth - 1), self._least(sides[1], depth - 1))
            if sum(least) <= budget:
                yield _Candidate(sum(least), question, sides, least)

    def _split_bounds(self, node: Counted, depth: int) -> CountArray:
        """Return a lower bound on the keys of the trees of each question, int64 (questions,); `depth` is at most 2."""
        total = node.own.total
        yes = self.search.won(node.own.one)
        no = self.search.won(total[:, None] - node.own.one)
        plans = [(no + yes, 2)]
        if depth == 2:
            below_yes, below_no = self.search.split_sides(node)
            plans += [(no + below_yes, 3), (below_no + yes, 3), (below_no + below_yes, 4)]
        rows = int(total.sum())
        keys = [
            np.where(
                won < 0, NO_KEY, LEAVES * (self.scale * (rows - np.maximum(won, 0)) + self.price * leaves) + leaves
            )
            for won, leaves in plans
        ]
        least: CountArray = np.min(keys, axis=0)
        return least

    def _least(self, node: Counted, depth: int) -> int:
        """Return a lower bound on the keys of the trees below a node."""
        rows = int(node.own.total.sum())
        correct = self.search.best_of_two(node, depth).correct
        costs = [self.scale * (rows - won) + self.price * size for size, won in enumerate(correct, 1) if won >= 0]
        return LEAVES * min(costs) + 1

    def _splits(self, node: Counted, depth: int, budget: int) -> Iterator[tuple[int, Numbers]]:
        """Yield each question of a node with the numbers of trees of at most this key below it."""
        for _, question, sides, least in self._candidates(node, depth, budget):
            below = [
                self._below(side, depth - 1, budget - other) for side, other in zip(sides, least[::-1], strict=True)
            ]
            numbers = _convolve(below[0], below[1], budget)
            leaves = [self._leaf(side.own.total) for side in sides]
            if not self.idle and leaves[0][1] == leaves[1][1]:
                numbers = _without_one(numbers, leaves[0][0] + leaves[1][0])
            yield question, numbers

    def _below(self, node: Counted, depth: int, budget: int) -> Numbers:
        """Return the numbers of trees of at most this key below a node."""
        leaf = np.array([self._leaf(node.own.total)[0]])
        parts = [Numbers(leaf, np.ones(1, np.int64))]
        if depth == 1:
            keys, _ = self._single_splits(node)
            parts.append(Numbers(keys, np.ones(len(keys), np.int64)))
        else:
            parts += [numbers for _, numbers in self._splits(node, depth, budget)]
        return _merge(parts, budget)

    def _single_splits(self, node: Counted) -> tuple[CountArray, CountArray]:
        """Return the keys of the trees of one split, and their questions."""
        yes = node.own.one
        no = node.own.total[:, None] - yes
        enough = node.allowed & (np.minimum(yes.sum(axis=0), no.sum(axis=0)) >= self.search.min_leaf)
        if not self.idle:
            enough &= yes.argmax(axis=0) != no.argmax(axis=0)
        errors = node.own.total.sum() - yes.max(axis=0) - no.max(axis=0)
        keys: CountArray = (LEAVES * (self.scale * errors + 2 * self.price) + 2)[enough]
        return keys, np.flatnonzero(enough)

    def _leaf(self, counts: CountArray) -> tuple[int, int]:
        """Return the key and the class of a leaf."""
        label = int(counts.argmax())
        return LEAVES * (self.scale * int(counts.sum() - counts[label]) + self.price) + 1, label


def _key(item: tuple[int, Shape]) -> int:
    return item[0]


def _merge(parts: Sequence[Numbers], budget: int) -> Numbers:
    keys = np.concatenate([part.keys for part in parts])
    trees = np.concatenate([part.trees for part in parts])
    cheap = keys <= budget
    return _sorted(keys[cheap], trees[cheap])


def _sorted(keys: CountArray, trees: CountArray) -> Numbers:
    if not len(keys):
        return Numbers(keys, trees)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    return Numbers(keys[starts], np.add.reduceat(trees[order], starts))


def _convolve(one: Numbers, two: Numbers, budget: int) -> Numbers:
    """Return the numbers of pairs of trees by the sum of their keys, up to a budget."""
    keys = one.keys[:, None] + two.keys
    cheap = keys <= budget
    return _sorted(keys[cheap], (one.trees[:, None] * two.trees)[cheap])


def _without_one(numbers: Numbers, key: int) -> Numbers:
    """Return the numbers without one tree of this key."""
    return Numbers(numbers.keys, numbers.trees - (numbers.keys == key))


@dataclass(frozen=True, kw_only=True)
class _Choice:
    """The good trees up to a key that test all columns of `must`, none of `without`, and have at most `leaves` leaves."""

    counter: _TreeCounter
    column_of: CountArray
    budget: int
    must: frozenset[int]
    without: frozenset[int]
    leaves: int

    def numbers(self, *, idle: bool = True, more: frozenset[int] = NO_COLUMNS) -> Counter[int | None]:
        """Return the numbers of trees by the question of the root, without the columns of `more`.

        Trees that test all of `must` follow by inclusion and exclusion.
        """
        total: Counter[int | None] = Counter()
        for size in range(len(self.must) + 1):
            for left_out in combinations(sorted(self.must), size):
                counter = self._among(self.without | more | set(left_out), idle)
                for question, number in counter.roots(self.budget, self.leaves):
                    total[question] += (-1) ** size * number
        return total

    def _among(self, banned: frozenset[int], idle: bool) -> _TreeCounter:
        """Return the counter of trees that test no column of `banned`."""
        search = self.counter.search
        allowed = search.allowed & ~np.isin(self.column_of, sorted(banned))
        return replace(self.counter, search=replace(search, allowed=allowed), idle=idle)

    def listed(self, number: int) -> list[Shape]:
        """Return this number of best trees, or fewer if they lie far behind trees that the choice excludes."""
        counter = self._among(self.without, True)
        most = number
        while number:
            trees = counter.listed(counter.search.root, counter.search.depth, self.budget, most)
            chosen = [
                shape for key, shape in trees if key % LEAVES <= self.leaves and self.must <= self._columns(shape)
            ]
            if len(chosen) >= number or len(trees) < most or most > MOST_ENUMERATED:
                return chosen[:number]
            most *= 4
        return []

    def _columns(self, shape: Shape) -> set[int]:
        if not isinstance(shape, tuple):
            return set()
        return {int(self.column_of[shape[0]])} | self._columns(shape[1]) | self._columns(shape[2])


def count_good_trees(
    counts: Counts,
    parameters: Mapping[str, Any] | None = None,
    *,
    slack: Fraction | None = None,
    slack_rows: Fraction | None = None,
    must: Sequence[str] = (),
    without: Sequence[str] = (),
    max_leaves: int | None = None,
    listed: int = 0,
) -> CountedGoodTrees:
    """Count the trees with cost ≤ (1 + `slack`) · least cost, or ≤ least cost + `slack_rows` rows, and list the best ones.

    Parameters
    ----------
    counts : Counts
    parameters : Mapping, optional
        Settings as for `train_counts`, without max_leaves, forbidden_pairs, recall and costs.
    slack, slack_rows : Fraction
        Tolerance, one of the two: as a share, or in rows.
    must, without : sequence of str
        Columns that a tree must test, and must not test. They leave the limit as it is.
    max_leaves : int, optional
        Most leaves of a tree; it leaves the limit as it is.
    listed : int
        Number of trees to list.

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
    names = setting_names(counts)
    chosen = {
        name: frozenset(names.columns.index(names.column(text, name)) for text in texts)
        for name, texts in (("must", must), ("without", without))
    }
    if len(chosen["must"]) > MOST_MUST:
        raise ParameterError({"must": f"at most {MOST_MUST} columns are possible with counts. Name fewer."})
    if not 0 <= listed <= MOST_LISTED:
        raise ParameterError({"list": f"choose 0 to {MOST_LISTED:,} trees to list from counts."})
    total = counts.total[0]
    search = tree_search(counts, settings, total, total)
    if search.depth == 3 and int(search.allowed.sum()) > MOST_QUESTIONS:
        raise ParameterError(
            {"depth": f"at depth 3 at most {MOST_QUESTIONS} questions are possible. Count with fewer, or set depth 2."}
        )
    objective = counted_objective(settings, names, total[:, 0], rows=counts.rows, suppressed=False)
    leaves = cheapest(search.best, objective.price, None)
    if search.best.correct[leaves - 1] < 0:
        raise InfeasibleError(f"No tree has {settings['min_leaf']} rows or more in each leaf. Set a lower min_leaf.")
    scale = objective.price.denominator
    price = objective.price.numerator
    if LEAVES * (scale * counts.rows + 8 * price) >= NO_KEY:
        raise ParameterError(
            {"leaf_penalty": "it has too many digits for exact integer costs. Round it to six digits."}
        )
    least = scale * (counts.rows - search.best.correct[leaves - 1]) + price * leaves
    limit = int(least + slack_rows * scale) if slack_rows is not None else int(least * (1 + (slack or Fraction(0))))
    features = counts.questions.encoding.features
    choice = _Choice(
        counter=_TreeCounter(search=search, scale=scale, price=price, idle=True),
        column_of=np.array([feature.column for feature in features], np.int64),
        budget=min(LEAVES * limit + LEAVES - 1, NO_KEY),
        must=chosen["must"],
        without=chosen["without"],
        leaves=LEAVES - 1 if max_leaves is None else max_leaves,
    )
    by_root = choice.numbers()
    count = sum(by_root.values())
    first = sorted(((n, q) for q, n in by_root.items() if q is not None and n), key=lambda item: -item[0])
    columns = {
        name: {"trees": count - sum(choice.numbers(more=frozenset([j])).values())}
        for j, name in enumerate(names.columns)
    }
    trees = [tree_of(shape, counts, objective) for shape in choice.listed(min(listed, count))]
    return CountedGoodTrees(
        count=count,
        count_without_idle=sum(choice.numbers(idle=False).values()),
        optimum=float(1 - Fraction(least, scale * counts.rows)),
        limit=float(1 - Fraction(limit, scale * counts.rows)),
        first_questions={features[q].name: n for n, q in first},
        columns={name: of | {"asked_least": None, "asked_most": None} for name, of in columns.items()},
        trees=[_tree_record(tree, objective) for tree in trees],
        counted_rows=counts.rows,
        seconds=time.monotonic() - start,
    )


def _tree_record(tree: Tree, objective: CountedObjective) -> dict[str, Any]:
    correct = sum(leaf.counts[leaf.label] for leaf in tree.leaves)
    return {
        "objective": float(objective.value(correct, tree.n_leaves)),
        "leaves": tree.n_leaves,
        "nodes": tree.to_json(),
    }
