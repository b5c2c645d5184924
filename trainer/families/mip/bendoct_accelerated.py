"""BendOCT with accelerations, each with its switch.

The master problem is the one in bendoct.py. Keegan, Forbes, Corry & Abolghasemi: strengthened cuts (12), polishing (Algorithm 1),
equivalent-point rows (13)-(22), path-bound cuts (23)-(26). Our own cuts hold for every tree: (24'), bounds of the exact search
(24'') and split bounds (27').
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from trainer.data.problem import Problem
from trainer.dtypes import FloatArray
from trainer.families.mip.bendoct import BendersHooks, BendOCT
from trainer.families.mip.cuts.equivalent import EquivalentPoints, Form, find_equivalent_sets
from trainer.families.mip.cuts.equivalent_cuts import EquivalentCuts
from trainer.families.mip.cuts.path_bound import PathBoundCuts
from trainer.families.mip.declared import declare_method
from trainer.families.mip.deep_bounds import DeepBounds
from trainer.families.mip.first_tree import Halted, never_halt
from trainer.families.mip.instance import ArrayTree, Instance
from trainer.families.mip.polish import DepthTwo, polish
from trainer.families.mip.side.base import SideConstraint
from trainer.families.mip.tree_mip import MIP_DEPTH, solve_problem
from trainer.methods.base import LEAF_PENALTY, Parameter, Settings, Solution, having
from trainer.methods.cost import INTEGER_PROGRAM, ProblemSize
from trainer.methods.monitor import Monitor
from trainer.milo import USER_VIOLATION, Hooks, NodeInfo, Point, Row

EQUIVALENT_ROUNDS = 10  # rounds at the root, or after it if split bounds usually close the root
EQUIVALENT_LIMIT = 20  # limit on rows per round


@dataclass(frozen=True, kw_only=True)
class Techniques:
    """Switches of the accelerations; PAPER is the best configuration of the paper.

    The defaults are the paper's configuration, split bounds, and bounds at integral trees. Equivalent-point rows are separated when violated
    instead of added for every set: the relaxation is as strong and much smaller.

    `equivalent_points=None` omits those rows. `split_set` is the largest split set, `set_limit` the largest number of sets. `separated` needs
    a form without integer variables: basic, or disaggregated.
    """

    strengthened: bool = False
    polishing: bool = True
    equivalent_points: Form | None = "recursive"
    separated: bool = True
    disaggregated: bool = True
    group_selection: bool = True
    split_set: int = 2
    set_limit: int = 5000
    path_bounds: bool = True
    negative_samples: bool = True
    structure: bool = True
    endpoints_only: bool = False
    objective_form: bool = False
    at_integral: bool = True
    split_bounds: bool = True
    exact_bounds: bool = False
    cache: bool = True
    root_cuts: bool = False

    @property
    def bounding(self) -> bool:
        """True if any bound of subtrees is used."""
        return self.path_bounds or self.split_bounds or self.exact_bounds

    @property
    def separable(self) -> bool:
        """True if equivalent-point rows are separated; other forms have integer variables of their own."""
        return self.separated and (self.disaggregated or self.equivalent_points == "basic")


MAX_PAIR_COUNTS = 100_000_000  # limit on the entries of the table of feature pairs of one set of rows
VANILLA = Techniques(equivalent_points=None, polishing=False, path_bounds=False, split_bounds=False)
PAPER = Techniques(split_bounds=False, at_integral=False, separated=False)


def _affordable(techniques: Techniques, instance: Instance) -> Techniques:
    """Disable techniques that need tables of all feature pairs, if a table would take seconds. The optimum stays the same."""
    if instance.classes * len(instance.F) ** 2 <= MAX_PAIR_COUNTS:
        return techniques
    return replace(techniques, polishing=False, path_bounds=False, split_bounds=False, exact_bounds=False)


class AcceleratedBendOCT(BendOCT):
    """The master problem of BendOCT with the chosen techniques."""

    def __init__(
        self,
        instance: Instance,
        techniques: Techniques | None = None,
        *,
        whole_labels: bool = False,
        halted: Halted = never_halt,
        side: Sequence[SideConstraint] = (),
    ) -> None:
        self.techniques = t = _affordable(techniques or Techniques(), instance)
        if side:  # constraints may forbid the best subtrees, so only rows that hold for every tree are valid
            self.techniques = t = replace(t, objective_form=True)
        super().__init__(
            instance,
            strengthened=t.strengthened,
            root_cuts=t.root_cuts,
            halted=halted,
            side=side,
            # structure cuts fix labels, which fractional labels would evade
            whole_labels=whole_labels or (t.path_bounds and t.structure),
        )
        self.depth_two = DepthTwo(instance, cache=t.cache, halted=halted)
        self.equivalent: EquivalentPoints | None = None
        if t.equivalent_points is not None and not t.separable:
            self.equivalent = EquivalentPoints(
                instance=instance,
                model=self.model,
                b=self.structure.b,
                theta=self.theta,
                form=t.equivalent_points,
                disaggregated=t.disaggregated,
                group_selection=t.group_selection,
            )
            self.equivalent.add(
                find_equivalent_sets(instance, split_size=t.split_set, limit=t.set_limit, halted=halted)
            )
        s = self.structure
        self.paths = PathBoundCuts(
            instance=instance,
            b=s.b,
            p=s.p,
            w=s.w,
            theta=self.theta,
            best=self.depth_two.best,
            splits=self.depth_two.split_bounds,
            negative=t.negative_samples,
            structure=t.structure,
            endpoints_only=t.endpoints_only,
            objective_form=t.objective_form,
            split_bounds=t.split_bounds,
            deep=DeepBounds(instance, stop=halted) if t.exact_bounds else None,
        )

    @cached_property
    def equivalent_cuts(self) -> EquivalentCuts | None:
        """Separator of equivalent-point rows, built at its first use."""
        t = self.techniques
        if t.equivalent_points is None or not t.separable:
            return None
        return EquivalentCuts(
            instance=self.instance,
            b=self.structure.b,
            theta=self.theta,
            form=t.equivalent_points,
            sets=find_equivalent_sets(
                self.instance, split_size=t.split_set, limit=t.set_limit, halted=self.depth_two.halted
            ),
            group_selection=t.group_selection,
        )

    def assignment(self, tree: ArrayTree) -> FloatArray:
        """Return the values of BendOCT and of the variables of equivalent-point rows."""
        values = super().assignment(tree)
        if self.equivalent is not None:
            self.equivalent.fill(values)
        return values

    def improve_starts(self, trees: Sequence[ArrayTree]) -> list[ArrayTree]:
        """Polish the start trees if polishing is on. With side constraints, which polishing ignores, keep the originals, too."""
        if not self.techniques.polishing:
            return list(trees)
        polished = [polish(self.instance, tree, self.depth_two) for tree in trees]
        return [*polished, *trees] if self.side else polished

    def hooks(self) -> Hooks:
        """Return hooks with Benders rows, polishing and bounds of subtrees."""
        return AcceleratedHooks(self)


class AcceleratedHooks(BendersHooks):
    """BendOCT's hooks with polishing at integral points and bounds of subtrees at every node."""

    formulation: AcceleratedBendOCT

    def __init__(self, formulation: AcceleratedBendOCT) -> None:
        super().__init__(formulation)
        t = formulation.techniques
        if t.bounding:
            self.fractional = 1
            self.presolve = False
        elif t.equivalent_points is not None and t.separable:
            self.fractional = -1
        self.equivalent_rounds = 0

    def on_integral(self, point: Point, origin: str) -> Sequence[Row]:
        """Return Benders rows and, if there are any, bounds of subtrees; propose a polished tree."""
        form = self.formulation
        rows = list(super().on_integral(point, origin))
        if not rows:  # the tree was not cut off, so it is worth polishing
            self.propose_polished(point)
        elif form.techniques.bounding and form.techniques.at_integral:
            rows += self._bound_rows(point)
        return rows

    def repair(self, point: Point, origin: str) -> None:
        """Propose the tree of a rejected point, and its polished form."""
        super().repair(point, origin)
        self.propose_polished(point)

    def propose_polished(self, point: Point) -> None:
        """Propose the polished tree of an integral point, if polishing is on (Algorithm 1)."""
        form = self.formulation
        if form.techniques.polishing:
            self.offer(polish(form.instance, form.read(point.values), form.depth_two))

    def on_fractional(self, point: Point, info: NodeInfo) -> Sequence[Row]:
        """Return bounds of subtrees, minimum cuts at the root if they are on, and else equivalent points.

        The search for equivalent points needs time, so it runs only if no other row is violated: at the root, or after it from
        depth three on.
        """
        rows = list(super().on_fractional(point, info))
        if self.formulation.techniques.bounding:
            rows += self._bound_rows(point)
        if info.is_root is not self._waits_for_root(info) and not any(
            row.violation(point.values) > USER_VIOLATION for row in rows
        ):
            rows += self._equivalent_rows(point)
        return rows

    def _waits_for_root(self, info: NodeInfo) -> bool:
        """Return whether equivalent points wait for the end of the root, which split bounds usually close from depth 3 on."""
        form = self.formulation
        return form.techniques.split_bounds and form.instance.depth >= 3 and not info.alone

    def _equivalent_rows(self, point: Point) -> list[Row]:
        form = self.formulation
        self.equivalent_rounds += 1
        if self.equivalent_rounds > EQUIVALENT_ROUNDS or form.equivalent_cuts is None:
            return []
        return form.equivalent_cuts.fractional(point[form.structure.b], point[form.theta], limit=EQUIVALENT_LIMIT)

    def _bound_rows(self, point: Point) -> list[Row]:
        form = self.formulation
        s = form.structure
        rows = form.paths.separate(point[s.b], point[s.p], point[form.theta])
        return rows if form.techniques.path_bounds else [r for r in rows if r.name in ("split-bound", "deep-bound")]


