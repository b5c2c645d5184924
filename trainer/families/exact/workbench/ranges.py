"""How much good trees need a column: the least and the largest share of rows with a path that asks about it."""

from __future__ import annotations

import numpy as np

from trainer.editing.space import Stopped
from trainer.families.exact.kernels import count as kc
from trainer.families.exact.workbench.count import Entry
from trainer.families.exact.workbench.listing import Lister


class Ranges:
    """With each key the least and the largest weight of rows that meet each column, over the trees of exactly that key."""

    def __init__(self, lister: Lister) -> None:
        self.lister, self.counter, self.space = lister, lister.counter, lister.space
        self.columns = len(self.space.problem.table.columns)

    def of(self, entry: Entry, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(least, largest), int64 (keys in ascending order, columns). Raises Stopped."""
        if entry.ranges is None:
            if self.space.stopped():
                raise Stopped
            keys = np.sort(entry.keys)
            lo, hi = (np.zeros((len(keys), self.columns), np.int64) for _ in range(2))
            out, first = kc.Shares(keys, lo, hi), np.ones(len(keys), np.uint8)
            self._leaf(entry, rows, keys, first)
            if entry.height <= 2:
                self._small(entry, rows, out, first)
            else:
                self._large(entry, rows, out, first)
            if self.space.stopped():
                raise Stopped
            entry.ranges = lo, hi
        return entry.ranges

    def _leaf(self, entry: Entry, rows: np.ndarray, keys: np.ndarray, first: np.ndarray) -> None:
        _, cost, key = self.counter.leaf(rows)
        if cost <= entry.budget:
            at = np.searchsorted(keys, key)
            if at < len(keys) and keys[at] == key:
                first[at] = 0  # a leaf asks nothing, and the arrays hold zeros

    def _large(self, entry: Entry, rows: np.ndarray, out: kc.Shares, first: np.ndarray) -> None:
        for question, yes, no in entry.parts:
            sides = self.space.split(rows, question)
            la, ha = self.of(yes, sides[0])
            lb, hb = self.of(no, sides[1])
            pair = kc.Shares(np.sort(yes.keys), la, ha), kc.Shares(np.sort(no.keys), lb, hb)
            self._pairs(question, *pair, rows, out, first)

    def _pairs(
        self, question: int, a: kc.Shares, b: kc.Shares, rows: np.ndarray, out: kc.Shares, first: np.ndarray
    ) -> None:
        layout = self.counter.keys.layout
        kc.range_pairs(
            a, b, (int(layout.bits[question]), int(layout.low)), self.space.questions.columns[question],
            self.space.weight(rows), out, first, self.space.flag,
        )  # fmt: skip

    def _small(self, entry: Entry, rows: np.ndarray, out: kc.Shares, first: np.ndarray) -> None:
        for question, sides in self.lister.options(entry, rows).items():
            yes, no = self.space.split(rows, question)
            self._pairs(question, self._parts(sides[1], yes), self._parts(sides[0], no), rows, out, first)

    def _parts(self, parts: dict, rows: np.ndarray) -> kc.Shares:
        """Keys and ranges of what may hang at a side."""
        keys = np.array(sorted(parts), np.int64)
        lo, hi = (np.zeros((len(keys), self.columns), np.int64) for _ in range(2))
        weight = self.space.weight(rows)
        for t, key in enumerate(keys.tolist()):
            asked = [None if part is None else self.space.questions.columns[part[0]] for part in parts[key][1]]
            for column in set(asked) - {None}:
                hi[t, column] = weight
            if len(set(asked)) == 1 and asked[0] is not None:
                lo[t, asked[0]] = weight
        return kc.Shares(keys, lo, hi)
