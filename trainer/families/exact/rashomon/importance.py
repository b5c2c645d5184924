"""How much good trees lose when a column is shuffled: the least and the largest permutation importance over all of them.

The importance of column j for a tree T is the accuracy that T loses on average when the values of j are permuted among the rows,
all permutations being equally likely. Each row then meets each row's value of j equally often, so that

    n² importance_j(T) = n errors after - n errors = sum over rows i, r of w_i w_r [T(x_i with x_rj) ≠ y_i] - n errors(T),

a whole number (Fisher, Rudin and Dominici 2019, equation 3.2, there for permutations that move every row; the range over a set of
models is their model class reliance, section 3.2). The shuffled rows that reach a place are R x V: R the rows that meet the
conditions of the path about other columns, V the values of j that meet those about j. So a leaf adds

    m(V) (w(R) - w_k(R)) - n (w(D) - w_k(D)),    k the majority of D = {i in R: x_ij in V}, m(V) the weight of the rows with these values,

and the least and largest sums follow with each key, as the counts do. Only below a question about j is R more than D.
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
class Met:
    """The shuffled rows at a place: `rows` of the instance, and `values` of the column, bool by code."""

    rows: np.ndarray
    values: np.ndarray

    def key(self, entry: CountedTrees) -> tuple[int, bytes, bytes]:
        return id(entry), self.rows.tobytes(), self.values.tobytes()


class Importance:
    """Least and largest n² importance of one column with each key; `parts` of small trees are shared by all columns."""

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
        """The values of the column that answer a question about it with yes, bool by code."""
        out = np.zeros(len(self.mass), bool)
        out[self.codes[self.space.split(self.space.all_rows, question)[0]]] = True
        return out

    def all(self) -> Met:
        """Every row with every value."""
        return Met(self.space.all_rows, np.ones(len(self.mass), bool))

    def of(self, entry: CountedTrees, rows: np.ndarray, met: Met) -> tuple[np.ndarray, np.ndarray]:
        """(least, largest), int64 (keys in ascending order, 1), of the trees below a place. Raises SearchStopped."""
        if self._untouched(entry, rows, met):
            return np.zeros((len(entry.keys), 1), np.int64), np.zeros((len(entry.keys), 1), np.int64)
        known = self.memo.get(met.key(entry))
        if known is None:
            if self.space.stopped():
                raise SearchStopped
            keys = np.sort(entry.keys)
            out = kc.Shares(keys, np.zeros((len(keys), 1), np.int64), np.zeros((len(keys), 1), np.int64))
            first = np.ones(len(keys), np.uint8)
            self._leaf(entry, rows, met, out, first)
            (self._small if entry.height <= 2 else self._large)(entry, rows, met, out, first)
            if self.space.stopped():
                raise SearchStopped
            known = self.memo[met.key(entry)] = out.lo, out.hi
        return known

    def _untouched(self, entry: CountedTrees, rows: np.ndarray, met: Met) -> bool:
        """Whether nothing asks the column on the way here and below, so that shuffling changes no answer."""
        asked = entry.ranges
        return (
            asked is not None
            and len(met.rows) == len(rows)
            and bool(met.values.all())
            and not asked.hi[:, self.column].any()
        )

    def _leaf(self, entry: CountedTrees, rows: np.ndarray, met: Met, out: kc.Shares, first: np.ndarray) -> None:
        label, cost, key = self.counter.leaf(rows)
        if cost > entry.budget:
            return
        at = int(np.searchsorted(out.keys, key))
        if at < len(out.keys) and out.keys[at] == key:
            reached = self.space.counts(met.rows)
            right = self.space.counts(rows)
            after = int(self.mass[met.values].sum()) * int(reached.sum() - reached[label])
            out.lo[at, 0] = out.hi[at, 0] = after - self.n * int(right.sum() - right[label])
            first[at] = 0

    def _sides(self, met: Met, question: int) -> tuple[Met, Met]:
        """What goes to yes and to no."""
        if question in self.yes:
            own = self.yes[question]
            return Met(met.rows, met.values & own), Met(met.rows, met.values & ~own)
        yes, no = self.space.split(met.rows, question)
        return Met(yes, met.values), Met(no, met.values)

    def _large(self, entry: CountedTrees, rows: np.ndarray, met: Met, out: kc.Shares, first: np.ndarray) -> None:
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

    def _small(self, entry: CountedTrees, rows: np.ndarray, met: Met, out: kc.Shares, first: np.ndarray) -> None:
        parts = self._parts(entry, rows)
        if parts is None:
            return
        for question, no, yes in parts.by_question(self._after(parts, met) - self.n * parts.errors):
            self._pairs(question, yes, no, out, first)

    def _parts(self, entry: CountedTrees, rows: np.ndarray) -> SideTrees | None:
        if id(entry) not in self.parts:
            self.parts[id(entry)] = parts_of(self.counter, entry, rows)
        return self.parts[id(entry)]

    def _after(self, parts: SideTrees, met: Met) -> np.ndarray:
        """Weight of the shuffled rows that each part answers wrongly, int64 (parts,)."""
        own = self.asks[parts.names]
        node = self.counter.node(met.rows)
        rows = sums_of(self.counter, node, np.searchsorted(node.features, parts.names), np.append(~own, False))
        reached = rows.leaves(parts.f, parts.s, parts.g)
        right = np.take_along_axis(reached, parts.labels[None], axis=0)[0]
        wrong = (reached.sum(axis=0) - right) * self._masses(met, own, parts.names).leaves(parts.f, parts.s, parts.g)[0]
        return np.where(parts.leaf, wrong[:, 0], wrong.sum(axis=1))

    def _masses(self, met: Met, own: np.ndarray, names: np.ndarray) -> Sums:
        """The weight of the values that reach a place, by the answers to the questions about the column."""
        yes = np.zeros((len(names), len(self.mass)), np.int64)
        for position in np.flatnonzero(own).tolist():
            yes[position] = self.yes[int(names[position])] & met.values
        weighed = yes * self.mass
        return Sums(
            np.array([self.mass[met.values].sum()]),
            weighed.sum(axis=1)[None],
            (weighed @ yes.T)[None],
            np.append(own, False),
        )
