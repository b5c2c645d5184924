"""Problem: the rows, labels and objective that a method optimises over."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from trainer.data.encoding import Encoding, Scheme, encode_binary, encode_numeric
from trainer.dtypes import CountArray, FloatArray
from trainer.errors import DataError
from trainer.table import Labels, Table
from trainer.tree.nodes import Draft, Tree


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A table without missing values, its labels, integer row weights and the objective's leaf penalty.

    The objective is `correct / n - leaf_penalty * leaves`, maximised; `n` is the total weight. `warm_start` is a tree over the
    same columns that is known already; methods that declare `warm_start` begin with it.
    """

    table: Table
    labels: Labels
    leaf_penalty: Fraction = Fraction(0)
    weights: CountArray | None = None
    scheme: Scheme = Scheme.QUANTILE_THRESHOLDS
    bins: int = 5
    warm_start: Draft | None = None

    def __post_init__(self) -> None:
        if len(self.table) == 0:
            raise DataError("There is no row to train on. Check the missing policy: it may drop every row.")
        if any(column.missing.any() for column in self.table.columns):
            raise DataError("A problem must not have missing values; apply the missing policy first.")
        if not 0 <= self.leaf_penalty < 1:
            raise DataError(f"The leaf penalty must lie in [0, 1); it is {self.leaf_penalty}.")

    @property
    def n(self) -> int:
        """Total weight of the rows."""
        return int(self.row_weights.sum())

    @cached_property
    def row_weights(self) -> CountArray:
        """int64 of shape (rows,)."""
        return np.ones(len(self.table), np.int64) if self.weights is None else self.weights.astype(np.int64)

    @cached_property
    def matrix(self) -> FloatArray:
        """The table as the prediction kernel reads it."""
        return self.table.matrix()

    @property
    def y(self) -> np.ndarray:
        """Class codes, int32 of shape (rows,)."""
        return self.labels.codes

    @property
    def n_classes(self) -> int:
        return len(self.labels.classes)

    @cached_property
    def numeric(self) -> Encoding:
        """Numeric columns as they are, one 0/1 feature a category."""
        return encode_numeric(self.table)

    @cached_property
    def binary(self) -> Encoding:
        """The binary encoding that `scheme` and `bins` ask for."""
        return encode_binary(self.table, self.scheme, self.bins, self.weights)

    def correct(self, tree: Tree) -> int:
        """Weight of the rows that `tree` classifies correctly."""
        return int(self.row_weights[tree.predict(self.matrix) == self.y].sum())

    def objective(self, tree: Tree) -> float:
        """The objective of `tree` on these rows, from one exact fraction."""
        return float(Fraction(self.correct(tree), self.n) - self.leaf_penalty * tree.n_leaves)
