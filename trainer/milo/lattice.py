"""Round bounds to the lattice of tree values, c - kappa * t - charge * u.

c is an integer, t the number of leaves, u the number of coefficients.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

NOISE = Fraction(1, 10**6)
MIN_VISIBLE_STEP = Fraction(1, 1000)  # in rows; smaller differences of values are near the tolerances of solvers
# limit on the pairs of leaf and coefficient counts; beyond it, all multiples of the common fraction count as values
MAX_PAIRS = 100_000


@dataclass(frozen=True, kw_only=True)
class Lattice:
    """All values of trees with 1 ≤ t ≤ `leaves`, in rows.

    If coefficients cost, each of the t - 1 branchings has 1 to `columns` of them.
    """

    kappa: Fraction
    leaves: int
    charge: Fraction = Fraction(0)
    columns: int = 1

    @cached_property
    def parts(self) -> int:
        """Number of parts of a row such that every value is an integer number of parts."""
        return math.lcm(self.kappa.denominator, self.charge.denominator)

    @cached_property
    def rests(self) -> list[int]:
        """Values modulo one row, in parts, ascending; empty if there are too many to list."""
        if self.charge and self.leaves * self.leaves * self.columns > 2 * MAX_PAIRS:
            return []
        leaf = int(self.kappa * self.parts)
        coefficient = int(self.charge * self.parts)
        remainders: set[int] = set()
        for t in range(1, self.leaves + 1):
            coefficients = range(t - 1, (t - 1) * self.columns + 1) if self.charge else (0,)
            remainders.update((-leaf * t - coefficient * u) % self.parts for u in coefficients)
        return sorted(remainders)

    @cached_property
    def step(self) -> Fraction:
        """Smallest positive difference of two values."""
        if not self.rests:
            return Fraction(1, self.parts)
        around = [*self.rests, self.rests[0] + self.parts]
        return Fraction(min(b - a for a, b in pairwise(around)), self.parts)

    @property
    def gap(self) -> float:
        """Absolute gap at which a solver may stop: nine tenths of the step, which prove the incumbent."""
        return float(self.step * Fraction(9, 10))

    def floor(self, bound: float | Fraction, noise: Fraction = NOISE) -> Fraction:
        """Return the largest value that is at most `bound` + noise."""
        rows, remainder = divmod(math.floor((Fraction(bound) + noise) * self.parts), self.parts)
        if self.rests:
            place = bisect_right(self.rests, remainder)
            rows, remainder = (rows, self.rests[place - 1]) if place else (rows - 1, self.rests[-1])
        return rows + Fraction(remainder, self.parts)


def same_order(kappa: Fraction, leaves: int) -> Fraction:
    """Return a leaf price that orders all values c - kappa * t like `kappa`, with differences above solver tolerances.

    The order changes only at fractions with a denominator below `leaves`. Between two neighbours of these, all prices give the same order,
    and their mediant is used. Prices with large enough differences are returned unchanged.
    """
    if leaves < 2 or Lattice(kappa=kappa, leaves=leaves).step >= MIN_VISIBLE_STEP:
        return kappa
    if any((kappa * q).denominator == 1 for q in range(1, leaves)):
        return kappa
    low = max(Fraction(math.floor(kappa * q), q) for q in range(1, leaves))
    high = min(Fraction(math.floor(kappa * q) + 1, q) for q in range(1, leaves))
    return Fraction(low.numerator + high.numerator, low.denominator + high.denominator)


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Requested leaf price and the price of the search, in rows; trees have at most `leaves` leaves."""

    asked: Fraction
    used: Fraction
    leaves: int

    @classmethod
    def of(cls, kappa: Fraction, leaves: int) -> Prices:
        """Make prices whose search price orders trees equally, see `same_order`."""
        return cls(asked=kappa, used=same_order(kappa, leaves), leaves=leaves)

    def value(self, value: Fraction, leaves: int) -> Fraction:
        """Return the value of a tree at the requested price."""
        return value + (self.used - self.asked) * leaves

    def bound(self, bound: Fraction) -> Fraction:
        """Convert a bound at the search price to one at the requested price."""
        if self.used == self.asked:
            return bound
        return max(math.floor(bound + self.used * t + NOISE) - self.asked * t for t in range(1, self.leaves + 1))


def tie_price(kappa: Fraction, leaves: int) -> Fraction:
    """Return an additional leaf price that only breaks ties; 0 if trees of different size never tie.

    Its sum over all leaves is below any difference of two values.
    """
    if all((kappa * s) % 1 for s in range(1, leaves)):
        return Fraction(0)
    return Lattice(kappa=kappa, leaves=leaves).step / (2 * leaves)
