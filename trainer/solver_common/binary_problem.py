"""Define problems over binary features and the limits of a search."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction

import numpy as np

from trainer.dtypes import BitArray, CodeArray, CountArray


@dataclass(frozen=True, eq=False)
class BinaryProblem:
    """Rows over binary features, and limits of the trees over them.

    A tree costs its errors plus `leaf_cost` for every leaf.

    Parameters
    ----------
    X : uint8 array of shape (n_rows, n_features)
        Binary features, 0 or 1.
    y : int32 array of shape (n_rows,)
        Class codes below `n_classes`.
    depth : int
        Largest number of splits on a path.
    leaf_cost : Fraction
        Price of a leaf, in rows.
    weights : int64 array of shape (n_rows,), optional
        Weights of the rows, 1 by default.
    min_leaf : int
        Smallest weight of a leaf.
    allowed : uint8 array of shape (n_features,), optional
        1 for features that a tree may use, all by default.
    """

    X: BitArray
    y: CodeArray
    _: KW_ONLY
    n_classes: int
    depth: int
    leaf_cost: Fraction = Fraction(0)
    weights: CountArray | None = None
    min_leaf: int = 1
    allowed: BitArray | None = None

    @property
    def row_weights(self) -> CountArray:
        """The weight of each row."""
        return np.ones(len(self.y), np.int64) if self.weights is None else self.weights

    @property
    def allowed_features(self) -> BitArray:
        """1 for each feature that a tree may use."""
        return np.ones(self.X.shape[1], np.uint8) if self.allowed is None else self.allowed.astype(np.uint8)

    def among(self, rows: np.ndarray) -> BinaryProblem:
        """Return the problem of some rows, given as a mask or indices."""
        return replace(self, X=self.X[rows], y=self.y[rows], weights=self.row_weights[rows])

    def with_positive_weights(self) -> BinaryProblem:
        """Return the problem of the rows of positive weight."""
        return self.among(self.row_weights > 0)


def never() -> bool:
    """Return False: the default of `stop`."""
    return False


@dataclass(frozen=True, kw_only=True)
class SearchLimits:
    """Threads and limits of a search.

    Parameters
    ----------
    threads : int
        Threads that search the splits of the root.
    time_limit : float, optional
        Seconds of the search.
    stop : callable
        Called about every 50 ms; True ends the search.
    flag : int64 array of shape (1,)
        A value other than 0 ends kernels early.
    """

    threads: int = 1
    time_limit: float | None = None
    stop: Callable[[], bool] = never
    flag: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))

    def start_clock(self) -> SearchLimits:
        """Return limits whose `stop` includes the time limit, counted from now."""
        if self.time_limit is None:
            return self
        end = time.perf_counter() + self.time_limit
        return replace(self, time_limit=None, stop=lambda: time.perf_counter() >= end or self.stop())

    def stopped(self) -> bool:
        """Return whether the search must end now."""
        return bool(self.flag[0]) or self.stop()
