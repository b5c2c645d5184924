"""Choose a variant and estimate its accuracy on new rows.

The rule takes the simplest variant within one standard error of the best one (Breiman et al., 1984). The best one has the highest
mean accuracy or, if answers have costs, the least mean cost per row. The best of many variants looks better than it is. Two
estimates are not biased by the choice: one on rows held out of the whole study, and one by nested folds. These repeat the choice
without the fold that measures it (Stone, 1974).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trainer.errors import ParameterError
from trainer.evaluate.intervals import Interval
from trainer.evaluate.study import FoldRecord
from trainer.evaluate.tables import cost_interval_of, interval_of

ROUNDING = 1e-12  # shares, and costs relative to the least one, are equal if they differ by at most this


@dataclass(frozen=True, kw_only=True)
class Score:
    """A variant by its folds: accuracies in [0, 1], mean number of leaves, columns of a split, strength of its claim.

    `columns`: 1 for one column, 2 for two, more for weighted sums; `claim`: 0 proved, 1 with a gap, 2 heuristic. `costs`: the costs
    per row of the folds, if variants are compared by cost.
    """

    label: str
    accuracies: tuple[float, ...]
    leaves: float
    columns: int = 1
    claim: int = 2
    costs: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        """The mean of the folds: the cost per row if there are costs, else the accuracy."""
        return float(np.mean(self.costs or self.accuracies))

    @property
    def accuracy(self) -> float:
        """The mean accuracy of the folds."""
        return float(np.mean(self.accuracies))

    @property
    def loss(self) -> float:
        """The mean cost per row, or the negative mean accuracy: lower is better."""
        return self.mean if self.costs else -self.mean

    @property
    def error(self) -> float:
        """The standard error of the mean over the folds; 0 for a single fold."""
        values = self.costs or self.accuracies
        if len(values) < 2:
            return 0.0
        return float(np.std(values, ddof=1)) / math.sqrt(len(values))


@dataclass(frozen=True, kw_only=True)
class OneStandardErrorChoice:
    """The best score, the chosen one, the labels that share the best mean, and those within one standard error of it.

    `highest` is the best score: the highest accuracy, or the least cost. `floor` is the mean one standard error worse.
    """

    highest: Score
    chosen: Score
    floor: float
    tied: tuple[str, ...]
    within: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class NestedEstimate:
    """Accuracy of the choice on rows that took no part in it: `correct` of `n` rows, or of their weight.

    `picks` and `accuracies` have the chosen variant and its accuracy for each outer fold. `interval` is the 95 % interval over the outer
    folds, by groups where rows have groups; None for a single fold. `cost_per_row` and `cost_interval` are known if costs decide.
    """

    correct: int
    n: int
    picks: tuple[str, ...]
    accuracies: tuple[float, ...]
    interval: Interval | None = None
    cost_per_row: float | None = None
    cost_interval: Interval | None = None

    @property
    def accuracy(self) -> float:
        """The share of rows that are right."""
        return self.correct / self.n


def choose(scores: Sequence[Score]) -> OneStandardErrorChoice:
    """Choose the variant with the fewest leaves within one standard error of the highest mean accuracy, or of the least mean cost.

    Ties go to fewer columns per question, then to the stronger claim, then to the better mean, then to the first.

    Parameters
    ----------
    scores : sequence of Score
        One for each variant.

    Returns
    -------
    OneStandardErrorChoice
        Of several scores with the best mean, `highest` is the one with the smallest standard error, then the first.

    Raises
    ------
    ParameterError
        If there are no scores, or only some of them have costs.

    Notes
    -----
    The one-standard-error rule of Breiman, Friedman, Olshen & Stone, "Classification and Regression Trees" (1984), section 3.4.3.
    """
    if not scores:
        raise ParameterError({"scores": "there are no scores to choose from. Give at least one."})
    if len({bool(s.costs) for s in scores}) > 1:
        raise ParameterError(
            {
                "scores": "some scores have costs and others have none, so they cannot be compared. Give all of them costs, or none."
            }
        )
    least = min(s.loss for s in scores)
    rounding = ROUNDING * max(1.0, abs(least))
    tied = [s for s in scores if s.loss <= least + rounding]
    # of tied scores take the smallest standard error, so that a tie does not widen the tolerance
    highest = min(tied, key=lambda s: s.error)
    limit = highest.loss + highest.error
    within = [s for s in scores if s.loss <= limit + rounding]
    chosen = min(within, key=lambda s: (s.leaves, s.columns, s.claim, s.loss))
    return OneStandardErrorChoice(
        highest=highest,
        chosen=chosen,
        floor=abs(limit),
        tied=tuple(s.label for s in tied),
        within=tuple(s.label for s in within),
    )


def honest(
    records: Mapping[str, Sequence[FoldRecord]],
    kinds: Mapping[str, tuple[int, int]],
    folds: int,
    *,
    by_cost: bool = False,
) -> NestedEstimate | None:
    """Estimate the accuracy of the chosen variant by nested folds.

    For each outer fold o, every variant is scored on the folds i ≠ o by trees grown without o and i. `choose` picks one, and its tree
    grown without o alone is measured on o. If folds follow time, only folds before o choose, so the first one is not measured.

    Parameters
    ----------
    records : mapping of str to sequence of FoldRecord
        Records of a nested study, by variant.
    kinds : mapping of str to tuple of int
        `columns` and `claim` of each variant, as in `Score`.
    folds : int
        Number of outer folds.
    by_cost : bool
        Whether the cost per row chooses, which all records then must have.

    Returns
    -------
    NestedEstimate or None
        From the variants whose records are complete; None if there is none.

    Notes
    -----
    M. Stone, "Cross-Validatory Choice and Assessment of Statistical Predictions", JRSS B 36 (1974).
    """
    complete = {label: _by_folds(by_fold) for label, by_fold in records.items()}
    required = {(o, -1) for o in range(folds)} | {(o, i) for o in range(folds) for i in range(o + 1, folds)}
    complete = {label: by_fold for label, by_fold in complete.items() if required <= set(by_fold)}
    if not complete:
        return None
    forward = any(record.time for by_fold in complete.values() for record in by_fold.values())
    correct = n = 0
    picks = []
    accuracies = []
    measured = []
    for o in range(int(forward), folds):
        scores = [
            _inner(label, by_fold, o, o if forward else folds, kinds[label], by_cost)
            for label, by_fold in complete.items()
        ]
        pick = choose(scores).chosen.label
        outer = complete[pick][o, -1]
        measured.append(outer)
        correct = correct + outer.correct
        n = n + outer.n
        picks.append(pick)
        accuracies.append(outer.correct / outer.n)
    return NestedEstimate(
        correct=correct,
        n=n,
        picks=tuple(picks),
        accuracies=tuple(accuracies),
        interval=interval_of(measured),
        cost_per_row=sum(r.cost or 0.0 for r in measured) / (n * measured[0].weight_step) if by_cost else None,
        cost_interval=cost_interval_of(measured) if by_cost else None,
    )


def _by_folds(records: Sequence[FoldRecord]) -> dict[tuple[int, int], FoldRecord]:
    return {(r.fold, r.second): r for r in records if not r.error}


def _inner(
    label: str,
    by_fold: Mapping[tuple[int, int], FoldRecord],
    o: int,
    folds: int,
    kind: tuple[int, int],
    by_cost: bool,
) -> Score:
    """Score a variant on the first `folds` folds except o, by trees that were trained on neither o nor the measuring fold."""
    accuracies = []
    costs = []
    leaves = []
    for i in range(folds):
        if i == o:
            continue
        record = by_fold[min(o, i), max(o, i)]
        # a record of two folds calls the lower one `fold` and the other `second`; the measuring fold i may be either
        is_second = o < i
        n = record.second_n if is_second else record.n
        accuracies.append((record.second_correct if is_second else record.correct) / n)
        if by_cost:
            cost = record.second_cost if is_second else record.cost
            costs.append((cost or 0.0) / (n * record.weight_step))
        leaves.append(record.leaves)
    return Score(
        label=label,
        accuracies=tuple(accuracies),
        leaves=float(np.mean(leaves)),
        columns=kind[0],
        claim=kind[1],
        costs=tuple(costs),
    )
