"""Check steps about trees whose rows pay once for each column on their path.

The rules are `floor`, `count` and `split`. See docs/proof-format.md, "Prices of columns".
"""

from __future__ import annotations

import numpy as np

from trainer.check.proof.steps.counting import Counting, FrameSides, PairFrame
from trainer.check.proof.steps.parts import INFINITE_COST, ProofPart
from trainer.check.proof.subject import ProofSpace


class PricedCounting(Counting):
    """Rows as in `Counting`; `charges` is the price of each question for one unit of weight, int64 (m,)."""

    def __init__(self, space: ProofSpace, unit: int, leaf: int, charges: np.ndarray) -> None:
        super().__init__(space, unit, leaf)
        self.charges = charges

    def below(self, part: ProofPart, q: int, yes: int, rows: np.ndarray) -> ProofPart:
        """Return a side of a question, where the price of its column is paid."""
        return super().below(part, q, yes, rows)._replace(paid=self.paid_below(part, q))

    def paid_below(self, part: ProofPart, q: int) -> frozenset[int]:
        """Return the paid columns on the sides of question q."""
        return part.paid | {int(self.space.column_of[q])} if self.charges[q] else part.paid

    def frame(self, part: ProofPart, *, alike: bool = True) -> PairFrame:
        """Return the frame of a part; questions with one partition stay apart, because their prices may differ."""
        return PairFrame(self, part, alike=True)

    def frame_sides(self, frame: PairFrame, height: int, plans: list[tuple[int, int]]) -> FrameSides:
        return _PricedSides(self, frame, height, plans)

    def counts(self, part: ProofPart, height: int) -> np.ndarray:
        """Return the least costs with at most 1, 2, 3 and 4 leaves, int64 of shape (4,)."""
        frame = self.frame(part)
        least = self.least_costs(frame.columns, frame.pairs, frame.totals, part.paid)
        return least[[min(t, 1 << height) - 1 for t in range(1, 5)]]

    def unpaid(self, questions: np.ndarray, paid: frozenset[int]) -> np.ndarray:
        """Return the price of each question for one unit of weight, 0 if its column is paid; int64."""
        is_paid = np.isin(self.space.column_of[questions], list(paid))
        return np.where(is_paid, 0, self.charges[questions])

    def least_costs(
        self, questions: np.ndarray, pairs: np.ndarray, totals: np.ndarray, paid: frozenset[int]
    ) -> np.ndarray:
        """Return the least costs of trees of depth two with at most 1, 2, 3 and 4 leaves, int64 of shape (4,).

        pairs (K, m, m): the weights of each class with yes to both of two questions. totals (K,): the weights of each class.
        """
        counts = pairs.astype(np.int64)
        ones = np.array([np.diagonal(own) for own in counts])
        zeros = totals[:, None] - ones
        charges = self.unpaid(questions, paid)
        is_valid = self._separates(ones.sum(axis=0), zeros.sum(axis=0))
        first = np.where(is_valid, int(totals.sum()) * charges, INFINITE_COST)
        no = self._leaf_costs(zeros)
        yes = self._leaf_costs(ones)
        # weights with yes to the second question
        no_split = self._split_costs(questions, zeros, ones[:, None, :] - counts, charges)
        yes_split = self._split_costs(questions, ones, counts, charges)
        sums = [first + no + yes, first + np.minimum(no + yes_split, no_split + yes), first + no_split + yes_split]
        least = [int(self._leaf_costs(totals)), *(int(own.min(initial=INFINITE_COST)) for own in sums)]
        return np.minimum.accumulate(np.array(least, np.int64))

    def _leaf_costs(self, sizes: np.ndarray) -> np.ndarray:
        """Return the cost of a leaf from class weights of shape (K, ...)."""
        costs: np.ndarray = self.leaf + self.unit * (sizes.sum(axis=0) - sizes.max(axis=0))
        return costs

    def _separates(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        is_separated: np.ndarray = np.minimum(one, other) >= self.min_leaf
        return is_separated

    def _split_costs(
        self, questions: np.ndarray, side: np.ndarray, with_yes: np.ndarray, charges: np.ndarray
    ) -> np.ndarray:
        """Return the least cost of a split of a side of each question, int64 (m,).

        side (K, m): class weights of the side. with_yes (K, m, m): those with yes to the second question.
        """
        with_no = side[:, :, None] - with_yes
        columns = self.space.column_of[questions]
        price = np.where(columns[:, None] == columns[None, :], 0, charges[None, :]) * side.sum(axis=0)[:, None]
        costs = self._leaf_costs(with_yes) + self._leaf_costs(with_no) + price
        allowed = self._separates(with_yes.sum(axis=0), with_no.sum(axis=0))
        least: np.ndarray = np.where(allowed, costs, INFINITE_COST).min(axis=1, initial=INFINITE_COST)
        return np.minimum(least, INFINITE_COST // 4)  # so that sums of infinite costs stay below 2^63


class _PricedSides(FrameSides):
    """Bounds on the sides of splits that pay for a column. No bound follows by similarity."""

    c: PricedCounting

    def __init__(self, counting: PricedCounting, frame: PairFrame, height: int, plans: list[tuple[int, int]]) -> None:
        super().__init__(counting, frame, height, plans)
        self.charges = frame.total * counting.unpaid(frame.columns, frame.part.paid)

    def split_bounds(self) -> np.ndarray:
        bounds: np.ndarray = super().split_bounds() + self.charges
        return bounds

    def part(self, q: int, yes: int) -> ProofPart:
        paid = self.c.paid_below(self.frame.part, int(self.frame.columns[q]))
        return super().part(q, yes)._replace(paid=paid)

    def count(self, q: int) -> None:
        """Count both sides of question q."""
        self.done.add(q)
        paid = self.c.paid_below(self.frame.part, int(self.frame.columns[q]))
        for yes, pairs in enumerate(self.frame.side_pairs(q)):
            least = self.c.least_costs(self.frame.columns, pairs, self.frame.sides[yes][:, q], paid)
            self.learn(q, yes, least[[min(t, 1 << self.height) - 1 for t in self.leaves]])

    def learn(self, q: int, yes: int, side_bounds: np.ndarray) -> None:
        """Raise the bounds of a side."""
        self.bounds[yes, :, q] = np.maximum(self.bounds[yes, :, q], side_bounds)
