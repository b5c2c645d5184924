"""Separate the strengthening cuts (4) of FlowOCT.

Aghaei, Gomez & Vayanos, cuts (4). For a node v with terminal children, a feature f and a set H of rows with x_f = 1 and pairwise
different labels, at most one of them is classified correctly at the left child, and none if v branches on f:

    (F11)   sum over H of z[i, left]  ≤ 1 - b[v,f]          (F11')  the same with x_f = 0 and the right child

Separation is exact: for each (v, f) the row of each class with the largest flow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.dtypes import FloatArray
from trainer.families.mip.instance import Instance
from trainer.milo import Row, Variables

TOLERANCE = 1e-4


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowCuts:
    """The separator over one flow formulation."""

    instance: Instance
    b: Variables
    z: Variables

    def fractional(self, b: FloatArray, z: FloatArray) -> list[Row]:
        """Return the most violated cut of each node and side: b (|B|, F), z (n, |V|)."""
        inst = self.instance
        rows = []
        for v in range(1 << max(inst.depth - 1, 0), 1 << inst.depth):
            for side in (0, 1):
                child = 2 * v + side
                flow = z[:, child - 1]
                # rows whose feature is 1 go right, so they must not reach the left child, and vice versa
                away = inst.ones if side == 0 else ~inst.ones
                members = np.where(away, flow[:, None], -1.0)  # shape (n, F)
                best = np.zeros(len(inst.F))
                for k in inst.K:
                    best += np.maximum(members[inst.y == k].max(axis=0, initial=0.0), 0.0)
                excess = best - (1.0 - b[v - 1])
                if len(excess) and excess.max() > TOLERANCE:
                    rows.append(self.row(v, side, int(excess.argmax()), members))
        return rows

    def row(self, v: int, side: int, f: int, members: FloatArray) -> Row:
        """Return the cut of (v, f) over the row of each class with the largest entry in `members[:, f]` (negative: not in H)."""
        inst = self.instance
        selected = []
        for k in inst.K:
            candidates = np.flatnonzero((inst.y == k) & (members[:, f] > 0))
            if len(candidates):
                selected.append(int(candidates[members[candidates, f].argmax()]))
        columns = np.append(self.z.columns[selected, 2 * v + side - 1], self.b.columns[v - 1, f])
        return Row(columns, np.ones(len(columns)), upper=1.0, name="strengthening", user=True)
