"""Check steps over yes/no questions by counting.

The rules are `floor`, `count` and `split`. Rows of equal class and answers are merged into one row with their weight.
Weights below 2^24 are summed in float32, others below 2^53 in float64: both are exact. Costs are int64.
docs/proof-format.md, "Bounds", states the rules.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from trainer.check.proof.steps.parts import ALWAYS, ANY, INFINITE_COST, CountTable, ProofPart, Span, StepBound
from trainer.check.proof.subject import ProofConstraint, ProofSpace, require


class Counting(CountTable):
    """The rows of a space in order of their classes, with the share of each in the unavoidable errors."""

    def __init__(self, space: ProofSpace, unit: int, leaf: int) -> None:
        self.min_leaf = space.min_leaf
        self.apart = space.apart
        self.allowed = space.allowed
        self.space = space
        rates = space.rates
        answers = np.packbits(space.X, axis=1)
        # as an unsigned number, the group -1 sorts last
        marks = [space.labels] if rates is None else [space.labels, rates.group]
        # the label comes first, so that rows of one class are contiguous
        coded = [*(mark.astype(">u4").view(np.uint8).reshape(-1, 4) for mark in marks), answers]
        rows, first, where = np.unique(np.column_stack(coded), axis=0, return_index=True, return_inverse=True)
        weight = np.bincount(where.reshape(-1), space.weights, len(rows)).astype(np.int64)
        self.float: Any = np.float32 if int(weight.sum()) < 1 << 24 else np.float64
        self.X = np.ascontiguousarray(space.X[first])
        group = np.unique(rows[:, 4 * len(marks) :], axis=0, return_inverse=True)[1].reshape(-1)
        super().__init__((unit, leaf), (self.X.shape[1], space.classes), (space.labels[first], weight, group))
        # weight of each row in each compared group, shape (groups, rows)
        self.compared = np.zeros((0, len(rows)), np.int64)
        if rates is not None:
            self.compared = np.where(rates.group[first] == np.arange(len(rates.sizes))[:, None], weight, 0)

    def root(self, columns: Sequence[int] | None = None, span: Span = ANY) -> ProofPart:
        """Return the part of all rows, for trees that use only these columns and predict classes of the span."""
        allowed = self.allowed if columns is None else self.allowed & np.isin(self.space.column_of, columns)
        return self._apply_wishes(np.ones(len(self.X), bool), allowed, self.space.wishes, INFINITE_COST, span)

    def follow(self, path: Sequence[int], columns: Sequence[int] | None = None, span: Span = ANY) -> ProofPart:
        """Return the part that a path leads to; literals are 2 q for no and 2 q + 1 for yes."""
        part = self.root(columns, span)
        for literal in path:
            q, yes = divmod(literal, 2)
            require(
                q < len(part.allowed) and part.allowed[q], f"its path asks question {q}, which is not allowed there"
            )
            part = self.below(part, q, yes, part.rows & (self.X[:, q] == bool(yes)))
        return part

    def below(self, part: ProofPart, q: int, yes: int, rows: np.ndarray) -> ProofPart:
        """Return a side of a question with the restrictions that apply to it."""
        allowed = part.allowed if self.apart is None else part.allowed & ~self.apart[q]
        if not part.wishes and part.max_height == INFINITE_COST:
            return ProofPart(rows, allowed, (), INFINITE_COST, part.span)
        turned = self.space.yes_left is not None and not self.space.yes_left[q]
        letter = "n" if bool(yes) == turned else "y"
        wishes = tuple(replace(w, place=w.place[1:]) for w in part.wishes if w.place[:1] == letter)
        return self._apply_wishes(rows, allowed, wishes, part.max_height - (part.max_height < INFINITE_COST), part.span)

    def _apply_wishes(
        self, rows: np.ndarray, allowed: np.ndarray, wishes: tuple[ProofConstraint, ...], max_height: int, span: Span
    ) -> ProofPart:
        """Apply the wishes at this place; keep the wishes, and the questions of wishes, that matter here or below."""
        local_wishes = [w for w in wishes if not w.place]
        max_height = min([max_height, *(w.height for w in local_wishes if w.verb == "depth")])
        banned = [w.column for w in local_wishes if w.verb == "forbid"]
        separating = [q for w in local_wishes for q in w.separating]
        wishes = tuple(w for w in wishes if w.place or w.verb in ("ask", "avoid", "held", "leaf"))
        numbers = np.arange(len(allowed))
        asked_by_wishes = [q for w in wishes for q in w.numbers]
        allowed = allowed & ~np.isin(self.space.column_of, banned) & ~np.isin(numbers, separating)
        allowed &= self.space.listed | np.isin(numbers, asked_by_wishes)
        return ProofPart(rows, allowed, wishes, max_height, span)

    # -- counting --------------------------------------------------------------------------------------------------------

    def count(self, part: ProofPart, height: int, leaves: int, bound: int) -> int:
        """Apply rule `count`: return the cost of the best tree of depth at most two; `bound` is not used."""
        return int(self.counts(part, height)[min(leaves, 1 << height) - 1])

    def counts(self, part: ProofPart, height: int) -> np.ndarray:
        """Return the least costs with at most 1, 2, 3 and 4 leaves, int64 of shape (4,)."""
        frame = self.frame(part)
        return frame.best_costs(frame.pairs, frame.totals, height)

    def cost(self, errors: np.ndarray, leaves: Any) -> np.ndarray:
        """Return the cost of the given numbers of errors and leaves as int64; infinite errors represent a missing tree."""
        finite = np.isfinite(errors)
        return np.where(
            finite, leaves * self.leaf + self.unit * np.where(finite, errors, 0).astype(np.int64), INFINITE_COST
        )

    def frame(self, part: ProofPart, *, alike: bool = False) -> PairFrame:
        return PairFrame(self, part, alike=alike)

    def frame_sides(self, frame: PairFrame, height: int, plans: list[tuple[int, int]]) -> FrameSides:
        return FrameSides(self, frame, height, plans)

    def any_count(self, part: ProofPart) -> int:
        """Apply rule `count` at any height: a tree deeper than two has at least four leaves."""
        excess = np.asarray(self.excess[part.rows].sum())
        return min(int(self.counts(part, 2)[3]), int(self.many_leaves(self.totals(part), excess, 4)))

    # -- splits ----------------------------------------------------------------------------------------------------------

    def check_split(self, part: ProofPart, height: int, leaves: int, bound: int, step_bound: StepBound) -> None:
        """Apply rule `split`: raise BadProof unless the leaf and every split cost at least `bound`."""
        require(self.leaf_cost(part) >= bound, f"a single leaf costs less than {bound}")
        frame = self.frame(part)
        most = min(1 << (height - 1), self.groups)
        leaves = min(leaves, 2 * most)
        # numbers of leaves of the no side and the yes side
        plans = [(a, leaves - a) for a in range(max(1, leaves - most), min(most, leaves - 1) + 1)]
        if not len(frame.columns) or not plans:
            return
        sides = self.frame_sides(frame, height - 1, plans)
        if height > 3:
            sides.look_up(step_bound)
        short = sides.unproved_question(bound, countable=height <= 3)
        require(short is None, f"the two sides of question {frame.columns[short or 0]} are not proved to cost {bound}")

    def check_any_split(self, part: ProofPart, bound: int, step_bound: StepBound) -> int:
        """Apply rule `split` at any height: return `bound`, or raise BadProof if the leaf or a split may cost less."""
        require(self.leaf_cost(part) >= bound, "a single leaf costs less")
        frame = PairFrame(self, part)
        if not len(frame.columns):
            return bound
        sides = FrameSides(self, frame, ALWAYS, [(self.groups, self.groups)])
        sides.count_stumps()
        sides.look_up(step_bound)
        sides.close_small()
        short = sides.unproved_question(bound, countable=False)
        require(short is None, f"the two sides of question {frame.columns[short or 0]} are not proved to cost {bound}")
        return bound


class PairFrame:
    """The questions that separate a set of rows, each partition once, and the counts of their pairs by class."""

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
            # a question and its complement make the same partition, so one of them suffices
            partitions = np.ascontiguousarray(np.packbits(X[:, columns] ^ X[0, columns], axis=0).T)
            columns = columns[sorted({bits.tobytes(): i for i, bits in reversed([*enumerate(partitions)])}.values())]
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
        # class weights of the no side and the yes side, shape (2, classes, m)
        self.sides = np.array([self.totals[:, None] - ones, ones])
        self.both = self.pairs.sum(axis=0).astype(np.int64)
        excess = c.excess[index]
        with_yes = (excess.astype(np.float64) @ self.X).astype(np.int64)
        self.excess = np.array([excess.sum() - with_yes, with_yes])

    def side_pairs(self, q: int) -> tuple[np.ndarray, np.ndarray]:
        """Count pairs by class on the no side and on the yes side of question q; the larger side by subtraction."""
        yes = int(self.both[q, q]) * 2 <= self.total
        smaller = np.empty_like(self.pairs)
        for k, s in enumerate(self.slices):
            side_rows = np.flatnonzero((self.X[s, q] != 0) == yes)
            answers = self.X[s][side_rows]
            np.matmul(answers.T, answers if self.plain else self.scaled[s][side_rows], out=smaller[k])
        larger = self.pairs - smaller
        return (larger, smaller) if yes else (smaller, larger)

    def side_rows(self, q: int, yes: int) -> np.ndarray:
        """Return the rows on a side of question q."""
        rows = self.part.rows.copy()
        rows[self.index] = (self.X[:, q] != 0) == bool(yes)
        return rows

    def common_weights(self) -> np.ndarray:
        """Return the common weight of any two sides, by both answers and both questions, int64 of shape (2, 2, m, m)."""
        yes = np.diagonal(self.both)
        one = yes[:, None] - self.both  # weight of the rows with yes to the first question and no to the second
        return np.array([[self.total - yes[:, None] - yes[None, :] + self.both, one.T], [one, self.both]])

    def side_costs(self) -> np.ndarray:
        """Return the least costs of the no and the yes side of each question with at most one more question, shape (2, m)."""
        one, two = self.side_errors(self.pairs, self.totals, self.second)
        return np.minimum(self.c.cost(one, 1), self.c.cost(two, 2))

    def best_costs(self, pairs: np.ndarray, totals: np.ndarray, height: int, above: int | None = None) -> np.ndarray:
        """Return the least costs with at most 1, 2, 3 and 4 leaves, int64 of shape (4,), from counts of pairs by class.

        `above` is the question of the parent, which may rule out others.
        """
        first = np.True_
        second = self.second
        if second is not None and above is not None:
            first = second[above]
            second = second & second[above][None, :]
        one, two = self.side_errors(pairs, totals, second)
        errors = [one.sum(axis=0), np.minimum(one[0] + two[1], two[0] + one[1]), two.sum(axis=0)][: (0, 1, 3)[height]]
        least = [np.where(first, split_errors, np.inf).min(initial=np.inf) for split_errors in errors]
        least_errors = np.full(4, np.inf)
        least_errors[: len(least) + 1] = [totals.sum() - totals.max(), *least]
        return np.minimum.accumulate(self.c.cost(least_errors, np.arange(1, 5)))

    def side_errors(
        self, pairs: np.ndarray, totals: np.ndarray, second: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the errors of the no and the yes side of each question, as a leaf and with a second question, shape (2, m) each.

        They are infinite if a leaf would be too small.
        """
        least = self.c.min_leaf
        ones = np.array([np.diagonal(own) for own in pairs])
        yes_weight = ones.sum(axis=0)
        total = totals.sum().astype(ones.dtype)
        own = totals.astype(ones.dtype)
        free = own[:, None] - ones
        both = reduce(np.maximum, pairs)  # number of rows that a leaf for yes-yes classifies correctly
        alone = [size[:, None] - own for size, own in zip(ones, pairs, strict=True)]
        only = reduce(np.maximum, alone)  # the same for yes to the first question and no to the second
        none = reduce(np.maximum, [out[None, :] - own for out, own in zip(free, alone, strict=True)])
        no = none + only.T
        yes = both + only
        if least > 1:
            size = pairs.sum(axis=0)
            neither = total - yes_weight[:, None] - yes_weight[None, :] + size
            yes[np.minimum(size, yes_weight[:, None] - size) < least] = -np.inf
            no[np.minimum(neither, yes_weight[None, :] - size) < least] = -np.inf
        if second is not None:
            yes[~second] = no[~second] = -np.inf
        sizes = np.array([total - yes_weight, yes_weight])
        small = np.minimum(yes_weight, total - yes_weight) < least
        one = sizes - [free.max(axis=0), ones.max(axis=0)]
        two = sizes - [no.max(axis=1, initial=-np.inf), yes.max(axis=1, initial=-np.inf)]
        return np.where(small, np.inf, one), np.where(small, np.inf, two)


