"""OCT-H (Bertsimas & Dunn, 2017), a baseline: hyperplanes as variables with big-M rows.

Labels (1)-(3) refer to docs/methods/oct-h.md; the planes, the smallest leaf and their labels are in `planes`.
Rows of equal features are one point g.

Indices    g point, k class, v branching place, t terminal node of the complete tree
Variables  b[v]=1: v branches;  z[g,t]=1: g is in t;  w[t,k]=1: t predicts k;  e[t]: misclassified rows in t
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trainer.certificate import Guarantee
from trainer.data.problem import Problem
from trainer.dtypes import FloatArray
from trainer.families.oblique.instance import BRANCH, LEAF, ObliqueInstance, ObliqueTree
from trainer.families.oblique.plan import HEAD, TAIL, SolvePlan, scope_words
from trainer.families.oblique.planes import CONSTANTS, DISTANCE, ROBUST_SCOPE, SCOPE, Planes, add_min_leaf_rows
from trainer.families.oblique.tree_search import solve_oblique
from trainer.methods.base import COEFFICIENT_PENALTY, Method, Parameter, Settings, Solution
from trainer.methods.capabilities import Asks, Group, ProofKind
from trainer.methods.cost import HYPERPLANE_PROGRAM
from trainer.methods.monitor import Monitor
from trainer.milo import Expression, Hooks, IntegerProgram, Row, total, weighted


class OCTH:
    """The complete model, without lazy rows."""

    def __init__(
        self,
        instance: ObliqueInstance,
        halted: Callable[[], bool] = lambda: False,
        *,
        least: float = DISTANCE,
        constants: str = "data",
    ) -> None:
        self.instance = inst = instance
        size = inst.size
        self.B = range(1, size >> 1)
        self.T = range(size >> 1, size)
        self.K = range(inst.counts.shape[1])
        self.model = model = IntegerProgram()
        model.halted = halted
        self.b = model.binary("b", self.B, priority=20)
        self.w = model.binary("w", self.T, self.K, priority=10)
        self.z = model.binary("z", range(len(inst.Z)), self.T)
        self.e = model.continuous("e", self.T, upper=float(inst.total))
        self.planes = Planes(inst, model, self.b, least=least, constants=constants)
        self.full = add_min_leaf_rows(inst, model, self.T, self.z.columns)
        for v in self.B[1:]:
            model.add(self.b[v] <= self.b[v >> 1], "(1)")
        self._leaves()
        self._routes()
        kappa = float(inst.kappa)
        paid = Expression() if self.planes.used is None else float(inst.charge) * total(self.planes.used.values())
        model.maximize(
            Expression({}, inst.total - kappa) - total(self.e.values()) - kappa * total(self.b.values()) - paid
        )

    def _leaves(self) -> None:
        inst = self.instance
        model = self.model
        n = float(inst.total)
        for t in self.T:
            model.add(total(self.w[t, k] for k in self.K) == 1, "(2)")
            column = self.z.columns[:, t - self.T[0]]
            for k in self.K:
                wrong = weighted(column, (inst.counts.sum(axis=1) - inst.counts[:, k]).astype(float))
                model.add(self.e[t] >= wrong - n * (1 - self.w[t, k]), "(3)")

    def _routes(self) -> None:
        """Add (P6): a point in t lies on t's side of every plane above t."""
        model = self.model
        for g in range(len(self.instance.Z)):
            model.add(Row(self.z.columns[g], np.ones(len(self.T)), lower=1.0, upper=1.0, name="one leaf"))
            for v in self.B:
                for side in (0, 1):
                    self.planes.tie(g, v, side, self.z.columns[g, np.array(self._below(2 * v + side)) - self.T[0]])
                # a node that does not branch sends all points left, so nothing reaches the right
                for t in self._below(2 * v + 1):
                    model.add(self.z[g, t] <= self.b[v], "(P6)")

    def _below(self, v: int) -> list[int]:
        """Return the terminal nodes below v."""
        nodes = [v]
        while nodes[0] < self.T[0]:
            nodes = [u for w in nodes for u in (2 * w, 2 * w + 1)]
        return nodes

    def assignment(self, tree: ObliqueTree) -> FloatArray | None:
        """Return the values of all variables for a tree; None if a plane is too near to a row on its right."""
        inst = self.instance
        values = np.zeros(self.model.size)
        tree = inst.complete_to_depth(inst.prune(tree))
        at = inst.route(tree)
        if not all(self.planes.assign(values, tree, v, at) for v in self.B):
            return None
        for t in self.T:
            values[self.w.column((t, int(tree.label[t])))] = 1.0
            in_leaf = at == t
            wrong = inst.counts[in_leaf].sum() - inst.counts[in_leaf, tree.label[t]].sum()
            values[self.e.column(t)] = float(wrong)
            values[self.z.columns[in_leaf, t - self.T[0]]] = 1.0
            if self.full is not None:
                values[self.full.column(t)] = float(in_leaf.any())
        return values

    def read(self, values: FloatArray) -> ObliqueTree:
        """Return the tree of an integral point, with thresholds halfway between the rows of both sides."""
        inst = self.instance
        tree = self.instance.empty()
        at = self.T[0] + values[self.z.columns].argmax(axis=1)
        for v in self.B:
            tree.kind[v] = BRANCH
            sides = [np.flatnonzero(inst.visits(at, u)) for u in (2 * v, 2 * v + 1)]
            tree.a[v], tree.c[v] = self.planes.read(values, v, *sides)
        for t in self.T:
            tree.kind[t] = LEAF
            tree.label[t] = int(values[self.w.columns[t - self.T[0]]].argmax())
        return inst.relabel(tree)


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Solve OCT-H; the bound covers its own class of trees."""

    def make(instance: ObliqueInstance, halted: Callable[[], bool]) -> OCTH:
        return OCTH(instance, halted, constants=settings["big_m"])

    plan = SolvePlan(
        make=make,
        hooks=lambda form, improve: Hooks(),
        scope=plain_scope(settings),
        least=DISTANCE,
        robust=settings["scaling"] == "robust",
    )
    return solve_oblique(problem, settings, monitor, plan)


def plain_scope(settings: Settings) -> str:
    """Return the class of trees that the bound covers, without the words about empty cells."""
    return ROBUST_SCOPE if settings["scaling"] == "robust" else SCOPE


def space(problem: Problem, settings: Settings) -> str:
    """Return the class of trees that the bound covers."""
    return scope_words(plain_scope(settings), problem)


SCALING = Parameter(
    name="scaling",
    type="choice",
    default="robust",
    choices=("robust", "range"),
    label="Scaling",
    help="The unit in which hyperplanes keep their distance: a column's range (range), or less if a few values are far from all "
    "others (robust): four times the range between the quartiles of its values.",
    advanced=True,
)


BIG_M = Parameter(
    name="big_m",
    type="choice",
    default="data",
    choices=CONSTANTS,
    label="Large constants",
    help="The constants that tie rows to hyperplanes: the largest difference between a row and the others (data), or 2 as in the paper.",
    advanced=True,
)
METHOD = Method(
    id="oct-h",
    space=space,
    title="OCT-H",
    summary="The best tree of hyperplanes that keep a distance from the rows, as one mixed-integer program: a baseline.",
    paper="Bertsimas & Dunn (2017)",
    guarantee=Guarantee.TREE,
    splits=("threshold", "subset", "linear"),
    warm_start=True,
    size_hint="Like cut-h if a perfect tree keeps this distance; otherwise dozens of rows.",
    claim="Optimal among trees whose hyperplanes keep a distance of 0.005 from the rows on their right.",
    parameters=(*HEAD, COEFFICIENT_PENALTY, BIG_M, SCALING, *TAIL),
    solve=solve,
    good_for="Weighted sums that keep a distance from the rows.",
    estimator="OCTHClassifier",
    proof=ProofKind.HYPERPLANES,
    cost=HYPERPLANE_PROGRAM,
    group=Group.BASELINES,
    asks=Asks.MANY,
)
