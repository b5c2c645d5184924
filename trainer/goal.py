"""Define goals that replace accuracy if one class is the positive one.

Sensitivity is the share of positive rows that are predicted positive, specificity the share of negative rows predicted negative.
F1 is the harmonic mean of precision and sensitivity. MCC is Matthews' correlation coefficient of classes and answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

Maximised = Literal["accuracy", "sensitivity", "specificity", "f1", "mcc"]
COUNT_GOALS = ("f1", "mcc")  # values of the parameter `goal` that depend on the errors in both classes
GOAL_NAMES = {"f1": "F1", "mcc": "MCC"}
SLACK = Fraction(1, 10**9)
ROOT_SCALE = 10**30  # the root in MCC is rounded down to a multiple of 1 / ROOT_SCALE


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A goal: the share to maximise, and the shares that a tree must reach.

    `weight` is the weight of a correct negative row, relative to 1 for a positive one (accuracy only). All
    shares are text fractions; None if nothing is required.
    """

    positive: str
    maximise: Maximised = "accuracy"
    weight: str = "1"
    sensitivity: str | None = None
    specificity: str | None = None

    def value(self, tp: int | Fraction, positives: int, tn: int | Fraction, negatives: int) -> Fraction:
        """Return the maximised share for `tp` of `positives` and `tn` of `negatives` rows; 1 if there is no such row.

        MCC is 0 if all rows have one class, or get one answer.
        """
        if self.maximise == "sensitivity":
            return share(tp, positives)
        if self.maximise == "specificity":
            return share(tn, negatives)
        if self.maximise == "f1":
            return share(2 * tp, tp + positives + negatives - tn)
        if self.maximise == "mcc":
            return matthews(tp, positives, tn, negatives)
        weight = Fraction(self.weight)
        return (tp + weight * tn) / (positives + weight * negatives)

    def admits(self, tp: int, positives: int, tn: int, negatives: int) -> bool:
        """Return True if the required shares are met."""
        return tp >= needed_rows(self.sensitivity, positives) and tn >= needed_rows(self.specificity, negatives)

    def words(self) -> str:
        """Describe the goal in words."""
        if self.maximise in COUNT_GOALS:
            return GOAL_WORDS[self.maximise].format(positive=self.positive)
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
        """Return the record for the certificate."""
        return asdict(self)

    @staticmethod
    def from_json(record: dict[str, Any]) -> Goal:
        """Build the goal from its record in a certificate."""
        return Goal(**record)


GOAL_WORDS = {
    "f1": "F1 of '{positive}', the harmonic mean of precision and recall",
    "mcc": "MCC, Matthews' correlation coefficient of classes and answers",
}


def goal_score(confusion: Sequence[Sequence[int]], goal: str, positive: int = 0) -> float | None:
    """Return balanced accuracy, F1 or MCC of a confusion matrix, by true class and answer; None without rows.

    Balanced accuracy is the mean recall of the classes that have rows.
    """
    sizes = [sum(row) for row in confusion]
    if not sum(sizes):
        return None
    if goal == "balanced":
        recalls = [row[k] / size for k, (row, size) in enumerate(zip(confusion, sizes, strict=True)) if size]
        return sum(recalls) / len(recalls)
    other = 1 - positive
    measure = Goal(positive="", maximise=goal)  # type: ignore[arg-type]
    return float(measure.value(confusion[positive][positive], sizes[positive], confusion[other][other], sizes[other]))


def score_name(goal: str, positive: str = "") -> str:
    """Return the display name of a goal, such as "balanced accuracy", "F1 of 'yes'" or "MCC"."""
    if goal == "f1":
        return f"F1 of '{positive}'"
    return GOAL_NAMES.get(goal, "balanced accuracy")


def stated_goal(certificate: Mapping[str, Any], parameters: Mapping[str, Any]) -> tuple[str, str]:
    """Return the goal of a model, "balanced", "f1" or "mcc", and its positive class; empty texts for other goals."""
    goal = certificate.get("goal") or {}
    if goal.get("maximise") in COUNT_GOALS:
        return str(goal["maximise"]), str(goal["positive"])
    return ("balanced", "") if parameters.get("class_weight") == "balanced" else ("", "")


def balances_classes(settings: Mapping[str, Any]) -> bool:
    """Return True if a training gives all classes the same weight, by its goal or by its class weights."""
    return "balanced" in (settings.get("class_weight"), settings.get("goal"))


def count_goal(settings: Mapping[str, Any]) -> str:
    """Return the goal of the settings if it depends on the errors of both classes, else an empty text."""
    goal = str(settings.get("goal") or "")
    return goal if goal in COUNT_GOALS else ""


def share(part: int | Fraction, total: int | Fraction) -> Fraction:
    """Return part / total, and 1 if the total is 0."""
    return Fraction(part) / total if total else Fraction(1)


def matthews(tp: int | Fraction, positives: int, tn: int | Fraction, negatives: int) -> Fraction:
    """Return Matthews' correlation coefficient, its root rounded to 30 digits; 0 where it is not defined."""
    fn = positives - tp
    fp = negatives - tn
    product = Fraction(positives) * negatives * (tp + fp) * (tn + fn)
    if not product:
        return Fraction(0)
    difference = Fraction(tp * tn - fp * fn)
    square = difference**2 / product * ROOT_SCALE**2
    root = Fraction(math.isqrt(math.floor(square)), ROOT_SCALE)
    return root if difference >= 0 else -root


def required_text(text: str) -> str:
    """Write a required share or weight with every digit: "0.95"."""
    return repr(float(Fraction(text))).removesuffix(".0")


def downwards(reached: Fraction) -> str:
    """Round a reachable share down to four decimals, so that it can be required."""
    return f"{math.floor(reached * 10**4) / 10**4:.4g}"


def upwards(price: Fraction) -> str:
    """Round a price up to four decimals, so that it suffices."""
    return f"{math.ceil(price * 10**4) / 10**4:.4g}"


def lowered_recalls_words(price: Fraction, recalls: int) -> str:
    """Return a sentence on how many percentage points all contradicting recalls must be lowered."""
    points = f"{math.ceil(price * 10**4) / 10**2:.4g}"
    if recalls == 1:
        return f"The recall can be reached if it is lowered by {points} percentage points."
    number = {2: "Both", 3: "All three"}.get(recalls, f"All {recalls}")
    return f"{number} recalls can be reached together if each is lowered by {points} percentage points."


def needed_rows(least: str | None, rows: int) -> int:
    """Return the smallest number of `rows` that is at least the share `least`, in exact arithmetic."""
    return 0 if least is None else math.ceil(Fraction(least) * rows - SLACK)
