"""Steps over yes/no questions, checked by counting: floors from classes, trees of depth two from counts of pairs, splits.

Rows of equal class and answers are one row with their weight.  Weights below 2^24 are summed in float32, others below 2^53 in
float64: both are exact.  Costs are int64.  See docs/proof-format.md for the rules that the names of the reasons stand for.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from trainer.check.proof.steps.parts import ANY, INFINITE_COST, CountTable, Known, ProofPart, Span
from trainer.check.proof.subject import ProofConstraint, ProofSpace, require


class Counting(CountTable):
    """The rows of a space by class, with what each of them adds to the unavoidable errors."""

    def __init__(self, space: ProofSpace, unit: int, leaf: int) -> None:
        self.min_leaf = space.min_leaf
        self.apart = space.apart
        self.allowed = space.allowed
        self.space = space
        rates = space.rates
        answers = np.packbits(space.X, axis=1)
        marks = [space.labels] if rates is None else [space.labels, rates.group]  # -1 is the last number
        # the label comes first, so that rows of a class lie together
        coded = [*(mark.astype(">u4").view(np.uint8).reshape(-1, 4) for mark in marks), answers]
        rows, first, where = np.unique(np.column_stack(coded), axis=0, return_index=True, return_inverse=True)
        weight = np.bincount(where.reshape(-1), space.weights, len(rows)).astype(np.int64)
        self.float: Any = np.float32 if int(weight.sum()) < 1 << 24 else np.float64
        self.X = np.ascontiguousarray(space.X[first])
        group = np.unique(rows[:, 4 * len(marks) :], axis=0, return_inverse=True)[1].reshape(-1)
        super().__init__((unit, leaf), (self.X.shape[1], space.classes), (space.labels[first], weight, group))
        self.compared = np.zeros((0, len(rows)), np.int64)  # for each group the weights of its rows
        if rates is not None:
            self.compared = np.where(rates.group[first] == np.arange(len(rates.sizes))[:, None], weight, 0)

    def root(self, columns: Sequence[int] | None = None, span: Span = ANY) -> ProofPart:
        """All rows, and the trees that ask these columns and predict classes of the span."""
        allowed = self.allowed if columns is None else self.allowed & np.isin(self.space.column_of, columns)
        return self._settled(np.ones(len(self.X), bool), allowed, self.space.wishes, INFINITE_COST, span)

    def follow(self, path: Sequence[int], columns: Sequence[int] | None = None, span: Span = ANY) -> ProofPart:
        """The part that a path leads to; literals are 2 q for no and 2 q + 1 for yes."""
        part = self.root(columns, span)
        for literal in path:
            q, yes = divmod(literal, 2)
            require(q < len(part.allowed) and part.allowed[q], f"question {q} may not be asked there")
            part = self.below(part, q, yes, part.rows & (self.X[:, q] == bool(yes)))
        return part

    def below(self, part: ProofPart, q: int, yes: int, rows: np.ndarray) -> ProofPart:
        """The side of a question, with what binds on it."""
        allowed = part.allowed if self.apart is None else part.allowed & ~self.apart[q]
        if not part.wishes and part.room == INFINITE_COST:
            return ProofPart(rows, allowed, (), INFINITE_COST, part.span)
        turned = self.space.yes_left is not None and not self.space.yes_left[q]
        letter = "n" if bool(yes) == turned else "y"
        wishes = tuple(replace(w, place=w.place[1:]) for w in part.wishes if w.place[:1] == letter)
        return self._settled(rows, allowed, wishes, part.room - (part.room < INFINITE_COST), part.span)

    def _settled(
        self, rows: np.ndarray, allowed: np.ndarray, wishes: tuple[ProofConstraint, ...], room: int, span: Span
    ) -> ProofPart:
        """Forbidden columns and depths at this place are applied; held questions are kept that a wish asks here or below."""
        here = [w for w in wishes if not w.place]
        room = min([room, *(w.height for w in here if w.verb == "depth")])
        banned = [w.column for w in here if w.verb == "forbid"]
        parted = [q for w in here for q in w.parted]
        wishes = tuple(w for w in wishes if w.place or w.verb in ("ask", "avoid", "held", "leaf"))
        numbers = np.arange(len(allowed))
        named = [q for w in wishes for q in w.numbers]
        allowed = allowed & ~np.isin(self.space.column_of, banned) & ~np.isin(numbers, parted)
        allowed &= self.space.listed | np.isin(numbers, named)
        return ProofPart(rows, allowed, wishes, room, span)

    # -- counting --------------------------------------------------------------------------------------------------------

    def count(self, part: ProofPart, height: int, leaves: int, bound: int) -> int:
        """The cost of the best tree of depth at most two; `bound` is not needed for it."""
        return int(self.counts(part, height)[min(leaves, 1 << height) - 1])

    def counts(self, part: ProofPart, height: int) -> np.ndarray:
        """The same with at most 1, 2, 3 and 4 leaves: int64 (4,)."""
        frame = PairFrame(self, part)
        return frame.two(frame.pairs, frame.totals, height)

    def cost(self, errors: np.ndarray, leaves: Any) -> np.ndarray:
        """The cost of so many errors, infinite ones of no tree, with so many leaves: int64."""
        found = np.isfinite(errors)
        return np.where(
            found, leaves * self.leaf + self.unit * np.where(found, errors, 0).astype(np.int64), INFINITE_COST
        )

    # -- splits ----------------------------------------------------------------------------------------------------------

    def split(self, part: ProofPart, height: int, leaves: int, bound: int, known: Known) -> None:
        """Raise BadProof unless the leaf and every split cost `bound` at least."""
        require(self.leaf_cost(part) >= bound, "a single leaf costs less")
        frame = PairFrame(self, part)
        most = min(1 << (height - 1), self.groups)
        leaves = min(leaves, 2 * most)
        plans = [(a, leaves - a) for a in range(max(1, leaves - most), min(most, leaves - 1) + 1)]  # of dealing leaves
        if not len(frame.columns) or not plans:
            return
        sides = FrameSides(self, frame, height - 1, plans)
        if height > 3:
            sides.look_up(known)
        short = sides.short(bound, countable=height <= 3)
        require(short is None, f"the two sides of question {frame.columns[short or 0]} are not proved to cost {bound}")


class PairFrame:
    """The columns that part a set of rows, each partition once, and the counts of their pairs by class."""

    def __init__(self, c: Counting, part: ProofPart, *, alike: bool = False) -> None:
        self.c = c
        self.part = part
        index = self.index = np.flatnonzero(part.rows)
        X = c.X[index]
        weight = c.weight[index]
        label = c.label[index]
        ones = weight @ X
        self.total = int(weight.sum())
        columns = np.flatnonzero(part.allowed & (np.minimum(ones, self.total - ones) >= c.min_leaf))
        if c.apart is None and len(columns) and not alike:
            # a column and its complement make the same partition
            made = np.ascontiguousarray(np.packbits(X[:, columns] ^ X[0, columns], axis=0).T)
            columns = columns[sorted({own.tobytes(): i for i, own in reversed([*enumerate(made)])}.values())]
        self.columns = columns
        self.X = np.array(X[:, columns], c.float)
        ends = np.searchsorted(label, np.arange(c.classes + 1)).tolist()
        self.slices = [slice(a, b) for a, b in itertools.pairwise(ends)]
        self.plain = bool((weight == 1).all())
        self.scaled = self.X if self.plain else self.X * weight[:, None].astype(c.float)
        self.totals = np.array([weight[s].sum() for s in self.slices], np.int64)
        self.pairs = np.array([self.X[s].T @ self.scaled[s] for s in self.slices])
        self.second = None if c.apart is None else ~c.apart[np.ix_(columns, columns)]
        ones = np.array([np.diagonal(p) for p in self.pairs], np.int64).reshape(c.classes, -1)
        self.sides = np.array([self.totals[:, None] - ones, ones])  # of the no and the yes side: (2, classes, m)
        self.both = self.pairs.sum(axis=0).astype(np.int64)
        excess = c.excess[index]
        with_yes = (excess.astype(np.float64) @ self.X).astype(np.int64)
        self.excess = np.array([excess.sum() - with_yes, with_yes])

    def side_pairs(self, q: int) -> tuple[np.ndarray, np.ndarray]:
        """Counts of pairs by class on the no side and on the yes side of question q; the larger side by subtraction."""
        yes = int(self.both[q, q]) * 2 <= self.total
        made = np.empty_like(self.pairs)
        for k, s in enumerate(self.slices):
            chosen = np.flatnonzero((self.X[s, q] != 0) == yes)
            own = self.X[s][chosen]
            np.matmul(own.T, own if self.plain else self.scaled[s][chosen], out=made[k])
        rest = self.pairs - made
        return (rest, made) if yes else (made, rest)

    def side_costs(self) -> np.ndarray:
        """The least costs (2, m) of the no and the yes side of each question with at most one more."""
        one, two = self.halves(self.pairs, self.totals, self.second)
        return np.minimum(self.c.cost(one, 1), self.c.cost(two, 2))

    def two(self, pairs: np.ndarray, totals: np.ndarray, height: int, above: int | None = None) -> np.ndarray:
        """The least cost with at most 1, 2, 3 and 4 leaves, int64 (4,), from counts of pairs by class, below a question `above` if any."""
        first = np.True_
        second = self.second
        if second is not None and above is not None:
            first = second[above]
            second = second & second[above][None, :]
        one, two = self.halves(pairs, totals, second)
        errors = [one.sum(axis=0), np.minimum(one[0] + two[1], two[0] + one[1]), two.sum(axis=0)][: (0, 1, 3)[height]]
        least = [np.where(first, own, np.inf).min(initial=np.inf) for own in errors]
        found = np.full(4, np.inf)
        found[: len(least) + 1] = [totals.sum() - totals.max(), *least]
        return np.minimum.accumulate(self.c.cost(found, np.arange(1, 5)))

    def halves(self, pairs: np.ndarray, totals: np.ndarray, second: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Errors (2, m) of the no and the yes side of each question as leaves, and if a second question parts each of them.

        Infinite for a question, or without a second one, that leaves no side large enough.
        """
        least = self.c.min_leaf
        ones = np.array([np.diagonal(own) for own in pairs])
        whole = ones.sum(axis=0)
        total = totals.sum().astype(ones.dtype)
        own = totals.astype(ones.dtype)
        free = own[:, None] - ones
        both = reduce(np.maximum, pairs)  # rows that a leaf for yes-yes classifies correctly
        alone = [size[:, None] - own for size, own in zip(ones, pairs, strict=True)]
        only = reduce(np.maximum, alone)  # yes to the first, no to the second
        none = reduce(np.maximum, [out[None, :] - own for out, own in zip(free, alone, strict=True)])
        no = none + only.T
        yes = both + only
        if least > 1:
            size = pairs.sum(axis=0)
            rest = total - whole[:, None] - whole[None, :] + size
            yes[np.minimum(size, whole[:, None] - size) < least] = -np.inf
            no[np.minimum(rest, whole[None, :] - size) < least] = -np.inf
        if second is not None:
            yes[~second] = no[~second] = -np.inf
        sizes = np.array([total - whole, whole])
        small = np.minimum(whole, total - whole) < least
        one = sizes - [free.max(axis=0), ones.max(axis=0)]
        two = sizes - [no.max(axis=1, initial=-np.inf), yes.max(axis=1, initial=-np.inf)]
        return np.where(small, np.inf, one), np.where(small, np.inf, two)


