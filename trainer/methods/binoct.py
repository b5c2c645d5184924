"""BinOCT on binary features: a complete tree, no penalty, one big-M row for each node and feature, as a baseline.

Verwer & Zhang (2019), the part of their model that binary features need (one threshold a feature, hence no threshold bits).

Legend     b[v,f]=1 v branches on f (every node does);  t terminal node, Tl(v), Tr(v) those left and right of v
           zeta[i,t] row i is in t;  w[t,k]=1 t predicts k;  e[t,k] weight of the rows of class k that are wrong in t
           maximise  n - sum e[t,k]
Labels     (N1) one feature a node  (N2) one terminal node a row  (N3) one label a terminal node  (N4) wrong rows
           (N5) if v branches on f, rows with x_f = 1 are not left of v and rows with x_f = 0 not right of it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trainer.certificate import Guarantee
from trainer.cuts.instance import LEAF, ArrayTree, Instance
from trainer.cuts.relaxed import Relaxed, RelaxedColumns, RelaxedLeaves
from trainer.cuts.side import MaxColumns, MaxLeaves, SideConstraint
from trainer.data.problem import Problem
from trainer.dtypes import FloatArray
from trainer.errors import InfeasibleError
from trainer.methods.assigned import AssignedScores
from trainer.methods.base import Method, Settings, Solution
from trainer.methods.constraints import CONSTRAINTS
from trainer.methods.oct import branchings
from trainer.methods.tree_mip import MIP_DEPTH, TAIL, Formulation, Halted, never, solve_problem
from trainer.milo import Expression, Model, Point, total, weighted
from trainer.monitor import Monitor


class BinOCT(Formulation):
    """The whole model; the instance must have kappa = 0 and at least one feature."""

    def __init__(self, instance: Instance, *, halted: Halted = never, side: Sequence[SideConstraint] = ()) -> None:
        self.instance = instance
        self.keep_labels = any(c.labels for c in side)
        self.model = model = Model()
        self.model.halted = halted
        B, T, F, K, n = instance.tree.branch_nodes, instance.tree.terminal_nodes, instance.F, instance.K, instance.n
        # the original branches on features by depth before predictions
        self.b = model.binary("b", B, F, priority=1)
        for v in B:
            for column in self.b.columns[v - 1]:
                model.priority[column] = instance.depth + 2 - v.bit_length()
        self.w = model.binary("w", T, K)
        self.zeta = model.continuous("zeta", range(n), T)
        self.e = model.continuous("e", T, K, upper=float(instance.total))
        model.maximize(instance.total - total(self.e.values()))
        for v in B:
            model.add(total(self.b[v, f] for f in F) == 1, "N1")
            for f in F:
                self._sides(v, f)
        for i in range(n):
            model.add(total(self.zeta[i, t] for t in T) == 1, "N2")
        for t in T:
            self._errors(t)
        exact = any(c.exact_scores for c in side)
        self.scores = AssignedScores(instance, model, self.zeta, self.w, exact=exact)
        self.p = model.continuous("p", instance.tree.nodes if side else ())
        if side:  # every tree is complete
            model.fix(self.p.columns[: len(B)], 0.0)
            model.fix(self.p.columns[len(B) :], 1.0)
        w = {(v, k): self.w[v, k] if v in T else Expression() for v in instance.tree.nodes for k in instance.K}
        self.constrain(side, self.scores, self.b, self.p, w)

    def _errors(self, t: int) -> None:
        inst, model = self.instance, self.model
        rows = self.zeta.columns[:, t - (1 << inst.depth)]
        model.add(total(self.w[t, k] for k in inst.K) == 1, "N3")
        for k in inst.K:
            own = inst.y == k
            size = int(inst.weight[own].sum())
            model.add(weighted(rows[own], inst.weight[own]) - size * self.w[t, k] <= self.e[t, k], "N4")

    def _sides(self, v: int, f: int) -> None:
        inst, first = self.instance, 1 << self.instance.depth
        left = [t - first for t in inst.tree.below(2 * v) if t >= first]
        right = [t - first for t in inst.tree.below(2 * v + 1) if t >= first]
        ones = inst.ones[:, f]
        parts = [
            (self.zeta.columns[ones][:, left], inst.weight[ones]),
            (self.zeta.columns[~ones][:, right], inst.weight[~ones]),
        ]
        columns = np.concatenate([c.ravel() for c, _ in parts])
        values = np.concatenate([np.repeat(w, c.shape[1]) for c, w in parts])
        self.model.add(weighted(columns, values) + inst.total * self.b[v, f] <= inst.total, "N5")

    def complete(self, tree: ArrayTree) -> ArrayTree:
        """Below a leaf every node asks feature 0 and every terminal node predicts the leaf's class."""
        feature, label = tree.feature.copy(), tree.label.copy()
        for v in self.instance.tree.branch_nodes:
            if feature[v] < 0:
                feature[v] = 0
                label[2 * v] = label[2 * v + 1] = label[v]
                feature[2 * v] = feature[2 * v + 1] = LEAF
        return ArrayTree(feature, label)

    def admits(self, tree: ArrayTree) -> bool:
        """True if the completed tree satisfies the side constraints."""
        return super().admits(self.complete(tree) if self.side else tree)

    def assignment(self, tree: ArrayTree) -> FloatArray:
        """The tree completed."""
        inst, first = self.instance, 1 << self.instance.depth
        values = np.zeros(self.model.size)
        tree = self.complete(tree)
        feature, label = tree.feature, tree.label
        for v in inst.tree.branch_nodes:
            values[self.b.columns[v - 1, feature[v]]] = 1.0
        at = inst.route(feature)
        values[self.zeta.columns[np.arange(inst.n), at - first]] = 1.0
        for t in inst.tree.terminal_nodes:
            values[self.w.columns[t - first, label[t]]] = 1.0
            for k in inst.K:
                if k != label[t]:
                    values[self.e.columns[t - first, k]] = inst.weight[(at == t) & (inst.y == k)].sum()
        values[self.p.columns[first - 1 :]] = 1.0
        self.scores.fill(values, at - first, label[at] == inst.y)
        self.fill_constraints(values, tree)
        return values

    def read(self, values: FloatArray) -> ArrayTree:
        """The complete tree of the branchings, labels by majority unless constraints speak of them."""
        point = Point(values)
        every = np.ones(len(self.instance.tree.branch_nodes), bool)
        tree = self.instance.relabelled(branchings(self.instance, point[self.b], every))
        if not self.keep_labels:
            return tree
        label = tree.label.copy()
        label[tree.leaves] = point[self.w][tree.leaves - (1 << self.instance.depth)].argmax(axis=1)
        return ArrayTree(tree.feature, label)


