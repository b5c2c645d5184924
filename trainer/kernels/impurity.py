"""Frequency-weighted impurities: 0 Gini, 1 entropy, 2 error (Bollwein & Westphal, section 2)."""

from __future__ import annotations

import math

from trainer.kernels.compiled import kernel


@kernel
def of_parts(measure, total, part, most):
    """Impurity of a side from its weight, the sum of squares or of x log x of its classes, and its largest class."""
    if total == 0.0:
        return 0.0
    if measure == 0:
        return total - part / total
    if measure == 1:
        return max(0.0, total * math.log(total) - part)
    return total - most


@kernel
def phi(measure, n):
    """Impurity of the counts n, int64 (classes,)."""
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
