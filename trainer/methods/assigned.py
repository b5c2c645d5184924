"""Scores of rows in formulations that assign rows to terminal nodes, for side constraints that speak of correct rows.

Legend     zeta[i,t]=1 row i is in terminal node t;  w[t,k]=1 t predicts k;  s[i,t]=1 row i is in t and t predicts its class
           (A1) s[i,t] ≤ zeta[i,t]   (A2) s[i,t] ≤ w[t,y_i]   (A3) s[i,t] ≥ zeta[i,t] + w[t,y_i] - 1, for exact scores

Only the rows that a constraint asks about get these variables: the baselines do without them.
"""

from __future__ import annotations

import numpy as np

from trainer.cuts.instance import Instance
from trainer.dtypes import CountArray, FloatArray
from trainer.milo import Expression, Model, Variables, total


class AssignedScores:
    """The scores of rows, each written into the model when it is first asked for."""

    def __init__(self, instance: Instance, model: Model, zeta: Variables, w: Variables, *, exact: bool) -> None:
        self.instance, self.model, self.zeta, self.w, self.exact = instance, model, zeta, w, exact
        self.known: dict[int, Variables] = {}

    def __call__(self, i: int) -> Expression:
        """1 if row i is classified correctly, at most that where scores need not be exact."""
        terminal = self.instance.tree.terminal_nodes
        if i not in self.known:
            y = int(self.instance.y[i])
            s = self.known[i] = self.model.continuous(f"s{i}", terminal)
            for t in terminal:
                self.model.add(s[t] <= self.zeta[i, t], "A1")
                self.model.add(s[t] <= self.w[t, y], "A2")
                if self.exact:
                    self.model.add(s[t] >= self.zeta[i, t] + self.w[t, y] - 1, "A3")
        return total(self.known[i].values())

    def fill(self, values: FloatArray, at: CountArray, right: CountArray) -> None:
        """Give the variables their values: `at` the place among the terminal nodes of each row, `right` whether it is right."""
        for i, s in self.known.items():
            values[s.columns] = 0.0
            values[s.columns[int(at[i])]] = float(np.asarray(right)[i])
