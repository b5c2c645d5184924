"""Rates of groups: which rows the constraint of fairness compares, and how many of each group a tree may predict the favoured class."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.verify.findings import asked, exact
from trainer.verify.table.rows import Rows

LARGEST = 1 << 60


@dataclass(frozen=True)
class Rates:
    """The shares of the rows of each group that are predicted `label` lie at most `delta` apart.

    `group`: int64 (n,), from 0; -1 for rows that are not compared. `sizes`: the weight of each group, above 0.
    """

    label: int
    delta: Fraction
    group: np.ndarray
    sizes: tuple[int, ...]

    def of(self, chosen: np.ndarray) -> Rates:
        """The same for these rows of positive weight."""
        return replace(self, group=self.group[chosen])

    def apart(self, said: np.ndarray, weights: np.ndarray) -> Fraction:
        """The largest difference of two shares, where `said` (bool) are the rows that are predicted the label."""
        counts = [int(weights[said & (self.group == g)].sum()) for g in range(len(self.sizes))]
        shares = [Fraction(count, size) for count, size in zip(counts, self.sizes, strict=True)]
        return max(shares) - min(shares) if shares else Fraction(0)

    def limits(self) -> list[tuple[int, int, int, int, int]]:
        """For two groups g and h (g, h, a, b, most): a times the weight of g that is predicted the label and b times the weight of h
        that is not are `most` together, at most. Pairs of groups whose numbers do not fit 64 bits are left out: less is ruled out.
        """
        found = []
        for g, h in itertools.permutations(range(len(self.sizes)), 2):
            m, n = self.sizes[g], self.sizes[h]
            d = math.gcd(m, n)
            if 2 * m * n // d < LARGEST:
                found.append((g, h, n // d, m // d, math.floor((1 + self.delta) * (m * n // d))))
        return found


def rates_of(model: dict[str, Any], rows: Rows) -> Rates | None:
    """The groups that the parameters compare; None if they ask for no fairness."""
    if not asked(model, "fairness"):
        return None
    names = [c["name"] for c in model["columns"]]
    values = rows.columns[names.index(str(asked(model, "fairness_column")).strip())]
    name = str(asked(model, "fairness_class") or "").strip()
    among = rows.weights > 0
    label = model["classes"].index(name) if name else int(rows.labels[among].max())
    if asked(model, "fairness") == "opportunity":
        among = among & (rows.labels == label)
    elif asked(model, "fairness") != "parity":
        raise ValueError(f"no such fairness: {str(asked(model, 'fairness'))[:80]!r}")
    group = np.full(len(rows), -1, np.int64)
    group[among] = np.unique(values[among], return_inverse=True)[1].reshape(-1)
    sizes = np.zeros(int(group.max()) + 1, np.int64)
    np.add.at(sizes, group[among], rows.weights[among])
    return Rates(label, exact(model["parameters"]["fairness_delta"]), group, tuple(sizes.tolist()))
