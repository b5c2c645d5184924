"""How many thresholds a column of numbers gets where nobody says: as many as can be proved soon on these data.

Few thresholds miss good questions: with four of them per column, trees get one row in a hundred less right
(docs/methods/exact.md#how-many-thresholds). More than 32 won nothing, and take long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from octweb.core.templatetags.octweb import seconds
from octweb.datasets.models import Dataset
from octweb.runs.advice import is_constraint_set
from octweb.runs.estimate import by_model, estimate, questions, size_of
from octweb.runs.words import CONSTRAINTS
from trainer.methods.base import Method
from trainer.tree.numbers import count_words

LADDER = (33, 17, 9, 5)  # quantiles; each gives one threshold less
QUICK = 10.0  # seconds within which a proof is to be expected
LONGER = (*CONSTRAINTS, "max_leaves", "optimal_trees")  # what the cost model knows nothing of
HELP = (
    f"Empty: the most of 4, 8, 16 or 32 thresholds per column with which a proof should take less than {QUICK:.0f} s on these data. "
    "With k quantiles each numeric column gets k − 1 thresholds, or k buckets."
)


@dataclass(frozen=True, kw_only=True)
class BinCount:
    """The number of quantiles, and why in a sentence; no sentence where the columns have no more thresholds."""

    bins: int
    why: str


def chooses(method: Method) -> bool:
    """Return whether the number of thresholds is chosen for the data."""
    return method.chooses_bins


def chosen_bins(*, user: Any, dataset: Dataset, method: Method, values: Mapping[str, Any]) -> BinCount:
    """For a run with these values, those that are missing being the defaults."""
    known = {p.name: p.default for p in method.parameters} | {k: v for k, v in values.items() if v is not None}
    if any(is_constraint_set(known, name) for name in LONGER if method.parameter(name)):
        return BinCount(bins=LADDER[-1], why=f"{_many(LADDER[-1])}, since a limit makes the search longer.")
    fitting = [bins for bins in LADDER if _high(user, dataset, method, known | {"bins": bins}) < QUICK]
    if not fitting:
        return BinCount(
            bins=LADDER[-1], why=f"{_many(LADDER[-1])}: even so, the proof may take longer than {seconds(QUICK)}."
        )
    return _fewest_quantiles(dataset, str(known.get("binarise") or ""), fitting[0])


def bins_within(dataset: Dataset, method: Method, values: Mapping[str, Any], longest: float) -> int:
    """The most quantiles with which a fit should take less than `longest` seconds by the model of cost alone; at least a few."""
    fitting = [bins for bins in LADDER if _upper(dataset, method, {**values, "bins": bins}) < longest]
    return _fewest_quantiles(dataset, str(values.get("binarise") or ""), fitting[0] if fitting else LADDER[-1]).bins


def _upper(dataset: Dataset, method: Method, values: Mapping[str, Any]) -> float:
    return by_model(method, size_of(dataset, method, values, dataset.rows))[1]


def _high(user: Any, dataset: Dataset, method: Method, values: Mapping[str, Any]) -> float:
    """The upper end of the expected time."""
    return estimate(user=user, dataset=dataset, method=method, values=values, test_share=0.0).high


def _fewest_quantiles(dataset: Dataset, scheme: str, most: int) -> BinCount:
    """The fewest quantiles that give the same number of questions as `most` of them."""
    wanted = questions(dataset, scheme, most)
    bins = min(k for k in LADDER if k <= most and questions(dataset, scheme, k) == wanted)
    if bins < most or (most == LADDER[0] and questions(dataset, scheme, 2 * most) == wanted):
        return BinCount(bins=bins, why="")
    more = "more were not better on test data" if most == LADDER[0] else "with more it may take longer"
    return BinCount(bins=bins, why=f"{_many(bins)}: the proof should take less than {seconds(QUICK)}, and {more}.")


def _many(bins: int) -> str:
    words = count_words(bins - 1, "threshold")
    return f"{words[0].upper()}{words[1:]} per column were chosen for these data"
