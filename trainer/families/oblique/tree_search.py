"""What the methods with hyperplanes share: first trees, local search, the solve of a master model, and what is claimed.

A method gives a function that makes its master model over an instance; `solve_oblique` does the rest. A tree that meets a bound
known without search (equal rows go together, t leaves predict t classes) is proved without any solver.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from trainer.certificate import Status, relative_gap
from trainer.data.problem import Problem
from trainer.dtypes import FloatArray
from trainer.errors import SolverError
from trainer.families.oblique.distance import DistantSearch, keeps
from trainer.families.oblique.instance import BRANCH, LEAF, ObliqueInstance, ObliqueTree, Packed
from trainer.families.oblique.local import LocalSearch
from trainer.families.oblique.packing import LARGEST, Packing
from trainer.families.oblique.refit import STYLES, drawn_tree, refitted
from trainer.families.oblique.separable import Separator
from trainer.families.oblique.sparse import thinned
from trainer.families.oblique.starts import first_trees
from trainer.families.oblique.units import draft_of, instance_of
from trainer.method import (
    COMMON,
    DEPTH,
    LEAF_PENALTY,
    MIN_LEAF,
    MIP_GAP,
    PAPER_LAMBDA,
    SOLVER,
    Parameter,
    Settings,
    Solution,
    having,
)
from trainer.milo import BuildStopped, Ended, Hooks, Model, Options, Outcome, Point, Report, Row, backend
from trainer.milo.hooks import NodeInfo
from trainer.milo.lattice import NOISE, Lattice, Prices, same_order, tie_price
from trainer.monitor import Monitor
from trainer.tree.nodes import Draft

SCOPE = (
    "all trees of the given depth whose questions weigh all columns at once, each parting its rows by at least 1e-7 "
    "(columns scaled to [0, 1])"
)
MOST_CELLS = 30_000  # items times nodes; the relaxation of a larger master model does not end in reasonable time
# share of the time, and seconds at most, for drawing the planes of the best tree
DRAWING = {"margin": (0.03, 2.0), "svm": (0.1, 15.0), "sparse": (0.1, 15.0)}
MOST_DRAWING = 30.0
PACKING = 30.0  # seconds for the bound of planes, at most two fifths of what is left
LEAVES_OPEN = "that no tree of the same objective has fewer leaves"
MOST_PARTED = 2_000_000  # cells; one linear program over more takes too long for a presolve
PATIENCE = 500  # rounds of local search without a better tree, after which only the solver can help


class Master(Protocol):
    """A master model: its rows, trees written into it, trees read out of it."""

    model: Model

    def assignment(self, tree: ObliqueTree) -> FloatArray | None:
        """The values of all variables for a tree, or None where the model does not know the tree."""

    def read(self, values: FloatArray) -> ObliqueTree:
        """The tree of an integral point."""


Improve = Callable[[ObliqueTree], "ObliqueTree | None"]
Make = Callable[[ObliqueInstance, Callable[[], bool]], Master]
MakeHooks = Callable[[Any, Improve], Hooks]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a method solves: its model, its hooks, the distance that its planes keep, and its scope."""

    make: Make
    hooks: MakeHooks
    complete: bool = False
    scope: str = SCOPE
    least: float = 0.0  # what planes keep from the points on their right; 0: the model knows all trees


class Watched(Hooks):
    """The hooks of a method, with better trees made of rejected points and progress in exact values."""

    def __init__(
        self, inner: Hooks, form: Master, search: LocalSearch, tell: Callable[[float | None, int], bool]
    ) -> None:
        self.inner, self.form, self.search, self.tell = inner, form, search, tell
        self.behave_as(inner)

    def on_integral(self, point: Point, origin: str) -> Sequence[Row]:
        """The method's rows; the tree of the point counts in any case."""
        rows = self.inner.on_integral(point, origin)
        if not rows:
            self.search.accept(self.form.read(point.values))
        return rows

    def on_fractional(self, point: Point, info: NodeInfo) -> Sequence[Row]:
        """The method's rows."""
        return self.inner.on_fractional(point, info)

    def propose(self) -> Sequence[FloatArray]:
        """The method's proposals."""
        return self.inner.propose()

    def on_progress(self, report: Report) -> bool:
        """Best tree and bound to the monitor."""
        return self.tell(report.bound, report.nodes)


