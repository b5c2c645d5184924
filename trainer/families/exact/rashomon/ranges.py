"""Compute the column usage of good trees.

It says how many trees do not test a column, and how many rows the others test it on.
"""

from __future__ import annotations

import numpy as np

from trainer.editing.space import SearchStopped
from trainer.families.exact.kernels.column_usage import KeyUsage, join_usage_of_rows, join_usage_pairs
from trainer.families.exact.rashomon.count import CountedTrees, Counter


class Ranges:
    """Computes the column usage of the trees of each key."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self.space = counter.space
        self.columns = len(self.space.problem.table.columns)
        self.column_of = np.array(self.space.questions.columns[: self.space.questions.encoded], np.int64)

    @property
    def exact(self) -> bool:
        """Whether all numbers of trees fit into 64 bits, so that those of `KeyUsage` are exact."""
        return all(entry.counts.dtype != object for entry in self.counter.memo.values())

    def of(self, entry: CountedTrees, rows: np.ndarray) -> KeyUsage:
        """Return the column usage of the trees of a subproblem, keys ascending. Raises SearchStopped."""
        if entry.ranges is None:
            if self.space.stopped():
                raise SearchStopped
            keys = np.sort(entry.keys)
            out = KeyUsage(keys, *(np.zeros((len(keys), self.columns), np.int64) for _ in range(3)))
            first = np.ones(len(keys), np.uint8)
            self._leaf(entry, rows, out, first)
            (self._small if entry.height <= 2 else self._large)(entry, rows, out, first)
            if self.space.stopped():
                raise SearchStopped
            entry.ranges = out
        return entry.ranges

    def _leaf(self, entry: CountedTrees, rows: np.ndarray, out: KeyUsage, first: np.ndarray) -> None:
        _, cost, key = self.counter.leaf(rows)
        if cost <= entry.budget:
            at = np.searchsorted(out.keys, key)
            if at < len(out.keys) and out.keys[at] == key:
                first[at] = 0  # a leaf tests no column, and its usage in the arrays is already 0
                out.free[at] += 1

    def _large(self, entry: CountedTrees, rows: np.ndarray, out: KeyUsage, first: np.ndarray) -> None:
        layout = self.counter.keys.layout
        weight = self.space.weight(rows)
        for question, yes, no in entry.parts:
            sides = self.space.split(rows, question)
            bits = (int(layout.bits[question]), int(layout.low))
            column = int(self.column_of[question])
            join_usage_pairs(
                self.of(yes, sides[0]), self.of(no, sides[1]), bits, column, weight, out, first, self.space.flag
            )

    def _small(self, entry: CountedTrees, rows: np.ndarray, out: KeyUsage, first: np.ndarray) -> None:
        if entry.height:
            subproblem = self.counter.subproblem(rows)
            join_usage_of_rows(
                subproblem, entry.height, self.counter.keys.layout, entry.budget, self.column_of, out, first
            )
