"""Find the best tree for each number of leaves from counts.

At most three answers describe a leaf of a tree of depth at most 3. Its counts follow from those of sets of
yes-answers: rows with yes to P and no to q are those with yes to P less those with yes to P and q
(docs/counts.md). So every tree is evaluated without a row. Suppressed counts are intervals; `Counted` then
holds both ends of each interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from trainer.counts.sets import pair_places, triple_places
from trainer.dtypes import BoolArray, CountArray

IMPOSSIBLE = -(1 << 60)  # stands in for the correct rows of a leaf that has too few rows
BLOCK = 1 << 20  # limit on the elements of an intermediate array

Root = tuple[int, int, int]  # question of the root, and the numbers of leaves of its no side and its yes side
Choice = tuple[int, Root | None]  # number of correct rows, and the root; None for a leaf
# question, no side and yes side; a leaf is its class, or -1 for the best one
Shape = int | tuple[int, "Shape", "Shape"]


class End(NamedTuple):
    """The lower or the upper bounds of the counts of a node.

    The shapes are int64 (classes,), (classes, questions) and (classes, questions, questions). `one` counts
    the rows that answer yes to each question. `two` counts those that answer yes to each pair of questions.
    """

    total: CountArray
    one: CountArray
    two: CountArray


@dataclass(frozen=True, kw_only=True)
class Counted:
    """The counts of a node as two bounds, which are equal if counts are exact.

    The search maximises over `own`. `other` is the opposite bound, used to subtract rows. `allowed`, bool (questions,),
    are the questions that may follow.
    """

    own: End
    other: End
    allowed: BoolArray


@dataclass(frozen=True, kw_only=True)
class BestByLeaves:
    """The most correct rows with at most 1, 2, … leaves, and the root of a tree that reaches each number."""

    correct: tuple[int, ...]
    roots: tuple[Root | None, ...]


@dataclass(kw_only=True)
class TreeSearch:
    """The search over all trees of `depth` ≤ 3 over the questions that are `allowed`, bool (questions,).

    `own` and `other`, int64 (classes, sets), are the counts in the order of `trainer.counts.sets`. Leaves have at least
    `min_leaf` rows. `gains`, int64 (answers, classes), states what an answer gains in a row of a class, with equal `own`
    and `other`. Then "correct" is the gain of the best answers. `apart`, bool (questions, questions), are the pairs that no
    path uses together.
    """

    own: CountArray
    other: CountArray
    allowed: BoolArray
    depth: int
    min_leaf: int = 1
    gains: CountArray | None = None
    apart: BoolArray | None = None

    @cached_property
    def best(self) -> BestByLeaves:
        """The best trees of all numbers of leaves that the depth allows."""
        return self.best_of(self.root, self.depth)

    def shape(self, leaves: int) -> Shape:
        """Return a best tree with at most this number of leaves."""
        return self.shape_of(self.root, self.depth, leaves, self.best)

    def best_of(self, node: Counted, depth: int) -> BestByLeaves:
        """Return the best trees of this depth; only the root has trees of depth 3."""
        return self._best_of_three(node) if depth == 3 else self.best_of_two(node, depth)

    def best_of_two(self, node: Counted, depth: int) -> BestByLeaves:
        """Return the best trees of depth 0, 1 or 2."""
        node_counts = node.own
        other = node.other
        leaf = int(self.won(node_counts.total))
        if depth == 0 or not node.allowed.any():
            return BestByLeaves(correct=(leaf,), roots=(None,))
        yes = self.won(node_counts.one)
        no = self.won(node_counts.total[:, None] - other.one)
        choices: list[Choice] = [(leaf, None), _pick(no + yes, (1, 1), node.allowed)]
        if depth == 2:
            below_yes, below_no = self.split_sides(node)
            three_yes = _pick(no + below_yes, (1, 2), node.allowed)
            three_no = _pick(below_no + yes, (2, 1), node.allowed)
            choices.append(max(three_yes, three_no, key=lambda choice: choice[0]))
            choices.append(_pick(below_no + below_yes, (2, 2), node.allowed))
        return _rising(choices)

    def split_sides(self, node: Counted) -> tuple[CountArray, CountArray]:
        """Return the correct rows on the yes and no sides of each first question, int64 (questions,).

        Each side has its best second question.
        """
        node_counts = node.own
        other = node.other
        classes, questions = node_counts.one.shape
        total = node_counts.total[:, None, None]
        won_yes = np.empty(questions, np.int64)
        won_no = np.empty(questions, np.int64)
        step = max(1, BLOCK // (questions * classes))
        for start in range(0, questions, step):
            rows = slice(start, start + step)
            pairs = node_counts.two[:, rows]
            without = other.two[:, rows]
            both = self.won(pairs)
            yes_no = self.won(node_counts.one[:, rows, None] - without)
            no_yes = self.won(node_counts.one[:, None] - without)
            no_no = self.won(total - other.one[:, rows, None] - other.one[:, None] + pairs)
            second = node.allowed if self.apart is None else node.allowed & ~self.apart[rows]
            won_yes[rows] = np.where(second, both + yes_no, 2 * IMPOSSIBLE).max(axis=1)
            won_no[rows] = np.where(second, no_yes + no_no, 2 * IMPOSSIBLE).max(axis=1)
        return won_yes, won_no

    def _best_of_three(self, node: Counted) -> BestByLeaves:
        """Return the best trees of depth 3: both sides of every first question."""
        choices: list[Choice] = [(int(self.won(node.own.total)), None)]
        choices += [(2 * IMPOSSIBLE, None)] * 7
        for question in np.flatnonzero(node.allowed).tolist():
            sides = [self.best_of_two(side, 2) for side in self.sides(node, question, 3)]
            for no, won_no in enumerate(sides[0].correct, 1):
                for yes, won_yes in enumerate(sides[1].correct, 1):
                    if won_no + won_yes > choices[no + yes - 1][0]:
                        choices[no + yes - 1] = (won_no + won_yes, (question, no, yes))
        return _rising(choices)

    def shape_of(self, node: Counted, depth: int, leaves: int, best: BestByLeaves | None = None) -> Shape:
        best = best or self.best_of(node, depth)
        root = best.roots[min(leaves, len(best.roots)) - 1]
        if root is None:
            return -1
        question, no, yes = root
        side_no, side_yes = self.sides(node, question, depth)
        return question, self.shape_of(side_no, depth - 1, no), self.shape_of(side_yes, depth - 1, yes)

    @cached_property
    def root(self) -> Counted:
        """The counts of all rows."""
        root_counts = self._end(self.own)
        other = root_counts if self.other is self.own else self._end(self.other)
        return Counted(own=root_counts, other=other, allowed=self.allowed)

    def _end(self, counts: CountArray) -> End:
        questions = len(self.allowed)
        one = counts[:, 1 : 1 + questions]
        two = (
            counts[:, pair_places(questions)]
            if self.depth > 1
            else np.zeros((len(counts), questions, questions), np.int64)
        )
        return End(total=counts[:, 0], one=one, two=two)

    def sides(self, node: Counted, question: int, depth: int) -> tuple[Counted, Counted]:
        """Return the counts of the no and yes sides of a node; pairs are counted only below the root of depth 3."""
        yes_counts = self._yes(node.own, self.own, question, depth)
        allowed = node.allowed if self.apart is None else node.allowed & ~self.apart[question]
        if node.other is node.own:
            no_counts = _less(node.own, yes_counts)
            return Counted(own=no_counts, other=no_counts, allowed=allowed), Counted(
                own=yes_counts, other=yes_counts, allowed=allowed
            )
        other = self._yes(node.other, self.other, question, depth)
        return Counted(own=_less(node.own, other), other=_less(node.other, yes_counts), allowed=allowed), Counted(
            own=yes_counts, other=other, allowed=allowed
        )

    def _yes(self, end: End, counts: CountArray, question: int, depth: int) -> End:
        two = np.zeros_like(end.two)
        if depth == 3:
            questions = len(self.allowed)
            indices = np.array([[question]], np.int64)
            each = np.arange(questions, dtype=np.int64)
            two = np.take(counts, triple_places(questions, indices, each[:, None], each[None]), axis=1)
        return End(total=end.one[:, question], one=end.two[:, question], two=two)

    def won(self, counts: CountArray) -> CountArray:
        """Return the rows of the largest class in nodes (classes, …), or the gain of the best answer.

        It is IMPOSSIBLE if a leaf would have too few rows.
        """
        won: CountArray = (counts if self.gains is None else np.tensordot(self.gains, counts, axes=1)).max(axis=0)
        # with min_leaf = 1 no check is needed: an empty leaf has no correct row, so the smaller tree wins the tie
        if self.min_leaf > 1:
            won = np.where(counts.sum(axis=0) >= self.min_leaf, won, IMPOSSIBLE)
        return won


def _less(end: End, rows: End) -> End:
    """Return the counts of a node without some of its rows."""
    return End(total=end.total - rows.total, one=end.one - rows.one, two=end.two - rows.two)


def _pick(won: CountArray, leaves: tuple[int, int], allowed: BoolArray) -> Choice:
    """Return the choice of the first allowed question with the most correct rows."""
    at = int(np.where(allowed, won, 2 * IMPOSSIBLE).argmax())
    return int(won[at]), (at, *leaves)


def _rising(choices: Sequence[Choice]) -> BestByLeaves:
    """Return the best trees of at most 1, 2, … leaves from the best trees of exactly 1, 2, … leaves."""
    rising = [choices[0]]
    for choice in choices[1:]:
        rising.append(choice if choice[0] > rising[-1][0] else rising[-1])
    return BestByLeaves(correct=tuple(won for won, _ in rising), roots=tuple(root for _, root in rising))
