"""Choose a variant and estimate its accuracy on new rows.

The rule takes the simplest variant within one standard error of the highest mean accuracy (Breiman et al., 1984). The highest
accuracy of many variants overestimates. Two estimates are unbiased by the choice: rows held out of the whole study, and nested
folds, which repeat the choice without the fold that measures it (Stone, 1974).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trainer.errors import ParameterError
from trainer.evaluate.intervals import Interval
from trainer.evaluate.study import FoldRecord
from trainer.evaluate.tables import interval_of

ROUNDING = 1e-12  # shares that agree up to this are equal


@dataclass(frozen=True, kw_only=True)
class Score:
    """A variant by its folds: accuracies in [0, 1], mean number of leaves, columns that a question asks, strength of its claim.

    `columns`: 1 for one column, 2 for two, more for weighted sums; `claim`: 0 proved, 1 with a gap, 2 heuristic.
    """

    label: str
    accuracies: tuple[float, ...]
    leaves: float
    columns: int = 1
    claim: int = 2

    @property
    def mean(self) -> float:
        """The mean accuracy of the folds."""
        return float(np.mean(self.accuracies))

    @property
    def error(self) -> float:
        """The standard error of the mean over the folds; 0 for a single fold."""
        if len(self.accuracies) < 2:
            return 0.0
        return float(np.std(self.accuracies, ddof=1)) / math.sqrt(len(self.accuracies))


@dataclass(frozen=True, kw_only=True)
class OneStandardErrorChoice:
    """The highest score, the chosen one, the labels of all that share the highest mean, and of all within one standard error of it."""

    highest: Score
    chosen: Score
    floor: float
    tied: tuple[str, ...]
    within: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class NestedEstimate:
    """What the choice is worth on rows that took no part in it: `correct` of `n`, and what each outer fold chose and reached.

    `interval` is the 95 % interval over the outer folds, by groups where rows have groups; None for a single fold.
    """

    correct: int
    n: int
    picks: tuple[str, ...]
    accuracies: tuple[float, ...]
    interval: Interval | None = None

    @property
    def accuracy(self) -> float:
        """The share of rows that are right."""
        return self.correct / self.n


def choose(scores: Sequence[Score]) -> OneStandardErrorChoice:
    """The fewest leaves within one standard error of the highest mean accuracy.

    Ties go to fewer columns per question, then to the stronger claim, then to the higher accuracy, then to the first. Of several
    with the highest mean, `highest` is the one with the smallest standard error, then the first. Raises ParameterError for no scores.
    """
    if not scores:
        raise ParameterError({"scores": "there are no scores to choose from. Give at least one."})
    most = max(s.mean for s in scores)
    tied = [s for s in scores if s.mean >= most - ROUNDING]
    highest = min(tied, key=lambda s: s.error)  # so that a tie never widens what counts as equally accurate
    floor = highest.mean - highest.error
    within = [s for s in scores if s.mean >= floor - ROUNDING]
    chosen = min(within, key=lambda s: (s.leaves, s.columns, s.claim, -s.mean))
    return OneStandardErrorChoice(
        highest=highest,
        chosen=chosen,
        floor=floor,
        tied=tuple(s.label for s in tied),
        within=tuple(s.label for s in within),
    )


def honest(
    records: Mapping[str, Sequence[FoldRecord]], kinds: Mapping[str, tuple[int, int]], folds: int
) -> NestedEstimate | None:
    """The estimate by nested folds, from the records of a nested study by variant; None while records are missing.

    For each outer fold o every variant is scored on the folds i ≠ o by trees grown without o and i; the rule of `choose` picks one,
    and the tree of that variant grown without o alone is measured on o. Where folds follow time, only folds before o choose, so the
    first one judges nothing. `kinds` has (columns, claim) of each variant.
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
            _inner(label, by_fold, o, o if forward else folds, kinds[label]) for label, by_fold in complete.items()
        ]
        pick = choose(scores).chosen.label
        outer = complete[pick][o, -1]
        measured.append(outer)
        correct = correct + outer.correct
        n = n + outer.n
        picks.append(pick)
        accuracies.append(outer.correct / outer.n)
    return NestedEstimate(
        correct=correct, n=n, picks=tuple(picks), accuracies=tuple(accuracies), interval=interval_of(measured)
    )


def _by_folds(records: Sequence[FoldRecord]) -> dict[tuple[int, int], FoldRecord]:
    return {(r.fold, r.second): r for r in records if not r.error}


def _inner(
    label: str, by_fold: Mapping[tuple[int, int], FoldRecord], o: int, folds: int, kind: tuple[int, int]
) -> Score:
    """Score a variant on the first `folds` folds except o, by trees that were trained on neither o nor the measuring fold."""
    accuracies = []
    leaves = []
    for i in range(folds):
        if i == o:
            continue
        record = by_fold[min(o, i), max(o, i)]
        # the first fold of a pair is `fold`, the other `second`; i is the one that is not o
        correct, n = (record.second_correct, record.second_n) if o < i else (record.correct, record.n)
        accuracies.append(correct / n)
        leaves.append(record.leaves)
    return Score(
        label=label, accuracies=tuple(accuracies), leaves=float(np.mean(leaves)), columns=kind[0], claim=kind[1]
    )
