"""Compute the range of a column's permutation importance over good trees.

The importance of column j for a tree T is the mean loss of accuracy when the values of j are permuted among the rows, with all
permutations equally likely. Each row then gets each row's value of j equally often, so

    n² importance_j(T) = n errors after - n errors = sum over rows i, r of w_i w_r [T(x_i with x_rj) ≠ y_i] - n errors(T),

an integer (Fisher, Rudin and Dominici 2019, equation 3.2, there for permutations that move every row; the range over a set of
models is their model class reliance, section 3.2). The shuffled rows that reach a node are R x V: R are the rows that satisfy the
path's conditions on other columns, V the values of j that satisfy those on j. So a leaf adds

    m(V) (w(R) - w_k(R)) - n (w(D) - w_k(D)),    k the majority of D = {i in R: x_ij in V}, m(V) the weight of the rows with these values.

The least and largest sums by key follow like the counts. R is larger than D only below a split on j.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.editing.space import SearchStopped
from trainer.families.exact.kernels import count as kc
from trainer.families.exact.rashomon.count import CountedTrees
from trainer.families.exact.rashomon.listing import Lister
from trainer.families.exact.rashomon.small import SideTrees, Sums, parts_of, sums_of


@dataclass(frozen=True)
class ShuffledRows:
    """The shuffled rows at a node: `rows` of the instance, and `values` of the column, bool by code."""

    rows: np.ndarray
    values: np.ndarray

    def key(self, entry: CountedTrees) -> tuple[int, bytes, bytes]:
        return id(entry), self.rows.tobytes(), self.values.tobytes()


class Importance:
    """Computes the least and largest n² importance of a column by key; all columns share `parts`, a cache of subtrees."""

    def __init__(self, lister: Lister, column: int, parts: dict[int, SideTrees | None]) -> None:
        self.lister = lister
        self.counter = lister.counter
        self.space = lister.space
        self.column = column
        values = self.space.problem.matrix[self.space.origin, column]
        self.codes = np.unique(values, return_inverse=True)[1].reshape(-1)
        self.mass = np.bincount(self.codes, self.space.weights).astype(np.int64)
        self.n = int(self.mass.sum())
        self.memo: dict[tuple[int, bytes, bytes], tuple[np.ndarray, np.ndarray]] = {}
        self.parts = parts
        self.asks = np.array(self.space.questions.columns[: self.space.questions.encoded]) == column
        self.yes = {int(q): self._values(int(q)) for q in np.flatnonzero(self.asks)}

    def _values(self, question: int) -> np.ndarray:
        """Return the values of the column with the answer yes to a split on it, bool by code."""
        out = np.zeros(len(self.mass), bool)
        out[self.codes[self.space.split(self.space.all_rows, question)[0]]] = True
        return out

    def all(self) -> ShuffledRows:
        """Return every row with every value."""
        return ShuffledRows(self.space.all_rows, np.ones(len(self.mass), bool))

    def of(self, entry: CountedTrees, rows: np.ndarray, met: ShuffledRows) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and the largest, int64 (keys in ascending order, 1), of the trees of a subproblem. Raises SearchStopped."""
        if self._is_untouched(entry, rows, met):
            return np.zeros((len(entry.keys), 1), np.int64), np.zeros((len(entry.keys), 1), np.int64)
        ranges = self.memo.get(met.key(entry))
        if ranges is None:
            if self.space.stopped():
                raise SearchStopped
            keys = np.sort(entry.keys)
            out = kc.Shares(keys, np.zeros((len(keys), 1), np.int64), np.zeros((len(keys), 1), np.int64))
            first = np.ones(len(keys), np.uint8)
            self._leaf(entry, rows, met, out, first)
            (self._small if entry.height <= 2 else self._large)(entry, rows, met, out, first)
            if self.space.stopped():
                raise SearchStopped
            ranges = self.memo[met.key(entry)] = out.lo, out.hi
        return ranges

    def _is_untouched(self, entry: CountedTrees, rows: np.ndarray, met: ShuffledRows) -> bool:
        """Return whether no split on the path or below tests the column, so shuffling changes no prediction."""
        usage = entry.ranges
        return (
            usage is not None
            and len(met.rows) == len(rows)
            and bool(met.values.all())
            and not usage.hi[:, self.column].any()
        )

    def _leaf(
        self, entry: CountedTrees, rows: np.ndarray, met: ShuffledRows, out: kc.Shares, first: np.ndarray
    ) -> None:
        label, cost, key = self.counter.leaf(rows)
        if cost > entry.budget:
            return
        at = int(np.searchsorted(out.keys, key))
        if at < len(out.keys) and out.keys[at] == key:
            reached = self.space.counts(met.rows)
            counts = self.space.counts(rows)
            after = int(self.mass[met.values].sum()) * int(reached.sum() - reached[label])
            out.lo[at, 0] = out.hi[at, 0] = after - self.n * int(counts.sum() - counts[label])
            first[at] = 0

    def _sides(self, met: ShuffledRows, question: int) -> tuple[ShuffledRows, ShuffledRows]:
        """Return the shuffled rows of yes and of no."""
        if question in self.yes:
            is_yes = self.yes[question]
            return ShuffledRows(met.rows, met.values & is_yes), ShuffledRows(met.rows, met.values & ~is_yes)
        yes, no = self.space.split(met.rows, question)
        return ShuffledRows(yes, met.values), ShuffledRows(no, met.values)

    def _large(
        self, entry: CountedTrees, rows: np.ndarray, met: ShuffledRows, out: kc.Shares, first: np.ndarray
    ) -> None:
        for question, yes, no in entry.parts:
            sides = self.space.split(rows, question)
            mets = self._sides(met, question)
            below = [
                kc.Shares(np.sort(part.keys), *self.of(part, side, inner))
                for part, side, inner in zip((yes, no), sides, mets, strict=True)
            ]
            self._pairs(question, below[0], below[1], out, first)

    def _pairs(self, question: int, a: kc.Shares, b: kc.Shares, out: kc.Shares, first: np.ndarray) -> None:
        layout = self.counter.keys.layout
        bits = int(layout.bits[question]), int(layout.low)
        kc.join_ranges(a, b, bits, out, first, self.space.flag)

    def _small(
        self, entry: CountedTrees, rows: np.ndarray, met: ShuffledRows, out: kc.Shares, first: np.ndarray
    ) -> None:
        parts = self._parts(entry, rows)
        if parts is None:
            return
        for question, no, yes in parts.by_question(self._errors_after(parts, met) - self.n * parts.errors):
            self._pairs(question, yes, no, out, first)

    def _parts(self, entry: CountedTrees, rows: np.ndarray) -> SideTrees | None:
        if id(entry) not in self.parts:
            self.parts[id(entry)] = parts_of(self.counter, entry, rows)
        return self.parts[id(entry)]

    def _errors_after(self, parts: SideTrees, met: ShuffledRows) -> np.ndarray:
        """Return the weight of the shuffled rows that each subtree misclassifies, int64 (parts,)."""
        is_shuffled = self.asks[parts.names]
        node = self.counter.node(met.rows)
        sums = sums_of(self.counter, node, np.searchsorted(node.features, parts.names), np.append(~is_shuffled, False))
        reached = sums.leaves(parts.f, parts.s, parts.g)
        correct = np.take_along_axis(reached, parts.labels[None], axis=0)[0]
        wrong = (reached.sum(axis=0) - correct) * self._masses(met, is_shuffled, parts.names).leaves(
            parts.f, parts.s, parts.g
        )[0]
        return np.where(parts.leaf, wrong[:, 0], wrong.sum(axis=1))

    def _masses(self, met: ShuffledRows, is_shuffled: np.ndarray, names: np.ndarray) -> Sums:
        """Return the weight of the values that reach a node, by the answers to the splits on the column."""
        yes = np.zeros((len(names), len(self.mass)), np.int64)
        for position in np.flatnonzero(is_shuffled).tolist():
            yes[position] = self.yes[int(names[position])] & met.values
        weighed = yes * self.mass
        return Sums(
            np.array([self.mass[met.values].sum()]),
            weighed.sum(axis=1)[None],
            (weighed @ yes.T)[None],
            np.append(is_shuffled, False),
        )
