"""Goal: what is maximised instead of plain accuracy, if one class is the positive one.

Sensitivity is the share of positive rows that are predicted positive, specificity the share of negative rows predicted negative.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

Maximised = Literal["accuracy", "sensitivity", "specificity"]
SLACK = Fraction(1, 10**9)


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A share that is maximised over trees that keep the required ones.

    `weight` is what a correct negative row counts, a positive one counting 1 (accuracy only); all shares are written as
    fractions, None if nothing is required.
    """

    positive: str
    maximise: Maximised = "accuracy"
    weight: str = "1"
    sensitivity: str | None = None
    specificity: str | None = None

    def value(self, tp: int, positives: int, tn: int, negatives: int) -> Fraction:
        """The maximised share for `tp` of `positives` and `tn` of `negatives` rows; 1 if there is no such row."""
        if self.maximise == "sensitivity":
            return share(tp, positives)
        if self.maximise == "specificity":
            return share(tn, negatives)
        weight = Fraction(self.weight)
        return (tp + weight * tn) / (positives + weight * negatives)

    def admits(self, tp: int, positives: int, tn: int, negatives: int) -> bool:
        """True if the required shares are kept."""
        return tp >= needed(self.sensitivity, positives) and tn >= needed(self.specificity, negatives)

    def words(self) -> str:
        """The goal in words, for people."""
        what = {
            "accuracy": f"share of rows correct, where a row that is not '{self.positive}' counts {required_text(self.weight)}",
            "sensitivity": f"sensitivity, the share of '{self.positive}' found",
            "specificity": f"specificity, the share of the others not taken for '{self.positive}'",
        }[self.maximise]
        required = [
            f"{name} at least {required_text(least)}"
            for name, least in (("sensitivity", self.sensitivity), ("specificity", self.specificity))
            if least is not None
        ]
        return what + (", with " + " and ".join(required) if required else "")

    def to_json(self) -> dict[str, Any]:
        """The record for the certificate."""
        return asdict(self)

    @staticmethod
    def from_json(record: dict[str, Any]) -> Goal:
        """The goal of a certificate."""
        return Goal(**record)


def share(part: int, whole: int) -> Fraction:
    """part / whole, and 1 of nothing."""
    return Fraction(part, whole) if whole else Fraction(1)


def required_text(given: str) -> str:
    """A share or weight that was asked for, with every digit: "0.95"."""
    return repr(float(Fraction(given))).removesuffix(".0")


def downwards(reached: Fraction) -> str:
    """What can be reached, in four decimals that can be asked for."""
    return f"{math.floor(reached * 10**4) / 10**4:.4g}"


def upwards(price: Fraction) -> str:
    """A price, in four decimals that are enough."""
    return f"{math.ceil(price * 10**4) / 10**4:.4g}"


def lowered(price: Fraction, recalls: int) -> str:
    """What is said where required recalls contradict each other: by how much all of them must fall, in points of a hundred."""
    points = f"{math.ceil(price * 10**4) / 10**2:.4g}"
    if recalls == 1:
        return f"The recall can be reached if it is lowered by {points} percentage points."
    number = {2: "Both", 3: "All three"}.get(recalls, f"All {recalls}")
    return f"{number} recalls can be reached together if each is lowered by {points} percentage points."


def needed(least: str | None, rows: int) -> int:
    """The smallest number of `rows` that is at least the share `least`, in exact arithmetic."""
    return 0 if least is None else math.ceil(Fraction(least) * rows - SLACK)
