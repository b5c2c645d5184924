"""Trees within restrictions: wishes, least recalls, limits of leaves, rates of groups, monotone columns; over yes/no questions.

What is known of the trees of a subproblem is a list of vectors (cost, errors of each class with a least recall, leaves if limited, for
each group the weight that is predicted the favoured class and the weight that is not) and a cost: each tree within the restrictions that
costs less has a vector in the list that is nowhere larger (docs/proof-format.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from trainer.check.proof.steps.counting import Counting, FrameSides, PairFrame
from trainer.check.proof.steps.parts import ANY, INFINITE_COST, Known, ProofPart, Span
from trainer.check.proof.subject import RateLimit, require

Cover = tuple[int, np.ndarray]  # a cost, and the vectors of the trees that cost less
Covers = Callable[[ProofPart, int], Cover]  # a part and a height: the best cover that a step has proved
MAX_EXACT_COST = 1 << 60
SUMS_A_VISIT = 1 << 12  # take as long as another subproblem
MOST_SUMS = 1 << 20  # vectors that are added at once
Spans = tuple[Span, Span]


class VectorRecursion:
    """The recursion over vectors, led by steps or, below height three, by itself."""

    def __init__(self, counting: Counting) -> None:
        space = self.space = counting.space
        self.c = counting
        self.bounded = [k for k, _ in space.recalls]
        self.leaves = [] if space.max_leaves is None else [space.max_leaves]
        self.caps = np.array([cap for _, cap in space.recalls] + self.leaves, np.int64)
        self.limits, self.groups = ([], 0) if space.rates is None else (_limits(space.rates), len(space.rates.sizes))
        # behind the cost
        self.least = np.array([0] * len(self.bounded) + [1] * len(self.leaves) + [0] * 2 * self.groups, np.int64)
        self.entries = 1 + len(self.least)
        self.memo: dict[tuple[object, ...], Cover] = {}
        self.rising = np.zeros(space.X.shape[1], np.int64) if space.rising is None else space.rising
        self.monotone = bool(self.rising.any())
        self.plain = not (self.bounded or self.groups or self.monotone)  # trees of two levels are counted

    def visit(self, subproblems: int) -> None:
        """So many subproblems, or their like in sums of vectors, are looked at; a search that no steps lead may end here."""

    # -- vectors ---------------------------------------------------------------------------------------------------------

    def made(self, totals: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The vectors (..., D) of leaves with the weights of classes and groups totals (K + G, ...), one for each place of labels (...)."""
        sizes = totals[: self.c.classes]
        compared = totals[self.c.classes :]
        right = np.take_along_axis(sizes, labels[None], axis=0)[0]
        own = [self.c.leaf + self.c.unit * (sizes.sum(axis=0) - right)]
        own += [np.where(labels == k, 0, sizes[k]) for k in self.bounded]
        own += [np.ones_like(right)] * len(self.leaves)
        if self.space.rates is not None:
            said = labels == self.space.rates.label
            own += [np.where(chosen, size, 0) for size in compared for chosen in (said, ~said)]
        return np.stack(own, axis=-1)

    def kept(self, vectors: np.ndarray, cost: int) -> np.ndarray:
        """Those of a tree that may be: below the cost, within the limits, and not beaten by others."""
        vectors = vectors.reshape(-1, self.entries)
        found = vectors[(vectors[:, 0] < cost) & (vectors[:, 1 : 1 + len(self.caps)] <= self.caps).all(axis=1)]
        for g, h, a, b, most in self.limits:
            said, unsaid = (found[:, 1 + len(self.caps) + place] for place in (2 * g, 2 * h + 1))
            found = found[a * said + b * unsaid <= most]
        if len(found) < 2:
            return found
        # trees that are the same except for their cost
        found = found[np.lexsort(found.T)]
        found = found[np.append(True, (found[1:, 1:] != found[:-1, 1:]).any(axis=1))]
        place = 0
        while place < len(found) and not self.groups:  # with groups hardly one is nowhere larger than another
            beaten = (found >= found[place]).all(axis=1)
            beaten[place] = False
            place += 1 - int(beaten[:place].sum())
            found = found[~beaten]
        return found

    def sums(self, a: np.ndarray, b: np.ndarray, cost: int) -> np.ndarray:
        self.visit(len(a) * len(b) // SUMS_A_VISIT)
        many = max(1, MOST_SUMS // max(1, len(b)))
        parts = [self.kept(a[k : k + many, None] + b[None], cost) for k in range(0, len(a), many)]
        return parts[0] if len(parts) == 1 else self.kept(np.concatenate([b[:0], *parts]), cost)

    def admitted(self, cover: Cover) -> int:
        """The least cost that a cover of all rows leaves open."""
        return min([cover[0], *self.kept(cover[1], INFINITE_COST)[:, 0].tolist()])

    # -- a subproblem ----------------------------------------------------------------------------------------------------

    def cover(self, part: ProofPart, height: int, cost: int) -> np.ndarray:
        """The vectors of all trees that cost less, found without steps."""
        if cost <= 0:
            return np.zeros((0, self.entries), np.int64)
        height = min(height, part.room)
        key = (height, *part.within)
        if self.plain and 0 <= height <= 2 and key not in self.memo and (part.wishes, part.span) == ((), ANY):
            counted = np.column_stack([self.c.counts(part, height), np.arange(1, 5)])
            self.memo[key] = INFINITE_COST, self.kept(counted[:, : self.entries], INFINITE_COST)
        if key not in self.memo or self.memo[key][0] < cost:
            self.visit(1)
            self.memo[key] = cost, self.vectors(part, height, cost, None, None)
        return self.kept(self.memo[key][1], cost)

    def vectors(
        self, part: ProofPart, height: int, cost: int, covers: Covers | None, known: Known | None
    ) -> np.ndarray:
        """The vectors of all trees that may cost less; larger sides as the steps have proved them, or searched where there are none."""
        found = self._leaf(part, cost)
        height = min(height, part.room)
        if height <= 0 or any(w.verb == "leaf" and not w.place for w in part.wishes):
            return found
        frame = PairFrame(self.c, part, alike=bool(part.wishes) or self.monotone)
        usable = self._admitted(part)[frame.columns]
        if not usable.any():
            return found
        if height == 1 and not part.wishes:
            return self.kept(np.concatenate([found, *self._stumps(frame, part, usable)]), cost)
        sides = self._sides(frame, height - 1, known)
        for a in np.flatnonzero(usable).tolist():
            if sides.height == 2 and a not in sides.done and sides.bounds[:, 0, a].sum() < cost:
                sides.count(a)
            low = sides.bounds[:, 0, a].tolist()
            if sum(low) >= cost:
                continue
            q = int(frame.columns[a])
            both = [self.c.below(part, q, yes, sides.rows(a, yes)) for yes in (0, 1)]
            for spans in self._spans(q, part.span):
                one, other = (p._replace(span=span) for p, span in zip(both, spans, strict=True))
                first = self._side(one, height - 1, cost - low[1], low[0], covers)
                if not len(first):
                    continue
                rest = self._side(other, height - 1, cost - int(first[:, 0].min()), low[1], covers)
                found = self.kept(np.concatenate([found, self.sums(first, rest, cost)]), cost)
                if self.entries == 1 and covers is None and len(found):
                    cost = int(found[0, 0]) + 1
        return found

    def _leaf(self, part: ProofPart, cost: int) -> np.ndarray:
        """The vectors of a single leaf: of the class that a wish names, or of any; none where a wish asks here or below."""
        named = {w.label for w in part.wishes if w.verb == "leaf" and not w.place} - {-1}
        labels = np.array([k for k in range(self.c.classes) if part.span[0] <= k <= part.span[1] and named <= {k}])
        if not len(labels) or any(w.verb == "ask" for w in part.wishes):
            return np.zeros((0, self.entries), np.int64)
        own = np.append(self.c.totals(part), self.c.compared[:, part.rows].sum(axis=1))
        return self.kept(self.made(np.repeat(own[:, None], len(labels), axis=1), labels), cost)

    def _admitted(self, part: ProofPart) -> np.ndarray:
        """The questions that may stand here: bool over all questions."""
        here = [w for w in part.wishes if not w.place]
        numbers = np.arange(len(part.allowed))
        held = [q for w in here if w.verb == "held" for q in w.numbers]
        found = part.allowed & (self.space.listed | np.isin(numbers, held))
        if named := [w.numbers for w in here if w.verb == "ask" and w.numbers]:
            found = part.allowed.copy()
            for some in named:
                found &= np.isin(numbers, some)
        for w in here:
            if w.verb in ("ask", "avoid"):
                found &= (self.space.column_of == w.column) == (w.verb == "ask")
        return found

    def _stumps(self, frame: PairFrame, part: ProofPart, usable: np.ndarray) -> Iterator[np.ndarray]:
        """The vectors of the trees of one question."""
        compared = self.c.compared[:, frame.index]
        own = (compared.astype(self.c.float) @ frame.X[:, usable]).astype(np.int64)
        yes = np.concatenate([frame.sides[1][:, usable], own])
        no = np.append(frame.totals, compared.sum(axis=1))[:, None] - yes
        rising = self.rising[frame.columns[usable]]
        span = range(part.span[0], min(part.span[1] + 1, self.c.classes))
        for k, other in itertools.product(span, span):
            fits = (rising == 0) | (k == other) | ((rising > 0) == (k < other))
            if fits.any():
                a, b = (self.made(s[:, fits], np.full(int(fits.sum()), label)) for s, label in ((no, k), (yes, other)))
                yield self.kept(a + b, INFINITE_COST)

    def _spans(self, q: int, span: Span) -> list[Spans]:
        """The classes that leaves may predict on the no and on the yes side."""
        if not self.rising[q]:
            return [(span, span)]
        top = min(span[1], self.c.classes - 1)
        cuts: list[Spans] = [((span[0], span[1] if k == top else k), (k, span[1])) for k in range(span[0], top + 1)]
        return cuts if self.rising[q] > 0 else [(yes, no) for no, yes in cuts]

    # -- sides -----------------------------------------------------------------------------------------------------------

    def _sides(self, frame: PairFrame, height: int, known: Known | None) -> FrameSides:
        """Bounds of the sides of each question, which hold without the restrictions and so with them."""
        most = 1 << min(height, 30)
        sides = FrameSides(self.c, frame, height, [(2 * most, 2 * most)])
        if height == 1:
            sides.bounds[:, 0] = np.maximum(sides.bounds[:, 0], frame.side_costs())
        elif height > 2 and known is not None:
            for a, yes in itertools.product(range(len(frame.columns)), (0, 1)):
                side = self.c.below(frame.part, int(frame.columns[a]), yes, sides.rows(a, yes))
                found = known(side, min(height, side.room), most)
                sides.bounds[yes, 0, a] = max(int(sides.bounds[yes, 0, a]), found)
        return sides

    def _side(self, part: ProofPart, height: int, cost: int, low: int, covers: Covers | None) -> np.ndarray:
        """The vectors of a side that costs less, and where that is open a vector of lower bounds."""
        if covers is None or min(height, part.room) <= 2:
            return self.cover(part, height, cost)
        open_, vectors = covers(part, height)
        floor = np.append(max(low, open_), self.least)
        return self.kept(np.concatenate([vectors, floor[None]]), cost)

    # -- a step ----------------------------------------------------------------------------------------------------------

    def check(self, part: ProofPart, height: int, cover: Cover, covers: Covers, known: Known) -> None:
        """Raise BadProof unless each tree that costs less than the cover says has one of its vectors."""
        cost, listed = cover
        for v in self.vectors(part, height, cost, covers, known):
            covered = (listed <= v).all(axis=1).any()
            require(covered, f"a tree with cost, errors, leaves and groups {v.tolist()} is not excluded")


def _limits(rates: RateLimit) -> list[tuple[int, int, int, int, int]]:
    """For two groups g and h (g, h, a, b, most): a times the weight of g that is predicted the label and b times the weight of h
    that is not are `most` together, at most. Pairs of groups whose numbers do not fit 64 bits are left out: less is ruled out.
    """
    found = []
    for (g, m), (h, n) in itertools.permutations(enumerate(rates.sizes), 2):
        d = math.gcd(m, n)
        if 2 * m * n // d < MAX_EXACT_COST:
            found.append((g, h, n // d, m // d, math.floor((1 + rates.delta) * (m * n // d))))
    return found
