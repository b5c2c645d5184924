"""Check steps about trees within restrictions: the rule `within`, over yes/no questions.

The restrictions are wishes, minimum recalls, limits of leaves, rates of groups and monotone columns. A cover of a subproblem is a cost
and a list of vectors. For each tree within the restrictions that costs less, the list has a vector that is nowhere larger.
Entries of a vector: the cost; the errors of each class with a minimum recall; the leaves, if limited; and for each group the weight
that is predicted as the favoured class, and the weight that is not. See docs/proof-format.md, "Vectors".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from trainer.check.proof.steps.counting import Counting, FrameSides, PairFrame
from trainer.check.proof.steps.parts import ANY, INFINITE_COST, ProofPart, Span, StepBound
from trainer.check.proof.subject import RateLimit, require

Cover = tuple[int, np.ndarray]  # a cost, and the vectors of all trees that cost less
Covers = Callable[[ProofPart, int], Cover]  # maps part and height to the best cover that a step proves
MAX_EXACT_COST = 1 << 60
SUMS_A_VISIT = 1 << 12  # this many sums of vectors take as long as one subproblem
MOST_SUMS = 1 << 20  # at most this many sums are held in memory at once
Spans = tuple[Span, Span]


class VectorRecursion:
    """The recursion over vectors; it uses steps, and needs none below height three."""

    def __init__(self, counting: Counting) -> None:
        space = self.space = counting.space
        self.c = counting
        self.bounded = [k for k, _ in space.recalls]
        self.leaves = [] if space.max_leaves is None else [space.max_leaves]
        self.caps = np.array([cap for _, cap in space.recalls] + self.leaves, np.int64)
        self.limits, self.groups = (
            ([], 0) if space.rates is None else (_rate_limits(space.rates), len(space.rates.sizes))
        )
        # smallest possible values of the entries behind the cost
        self.least = np.array([0] * len(self.bounded) + [1] * len(self.leaves) + [0] * 2 * self.groups, np.int64)
        self.entries = 1 + len(self.least)
        self.memo: dict[tuple[object, ...], Cover] = {}
        self.rising = np.zeros(space.X.shape[1], np.int64) if space.rising is None else space.rising
        self.monotone = bool(self.rising.any())
        # without restrictions on vectors, trees of two levels can be counted
        self.plain = not (self.bounded or self.groups or self.monotone)

    def visit(self, subproblems: int) -> None:
        """Count visited subproblems, or as many sums of vectors; a subclass may stop its search here."""

    # -- vectors ---------------------------------------------------------------------------------------------------------

    def leaf_vectors(self, totals: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the vectors of leaves, shape (..., entries).

        `totals` are the weights of classes and groups, shape (K + G, ...); `labels` are the predicted classes, shape (...).
        """
        sizes = totals[: self.c.classes]
        compared = totals[self.c.classes :]
        right = np.take_along_axis(sizes, labels[None], axis=0)[0]
        entries = [self.c.leaf + self.c.unit * (sizes.sum(axis=0) - right)]
        entries += [np.where(labels == k, 0, sizes[k]) for k in self.bounded]
        entries += [np.ones_like(right)] * len(self.leaves)
        if self.space.rates is not None:
            favoured = labels == self.space.rates.label
            entries += [np.where(predicted, size, 0) for size in compared for predicted in (favoured, ~favoured)]
        return np.stack(entries, axis=-1)

    def prune(self, vectors: np.ndarray, cost: int) -> np.ndarray:
        """Return the vectors below the cost and within the limits that no other one dominates."""
        vectors = vectors.reshape(-1, self.entries)
        candidates = vectors[(vectors[:, 0] < cost) & (vectors[:, 1 : 1 + len(self.caps)] <= self.caps).all(axis=1)]
        for g, h, a, b, most in self.limits:
            favoured, not_favoured = (candidates[:, 1 + len(self.caps) + place] for place in (2 * g, 2 * h + 1))
            candidates = candidates[a * favoured + b * not_favoured <= most]
        if len(candidates) < 2:
            return candidates
        # of vectors that differ only in cost, keep the cheapest
        candidates = candidates[np.lexsort(candidates.T)]
        candidates = candidates[np.append(True, (candidates[1:, 1:] != candidates[:-1, 1:]).any(axis=1))]
        place = 0
        # with groups, one vector hardly ever dominates another, so the comparison would not pay
        while place < len(candidates) and not self.groups:
            dominated = (candidates >= candidates[place]).all(axis=1)
            dominated[place] = False
            place += 1 - int(dominated[:place].sum())
            candidates = candidates[~dominated]
        return candidates

    def add_vectors(self, a: np.ndarray, b: np.ndarray, cost: int) -> np.ndarray:
        self.visit(len(a) * len(b) // SUMS_A_VISIT)
        many = max(1, MOST_SUMS // max(1, len(b)))
        parts = [self.prune(a[k : k + many, None] + b[None], cost) for k in range(0, len(a), many)]
        return parts[0] if len(parts) == 1 else self.prune(np.concatenate([b[:0], *parts]), cost)

    def least_cost(self, cover: Cover) -> int:
        """Return the bound that a cover of all rows proves."""
        return min([cover[0], *self.prune(cover[1], INFINITE_COST)[:, 0].tolist()])

    # -- a subproblem ----------------------------------------------------------------------------------------------------

    def cover(self, part: ProofPart, height: int, cost: int) -> np.ndarray:
        """Find the vectors of all trees that cost less, without steps."""
        if cost <= 0:
            return np.zeros((0, self.entries), np.int64)
        height = min(height, part.max_height)
        key = (height, *part.restricted_key)
        if self.plain and 0 <= height <= 2 and key not in self.memo and (part.wishes, part.span) == ((), ANY):
            counted_vectors = np.column_stack([self.c.counts(part, height), np.arange(1, 5)])
            self.memo[key] = INFINITE_COST, self.prune(counted_vectors[:, : self.entries], INFINITE_COST)
        if key not in self.memo or self.memo[key][0] < cost:
            self.visit(1)
            self.memo[key] = cost, self.vectors(part, height, cost, None, None)
        return self.prune(self.memo[key][1], cost)

    def vectors(
        self, part: ProofPart, height: int, cost: int, covers: Covers | None, step_bound: StepBound | None
    ) -> np.ndarray:
        """Return the vectors of all trees that may cost less; sides come from steps, or are searched if `covers` is None."""
        pareto = self._leaf(part, cost)
        height = min(height, part.max_height)
        if height <= 0 or any(w.verb == "leaf" and not w.place for w in part.wishes):
            return pareto
        frame = self.c.frame(part, alike=bool(part.wishes) or self.monotone)
        usable = self._usable_questions(part)[frame.columns]
        if not usable.any():
            return pareto
        if height == 1 and not part.wishes:
            return self.prune(np.concatenate([pareto, *self._stumps(frame, part, usable)]), cost)
        sides = self._sides(frame, height - 1, step_bound)
        for a in np.flatnonzero(usable).tolist():
            if sides.height == 2 and a not in sides.done and sides.bounds[:, 0, a].sum() < cost:
                sides.count(a)
            low = sides.bounds[:, 0, a].tolist()
            if sum(low) >= cost:
                continue
            q = int(frame.columns[a])
            both = [self.c.below(part, q, yes, frame.side_rows(a, yes)) for yes in (0, 1)]
            for spans in self._spans(q, part.span):
                one, other = (p._replace(span=span) for p, span in zip(both, spans, strict=True))
                first = self._side(one, height - 1, cost - low[1], low[0], covers)
                if not len(first):
                    continue
                second = self._side(other, height - 1, cost - int(first[:, 0].min()), low[1], covers)
                pareto = self.prune(np.concatenate([pareto, self.add_vectors(first, second, cost)]), cost)
                if self.entries == 1 and covers is None and len(pareto):
                    cost = int(pareto[0, 0]) + 1
        return pareto

    def _leaf(self, part: ProofPart, cost: int) -> np.ndarray:
        """Return the vectors of a single leaf; none if a wish requires a question here or below."""
        wish_labels = {w.label for w in part.wishes if w.verb == "leaf" and not w.place} - {-1}
        labels = np.array(
            [k for k in range(self.c.classes) if part.span[0] <= k <= part.span[1] and wish_labels <= {k}]
        )
        if not len(labels) or any(w.verb == "ask" for w in part.wishes):
            return np.zeros((0, self.entries), np.int64)
        totals = np.append(self.c.totals(part), self.c.compared[:, part.rows].sum(axis=1))
        return self.prune(self.leaf_vectors(np.repeat(totals[:, None], len(labels), axis=1), labels), cost)

    def _usable_questions(self, part: ProofPart) -> np.ndarray:
        """Return the questions that may stand here, bool over all questions."""
        local_wishes = [w for w in part.wishes if not w.place]
        numbers = np.arange(len(part.allowed))
        held_questions = [q for w in local_wishes if w.verb == "held" for q in w.numbers]
        usable = part.allowed & (self.space.listed | np.isin(numbers, held_questions))
        if asked := [w.numbers for w in local_wishes if w.verb == "ask" and w.numbers]:
            usable = part.allowed.copy()
            for numbers_of_wish in asked:
                usable &= np.isin(numbers, numbers_of_wish)
        for w in local_wishes:
            if w.verb in ("ask", "avoid"):
                usable &= (self.space.column_of == w.column) == (w.verb == "ask")
        return usable

    def _stumps(self, frame: PairFrame, part: ProofPart, usable: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the vectors of the trees of one question."""
        compared = self.c.compared[:, frame.index]
        yes_compared = (compared.astype(self.c.float) @ frame.X[:, usable]).astype(np.int64)
        yes = np.concatenate([frame.sides[1][:, usable], yes_compared])
        no = np.append(frame.totals, compared.sum(axis=1))[:, None] - yes
        rising = self.rising[frame.columns[usable]]
        span = range(part.span[0], min(part.span[1] + 1, self.c.classes))
        for k, other in itertools.product(span, span):
            fits = (rising == 0) | (k == other) | ((rising > 0) == (k < other))
            if fits.any():
                a, b = (
                    self.leaf_vectors(s[:, fits], np.full(int(fits.sum()), label))
                    for s, label in ((no, k), (yes, other))
                )
                yield self.prune(a + b, INFINITE_COST)

    def _spans(self, q: int, span: Span) -> list[Spans]:
        """Return the classes that leaves may predict on the no and on the yes side."""
        if not self.rising[q]:
            return [(span, span)]
        top = min(span[1], self.c.classes - 1)
        cuts: list[Spans] = [((span[0], span[1] if k == top else k), (k, span[1])) for k in range(span[0], top + 1)]
        return cuts if self.rising[q] > 0 else [(yes, no) for no, yes in cuts]

    # -- sides -----------------------------------------------------------------------------------------------------------

    def _sides(self, frame: PairFrame, height: int, step_bound: StepBound | None) -> FrameSides:
        """Return bounds of the sides of each question that hold without, and so with, the restrictions."""
        most = 1 << min(height, 30)
        sides = FrameSides(self.c, frame, height, [(2 * most, 2 * most)])
        if height == 1:
            sides.bounds[:, 0] = np.maximum(sides.bounds[:, 0], frame.side_costs())
        elif height > 2 and step_bound is not None:
            for a, yes in itertools.product(range(len(frame.columns)), (0, 1)):
                side = self.c.below(frame.part, int(frame.columns[a]), yes, frame.side_rows(a, yes))
                bound = step_bound(side, min(height, side.max_height), most)
                sides.bounds[yes, 0, a] = max(int(sides.bounds[yes, 0, a]), bound)
        return sides

    def _side(self, part: ProofPart, height: int, cost: int, low: int, covers: Covers | None) -> np.ndarray:
        """Return the vectors of a side that costs less; where steps leave that open, add a vector of lower bounds."""
        if covers is None or min(height, part.max_height) <= 2:
            return self.cover(part, height, cost)
        open_, vectors = covers(part, height)
        floor = np.append(max(low, open_), self.least)
        return self.prune(np.concatenate([vectors, floor[None]]), cost)

    # -- a step ----------------------------------------------------------------------------------------------------------

    def check(self, part: ProofPart, height: int, cover: Cover, covers: Covers, step_bound: StepBound) -> None:
        """Apply rule `within`: raise BadProof unless each tree below the cost of the cover has one of its vectors."""
        cost, listed = cover
        for v in self.vectors(part, height, cost, covers, step_bound):
            covered = (listed <= v).all(axis=1).any()
            require(covered, f"a tree with cost, errors, leaves and groups {v.tolist()} is not excluded")


def _rate_limits(rates: RateLimit) -> list[tuple[int, int, int, int, int]]:
    """Return the limits of each pair of groups as (g, h, a, b, most).

    a times the weight of g that is predicted the label, plus b times the weight of h that is not, is at most `most`. Pairs whose numbers
    do not fit 64 bits are left out, which only weakens the bound.
    """
    limits = []
    for (g, m), (h, n) in itertools.permutations(enumerate(rates.sizes), 2):
        d = math.gcd(m, n)
        if 2 * m * n // d < MAX_EXACT_COST:
            limits.append((g, h, n // d, m // d, math.floor((1 + rates.delta) * (m * n // d))))
    return limits
