"""BinOCT with threshold bits (Verwer & Zhang, 2019).

A node chooses a column, and bits encode a binary search for its threshold.

Legend     f[v,j]=1 node v uses ladder j (the thresholds of one column);  beta[v,h] bit h of v
           an interval [lo, hi] of rungs with more than one is halved at m: beta = 1 means a rung in [lo, m], 0 one in [m+1, hi]
           pi the bits that led to the interval, s how many;  r[i,j] rank of row i: it goes left at rung h exactly if r <= h
Labels     (N1) one ladder per node  (N6) beyond m rows with lo < r <= m + 1 go left  (N7) up to m rows with m < r <= hi go right
           (N8) rows below the first rung go left, rows above the last right
           Each is switched on by f[v,j] = 1 and the bits of the interval; the constant is the weight of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.families.mip.binoct_model import BinOCT
from trainer.families.mip.first_tree import Halted, never_halt
from trainer.families.mip.instance import Instance
from trainer.families.mip.ladders import Ladders
from trainer.milo import Expression, Point, total, weighted

Interval = tuple[int, int, tuple[int, ...]]


def enumerate_intervals(rungs: int) -> Iterator[Interval]:
    """Yield every interval [lo, hi] of more than one rung in the binary search, with the bits that lead to it."""
    stack: list[Interval] = [(0, rungs - 1, ())]
    while stack:
        lo, hi, bits = stack.pop()
        if hi > lo:
            yield lo, hi, bits
            m = lo + (hi - lo) // 2
            stack += [(lo, m, (*bits, 1)), (m + 1, hi, (*bits, 0))]


class BitsBinOCT(BinOCT):
    """The complete model over ladders; it does not support side constraints, which need one variable per feature."""

    def __init__(self, instance: Instance, ladders: Ladders, *, halted: Halted = never_halt) -> None:
        self.ladders = ladders
        super().__init__(instance, halted=halted)

    def _split_variables(self) -> None:
        rungs = [len(r) for r in self.ladders.rungs]
        B = self.instance.tree.branch_nodes
        self.b = self.model.binary("f", B, range(len(rungs)))
        self.beta = self.model.binary("beta", B, range((max(rungs, default=1) - 1).bit_length()))
        self._set_priorities(self.b)
        self._set_priorities(self.beta)

    def _split_rows(self, v: int) -> None:
        self.model.add(total(self.b[v, j] for j in range(len(self.ladders.rungs))) == 1, "N1")
        for j, rungs in enumerate(self.ladders.rungs):
            rank = self.ladders.ranks[:, j]
            for lo, hi, bits in enumerate_intervals(len(rungs)):
                m = lo + (hi - lo) // 2
                s = len(bits)
                upper = [self.beta[v, h] for h in range(s) if not bits[h]] + [self.beta[v, s]]
                self._route_rows(v, j, (rank > lo) & (rank <= m + 1), None, upper, "N6")
                lower = [self.beta[v, h] for h in range(s) if bits[h]] + [self.beta[v, s]]
                self._route_rows(v, j, None, (rank > m) & (rank <= hi), [1 - beta for beta in lower], "N7")
            self._route_rows(v, j, rank == 0, rank == len(rungs), [], "N8")

    def _route_rows(
        self, v: int, j: int, left: BoolArray | None, right: BoolArray | None, off: Sequence[Expression], name: str
    ) -> None:
        """Add one constraint: the data rows in `left` go left and those in `right` go right.

        It binds only if node v uses ladder j and all of `off` are 0.
        """
        inst = self.instance
        first = 1 << self.instance.depth
        columns: list[CountArray] = []
        weights: list[FloatArray] = []
        for rows, side in ((left, 1), (right, 0)):
            if rows is not None and rows.any():
                wrong_nodes = [t - first for t in inst.tree.below(2 * v + side) if t >= first]
                columns.append(self.zeta.columns[rows][:, wrong_nodes].ravel())
                weights.append(np.repeat(inst.weight[rows], len(wrong_nodes)))
        if not columns:
            return
        M = float(sum(inst.weight[rows].sum() for rows in (left, right) if rows is not None))
        wrong = weighted(np.concatenate(columns), np.concatenate(weights))
        self.model.add(wrong + M * self.b[v, j] - M * total(off) <= M, name)

    def _write_split(self, values: FloatArray, v: int, f: int) -> None:
        j, rung = self.ladders.place(f)
        values[self.b.columns[v - 1, j]] = 1.0
        lo = 0
        hi = len(self.ladders.rungs[j]) - 1
        h = 0
        while hi > lo:
            m = lo + (hi - lo) // 2
            if rung <= m:
                values[self.beta.columns[v - 1, h]] = 1.0
                hi = m
            else:
                lo = m + 1
            h += 1

    def _split_scores(self, point: Point) -> FloatArray:
        """Return scores that are 1 at the feature that ladder and bits of each node select, else 0."""
        ladder = point[self.b]
        bits = point[self.beta] > 0.5
        scores = np.zeros((len(ladder), len(self.instance.F)))
        for node, j in enumerate(ladder.argmax(axis=1).tolist()):
            lo = 0
            hi = len(self.ladders.rungs[j]) - 1
            h = 0
            while hi > lo:
                m = lo + (hi - lo) // 2
                lo, hi = (lo, m) if bits[node, h] else (m + 1, hi)
                h += 1
            scores[node, self.ladders.rungs[j][lo]] = 1.0
        return scores
