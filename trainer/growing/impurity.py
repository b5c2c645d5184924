"""Measure the impurity of splits, and define the options that all greedy methods share.

The impurity is weighted by frequency and counted in rows (Bollwein & Westphal).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.dtypes import CountArray
from trainer.kernels.impurity import phi

MEASURES = {"gini": 0, "entropy": 1, "error": 2}  # codes of the measures in kernels; entropy has the natural logarithm


@dataclass(frozen=True, kw_only=True)
class SplitOptions:
    """`measure` is a key of MEASURES, `min_leaf` the minimum weight of a child."""

    measure: str = "gini"
    min_leaf: int = 1


def impurity(measure: int, counts: CountArray) -> float:
    """Return Phi of the counts, int64 (classes,)."""
    return float(phi(measure, np.ascontiguousarray(counts, np.int64)))