class FrameSides:
    """What is proved of the two sides of each question of a frame, for each number of leaves that a plan gives them."""

    def __init__(self, counting: Counting, frame: PairFrame, height: int, plans: list[tuple[int, int]]) -> None:
        self.c = counting
        self.frame = frame
        self.height = height
        self.leaves = sorted({t for plan in plans for t in plan})
        self.at = [(self.leaves.index(a), self.leaves.index(b)) for a, b in plans]
        self.done: set[int] = set()
        limits = [min(t, 1 << height) for t in self.leaves]
        sides = zip(frame.sides, frame.excess, strict=True)
        self.bounds = np.array([[counting.floors(*own, t) for t in limits] for own in sides])  # (2, leaves, m)

    def sums(self) -> np.ndarray:
        """The least that a split costs with each question, over the ways to deal the leaves."""
        return np.min([self.bounds[0, a] + self.bounds[1, b] for a, b in self.at], axis=0)

    def short(self, bound: int, *, countable: bool = True) -> int | None:
        """A question whose sides are not proved to cost the bound, also when both are counted, if they can be; None without any."""
        while True:
            sums = self.sums()
            q = int(sums.argmin())
            if sums[q] >= bound:
                return None
            if not countable or q in self.done:
                return q
            self.count(q)

    def rows(self, q: int, yes: int) -> np.ndarray:
        """The rows on a side of question q."""
        rows = self.frame.part.rows.copy()
        rows[self.frame.index] = (self.frame.X[:, q] != 0) == bool(yes)
        return rows

    def part(self, q: int, yes: int) -> ProofPart:
        """The side of question q; wishes further down are left out, since a step about these rows must hold on any path to them."""
        allowed = self.frame.part.allowed
        apart = self.c.apart
        return ProofPart(self.rows(q, yes), allowed if apart is None else allowed & ~apart[self.frame.columns[q]])

    def look_up(self, known: Known) -> None:
        """Bounds of the sides that steps have proved, and what they say of the others."""
        for q, yes in itertools.product(range(len(self.frame.columns)), (0, 1)):
            side = self.part(q, yes)
            found = np.array([known(side, self.height, t) for t in self.leaves], np.int64)
            if found.any():
                self.learn(q, yes, found)

    def count(self, q: int) -> None:
        """Both sides of question q by counting."""
        self.done.add(q)
        pairs = self.frame.side_pairs(q)
        for yes in (0, 1):
            least = self.frame.two(pairs[yes], self.frame.sides[yes][:, q], self.height, q)
            self.learn(q, yes, least[[min(t, 1 << self.height) - 1 for t in self.leaves]])

    def learn(self, q: int, yes: int, found: np.ndarray) -> None:
        """Keep the bounds of a side, and what similarity says of the others: rows that they lack can cost no more than their weight."""
        c = self.c
        frame = self.frame
        found = self.bounds[yes, :, q] = np.maximum(self.bounds[yes, :, q], found)
        both = frame.both[q]
        sizes = frame.sides.sum(axis=1)
        common = np.array([sizes[1, q] - both, both] if yes else [sizes[0] - sizes[1, q] + both, sizes[1] - both])
        gained = found[:, None] - c.unit * (sizes[yes, q] - common)[:, None, :]
        valid = np.ones(sizes.shape, bool)
        if c.min_leaf > 1:  # leaving out rows may make a leaf too small
            valid &= sizes == common
        if frame.second is not None:  # the other side may ask no more than this one
            valid &= ~(frame.second & ~frame.second[q][None, :]).any(axis=1)
        self.bounds = np.where(valid[:, None, :], np.maximum(self.bounds, gained), self.bounds)