def make_techniques(settings: Settings) -> Techniques:
    """Return the techniques of the settings."""
    form = settings["equivalent_points"]
    switches = {p.name: settings[p.name] for p in SWITCHES if p.name != "equivalent_points"}
    return Techniques(equivalent_points=None if form == "none" else form, **switches)


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Solve accelerated BendOCT over the binary encoding of a problem."""

    def make(instance: Instance, halted: Halted, side: Sequence[SideConstraint]) -> AcceleratedBendOCT:
        return AcceleratedBendOCT(instance, make_techniques(settings), halted=halted, side=side)

    return solve_problem(problem, settings, monitor, make)


def _switch(name: str, label: str, text: str) -> Parameter:
    default = bool(getattr(Techniques(), name))
    return Parameter(name=name, type="boolean", default=default, label=label, help=text, advanced=True)


SWITCHES = (
    _switch("polishing", "Polishing", "Replace the lowest two levels of every tree that is found by the best two levels for its rows."),
    _switch("path_bounds", "Path bounds", "Bound the subtree below a fixed path by the best subtree of depth two."),
    _switch("negative_samples", "Bound wrong rows", "Write path bounds over the rows that the best subtree misclassifies."),
    _switch("structure", "Bound structure", "Let path bounds also fix the best subtree itself."),
    _switch("endpoints_only", "End points only", "Add path bounds only at the end of each path, not along it."),
    _switch("at_integral", "Bounds at trees", "Check path bounds at whole trees too, not only at fractional points."),
    _switch(
        "objective_form", "Objective form", "Write path bounds in the form that holds for every tree, also with side constraints."
    ),
    _switch("split_bounds", "Split bounds", "Bound each split three levels above the lowest leaves by its two best subtrees."),
    _switch(
        "exact_bounds", "Exact bounds",
        "From depth 5 on, bound the subtree below a fixed path by the exact search, for at most ten seconds in total.",
    ),
    Parameter(
        name="equivalent_points", type="choice", default="recursive", choices=("none", "basic", "chain", "recursive"),
        label="Equivalent points", help="Rows that agree on most questions end in the same leaf unless the tree asks one of the others.",
        advanced=True,
    ),
    _switch(
        "separated", "Separated", "Equivalent points: add rows only where they are violated, instead of writing all of them beforehand."
    ),
    _switch("disaggregated", "Disaggregated", "Equivalent points: one inequality per node instead of their sum."),
    _switch("group_selection", "Group selection", "Equivalent points: choose which class of each set may be classified correctly."),
    Parameter(
        name="split_set", type="integer", default=Techniques().split_set, minimum=0, maximum=3, label="Split set",
        help="Equivalent points: the largest number of questions on which a set may differ.", advanced=True,
    ),
    Parameter(
        name="set_limit", type="integer", default=Techniques().set_limit, minimum=0, maximum=100_000, label="Sets",
        help="Equivalent points: the largest number of sets; those with the largest loss come first.", advanced=True,
    ),
    _switch("strengthened", "Strengthened cuts", "Use Benders cuts that also look at the sibling of a leaf."),
    _switch("root_cuts", "Cuts at the root", "Look for minimum cuts at the root relaxation too, not only at trees."),
    _switch("cache", "Cache", "Remember the best subtree of every set of rows that has been solved."),
)  # fmt: skip


def _seconds(size: ProblemSize) -> float:
    return 1e-5 * size.n * size.F * 3 ** (2 * max(1, size.d) - 3)


METHOD = declare_method(
    id="bendoct-accelerated",
    title="Accelerated BendOCT",
    summary="BendOCT with bounds from best subtrees; proves trees of depth 3 in seconds on an open solver.",
    paper="Keegan, Forbes, Corry & Abolghasemi, accelerated BendOCT",
    size_hint="Thousands of rows, a hundred yes/no questions, depth 3; depth 4 with fewer.",
    parameters=(having(MIP_DEPTH, default=3), LEAF_PENALTY, *SWITCHES),
    solve=solve,
    estimator="AcceleratedBendOCTClassifier",
    good_for="BendOCT with bounds from subtrees. Depth 3.",
    cost=replace(INTEGER_PROGRAM, seconds=_seconds),
    precompile=({},),
)
