"""S-OCT (Boutilier, Michini & Zhou, 2023), a baseline: routed rows, lazy hyperplanes.

Labels (1)-(5) refer to docs/methods/s-oct.md. Rows of equal features are one point g, its classes are items j = (g, k).

Indices    g point, j item, k class, v node of the complete tree, t terminal node
Variables  b[v]=1: some row goes right at v;  q[g,v]=1: g passes v;  w[t,k]=1: t predicts k;  s[j,t]: item j is correct at t
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trainer.certificate import Guarantee
from trainer.constraints.leaves import LEAVES
from trainer.data.problem import Problem
from trainer.dtypes import FloatArray
from trainer.families.oblique.cut_h import CUTS
from trainer.families.oblique.instance import BRANCH, LEAF, ObliqueInstance, ObliqueTree
from trainer.families.oblique.local import fit_logistic
from trainer.families.oblique.plan import HEAD, TAIL, SolvePlan, scope_words
from trainer.families.oblique.plan import SCOPE as NEAR
from trainer.families.oblique.planes import CONSTANTS, DISTANCE, SCOPE, Planes, add_min_leaf_rows
from trainer.families.oblique.separable import Separator
from trainer.families.oblique.shattering import CutHooks, CutOptions, ancestors, set_row
from trainer.families.oblique.tree_search import solve_oblique
from trainer.methods.base import Method, Parameter, Settings, Solution
from trainer.methods.capabilities import Asks, Group, ProofKind
from trainer.methods.cost import HYPERPLANE_PROGRAM
from trainer.methods.monitor import Monitor
from trainer.milo import Expression, Hooks, IntegerProgram, Row, at_most, total


class SOCT:
    """The master model; `CutHooks` uses its attributes `b`, `s`, `q`, `B`, `point`, `items` and `separator`."""

    def __init__(
        self,
        instance: ObliqueInstance,
        options: CutOptions,
        halted: Callable[[], bool] = lambda: False,
        *,
        constants: str = "none",
        least: float = DISTANCE,
    ) -> None:
        inst = self.instance = instance
        self.options = options
        size = inst.size
        self.V = range(1, size)
        self.B = range(1, size >> 1)
        self.T = range(size >> 1, size)
        self.point, self.item_class = (x.astype(np.int64) for x in np.nonzero(inst.counts))
        self.items = [np.flatnonzero(self.point == g) for g in range(len(inst.Z))]
        self.separator = Separator(inst.Z)
        self.model = model = IntegerProgram()
        model.halted = halted
        self.b = model.binary("b", self.B, priority=20)
        self.w = model.binary("w", self.T, range(inst.counts.shape[1]), priority=10)
        self.s = model.continuous("s", range(len(self.point)), self.T)
        self.q = model.binary("q", range(len(inst.Z)), self.V)
        self.full = add_min_leaf_rows(inst, model, self.T, self.q.columns[:, self.T[0] - 1 :])
        self.planes = Planes(inst, model, self.b, least=least, constants=constants) if constants != "none" else None
        self._rows()
        weight = inst.counts[self.point, self.item_class].astype(float)
        terms = dict(zip(self.s.columns.ravel().tolist(), np.repeat(weight, len(self.T)), strict=True))
        terms |= dict.fromkeys(self.b.columns.tolist(), -float(inst.kappa))
        model.maximize(Expression(terms, -float(inst.kappa)))

    def _rows(self) -> None:
        model = self.model
        inst = self.instance
        q = self.q.columns
        model.fix(q[:, 0], 1.0)
        for g in range(len(inst.Z)):
            for v in self.B:
                columns = q[g, [v - 1, 2 * v - 1, 2 * v]]
                model.add(Row(columns, np.array([1.0, -1.0, -1.0]), lower=0.0, upper=0.0, name="(1)"))
                model.add(at_most(q[g, 2 * v : 2 * v + 1], [self.b.column(v)], "(2)"))
                if self.planes is not None:
                    for side in (0, 1):
                        self.planes.tie(g, v, side, q[g, 2 * v - 1 + side : 2 * v + side])
        for t in self.T:
            model.add(total(self.w[t, k] for k in range(inst.counts.shape[1])) == 1, "(3)")
            for j, (p, k) in enumerate(zip(self.point, self.item_class, strict=True)):
                s = np.array([self.s.column((j, t))])
                model.add(at_most(s, [q[p, t - 1]], "(4)"))
                model.add(at_most(s, [self.w.column((t, int(k)))], "(5)"))
        for packed in inst.packed:
            items = np.flatnonzero(np.isin(self.point, packed.points))
            weight = inst.counts[self.point[items], self.item_class[items]]
            model.add(set_row(inst, packed, self.s.columns[items], weight))
        if inst.max_leaves is not None:
            model.add(total(self.b.values()) <= inst.max_leaves - 1, "leaves")

    def assignment(self, tree: ObliqueTree) -> FloatArray | None:
        """Return the values of all variables for a tree; None if planes are variables and one is too near to a row."""
        inst = self.instance
        values = np.zeros(self.model.size)
        tree = inst.complete_to_depth(tree if self.planes is None else inst.prune(tree))
        at = inst.route(tree)
        if self.planes is not None and not all(self.planes.assign(values, tree, v, at) for v in self.B):
            return None
        for t in self.T:
            values[self.w.column((t, int(tree.label[t])))] = 1.0
            if self.full is not None:
                values[self.full.column(t)] = float((at == t).any())
        for g, leaf in enumerate(at):
            values[self.q.columns[g, np.array(ancestors(int(leaf))) - 1]] = 1.0
        for v in self.B:
            values[self.b.column(v)] = float(values[self.q.columns[:, 2 * v]].any())
        for j, (p, k) in enumerate(zip(self.point, self.item_class, strict=True)):
            if tree.label[at[p]] == k:
                values[self.s.column((j, int(at[p])))] = 1.0
        return values

    def read(self, values: FloatArray) -> ObliqueTree:
        """Return the tree of an integral point, with planes that separate its routes, or approximate ones.

        Leaves with rows have majority labels.
        """
        inst = self.instance
        tree = self.instance.empty()
        routed = values[self.q.columns] > 0.5
        w = values[self.w.columns]
        for v in self.B:
            tree.kind[v] = BRANCH
            L = np.flatnonzero(routed[:, 2 * v - 1])
            R = np.flatnonzero(routed[:, 2 * v])
            if self.planes is not None:
                tree.a[v], tree.c[v] = self.planes.read(values, v, L, R)
                continue
            plane = self.separator.plane(L, R)
            if plane is not None:
                tree.a[v] = plane.a
                tree.c[v] = plane.c if len(L) or len(R) else 1.0
                continue
            points = np.concatenate([L, R])
            weight = inst.counts[points].sum(axis=1).astype(float)
            beta = fit_logistic(inst.Z[points], np.arange(len(points)) < len(L), weight, 1e-4)
            tree.a[v] = beta[:-1]
            tree.c[v] = -beta[-1]
        for t in self.T:
            tree.kind[t] = LEAF
            tree.label[t] = int(w[t - self.T[0]].argmax())
        return inst.relabel(tree)


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Solve S-OCT with the separation of CUT-H."""
    options = CutOptions(everywhere=settings["everywhere"], several=settings["several"])

    def make(instance: ObliqueInstance, halted: Callable[[], bool]) -> SOCT:
        return SOCT(instance, options, halted, constants=settings["big_m"])

    plan = SolvePlan(make=make, hooks=CutHooks)
    if settings["big_m"] != "none":
        plan = SolvePlan(make=make, hooks=lambda form, improve: Hooks(), scope=SCOPE, least=DISTANCE)
    return solve_oblique(problem, settings, monitor, plan)


