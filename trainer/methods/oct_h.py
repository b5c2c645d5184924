"""OCT-H (Bertsimas & Dunn 2017): hyperplanes as variables, rows tied to them with large constants; a baseline.

Labels (1)-(6) are those of docs/methods/oct-h.md. Rows of equal features are one point g.

Indices    g point, h feature, k class, v branching place, t terminal node of the complete tree
Variables  a[v,h], c[v]: left iff a·x <= c;  m[v,h] >= |a[v,h]|;  b[v]=1: v branches;  z[g,t]=1: g is in t;  w[t,k]=1: t predicts k;
           e[t]: wrong rows in t
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trainer.certificate import Guarantee
from trainer.data.problem import Problem
from trainer.dtypes import FloatArray
from trainer.methods.base import Method, Settings, Solution
from trainer.methods.oblique_tree import HEAD, TAIL, Plan, solve_oblique
from trainer.milo import Expression, Hooks, Model, Row, total, weighted
from trainer.monitor import Monitor
from trainer.search.oblique import BRANCH, LEAF, ObliqueInstance, ObliqueTree

DISTANCE = 0.005  # rows on the right keep this from their hyperplane, Σ|a| <= 1 (public code of Alston, Validi & Hicks)
SCOPE = (
    "all trees of the given depth whose questions weigh all columns at once, the rows on the right keeping a distance of 0.005 from "
    "their hyperplane (columns scaled to [0, 1], coefficients of total size 1)"
)


class OCTH:
    """The model; all rows are given at once."""

    def __init__(
        self, instance: ObliqueInstance, halted: Callable[[], bool] = lambda: False, *, least: float = DISTANCE
    ) -> None:
        self.instance = inst = instance
        self.least = least
        size, m = inst.size, inst.Z.shape[1]
        self.B, self.T, self.K, self.H = (
            range(1, size >> 1),
            range(size >> 1, size),
            range(inst.counts.shape[1]),
            range(m),
        )
        self.model = model = Model()
        model.halted = halted
        self.b = model.binary("b", self.B, priority=20)
        self.w = model.binary("w", self.T, self.K, priority=10)
        self.z = model.binary("z", range(len(inst.Z)), self.T)
        self.a = model.continuous("a", self.B, self.H, lower=-1.0, upper=1.0)
        self.size = model.continuous("m", self.B, self.H)
        self.c = model.continuous("c", self.B, lower=-1.0, upper=1.0)
        self.e = model.continuous("e", self.T, upper=float(inst.total))
        self._planes()
        self._leaves()
        self._routes()
        kappa = float(inst.kappa)
        model.maximize(Expression({}, inst.total - kappa) - total(self.e.values()) - kappa * total(self.b.values()))

    def _planes(self) -> None:
        model = self.model
        for v in self.B:
            model.add(total(self.size[v, h] for h in self.H) <= self.b[v], "(1)")
            model.add(self.c[v] <= self.b[v], "(2)")
            model.add(self.c[v] >= -1.0 * self.b[v], "(2)")
            if v > 1:
                model.add(self.b[v] <= self.b[v >> 1], "(3)")
            for h in self.H:
                model.add(self.a[v, h] <= self.size[v, h], "(1)")
                model.add(self.a[v, h] >= -1.0 * self.size[v, h], "(1)")

    def _leaves(self) -> None:
        inst, model = self.instance, self.model
        n = float(inst.total)
        for t in self.T:
            model.add(total(self.w[t, k] for k in self.K) == 1, "(4)")
            column = self.z.columns[:, t - self.T[0]]
            for k in self.K:
                wrong = weighted(column, (inst.counts.sum(axis=1) - inst.counts[:, k]).astype(float))
                model.add(self.e[t] >= wrong - n * (1 - self.w[t, k]), "(5)")

    def _routes(self) -> None:
        """(6): a point in t lies on the side of every plane above t on which t is."""
        inst, model = self.instance, self.model
        for g, x in enumerate(inst.Z):
            model.add(Row(self.z.columns[g], np.ones(len(self.T)), lower=1.0, upper=1.0, name="one leaf"))
            for v in self.B:
                columns = np.concatenate([self.a.columns[v - 1], [self.c.column(v)]])
                for side in (0, 1):
                    below = self._below(2 * v + side)
                    z = self.z.columns[g, np.array(below) - self.T[0]]
                    sign, slack = (1.0, 2.0) if side == 0 else (-1.0, 2.0 + self.least)
                    # left: a·x - c <= 2 (1 - Σz);  right: c - a·x + μ <= (2 + μ) (1 - Σz)
                    model.add(
                        Row(
                            np.concatenate([columns, z]),
                            np.concatenate([sign * x, [-sign], np.full(len(z), slack)]),
                            upper=slack - (self.least if side else 0.0),
                            name="(6)",
                        )
                    )
            # without a branching everything goes left
            for v in self.B:
                for t in self._below(2 * v + 1):
                    model.add(self.z[g, t] <= self.b[v], "(6)")

    def _below(self, v: int) -> list[int]:
        """The terminal nodes below v."""
        nodes = [v]
        while nodes[0] < self.T[0]:
            nodes = [u for w in nodes for u in (2 * w, 2 * w + 1)]
        return nodes

    def assignment(self, tree: ObliqueTree) -> FloatArray | None:
        """The values of all variables for a tree, or None where a plane passes too near to a row on its right."""
        inst, values = self.instance, np.zeros(self.model.size)
        tree = inst.completed(inst.pruned(tree))
        at = inst.route(tree)
        for v in self.B:
            here = inst.visits(at, v)
            left = inst.Z @ tree.a[v] <= tree.c[v]
            if not (here & ~left).any():
                continue
            a = tree.a[v] / float(np.abs(tree.a[v]).sum())
            scores = inst.Z @ a
            c = float(scores[here & left].max(initial=-1.0))
            if float(scores[here & ~left].min()) < c + self.least or abs(c) > 1:
                return None
            values[self.a.columns[v - 1]], values[self.size.columns[v - 1]] = a, np.abs(a)
            values[self.b.column(v)], values[self.c.column(v)] = 1.0, c
        for t in self.T:
            values[self.w.column((t, int(tree.label[t])))] = 1.0
            here = at == t
            wrong = inst.counts[here].sum() - inst.counts[here, tree.label[t]].sum()
            values[self.e.column(t)] = float(wrong)
            values[self.z.columns[here, t - self.T[0]]] = 1.0
        return values

    def read(self, values: FloatArray) -> ObliqueTree:
        """The tree of an integral point, its thresholds halfway between the rows that it parts."""
        inst, tree = self.instance, self.instance.empty()
        at = self.T[0] + values[self.z.columns].argmax(axis=1)
        for v in self.B:
            tree.kind[v], tree.c[v] = BRANCH, 1.0
            left, right = inst.visits(at, 2 * v), inst.visits(at, 2 * v + 1)
            if right.any():
                a = values[self.a.columns[v - 1]]
                scores = inst.Z @ a
                low = float(scores[left].max()) if left.any() else float(scores[right].min()) - 1.0
                tree.a[v], tree.c[v] = a, low + (float(scores[right].min()) - low) / 2
        for t in self.T:
            tree.kind[t], tree.label[t] = LEAF, int(values[self.w.columns[t - self.T[0]]].argmax())
        return inst.relabelled(tree)


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Solve OCT-H; its own class of trees is what the bound speaks of."""

    def make(instance: ObliqueInstance, halted: Callable[[], bool]) -> OCTH:
        return OCTH(instance, halted)

    return solve_oblique(
        problem, settings, monitor, Plan(make=make, hooks=lambda form, improve: Hooks(), scope=SCOPE, least=DISTANCE)
    )


METHOD = Method(
    id="oct-h",
    title="OCT-H",
    summary="The best tree of hyperplanes that keep a distance from the rows, as one mixed-integer program: a baseline.",
    paper="Bertsimas & Dunn (2017)",
    guarantee=Guarantee.TREE,
    splits=("threshold", "subset", "linear"),
    warm_start=True,
    size_hint="Dozens of rows; its bounds hardly move where no perfect tree exists.",
    claim="Optimal among trees whose hyperplanes keep a distance of 0.005 from the rows on their right.",
    parameters=(*HEAD, *TAIL),
    solve=solve,
)
