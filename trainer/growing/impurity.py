"""Compute the frequency-weighted impurity of class counts, in rows (Bollwein & Westphal).

Measures: 0 Gini, 1 entropy (natural logarithm), 2 error.
"""

from __future__ import annotations

import numpy as np

from trainer.dtypes import CountArray
from trainer.kernels.impurity import phi


def impurity(measure: int, counts: CountArray) -> float:
    """Return Phi of the counts, int64 (classes,)."""
    return float(phi(measure, np.ascontiguousarray(counts, np.int64)))
