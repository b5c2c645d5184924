"""Check steps from counts of sets of questions, without rows.

A path names the rows of a part. docs/proof-format.md, "Counts", states how its counts follow from those of sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement, permutations
from typing import Any

import numpy as np

from trainer.check.proof.steps.counting import Counting, PairFrame
from trainer.check.proof.steps.parts import ANY, INFINITE_COST, CountTable, ProofPart, Span
from trainer.check.proof.subject import CountedSets, NoProof, ProofSpace, require

DEEPEST = 3  # limit on the questions of a set
MOST_WEIGHT = 1 << 53  # float64 holds smaller sums exactly
REASONS = ("floor", "count", "split", "within")  # reasons of steps from counts


class SetCounting(Counting):
    """The counts of sets; the `rows` of a part mark the answers of its path, 2 q for no and 2 q + 1 for yes.

    A last mark is always set, so that no part is without a mark.
    """

    def __init__(self, space: ProofSpace, sets: CountedSets, unit: int, leaf: int) -> None:
        classes = space.classes
        self.questions = space.X.shape[1]
        if int(space.weights.sum()) >= MOST_WEIGHT:
            raise NoProof("the counts add up to 2^53 or more")
        self.space = space
        self.min_leaf = space.min_leaf
        self.apart = space.apart
        self.allowed = space.allowed
        self.float = np.float64
        self.sets = sets
        self.counted = int(sets.base.max(initial=-1)) + 1
        self.places = place_table(self.counted, sets.depth)
        marks = 2 * self.questions + 1
        nothing = np.zeros(classes, np.int64)
        CountTable.__init__(self, (unit, leaf), (self.questions, classes), (space.labels, space.weights, nothing))
        # which rows are equal is unknown, so only the depth limits the number of leaves
        self.groups = 1 << sets.depth
        self.deepest = min(self.questions, sets.depth)
        self.excess = np.zeros(marks, np.int64)
        self.compared = np.zeros((0, marks), np.int64)

    def root(self, columns: Sequence[int] | None = None, span: Span = ANY) -> ProofPart:
        """Return the part of all rows, for trees that use only these columns and predict classes of the span."""
        allowed = self.allowed if columns is None else self.allowed & np.isin(self.space.column_of, columns)
        marks = np.zeros(2 * self.questions + 1, bool)
        marks[-1] = True
        return self._apply_wishes(marks, allowed, self.space.wishes, INFINITE_COST, span)

    def follow(self, path: Sequence[int], columns: Sequence[int] | None = None, span: Span = ANY) -> ProofPart:
        """Return the part that a path leads to."""
        part = self.root(columns, span)
        for literal in path:
            q, yes = divmod(literal, 2)
            allowed = q < self.questions and part.allowed[q]
            require(allowed, f"its path asks question {q}, which is not allowed there")
            part = self.below(part, q, yes, mark(part.rows, literal))
        return part

    def check_size(self, reason: object, path: Sequence[int], height: int) -> None:
        """Raise BadProof if a step needs counts of larger sets than there are."""
        require(reason in REASONS, f"its reason does not hold with counts; it must be one of {', '.join(REASONS)}")
        needed = {"floor": 0, "split": max(height, 2)}.get(str(reason), height)
        require(len(path) + needed <= self.sets.depth, f"it needs counts of more than {self.sets.depth} questions")

    def totals(self, part: ProofPart) -> np.ndarray:
        return self.numbers(part, ())

    def numbers(self, part: ProofPart, more: Sequence[np.ndarray]) -> np.ndarray:
        """Count the rows of each class in a part that answer yes to further questions, int64 of shape (classes, ...).

        `more` has arrays of questions that broadcast against each other.
        """
        for k, questions in enumerate(more):
            mirrored = self.sets.mirrored[questions]
            if mirrored.any():  # yes to a mirrored question is no to the counted one
                others = self.numbers(part, [*more[:k], *more[k + 1 :]])
                same = self.numbers(part, [*more[:k], self.sets.base[questions], *more[k + 1 :]])
                others = others.reshape(others.shape + (1,) * (same.ndim - others.ndim))
                return np.where(mirrored, others - same, same)
        literals = [divmod(literal, 2) for literal in np.flatnonzero(part.rows[:-1]).tolist()]
        answers = [(int(self.sets.base[q]), bool(yes) != self.sets.mirrored[q]) for q, yes in literals]
        yes = [q for q, answer in answers if answer]
        no = [q for q, answer in answers if not answer]
        shape = np.broadcast_shapes(*(questions.shape for questions in more))
        counts = np.zeros((self.classes, *shape), np.int64)
        for size in range(len(no) + 1):
            for own in combinations(no, size):
                members = [*map(np.array, (*yes, *own)), *more]
                members += [np.array(self.counted)] * (DEEPEST - len(members))
                places = self.places[members[0], members[1], members[2]]
                counts += (-1) ** size * self.sets.numbers[:, np.broadcast_to(places, shape)]
        return counts

    def frame(self, part: ProofPart, *, alike: bool = False) -> PairFrame:
        return _SetFrame(self, part)


class _SetFrame(PairFrame):
    """The questions that separate the rows of a part, and the counts of their pairs by class."""

    c: SetCounting

    def __init__(self, c: SetCounting, part: ProofPart) -> None:
        self.c = c
        self.part = part
        self.totals = c.totals(part)
        self.total = int(self.totals.sum())
        ones = c.numbers(part, [np.arange(c.questions)])
        weight = ones.sum(axis=0)
        self.columns = np.flatnonzero(part.allowed & (np.minimum(weight, self.total - weight) >= c.min_leaf))
        ones = ones[:, self.columns]
        self.second = None if c.apart is None else ~c.apart[np.ix_(self.columns, self.columns)]
        self.sides = np.array([self.totals[:, None] - ones, ones])
        self.pairs = self._pairs(part, ones)
        self.both = self.pairs.sum(axis=0).astype(np.int64)
        self.excess = np.zeros((2, len(self.columns)), np.int64)
        self.index = np.zeros(0, np.int64)
        self.X = np.zeros((0, len(self.columns)), np.float64)

    def _pairs(self, part: ProofPart, ones: np.ndarray) -> np.ndarray:
        """Count pairs by class; without counts of so many questions, only questions with themselves, which suffice there."""
        if int(part.rows[:-1].sum()) + 2 <= self.c.sets.depth:
            return self.c.numbers(part, [self.columns[:, None], self.columns[None]]).astype(np.float64)
        pairs = np.zeros((len(ones), len(self.columns), len(self.columns)))
        each = np.arange(len(self.columns))
        pairs[:, each, each] = ones
        return pairs

    def side_pairs(self, q: int) -> tuple[np.ndarray, np.ndarray]:
        """Count pairs by class on the no side and on the yes side of question q."""
        side = self.part._replace(rows=self.side_rows(q, 1))
        yes = self.c.numbers(side, [self.columns[:, None], self.columns[None]]).astype(np.float64)
        return self.pairs - yes, yes

    def side_rows(self, q: int, yes: int) -> np.ndarray:
        """Return the marks of a side of question q."""
        return mark(self.part.rows, 2 * int(self.columns[q]) + yes)


def mark(marks: np.ndarray, literal: int) -> np.ndarray:
    """Return the marks of a path with one more answer."""
    longer = marks.copy()
    longer[literal] = True
    return longer


def place_table(questions: int, depth: int) -> np.ndarray:
    """Return the position of each set, int32, indexed by three members in any order; `questions` represents no member."""
    table = np.full((questions + 1,) * 3, -1, np.int32)
    absent = questions
    table[absent, absent, absent] = 0
    at = 1
    for size in range(1, depth + 1):
        sets = np.array(list(combinations(range(questions), size)), np.int64).reshape(-1, size).T
        places = np.arange(at, at + sets.shape[1])
        at += sets.shape[1]
        fills = [(*sets, *more) for more in _fills(sets, absent, DEEPEST - size)]
        for members in fills:
            for order in permutations(members):
                table[order] = places
    return table


def _fills(sets: np.ndarray, absent: int, free: int) -> list[tuple[Any, ...]]:
    """Return the ways to fill the free places of a set: with no member, or with a member again."""
    choices = [absent, *sets]
    return [tuple(choices[i] for i in picks) for picks in combinations_with_replacement(range(len(choices)), free)]
