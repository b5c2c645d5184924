"""Show the default number of thresholds, with the reason in words.

Training chooses it (`trainer.solver_common.thresholds`), and the form shows the choice before the run. Few thresholds
miss good splits: with four per column, accuracy is one percentage point lower
(docs/methods/exact.md#how-many-thresholds). More than 32 gained nothing and take long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from octweb.core.templatetags.octweb import seconds
from octweb.datasets.models import Dataset
from octweb.runs.estimate import questions, threshold_choice
from trainer.data.encoding import Scheme
from trainer.methods.base import Method, stated_values
from trainer.solver_common.thresholds import LADDER, PROOF_SECONDS, takes_longer
from trainer.tree.numbers import count_words

HELP = (
    f"Empty: all thresholds, else 32, 16, 8 or 4 per column: the most with which a proof should take less than {PROOF_SECONDS:.0f} s on "
    "these data, and the thresholds of a CART tree of the same depth."
)


@dataclass(frozen=True, kw_only=True)
class BinCount:
    """The binarisation of columns, and the reason. The reason is "" if all thresholds are used and are few."""

    scheme: Scheme
    bins: int
    why: str


def chooses(method: Method) -> bool:
    """Return whether the method chooses the number of thresholds for the data."""
    return method.chooses_bins


def chosen_bins(*, dataset: Dataset, method: Method, values: Mapping[str, Any]) -> BinCount:
    """Return the binarisation for a run with these values. Missing values are the defaults."""
    parameters = {p.name: p.default for p in method.parameters} | stated_values(method, values)
    choice = threshold_choice(dataset, method, parameters, dataset.rows)
    return BinCount(
        scheme=choice.scheme, bins=choice.bins, why=_reason(dataset, method, parameters, choice.scheme, choice.bins)
    )


def _reason(dataset: Dataset, method: Method, values: Mapping[str, Any], scheme: Scheme, bins: int) -> str:
    if scheme in (Scheme.ALL_THRESHOLDS, Scheme.NONE):
        many = questions(dataset, str(scheme), bins) > questions(dataset, str(Scheme.QUANTILE_THRESHOLDS), LADDER[-1])
        return f"We try every cut-off value; the proof should take less than {seconds(PROOF_SECONDS)}." if many else ""
    if takes_longer(method, values):
        return f"{_many(bins)}, since a limit makes the search longer."
    if bins == LADDER[-1] and not threshold_choice(dataset, method, values, dataset.rows).provable:
        return f"{_many(bins)}; even so, the proof may take longer than {seconds(PROOF_SECONDS)}."
    more = (
        "finer ones did not help in our tests"
        if bins == LADDER[0]
        else f"with more, the proof may take longer than {seconds(PROOF_SECONDS)}"
    )
    return f"{_many(bins)}; {more}."


def bins_within(dataset: Dataset, method: Method, values: Mapping[str, Any], longest: float) -> int:
    """Return the number of quantiles with which a fit should take less than `longest` seconds.

    It is the largest such step of LADDER, or a smaller one with as many binary features.
    """
    scheme = str(values.get("binarise") or "")
    most = threshold_choice(dataset, method, values, dataset.rows, longest, every=False).bins
    most_questions = questions(dataset, scheme, most)
    return min(k for k in LADDER if k <= most and questions(dataset, scheme, k) == most_questions)


def _many(bins: int) -> str:
    return f"We try {count_words(bins - 1, 'cut-off value')} per column"
