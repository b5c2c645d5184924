"""FlowOCT: correct rows send a unit of flow to their leaf.

Aghaei, Gomez & Vayanos (Strong optimal classification trees), with the leaf variables of the later papers; no big-M. Labels
(S1)-(S3) refer to structure.py, (F11) to cuts/flow.py.

Legend     b[v,f]=1 v branches on f;  p[v]=1 v is a leaf;  w[v,k] v predicts k
           z[i,v] flow of row i into node v;  zeta[i,v] flow of row i that ends at v, on the arc to the sink
           (F13), with constraints on predictions: a row that reaches its label has its flow
           maximise  sum weight[i] zeta[i,v] - kappa sum p[v]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainer.data.problem import Problem
from trainer.dtypes import FloatArray
from trainer.families.mip.cuts.flow import FlowCuts
from trainer.families.mip.declared import STRONG, declare_method
from trainer.families.mip.first_tree import Halted, never_halt
from trainer.families.mip.instance import ArrayTree, Instance
from trainer.families.mip.side.base import SideConstraint
from trainer.families.mip.structure import Structure
from trainer.families.mip.tree_mip import MIP_DEPTH, Formulation, solve_problem
from trainer.methods.base import LEAF_PENALTY, PAPER_LAMBDA, Parameter, Settings, Solution
from trainer.methods.monitor import Monitor
from trainer.milo import Expression, Hooks, IntegerProgram, NodeInfo, Point, Row, at_most, total, weighted


class FlowOCT(Formulation):
    """The flow formulation; `strengthen` separates the cuts (4) of the paper at fractional points."""

    def __init__(
        self,
        instance: Instance,
        *,
        strengthen: bool = False,
        halted: Halted = never_halt,
        side: Sequence[SideConstraint] = (),
    ) -> None:
        self.instance = instance
        self.strengthen = strengthen
        self.keep_labels = any(c.labels for c in side)
        self.model = model = IntegerProgram()
        self.model.halted = halted
        V = instance.tree.nodes
        rows = range(instance.n)
        self.structure = Structure(instance, model, whole_labels=True)
        self.z = model.continuous("z", rows, V)
        self.zeta = model.continuous("zeta", rows, V)
        score = weighted(self.zeta.columns.ravel(), np.repeat(instance.weight, len(V)))
        model.maximize(score - float(instance.kappa) * self.structure.leaves)
        for i in rows:
            self._flow(i)
            if any(c.exact_scores for c in side):
                self._exact(i)
        s = self.structure
        self.constrain(side, self.score, s.b, s.p, s.w)

    def _flow(self, i: int) -> None:
        model = self.model
        tree = self.instance.tree
        on = self.instance.ones[i]
        y = int(self.instance.y[i])
        # prepend an unused entry, because nodes count from 1
        z, zeta = ([0, *columns.columns[i].tolist()] for columns in (self.z, self.zeta))
        b = self.structure.b.columns
        w = self.structure.w.columns
        for v in tree.branch_nodes:
            left = 2 * v
            right = 2 * v + 1
            flow = np.array([z[v], z[left], z[right], zeta[v]])
            model.add(Row(flow, np.array([1.0, -1.0, -1.0, -1.0]), 0.0, 0.0, "F4"))  # flow conservation
            model.add(at_most([z[left]], b[v - 1, ~on], "F7"))  # rows go left only at a feature that is 0
            model.add(at_most([z[right]], b[v - 1, on], "F8"))  # rows go right only at a feature that is 1
        for t in tree.terminal_nodes:
            model.add(Row(np.array([z[t], zeta[t]]), np.array([1.0, -1.0]), 0.0, 0.0, "F5"))
        for v in tree.nodes:
            model.add(at_most([zeta[v]], [w[v - 1, y]], "F9"))  # a flow ends only where the row's label is predicted

    def _exact(self, i: int) -> None:
        """Add (F13): a row that reaches a node with its label has its unit of flow."""
        tree = self.instance.tree
        w = self.structure.w
        y = int(self.instance.y[i])
        for v in tree.nodes:
            exits = total(self.arc(i, u, 1 - side) for u, side in tree.turns(v))
            self.model.add(self.score(i) + exits >= w[v, y], "F13")

    def arc(self, i: int, v: int, side: int) -> Expression:
        """Return the capacity of the arc from v to its left (0) or right (1) child for row i."""
        on = self.instance.ones[i]
        features = on if side else ~on
        return weighted(self.structure.b.columns[v - 1, features], np.ones(int(features.sum())))

    def score(self, i: int) -> Expression:
        """Return the score of row i: 1 if it is correct."""
        return total(self.zeta[i, v] for v in self.instance.tree.nodes)

    def assignment(self, tree: ArrayTree) -> FloatArray:
        """Return the values of all variables: the tree, and a unit of flow for every correct row."""
        values = np.zeros(self.model.size)
        self.structure.assign(values, tree)
        at = self.instance.route(tree.feature)
        for i in np.flatnonzero(tree.label[at] == self.instance.y).tolist():
            values[self.zeta.columns[i, at[i] - 1]] = 1.0
            for v in self.instance.tree.path(int(at[i])):
                values[self.z.columns[i, v - 1]] = 1.0
        self.fill_constraints(values, tree)
        return values

    def read(self, values: FloatArray) -> ArrayTree:
        """Return the tree of the branchings, with majority labels unless constraints refer to labels."""
        point = Point(values)
        return self.structure.read(point[self.structure.b], point[self.structure.w], keep_labels=self.keep_labels)

    def hooks(self) -> Hooks:
        """Return hooks that separate (F11) if `strengthen` is on, else hooks without rows."""
        return StrengtheningHooks(self) if self.strengthen else FlowHooks()


class FlowHooks(Hooks):
    """Hooks without rows: the model is complete."""

    many_nodes = True


class StrengtheningHooks(FlowHooks):
    """Hooks that add the most violated cut (F11) or (F11') of each node and side to the relaxation."""

    fractional = 4

    def __init__(self, formulation: FlowOCT) -> None:
        s = formulation.structure
        self.formulation = formulation
        self.cuts = FlowCuts(instance=formulation.instance, b=s.b, z=formulation.z)

    def on_fractional(self, point: Point, info: NodeInfo) -> Sequence[Row]:
        """Return violated cuts (F11) and (F11')."""
        form = self.formulation
        return self.cuts.fractional(point[form.structure.b], point[form.z])


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Solve FlowOCT over the binary encoding of a problem."""

    def make(instance: Instance, halted: Halted, side: Sequence[SideConstraint]) -> FlowOCT:
        return FlowOCT(instance, strengthen=settings["strengthening"], halted=halted, side=side)

    return solve_problem(problem, settings, monitor, make)


METHOD = declare_method(
    id="flowoct",
    title="FlowOCT",
    summary="The best tree of a given depth as one mixed-integer program in which correct rows flow to their leaves.",
    paper=STRONG,
    size_hint="Hundreds of rows, tens of yes/no questions, depth 2.",
    parameters=(
        MIP_DEPTH,
        LEAF_PENALTY,
        PAPER_LAMBDA,
        Parameter(
            name="strengthening",
            type="boolean",
            default=False,
            label="Strengthening cuts",
            help="Use the paper's cuts (4), for rows of different classes on the same side of a split.",
            advanced=True,
        ),
    ),
    solve=solve,
    estimator="FlowOCTClassifier",
    good_for="Integer program that takes many constraints. Depth 2.",
)