class FrameSides:
    """Lower bounds on both sides of each question of a frame, for each number of leaves that a plan gives them."""

    def __init__(self, counting: Counting, frame: PairFrame, height: int, plans: list[tuple[int, int]]) -> None:
        self.c = counting
        self.frame = frame
        self.height = height
        self.leaves = sorted({t for plan in plans for t in plan})
        self.at = [(self.leaves.index(a), self.leaves.index(b)) for a, b in plans]
        self.done: set[int] = set()
        limits = [min(t, 1 << min(height, 62)) for t in self.leaves]
        sides = zip(frame.sides, frame.excess, strict=True)
        # lower bounds, shape (2, leaves, m)
        self.bounds = np.array([[counting.floors(*side, t) for t in limits] for side in sides])

    def split_bounds(self) -> np.ndarray:
        """Return a lower bound on a split with each question, over the plans of leaves."""
        return np.min([self.bounds[0, a] + self.bounds[1, b] for a, b in self.at], axis=0)

    def unproved_question(self, bound: int, *, countable: bool = True) -> int | None:
        """Return a question whose sides are not proved to cost the bound; None if there is none.

        Sides are counted before that if they are `countable`.
        """
        while True:
            sums = self.split_bounds()
            q = int(sums.argmin())
            if sums[q] >= bound:
                return None
            if not countable or q in self.done:
                return q
            self.count(q)

    def part(self, q: int, yes: int) -> ProofPart:
        """Return a side of question q without wishes, since a step about these rows must hold on any path to them."""
        allowed = self.frame.part.allowed
        apart = self.c.apart
        return ProofPart(
            self.frame.side_rows(q, yes), allowed if apart is None else allowed & ~apart[self.frame.columns[q]]
        )

    def look_up(self, step_bound: StepBound) -> None:
        """Take the bounds that steps have proved for sides, and derive bounds of similar sides."""
        for q, yes in itertools.product(range(len(self.frame.columns)), (0, 1)):
            side = self.part(q, yes)
            step_bounds = np.array([step_bound(side, self.height, t) for t in self.leaves], np.int64)
            if step_bounds.any():
                self.learn(q, yes, step_bounds)

    def count_stumps(self) -> None:
        """Bound all sides at any height by their best stumps and the trees of more leaves, then by similarity."""
        frame = self.frame
        more = [self.c.many_leaves(*side, 3) for side in zip(frame.sides, frame.excess, strict=True)]
        bounds = np.maximum(self.bounds[:, 0], np.minimum(frame.side_costs(), more))
        sizes = frame.sides.sum(axis=1)
        common = frame.common_weights()
        for yes, other in itertools.product((0, 1), (0, 1)):
            gained = bounds[yes][:, None] - self.c.unit * (sizes[yes][:, None] - common[yes, other])
            # a tree of the other side may have a leaf that is too small if it loses the rows that only that side has
            if self.c.min_leaf > 1:
                gained[sizes[other][None, :] != common[yes, other]] = 0
            self.bounds[other, 0] = np.maximum(self.bounds[other, 0], gained.max(axis=0))

    def close_small(self) -> None:
        """Close questions with a side that weighs at most a leaf's price: trees without them cost no more and have fewer leaves."""
        lightest = self.frame.sides.sum(axis=1).min(axis=0)
        self.bounds[:, :, self.c.unit * lightest <= self.c.leaf] = INFINITE_COST // 2

    def count(self, q: int) -> None:
        """Count both sides of question q."""
        self.done.add(q)
        pairs = self.frame.side_pairs(q)
        for yes in (0, 1):
            least = self.frame.best_costs(pairs[yes], self.frame.sides[yes][:, q], self.height, q)
            self.learn(q, yes, least[[min(t, 1 << self.height) - 1 for t in self.leaves]])

    def learn(self, q: int, yes: int, side_bounds: np.ndarray) -> None:
        """Raise the bounds of a side, and by similarity those of other sides: missing rows cost at most their weight."""
        c = self.c
        frame = self.frame
        side_bounds = self.bounds[yes, :, q] = np.maximum(self.bounds[yes, :, q], side_bounds)
        both = frame.both[q]
        sizes = frame.sides.sum(axis=1)
        common = np.array([sizes[1, q] - both, both] if yes else [sizes[0] - sizes[1, q] + both, sizes[1] - both])
        gained = side_bounds[:, None] - c.unit * (sizes[yes, q] - common)[:, None, :]
        valid = np.ones(sizes.shape, bool)
        # a tree of the other side may have a leaf that is too small if it loses the rows that only that side has
        if c.min_leaf > 1:
            valid &= sizes == common
        # the bound carries over only if the other side allows no question that this side forbids
        if frame.second is not None:
            valid &= ~(frame.second & ~frame.second[q][None, :]).any(axis=1)
        self.bounds = np.where(valid[:, None, :], np.maximum(self.bounds, gained), self.bounds)