class Run:
    """One training: instance, local search, master model, claim."""

    def __init__(self, problem: Problem, settings: Settings, monitor: Monitor, plan: Plan) -> None:
        self.problem, self.settings, self.monitor, self.plan = problem, settings, monitor, plan
        instance, self.units = instance_of(problem, settings["depth"], complete=plan.complete)
        # a gap that is asked for is one of the values at the true price
        exact = not instance.charge and not settings["mip_gap"]
        kappa = same_order(instance.kappa, instance.most_leaves) if exact else instance.kappa
        if settings.get("then_fewest"):
            kappa += tie_price(kappa, instance.most_leaves)
        self.instance: ObliqueInstance = replace(
            instance, kappa=kappa, max_leaves=settings.get("max_leaves"), min_leaf=min(settings["min_leaf"], problem.n)
        )
        self.prices = Prices(asked=instance.kappa, used=kappa, leaves=self.instance.most_leaves)
        self.lattice = Lattice(
            kappa=kappa, leaves=self.instance.most_leaves, charge=instance.charge, columns=instance.Z.shape[1]
        )
        # a solver's bound may lie below the optimum by its tolerance
        self.noise = max(NOISE, Fraction(instance.total, 10**7)) if instance.charge else NOISE
        self.search = (
            DistantSearch(self.instance, settings["seed"], monitor.flag, plan.least, self.halted)
            if plan.least
            else LocalSearch(self.instance, settings["seed"], monitor.flag)
        )
        self.bound = self.instance.ceiling
        self.outcome: Outcome | None = None
        self.form: Master | None = None
        self.first: float | None = None
        self.shown: Fraction | None = None
        self.extra: list[ObliqueTree] = []  # trees that are known already; then no other method is asked
        self.starts: list[ObliqueTree] = []
        self.packed: tuple[Packed, ...] | None = None
        share, most = DRAWING[settings["hyperplanes"]]
        kept = min(most, share * monitor.remaining())
        self.end = time.perf_counter() + monitor.remaining() - kept  # of the search; the rest is for drawing
        self.struck: Status | None = None
        self.in_style = False  # whether the planes of the tree that is given back are drawn as they were asked for
        self.trees: dict[int, ObliqueTree] = {}  # the best one that was reported with so many leaves

    @property
    def everything(self) -> int:
        """Rows that a tree of any size can classify correctly: equal rows go together."""
        return int(self.instance.counts.max(axis=1).sum())

    def objective(self, value: Fraction, leaves: int) -> float:
        """An internal value as the objective of the contract."""
        return float(self.prices.value(value, leaves) / self.instance.total)

    def upper(self, bound: Fraction) -> float:
        """An internal bound as a bound of the objective."""
        return float(self.prices.bound(bound) / self.instance.total)

    def _rounded(self, bound: float) -> Fraction:
        """A bound of the solver, rounded down onto the values that a tree can have."""
        return self.lattice.floor(bound, self.noise)

    def report(self) -> None:
        """Best tree and bound to the monitor; a picture only of a new tree."""
        search, draft = self.search, None
        if self.shown is None or search.value > self.shown:
            self.shown, draft = search.value, draft_of(search.best, self.instance, self.units)
            self.trees[search.best.leaves] = search.best
        value = self.objective(search.value, search.best.leaves)
        self.monitor.report(
            incumbent=value, bound=max(value, self.upper(self.bound)), leaves=search.best.leaves, draft=draft,
            nodes=search.rounds,
        )  # fmt: skip

    def take(self, tree: ObliqueTree) -> None:
        """A first tree: it counts at once, and is shown if it is better."""
        self.search.consider(tree)
        if self.shown is None or self.search.value > self.shown:
            self.report()

    def solve(self) -> Solution:
        """First trees, local search, bound of planes, master model."""
        try:
            self._local()
            self._pack()
            done = self._near(self.search.best) or self.halted()
            if not done and self.instance.depth and self.instance.Z.shape[1]:
                self._master()
        except MemoryError:  # one array too many: tree and bound so far are kept
            self.struck = Status.MEMORY_LIMIT
        return self._solution()

    def _near(self, tree: ObliqueTree) -> bool:
        """True where a tree meets the bound, or lies within the gap that was asked for."""
        value = self.instance.value(tree)
        if value >= self.bound:
            return True
        objective = self.objective(value, tree.leaves)
        gap, wanted = relative_gap(objective, self.upper(self.bound)), self.settings["mip_gap"]
        return wanted > 0 and gap is not None and gap <= wanted

    def _packing(self) -> Packing | None:
        """The search for rows that lie in planes, where the numbers of leaves that it knows are all that count."""
        inst = self.instance
        known = inst.depth <= 2 or inst.most_leaves <= 3 or inst.kappa > 0
        if self.search.value >= self.bound or not known or not inst.Z.size or inst.most_leaves < 2 or self.halted():
            return None
        X = self.units.encoding.matrix(self.problem.table)[self.units.rows]
        leaves = min(inst.most_leaves, 4 if inst.depth <= 2 else 3)
        return Packing(X, inst.counts, self._until(min(PACKING, 0.4 * self.remaining())), leaves)

    def _pack(self) -> None:
        """A better bound from rows that lie in planes."""
        packing = self._packing()
        if packing is None or (self.packed is not None and self.instance.packed):
            return
        self.monitor.report(phase="bound of planes")
        if self.packed is None:
            self.packed = packing.best()
        self._bounded(self.packed)

    def _by_root(self) -> None:
        """Presolve: few points in one plane; the best halves below each way to part them at the root."""
        packing = self._packing() if self.packed or len(self.instance.Z) <= LARGEST else None
        if packing is None:
            return
        if self.packed is None:
            found = packing.everything()
            self.packed = None if found is None else (found,)
        separator = Separator(self.instance.Z)
        for at in (at for packed in self.packed or () for at in packed.nodes if at.max() < self.instance.size):
            tree = drawn_tree(self.instance, at, separator)
            if tree is not None:
                self.search.consider(self.instance.completed(tree) if self.instance.complete else tree)
        if self.packed is not None:
            self._bounded(self.packed)

    def _bounded(self, packed: tuple[Packed, ...]) -> None:
        self.instance = replace(self.instance, packed=packed)
        self.bound = min(self.bound, self.instance.ceiling)
        self.report()

    def _until(self, seconds: float) -> Callable[[], bool]:
        end = min(self.end, time.perf_counter() + seconds)
        return lambda: self.monitor.stopped() or time.perf_counter() > end

    def halted(self) -> bool:
        """True once the search must end: the run is stopped, or what is left of its time is for drawing."""
        return self.monitor.stopped() or time.perf_counter() > self.end

    def remaining(self) -> float:
        """Seconds that are left for the search."""
        return max(0.0, self.end - time.perf_counter())

    def _local(self) -> None:
        if not self.instance.depth or not self.instance.Z.shape[1]:
            return
        self.monitor.report(phase="first trees")
        if not self.extra:
            self.report()  # the single leaf and the bound of the rows: something to look at from the first moment
        self._one_plane()
        self._by_root()
        seconds = min(self.settings["search_seconds"], 0.5 * self.remaining())
        # a method without local search still gets its first tree
        limit = max(seconds / 2, min(2.0, 0.3 * self.remaining()))
        starts = self.starts = self.extra or first_trees(
            self.problem, self.settings, self.monitor, self.instance, self.units, self.bound, limit, self.take
        )
        for tree in self.extra:
            self.search.consider(tree)
        self.first = self.objective(self.search.value, self.search.best.leaves)
        self.report()
        self.monitor.report(phase="local search")
        self._search(starts, seconds, PATIENCE)

    def _one_plane(self) -> None:
        """Presolve: two classes that one hyperplane parts need no search."""
        inst = self.instance
        if inst.counts.shape[1] != 2 or inst.most_leaves < 2 or inst.Z.size > MOST_PARTED:
            return
        sides = [np.flatnonzero(inst.counts.argmax(axis=1) == k) for k in (0, 1)]
        if not all(map(len, sides)):
            return
        plane = Separator(inst.Z).within(0.2 * self.remaining(), *sides)
        if plane is not None:
            tree = inst.empty()
            tree.kind[1], tree.kind[2:4], tree.label[2:4] = BRANCH, LEAF, (0, 1)
            tree.a[1], tree.c[1] = plane.a, plane.c
            self.search.consider(inst.completed(tree) if inst.complete else tree)

    def _search(self, starts: Sequence[ObliqueTree], seconds: float, patience: int = 1_000_000) -> None:
        self.search.run(
            starts, enough=self.bound, stopped=self._until(seconds), news=lambda *_: self.report(), patience=patience
        )

    def _master(self) -> None:
        instance, monitor = self.instance, self.monitor
        solver = backend(self.settings["solver"])
        if int((instance.counts > 0).sum()) * (instance.size - 1) > MOST_CELLS:
            # a master model of this size never leaves its first relaxation: the time is better spent on trees
            self._search([], self.remaining() if math.isfinite(self.remaining()) else 60.0)
            return
        monitor.report(phase="model")
        try:
            form = self.form = self.plan.make(instance, self.halted)
        except BuildStopped:
            return
        monitor.report(phase="search")
        hooks = Watched(self.plan.hooks(form, self._improve), form, self.search, self._tell)
        start = form.assignment(self.search.best)
        options = Options(
            time=None if math.isinf(self.remaining()) else self.remaining(),
            memory=monitor.limits.memory,
            threads=monitor.limits.threads,
            seed=self.settings["seed"],
            gap=self.settings["mip_gap"],
            absolute_gap=0.0 if self.instance.charge and self.lattice.step < 20 * self.noise else self.lattice.gap,
            starts=() if start is None else (start,),
            stopped=self.halted,
        )
        outcome = self.outcome = solver.solve(form.model, hooks, options)
        if outcome.ended is Ended.INFEASIBLE:
            raise SolverError(f"{solver.name} calls a problem infeasible that has a solution; nothing it said is used.")
        if outcome.values is not None:
            self.search.accept(form.read(outcome.values))
        if not math.isinf(outcome.bound):
            self.bound = min(self.bound, self._rounded(outcome.bound))
        if self.bound < self.search.value:
            self._outside(form, hooks.inner)
        self.struck = {Ended.TIME: Status.TIME_LIMIT, Ended.MEMORY: Status.MEMORY_LIMIT}.get(outcome.ended)

    def _outside(self, form: Master, hooks: Hooks) -> None:
        """The best tree beats the bound of the model: right only where the model does not know the tree (planes too near to rows)."""
        values = form.assignment(self.search.best)
        known = values is not None and form.model.violated(values) is None
        if known and values is not None and not hooks.on_integral(Point(values), "start"):
            raise SolverError(
                f"The solver claims the bound {float(self.bound)} below the value {float(self.search.value)} of a tree."
            )
        self.bound = self.search.value

    def _improve(self, tree: ObliqueTree) -> ObliqueTree | None:
        """A better tree made of the routes that a point asked for, or None."""
        until = self._until(0.5)
        found = self.search.consider(tree) or self.search.consider(self.search.improve(tree, until))
        return self.search.best if found else None

    def _tell(self, bound: float | None, nodes: int) -> bool:
        if bound is not None:
            self.bound = min(self.bound, max(self._rounded(bound), self.search.value))
        self.report()
        self.monitor.report(nodes=nodes)
        return self.halted() or self.search.value >= self.bound

    def _drawn(self) -> tuple[ObliqueTree, bool]:
        """The best tree with its planes as they are asked for, and whether all of them are."""
        end = time.perf_counter() + MOST_DRAWING

        def stopped() -> bool:
            return self.monitor.stopped() or time.perf_counter() > end

        columns = np.array([f.column for f in self.units.encoding.features], np.int64)
        style, best, separator = self.settings["hyperplanes"], self.search.best, Separator(self.instance.Z)
        tree, as_asked = refitted(self.instance, best, separator, style, columns, stopped)
        if style == "sparse" and not self.plan.least:
            thin = self._thinnest(tree, stopped)
            if thin is not tree:
                thin, again = refitted(self.instance, thin, separator, style, columns, stopped)
                if self._fits(thin) and thin.coefficients < tree.coefficients:
                    tree, as_asked = thin, again
        return (tree, as_asked) if self._fits(tree) else (best, False)

    def _fits(self, tree: ObliqueTree) -> bool:
        """True for a tree of the class that is as good as the best one."""
        near = not self.plan.least or keeps(self.instance, tree, self.plan.least)
        return near and self.instance.admits(tree) and self.instance.value(tree) >= self.search.value

    def _thinnest(self, tree: ObliqueTree, stopped: Callable[[], bool]) -> ObliqueTree:
        """Among the trees with coefficients left out the last one that is as good."""
        for thin in thinned(self.search, tree, stopped):
            if not self._fits(thin):
                break
            tree = thin
        return tree

    def _in_units(self, tree: ObliqueTree) -> tuple[ObliqueTree, Draft]:
        """The tree, or the best other one, that can be written in the columns' own units; the last one is a single leaf."""
        inst = self.instance
        leaf = inst.completed(inst.stump()) if inst.complete else inst.stump()
        others = sorted([*map(inst.pruned, self.starts), leaf], key=inst.value, reverse=True)
        for candidate in (tree, self.search.best, *others):
            draft = draft_of(candidate, self.instance, self.units)
            if draft is not None:
                return candidate, draft
        raise SolverError("The hyperplanes lose their meaning in the columns' own units. Scale the columns.")

    def _solution(self) -> Solution:
        if self.struck is None and self.halted():
            self.struck = Status.TIME_LIMIT
        tree, self.in_style = self._drawn()
        claimed, draft = self._in_units(tree)
        value, outcome = self.instance.value(claimed), self.outcome
        bound = max(self.bound, value)
        monitor = self.monitor
        # the search may end within the gap that was asked for; otherwise only a bound that is met is a proof
        finished = self._near(claimed)
        # an open gap without a limit: the solver saw no finer or gave up, a tree could not be drawn, or there was no model
        if not finished and monitor.reason is None and self.struck is not None:
            monitor.stop(self.struck)
        return Solution(
            draft=draft,
            bound=max(self.upper(bound), self.objective(value, claimed.leaves))
            if bound <= value
            else self.upper(bound),
            finished=finished,
            unproved=LEAVES_OPEN if self.settings.get("then_fewest") and bound > value else "",
            scope=self.plan.scope,
            nodes=self.search.rounds if outcome is None else outcome.nodes,
            cuts={} if outcome is None else outcome.rows,
            encoded_features=self.instance.Z.shape[1],
            solver="octweb" if outcome is None else outcome.solver,
            solver_version="" if outcome is None else outcome.version,
            warm_start_objective=self.first,
            evidence=(self._evidence(claimed), *self._planes()),
        )

    def _planes(self) -> Sequence[dict[str, Any]]:
        """The rows of the sets whose errors are part of the bound, so that they can be counted again."""
        inst = self.instance
        if not inst.packed:
            return ()
        rows = [np.flatnonzero(np.isin(inst.group, packed.points)).tolist() for packed in inst.packed]
        groups = [{"rows": r, "errors": list(p.errors)} for r, p in zip(rows, inst.packed, strict=True)]
        return ({"kind": "planes", "bound": str(inst.ceiling), "groups": groups},)

    def _evidence(self, tree: ObliqueTree) -> dict[str, Any]:
        record: dict[str, Any] = {
            "kind": "bound-met" if self.outcome is None else "mip",
            "value": str(self.instance.value(tree)),
            "bound": str(self.bound),
            "points": len(self.instance.Z),
            "rounds_of_local_search": self.search.rounds,
            "coefficients": int(sum(np.count_nonzero(tree.a[v]) for v in tree.branches)),
            "hyperplanes": self.settings["hyperplanes"] if self.in_style else "as found",
        }
        if self.outcome is not None and self.form is not None:
            record |= {
                "solver": self.outcome.solver,
                "version": self.outcome.version,
                "ended": str(self.outcome.ended),
                "variables": self.form.model.size,
                "rows": len(self.form.model.rows),
                "seconds_in_hooks": round(self.outcome.hook_seconds, 3),
                "proposed": self.outcome.proposed,
                "accepted": self.outcome.accepted,
            }
        return record


