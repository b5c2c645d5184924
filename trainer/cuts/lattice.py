"""The values that a tree can have: c - kappa * t for whole c and 1 ≤ t ≤ 2^d; bounds are rounded down onto them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

NOISE = Fraction(1, 10**6)


@dataclass(frozen=True, kw_only=True)
class Lattice:
    """All values `c - kappa * t` in rows, with at most `leaves` leaves."""

    kappa: Fraction
    leaves: int

    @property
    def step(self) -> Fraction:
        """The smallest positive difference of two values: kappa * s is that near to a whole number for some s < leaves."""
        rests = [(self.kappa * s) % 1 for s in range(1, self.leaves)]
        return min([Fraction(1), *(min(r, 1 - r) for r in rests if r)])

    @property
    def gap(self) -> float:
        """The absolute gap at which a solver may stop: nine tenths of the step prove the incumbent."""
        return float(self.step * Fraction(9, 10))

    def floor(self, bound: float, noise: Fraction = NOISE) -> Fraction:
        """The largest value that is at most `bound` + noise."""
        limit = Fraction(bound) + noise
        return max(math.floor(limit + self.kappa * t) - self.kappa * t for t in range(1, self.leaves + 1))


def tie_price(kappa: Fraction, leaves: int) -> Fraction:
    """A price of a leaf below any difference of two values, all leaves together; 0 where trees of different size never tie."""
    if all((kappa * s) % 1 for s in range(1, leaves)):
        return Fraction(0)
    return Lattice(kappa=kappa, leaves=leaves).step / (2 * leaves)