def _room(needed: int, limits: Sequence[int], kind: type[Relaxed]) -> None:
    """Raise InfeasibleError where a limit is below what every complete tree needs."""
    if min(limits, default=needed) < needed:
        said = f"Everything else can be satisfied with {needed} {kind.of}."
        raise InfeasibleError(f"No tree satisfies the constraints. {said}", best=needed, of=kind.of)


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Solve BinOCT over the binary encoding of a problem."""

    def make(instance: Instance, halted: Halted, side: Sequence[SideConstraint]) -> BinOCT:
        # no question parts any rows: a complete tree is a leaf, though it asks one all the same
        if not len(instance.F):
            _room(1 << instance.depth, [c.limit for c in side if isinstance(c, MaxLeaves)], RelaxedLeaves)
            _room(min(1, instance.depth), [c.limit for c in side if isinstance(c, MaxColumns)], RelaxedColumns)
            instance = replace(instance, depth=0)
        return BinOCT(instance, halted=halted, side=side)

    return solve_problem(problem, settings, monitor, make)


METHOD = Method(
    id="binoct",
    title="BinOCT",
    summary="The most accurate complete tree of a given depth, one large row for each node and question; a baseline.",
    paper="Verwer & Zhang, Learning optimal classification trees using a binary linear program formulation",
    guarantee=Guarantee.TREE,
    splits=("threshold", "subset"),
    binary=True,
    complete=True,
    warm_start=True,
    size_hint="A hundred rows, depth 2. There is no leaf penalty.",
    claim="Optimal: no tree of this depth over the encoded questions classifies more training rows correctly.",
    parameters=(MIP_DEPTH, *CONSTRAINTS, *TAIL),
    solve=solve,
)
