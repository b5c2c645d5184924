"""OCT with thresholds as variables (Bertsimas & Dunn, 2017).

A node chooses a column, and its threshold c[v] is between two values of it.

Legend     b[v,j]=1 (their a) node v uses ladder j, the thresholds of one column;  c[v] its threshold;  zeta[i,t] is
integer here
           x[i,j] rank of row i on ladder j over its rungs, in [0, 1];  eps[j] = 1 / rungs, the gap of two values
Labels     (O1) one ladder per branching  (O10) c from the first rung on, and only where v branches
           (O6) b[v]·(x[i] + eps) <= c[v] + (1 + max eps)(1 - zeta[i,t]) left of v  (O7) b[v]·x[i] >= c[v] - (1 -
           zeta[i,t]) right of it
           (O11) zeta[i,t] <= d[v] left of v: without it, (O6) and (O7) let a node that does not branch send rows both
           ways

Scaled ranks replace values: a monotone map of a column does not change its trees, and ranks maximise the smallest gap.
"""

from __future__ import annotations

import numpy as np

from trainer.dtypes import FloatArray
from trainer.families.mip.first_tree import Halted, never_halt
from trainer.families.mip.instance import Instance
from trainer.families.mip.ladders import Ladders
from trainer.families.mip.oct_model import OCT
from trainer.milo import Point, Variables, total, weighted


class NumericOCT(OCT):
    """The complete model over ladders; it does not support side constraints, which need one variable per feature."""

    def __init__(self, instance: Instance, ladders: Ladders, *, halted: Halted = never_halt) -> None:
        self.ladders = ladders
        self.rungs = np.array([len(r) for r in ladders.rungs], np.float64)
        self.x = ladders.ranks / self.rungs
        super().__init__(instance, halted=halted)

    def _split_variables(self) -> None:
        B = self.instance.tree.branch_nodes
        self.b = self.model.binary("a", B, range(len(self.rungs)), priority=2)
        self.c = self.model.continuous("c", B, upper=1.0)

    def _split_rows(self, v: int) -> None:
        self.model.add(total(self.b[v, j] for j in range(len(self.rungs))) == self.d[v], "O1")
        self.model.add(self.c[v] <= self.d[v], "O10")
        # a threshold below the first rung would send every row right, and no feature represents that
        self.model.add(self.c[v] >= weighted(self.b.columns[v - 1], 1.0 / self.rungs), "O10")

    def _rows(self, rows: range, terminal: range) -> Variables:
        return self.model.binary("zeta", rows, terminal)

    def _turn(self, i: int, t: int, v: int, side: int) -> None:
        zeta = self.zeta[i, t]
        a = self.b.columns[v - 1]
        if side:
            self.model.add(weighted(a, self.x[i]) >= self.c[v] - (1 - zeta), "O7")
            return
        eps = 1.0 / self.rungs
        most = 1.0 + float(eps.max(initial=0.0))
        self.model.add(weighted(a, self.x[i] + eps) <= self.c[v] + most * (1 - zeta), "O6")
        self.model.add(zeta <= self.d[v], "O11")

    def _write_split(self, values: FloatArray, v: int, f: int) -> None:
        j, rung = self.ladders.place(f)
        values[self.b.columns[v - 1, j]] = 1.0
        values[self.c.columns[v - 1]] = (rung + 1) / self.rungs[j]

    def _split_scores(self, point: Point) -> FloatArray:
        """Return scores that are 1 at the feature for the column and threshold of each node, else 0."""
        ladder = point[self.b]
        c = point[self.c]
        scores = np.zeros((len(ladder), len(self.instance.F)))
        for node, j in enumerate(ladder.argmax(axis=1).tolist() if len(self.rungs) else []):
            rungs = self.ladders.rungs[j]
            # all thresholds between two ranks are equivalent, and a tenth of a rank exceeds every solver's tolerance
            rung = int(np.ceil(c[node] * len(rungs) - 0.1)) - 1
            scores[node, rungs[min(max(rung, 0), len(rungs) - 1)]] = 1.0
        return scores