def solve_oblique(problem: Problem, settings: Settings, monitor: Monitor, plan: Plan) -> Solution:
    """Train a tree of hyperplanes as the plan says, and say what is proved."""
    with threadpool_limits(limits=settings["threads"], user_api="blas"):  # small systems: more threads only wait
        return Run(problem, settings, monitor, plan).solve()


HYPERPLANES = Parameter(
    name="hyperplanes", type="choice", default="margin", choices=STYLES, label="Hyperplanes",
    help="How a split is drawn between its rows: widest margin, soft margin (as in the paper), or with the fewest columns, "
    "also over other trees that are as good.",
)  # fmt: skip
FIRST_TREES = Parameter(
    name="first_trees", type="choice", default="all", choices=("all", "cart", "none"), label="First trees",
    help="Trees that the local search begins with: those of cart, exact, bivariate and oc1, of cart alone, or none.",
    advanced=True,
)  # fmt: skip
SEARCH_SECONDS = Parameter(
    name="search_seconds", type="number", default=30.0, minimum=0, maximum=86_400, label="Local search",
    help="How long first trees and local search may take before the solver begins, at most half of the limit.",
    unit="s", advanced=True,
)  # fmt: skip
MAX_LEAVES = Parameter(
    name="max_leaves", type="integer", default=None, minimum=1, maximum=256, label="Largest number of leaves",
    help="The tree has at most this many leaves. No value means no limit.", advanced=True,
)  # fmt: skip
OBLIQUE_DEPTH = having(DEPTH, default=2, maximum=6)
HEAD = (OBLIQUE_DEPTH, LEAF_PENALTY, PAPER_LAMBDA, MIN_LEAF, HYPERPLANES)
TAIL = (FIRST_TREES, SEARCH_SECONDS, SOLVER, MIP_GAP, *COMMON)
