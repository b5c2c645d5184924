"""BendOCT: a master problem over trees with minimum-cut rows for scores.

Aghaei, Gomez & Vayanos (Strong optimal classification trees), Benders decomposition; objective and leaf variables as in Keegan,
Forbes, Corry & Abolghasemi (3)-(4). Labels (S1)-(S3) refer to structure.py, (BC) to cuts/benders.py.

Legend     b[v,f]=1 v branches on f;  p[v]=1 v is a leaf;  w[v,k] v predicts k;  theta[i] ≤ 1 score of row i
           maximise  sum weight[i] theta[i] - kappa sum p[v]   subject to (S1)-(S3), (BC)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainer.data.problem import Problem
from trainer.dtypes import FloatArray
from trainer.families.mip.cuts.benders import BendersCuts
from trainer.families.mip.declared import STRONG, declare_method
from trainer.families.mip.first_tree import Halted, never_halt
from trainer.families.mip.instance import ArrayTree, Instance
from trainer.families.mip.side.base import SideConstraint
from trainer.families.mip.structure import Structure
from trainer.families.mip.tree_mip import MIP_DEPTH, Formulation, solve_problem
from trainer.methods.base import LEAF_PENALTY, PAPER_LAMBDA, Parameter, Settings, Solution
from trainer.methods.monitor import Monitor
from trainer.milo import Hooks, IntegerProgram, NodeInfo, Point, Row

ROOT_ROUNDS = 10


class BendOCT(Formulation):
    """The master problem; `whole_labels` makes w binary, `root_cuts` separates minimum cuts at the root relaxation, too.

    `repair` proposes the trees of rejected points as solutions.
    """

    def __init__(
        self,
        instance: Instance,
        *,
        whole_labels: bool = False,
        strengthened: bool = False,
        root_cuts: bool = False,
        repair: bool = True,
        halted: Halted = never_halt,
        side: Sequence[SideConstraint] = (),
    ) -> None:
        self.instance = instance
        self.root_cuts = root_cuts
        self.repair = repair
        self.model = IntegerProgram()
        self.model.halted = halted
        self.keep_labels = any(c.labels for c in side)
        self.exact_scores = any(c.exact_scores for c in side)
        self.structure = Structure(instance, self.model, whole_labels=whole_labels or strengthened or self.keep_labels)
        self.theta = self.model.continuous("theta", range(instance.n))
        self.model.maximize(self.structure.objective(self.theta))
        self.benders = BendersCuts(
            instance=instance,
            b=self.structure.b,
            p=self.structure.p,
            w=self.structure.w,
            theta=self.theta,
            strengthened=strengthened,
            halted=halted,
        )
        s = self.structure
        self.constrain(side, lambda i: self.theta[i], s.b, s.p, s.w)

    def assignment(self, tree: ArrayTree) -> FloatArray:
        """Return branchings, leaves and labels of the tree, and its scores."""
        values = np.zeros(self.model.size)
        self.structure.assign(values, tree)
        at = self.instance.route(tree.feature)
        values[self.theta.columns] = tree.label[at] == self.instance.y
        self.fill_constraints(values, tree)
        return values

    def read(self, values: FloatArray) -> ArrayTree:
        """Return the tree of the branchings, with majority labels unless constraints refer to labels."""
        point = Point(values)
        return self.structure.read(point[self.structure.b], point[self.structure.w], keep_labels=self.keep_labels)

    def hooks(self) -> Hooks:
        """Return the hooks that separate (BC)."""
        return BendersHooks(self)


class BendersHooks(Hooks):
    """Separates (BC) at integral points and, as an option, at the root; proposes the tree of a rejected point."""

    lazy = True
    many_nodes = True

    def __init__(self, formulation: BendOCT) -> None:
        self.formulation = formulation
        self.fractional = -1 if formulation.root_cuts else 0
        self.queue: list[FloatArray] = []
        self.best: float = -np.inf
        self.rounds = 0

    def on_integral(self, point: Point, origin: str) -> Sequence[Row]:
        """Return (BC) for every row whose score exceeds the tree's, and rows that raise scores if they must be exact."""
        form = self.formulation
        s = form.structure
        rows = form.benders.integral(point[s.b], point[s.w], point[form.theta])
        if form.exact_scores:
            rows += form.benders.exact_score_rows(point[s.b], point[s.w], point[form.theta])
        if rows:
            self.repair(point, origin)
        return rows

    def refuses(self, point: Point, origin: str) -> bool:
        """Return whether some score exceeds the tree's; then propose the tree with its true scores."""
        form = self.formulation
        s = form.structure
        wrong, _ = form.benders.excess_scores(point[s.b], point[s.w], point[form.theta])
        if len(wrong):
            self.repair(point, origin)
        return len(wrong) > 0

    def repair(self, point: Point, origin: str) -> None:
        """Propose the tree of a rejected point."""
        if self.formulation.repair:
            self.offer(self.formulation.read(point.values))

    def offer(self, tree: ArrayTree) -> None:
        """Propose an admitted tree that is better than all earlier proposals."""
        value = float(self.formulation.instance.value(tree))
        if value > self.best and self.formulation.admits(tree):
            self.best = value
            self.queue.append(self.formulation.assignment(tree))

    def propose(self) -> Sequence[FloatArray]:
        """Return the waiting proposals, best last."""
        waiting = self.queue
        self.queue = []
        return waiting

    def on_fractional(self, point: Point, info: NodeInfo) -> Sequence[Row]:
        """Return minimum cuts of the root relaxation in the first ROOT_ROUNDS rounds."""
        form = self.formulation
        self.rounds += 1
        if not form.root_cuts or not info.is_root or self.rounds > ROOT_ROUNDS:
            return ()
        s = form.structure
        return form.benders.fractional(point[s.b], point[s.w], point[form.theta], limit=2 * form.instance.n)


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Solve BendOCT over the binary encoding of a problem."""

    def make(instance: Instance, halted: Halted, side: Sequence[SideConstraint]) -> BendOCT:
        return BendOCT(instance, root_cuts=settings["root_cuts"], halted=halted, side=side)

    return solve_problem(problem, settings, monitor, make)


METHOD = declare_method(
    id="bendoct",
    title="BendOCT",
    summary="The best tree of a given depth by mixed-integer programming, with rows added while it is searched.",
    paper=STRONG,
    size_hint="Hundreds of rows, tens of yes/no questions, depth 2; bendoct-accelerated goes further.",
    parameters=(
        MIP_DEPTH,
        LEAF_PENALTY,
        PAPER_LAMBDA,
        Parameter(
            name="root_cuts",
            type="boolean",
            default=False,
            label="Cuts at the root",
            help="Look for minimum cuts at the root relaxation too, not only at trees.",
            advanced=True,
        ),
    ),
    solve=solve,
    estimator="BendOCTClassifier",
    good_for="Only for comparing with published papers.",
)