BIG_M = Parameter(
    name="big_m",
    type="choice",
    default="none",
    choices=("none", *CONSTANTS),
    label="Large constants",
    help="Hyperplanes as variables instead of cuts, tied to rows by the largest difference between a row and the others (data) or 2 "
    "(paper); they then keep a distance of 0.005.",
    advanced=True,
)


SHARED = tuple(p for p in CUTS if p.name in ("everywhere", "several"))
METHOD = Method(
    id="s-oct",
    space=lambda problem, settings: scope_words(NEAR if settings["big_m"] == "none" else SCOPE, problem),
    title="S-OCT",
    summary="The best tree of hyperplanes by shattering inequalities, every row routed to a leaf: a baseline.",
    paper="Boutilier, Michini & Zhou (2023)",
    guarantee=Guarantee.TREE,
    splits=("threshold", "subset", "linear"),
    warm_start=True,
    size_hint="Like cut-h; if no perfect tree exists, its bounds move more slowly.",
    claim="Optimal: no better tree of this depth has questions that are hyperplanes separating their rows by at least 1e-7 of the range.",
    parameters=(*HEAD, LEAVES, BIG_M, *SHARED, *TAIL),
    solve=solve,
    good_for="Only for comparing with published papers.",
    estimator="SOCTClassifier",
    proof=ProofKind.HYPERPLANES,
    cost=HYPERPLANE_PROGRAM,
    group=Group.BASELINES,
    asks=Asks.MANY,
)
