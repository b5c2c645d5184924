"""Build the rules that couple leaves: monotone features and fairness.

f[g]   weight of the compared rows of group g with the favoured prediction     o[g]   weight of the others
N[g]   weight of the compared rows of group g, so that f[g] + o[g] = N[g] for a tree of all rows
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from trainer.constraints import directions, group_codes
from trainer.constraints.fairness import compared_groups
from trainer.data.encoding import Test
from trainer.data.problem import Problem
from trainer.families.exact.editing.space import ExactSpace
from trainer.methods.base import Settings, exact_fraction

Apart = tuple[int, int, int, int, int]  # g, h, a, b, most: a f[g] + b o[h] ≤ most


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Rules over the questions and rows of the space.

    rising int (questions,): 1 if yes must not predict a lower class than no, -1 if not a higher one, else 0.
    compared int64 (groups, rows of the space): weights of the compared rows, 0 outside the group.
    favoured: the class whose predictions are compared. apart: the limits on differences between groups.
    """

    rising: np.ndarray
    compared: np.ndarray
    favoured: int
    apart: tuple[Apart, ...]


def rules_of(problem: Problem, settings: Settings, space: ExactSpace) -> Rules:
    """Return the rules of the settings."""
    compared, label, delta = _compared_groups(problem, settings, space)
    return Rules(
        rising=_monotone_directions(problem, settings, space),
        compared=compared,
        favoured=label,
        apart=tuple(_allowed_difference(compared.sum(axis=1).tolist(), delta)),
    )


def _monotone_directions(problem: Problem, settings: Settings, space: ExactSpace) -> np.ndarray:
    """Return `Rules.rising`. The questions are thresholds, since the method refuses others; yes may be the upper side."""
    questions = space.questions
    rising = np.zeros(space.questions.encoded, np.int64)
    for name, falls in directions(settings, problem.names):
        column = problem.names.columns.index(name)
        values = problem.table.columns[column].values
        top = np.flatnonzero(values == values.max(initial=-np.inf, where=~np.isnan(values)))
        for q in range(questions.encoded):
            if questions.columns[q] == column and problem.binary.features[q].test is not Test.EMPTY:
                largest = questions.answers(q)[top].any()
                rising[q] = 1 if largest != falls else -1
    return rising


def _compared_groups(problem: Problem, settings: Settings, space: ExactSpace) -> tuple[np.ndarray, int, Fraction]:
    groups = compared_groups(problem, settings)
    codes = group_codes(problem, settings)
    if groups is None or codes is None:
        return np.zeros((0, len(space.weights)), np.int64), -1, Fraction(0)
    is_compared = (space.classes == groups.label) | (settings["fairness"] == "parity")
    # a row of the space represents rows with equal values in all columns, so they belong to one group
    group_of_row = codes[space.origin]
    weights = [
        np.where(is_compared & (group_of_row == g), space.weights, 0) for g in np.unique(group_of_row[is_compared])
    ]
    return np.array(weights), groups.label, exact_fraction(settings["fairness_delta"])


def _allowed_difference(sizes: list[int], delta: Fraction) -> Iterator[Apart]:
    for g, h in itertools.permutations(range(len(sizes)), 2):
        d = math.gcd(sizes[g], sizes[h])
        yield g, h, sizes[h] // d, sizes[g] // d, math.floor((1 + delta) * (sizes[g] * sizes[h] // d))
