"""Compute frequency-weighted impurities in rows (Bollwein & Westphal, section 2).

Measures: 0 Gini, 1 entropy (natural logarithm), 2 error.
"""

from __future__ import annotations

import math

from trainer.kernels.compiled import kernel


@kernel
def of_parts(measure, total, part, most):
    """Return the impurity of one side of a split, in rows.

    total: its weight; part: the sum over its classes of x^2 (Gini) or x log x (entropy); most: its largest class weight (error).
    """
    if total == 0.0:
        return 0.0
    if measure == 0:
        return total - part / total
    if measure == 1:
        return max(0.0, total * math.log(total) - part)
    return total - most


@kernel
def phi(measure, n):
    """Return the impurity of the class weights n, int64 (classes,), in rows."""
    total = 0.0
    part = 0.0
    most = 0.0
    for c in range(n.shape[0]):
        x = float(n[c])
        if x > 0.0:
            total += x
            if measure == 0:
                part += x * x
            elif measure == 1:
                part += x * math.log(x)
            elif x > most:
                most = x
    return of_parts(measure, total, part, most)
