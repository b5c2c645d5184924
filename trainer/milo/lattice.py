"""The values that a tree can have: c - kappa * t - charge * u for whole c, t leaves, u coefficients; bounds are rounded down onto them."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

NOISE = Fraction(1, 10**6)
SEEN = Fraction(1, 1000)  # rows; finer steps between values come near to the tolerances of solvers
MOST_PAIRS = 100_000  # leaves and coefficients beyond which all multiples of the common fraction count as values


@dataclass(frozen=True, kw_only=True)
class Lattice:
    """All values in rows, 1 ≤ t ≤ `leaves`; where coefficients cost, each of t - 1 branchings has 1 to `columns` of them."""

    kappa: Fraction
    leaves: int
    charge: Fraction = Fraction(0)
    columns: int = 1

    @cached_property
    def parts(self) -> int:
        """Every value is a whole number of such parts of a row."""
        return math.lcm(self.kappa.denominator, self.charge.denominator)

    @cached_property
    def rests(self) -> list[int]:
        """Values modulo a whole row, in parts of it, rising; empty if there are too many to be listed."""
        if self.charge and self.leaves * self.leaves * self.columns > 2 * MOST_PAIRS:
            return []
        leaf = int(self.kappa * self.parts)
        coefficient = int(self.charge * self.parts)
        found: set[int] = set()
        for t in range(1, self.leaves + 1):
            used = range(t - 1, (t - 1) * self.columns + 1) if self.charge else (0,)
            found.update((-leaf * t - coefficient * u) % self.parts for u in used)
        return sorted(found)

    @cached_property
    def step(self) -> Fraction:
        """The smallest positive difference of two values."""
        if not self.rests:
            return Fraction(1, self.parts)
        around = [*self.rests, self.rests[0] + self.parts]
        return Fraction(min(b - a for a, b in pairwise(around)), self.parts)

    @property
    def gap(self) -> float:
        """The absolute gap at which a solver may stop: nine tenths of the step prove the incumbent."""
        return float(self.step * Fraction(9, 10))

    def floor(self, bound: float | Fraction, noise: Fraction = NOISE) -> Fraction:
        """The largest value that is at most `bound` + noise."""
        whole, rest = divmod(math.floor((Fraction(bound) + noise) * self.parts), self.parts)
        if self.rests:
            place = bisect_right(self.rests, rest)
            whole, rest = (whole, self.rests[place - 1]) if place else (whole - 1, self.rests[-1])
        return whole + Fraction(rest, self.parts)


def same_order(kappa: Fraction, leaves: int) -> Fraction:
    """A price of a leaf that puts all values c - kappa * t, 1 ≤ t ≤ `leaves`, in the order of `kappa`, with steps that a solver can see.

    The order changes only where kappa is a fraction with a denominator below `leaves`; between two neighbours of these
    their mediant does as well as any other price.  Prices with wide enough steps stay.
    """
    if leaves < 2 or Lattice(kappa=kappa, leaves=leaves).step >= SEEN:
        return kappa
    if any((kappa * q).denominator == 1 for q in range(1, leaves)):
        return kappa
    low = max(Fraction(math.floor(kappa * q), q) for q in range(1, leaves))
    high = min(Fraction(math.floor(kappa * q) + 1, q) for q in range(1, leaves))
    return Fraction(low.numerator + high.numerator, low.denominator + high.denominator)


@dataclass(frozen=True, kw_only=True)
class Prices:
    """The price of a leaf that is asked for and the one that is searched with, in rows; trees have at most `leaves` leaves."""

    asked: Fraction
    used: Fraction
    leaves: int

    @classmethod
    def of(cls, kappa: Fraction, leaves: int) -> Prices:
        """Search with a price of the same order, see `same_order`."""
        return cls(asked=kappa, used=same_order(kappa, leaves), leaves=leaves)

    def value(self, value: Fraction, leaves: int) -> Fraction:
        """The value of a tree at the price that is asked for."""
        return value + (self.used - self.asked) * leaves

    def bound(self, bound: Fraction) -> Fraction:
        """What a bound allows each number of leaves, at the price that is asked for."""
        if self.used == self.asked:
            return bound
        return max(math.floor(bound + self.used * t + NOISE) - self.asked * t for t in range(1, self.leaves + 1))


def tie_price(kappa: Fraction, leaves: int) -> Fraction:
    """A price of a leaf below any difference of two values, all leaves together; 0 where trees of different size never tie."""
    if all((kappa * s) % 1 for s in range(1, leaves)):
        return Fraction(0)
    return Lattice(kappa=kappa, leaves=leaves).step / (2 * leaves)
