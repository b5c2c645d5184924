"""One training of a tree of hyperplanes: presolve, first trees, local search, bounds of planes and cases, master model, claim.

A method gives a function that makes its master model over an instance; `solve_oblique` does the rest. A tree that meets a bound
known without search (equal rows go together, t leaves predict t classes) is proved without any solver.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from trainer.certificate import Evidence, Status
from trainer.data.problem import Problem
from trainer.families.oblique.distance import DistantSearch
from trainer.families.oblique.drawing import Drawing, kept_for_drawing
from trainer.families.oblique.instance import DepthTwoErrors, ObliqueInstance, ObliqueTree
from trainer.families.oblique.local import LocalSearch
from trainer.families.oblique.master import PlaneModel
from trainer.families.oblique.plan import LEAVES_OPEN, Master, SolvePlan, scope_words
from trainer.families.oblique.presolve import decomposed, one_plane, packing, trees_of
from trainer.families.oblique.raising import BoundRaising
from trainer.families.oblique.starts import first_trees
from trainer.families.oblique.store import Store
from trainer.families.oblique.target import SearchClock, Target
from trainer.families.oblique.units import Units, draft_of
from trainer.methods.base import Settings, Solution
from trainer.methods.monitor import Monitor
from trainer.milo import BuildStopped, Outcome, backend
from trainer.solver_common.tree_model import STRUCK, drive, options_of, record

MOST_CELLS = 30_000  # items times nodes; the relaxation of a larger master model does not end in reasonable time
MAX_ROUNDS_WITHOUT_GAIN = 500  # rounds of local search without a better tree, after which only the solver can help
MAX_ROUNDS_NEAR_OPTIMUM = (
    100  # where one row is all that can be won, and the model is so small that the solver soon says whether it can be
)
FEW_CELLS = 2_000  # of such a model


class Run:
    """One training. The target says what is sought, the search has the best tree, `bound` what is proved so far."""

    def __init__(self, problem: Problem, settings: Settings, monitor: Monitor, plan: SolvePlan) -> None:
        self.settings = settings
        self.monitor = monitor
        self.plan = plan
        self.target = Target(problem, settings, plan)
        self.clock = SearchClock(monitor, kept_for_drawing(settings["hyperplanes"], monitor))
        instance = self.target.instance
        seed = settings["seed"]
        self.search = (
            DistantSearch(instance, seed, monitor.flag, plan.least, self.clock.halted)
            if plan.least
            else LocalSearch(instance, seed, monitor.flag)
        )
        self.bound = instance.ceiling
        self.packed: tuple[DepthTwoErrors, ...] | None = None
        self.extra: list[ObliqueTree] = []  # trees that are known already; then no other method is asked
        self.starts: list[ObliqueTree] = []
        self.trees: dict[int, ObliqueTree] = {}  # the best one that was reported with so many leaves
        self.shown: Fraction | None = None  # the value of the tree that was reported last
        self.first: float | None = None  # objective of the first tree
        self.raising: BoundRaising | None = None
        self.store: Store | None = None  # sets that nothing parts, if some are known
        self.form: Master | None = None
        self.outcome: Outcome | None = None
        self.struck: Status | None = None

    @property
    def instance(self) -> ObliqueInstance:
        """The points, with the rows that were packed."""
        return self.target.instance

    @property
    def units(self) -> Units:
        """The way back to the columns' own units."""
        return self.target.units

    def report(self) -> None:
        """Best tree and bound to the monitor; a picture only of a new tree."""
        search = self.search
        draft = None
        if self.shown is None or search.value > self.shown:
            self.shown, draft = search.value, draft_of(search.best, self.instance, self.units)
            self.trees[search.best.leaves] = search.best
        value = self.target.objective(search.value, search.best.leaves)
        self.monitor.report(
            incumbent=value, bound=max(value, self.target.upper(self.bound)), leaves=search.best.leaves, draft=draft,
            nodes=search.rounds,
        )  # fmt: skip

    def take(self, tree: ObliqueTree) -> None:
        """A first tree: it counts at once, and is shown if it is better."""
        self.search.consider(tree)
        if self.shown is None or self.search.value > self.shown:
            self.report()

    def solve(self) -> Solution:
        """First trees, local search, bounds of planes and cases, master model."""
        try:
            if self.target.splittable:
                self._local()
            self._pack()
            if self._open():
                self._raise()
            if self._open():
                self._master()
        except MemoryError:  # one array too many: tree and bound so far are kept
            self.struck = Status.MEMORY_LIMIT
        return self._solution()

    def _open(self) -> bool:
        """Whether there is anything left to prove, and time."""
        done = self.target.near(self.search.best, self.bound) or self.clock.halted()
        return not done and self.target.splittable

    def _local(self) -> None:
        """Presolve, first trees of other methods, and the search around them."""
        self.monitor.report(phase="first trees")
        if not self.extra:
            self.report()  # the single leaf and the bound of the rows: something to look at from the first moment
        self._presolve()
        seconds = min(self.settings["search_seconds"], 0.5 * self.clock.remaining())
        # a method without local search still gets its first tree
        limit = max(seconds / 2, min(2.0, 0.3 * self.clock.remaining()))
        self.starts = self.extra or first_trees(
            self.target.problem, self.settings, self.monitor, self.instance, self.units, self.bound, limit, self.take
        )
        for tree in self.extra:
            self.search.consider(tree)
        self.first = self.target.objective(self.search.value, self.search.best.leaves)
        self.report()
        self.monitor.report(phase="local search")
        self._search(self.starts, seconds, self._patience())

    def _cells(self) -> int:
        """The size of the master model: items times nodes."""
        return int((self.instance.counts > 0).sum()) * (self.instance.size - 1)

    def _patience(self) -> int:
        """Rounds of local search without a better tree before the solver begins."""
        near = self.bound - self.search.value <= 1 and self._cells() <= FEW_CELLS
        return min(MAX_ROUNDS_WITHOUT_GAIN, MAX_ROUNDS_NEAR_OPTIMUM) if near else MAX_ROUNDS_WITHOUT_GAIN

    def _presolve(self) -> None:
        """One plane, or few points decomposed by the root."""
        tree = one_plane(self.target, self.clock)
        if tree is not None:
            self.search.consider(tree)
        if self.search.value >= self.bound:
            return
        found = decomposed(self.target, self.clock, self.packed)
        if found is not None:
            self.packed = found
            for drawn in trees_of(self.target, found):
                self.search.consider(drawn)
            self._bounded(found)

    def _pack(self) -> None:
        """A better bound from rows that lie in planes."""
        if self.search.value >= self.bound or (self.packed is not None and self.instance.packed):
            return
        search = packing(self.target, self.clock)
        if search is None:
            return
        self.monitor.report(phase="bound of planes")
        if self.packed is None:
            self.packed = search.best()
        self._bounded(self.packed)

    def _bounded(self, packed: tuple[DepthTwoErrors, ...]) -> None:
        self.target.pack(packed)
        self.bound = min(self.bound, self.instance.ceiling)
        self.report()

    def _raise(self) -> None:
        """A better bound by cases, and perhaps a better tree."""
        self.monitor.report(phase="bound of cases")
        self.raising = BoundRaising(self.target, self.search, self.plan.least, self.clock, self.store)
        self.raising.run(self.bound, self._raised)

    def _raised(self, bound: Fraction) -> None:
        self.bound = min(self.bound, bound)
        self.report()

    def _search(self, starts: Sequence[ObliqueTree], seconds: float, patience: int = 1_000_000) -> None:
        stopped = self.clock.until(seconds)
        self.search.run(
            starts, enough=self.bound, stopped=stopped, news=lambda *_: self.report(), patience=patience
        )  # fmt: skip

    def _master(self) -> None:
        """The model under its solver, begun with the best tree."""
        instance = self.instance
        remaining = self.clock.remaining()
        solver = backend(self.settings["solver"])
        if self._cells() > MOST_CELLS:
            # a master model of this size never leaves its first relaxation: the time is better spent on trees
            self._search([], remaining if math.isfinite(remaining) else 60.0)
            return
        self.monitor.report(phase="model")
        try:
            form = self.form = self.plan.make(instance, self.clock.halted)
        except BuildStopped:
            return
        self.monitor.report(phase="search")
        hooks = self.plan.hooks(form, self._improve)
        kind = PlaneModel(form, hooks, self.target, self.search, self.bound, self._tell)
        start = form.assignment(self.search.best)
        options = options_of(
            self.settings, self.monitor, remaining=self.clock.remaining(), stopped=self.clock.halted
        )  # fmt: skip
        points = () if start is None else (start,)
        driven = drive(kind, solver, options, absolute_gap=self.target.absolute_gap, starts=points)
        self.outcome = driven.outcome
        self.bound = min(self.bound, driven.bound)
        if self.bound < self.search.value:
            self.bound = kind.beaten(self.bound, solver.name)
        self.struck = STRUCK.get(driven.outcome.ended)

    def _improve(self, tree: ObliqueTree) -> ObliqueTree | None:
        """A better tree made of the routes that a point asked for, or None."""
        until = self.clock.until(0.5)
        found = self.search.consider(tree) or self.search.consider(self.search.improve(tree, until))
        return self.search.best if found else None

    def _tell(self, bound: float, nodes: int) -> bool:
        """News of the solver; True ends it."""
        if not math.isinf(bound):
            self.bound = min(self.bound, max(self.target.rounded(bound), self.search.value))
        self.report()
        self.monitor.report(nodes=nodes)
        return self.clock.halted() or self.search.value >= self.bound

    def _solution(self) -> Solution:
        if self.struck is None and self.clock.halted():
            self.struck = Status.TIME_LIMIT
        drawing = Drawing(self.target, self.plan, self.search, self.monitor)
        tree, in_style = drawing.drawn()
        claimed, draft = drawing.in_units(tree, self.starts)
        value = self.instance.value(claimed)
        outcome = self.outcome
        bound, upper = max(self.bound, value), self.target.upper(max(self.bound, value))
        claim = max(upper, self.target.objective(value, claimed.leaves)) if bound <= value else upper
        # the search may end within the gap that was asked for; otherwise only a bound that is met is a proof
        finished = self.target.near(claimed, self.bound)
        # an open gap without a limit: the solver saw no finer or gave up, a tree could not be drawn, or there was no model
        if not finished and self.monitor.reason is None and self.struck is not None:
            self.monitor.stop(self.struck)
        return Solution(
            draft=draft,
            bound=claim,
            finished=finished,
            unproved=LEAVES_OPEN if self.settings.get("then_fewest") and bound > value else "",
            scope=scope_words(self.plan.scope, self.target.problem),
            nodes=self.search.rounds if outcome is None else outcome.nodes,
            cuts={} if outcome is None else outcome.rows,
            encoded_features=self.instance.Z.shape[1],
            solver="octweb" if outcome is None else outcome.solver,
            solver_version="" if outcome is None else outcome.version,
            warm_start_objective=self.first,
            evidence=(self._evidence(claimed, in_style), *self._planes(), *self._distance()),
            note=self._note(claimed),
            proof=None if self.raising is None else partial(self.raising.kept, Fraction(claim)),
        )

    def _distance(self) -> Sequence[dict[str, Any]]:
        """What planes keep from the rows on their right, in their own unit and, for a question on one column, in the column's."""
        least = self.plan.least
        units = self.units
        if not least:
            return ()
        columns = {f.name: least * float(span) for f, span in zip(units.encoding.features, units.span, strict=True)}
        return ({"kind": Evidence.DISTANCE, "distance": least, "columns": columns},)

    def _note(self, claimed: ObliqueTree) -> str:
        """A word if a tree of single columns that was met is better than the best of the class."""
        plain = [tree for tree in self.starts if all(np.count_nonzero(tree.a[v]) <= 1 for v in tree.branches)]
        best = max(map(self.instance.pruned, plain), key=self.instance.value, default=None)
        if not self.plan.least or best is None or self.instance.value(best) <= self.instance.value(claimed):
            return ""
        right = self.instance.correct(best)
        own = self.instance.correct(claimed)
        n = self.instance.total
        return (
            f"A tree of questions on single columns is better: {right} of {n} rows correct with {best.leaves} leaves, against {own} with "
            f"{claimed.leaves}. The hyperplanes of this method keep a distance of {self.plan.least} from the rows, and single columns "
            "need not; use cart, exact or cut-h."
        )

    def _planes(self) -> Sequence[dict[str, Any]]:
        """The rows of the sets with errors that are part of the bound, so that they can be counted again."""
        inst = self.instance
        if not inst.packed:
            return ()
        rows = [np.flatnonzero(np.isin(inst.group, packed.points)).tolist() for packed in inst.packed]
        groups = [{"rows": r, "errors": list(p.errors)} for r, p in zip(rows, inst.packed, strict=True)]
        return ({"kind": Evidence.PLANES, "bound": str(inst.ceiling), "groups": groups},)

    def _kind(self) -> Evidence:
        """What the bound rests on."""
        if self.outcome is not None:
            return Evidence.MIP
        return Evidence.BOUND_MET if self.raising is None or self.raising.bound is None else Evidence.CASES

    def _evidence(self, tree: ObliqueTree, in_style: bool) -> dict[str, Any]:
        solved = self.outcome is not None and self.form is not None
        return (
            {
                "kind": self._kind(),
                "value": str(self.instance.value(tree)),
                "bound": str(self.bound),
                "points": len(self.instance.Z),
                "rounds_of_local_search": self.search.rounds,
                "coefficients": int(sum(np.count_nonzero(tree.a[v]) for v in tree.branches)),
                "hyperplanes": self.settings["hyperplanes"] if in_style else "as found",
            }
            | ({} if self.raising is None else self.raising.record())
            | (record(self.outcome, self.form.model) if solved and self.outcome and self.form else {})
        )


def solve_oblique(problem: Problem, settings: Settings, monitor: Monitor, plan: SolvePlan) -> Solution:
    """Train a tree of hyperplanes as the plan says, and say what is proved."""
    with threadpool_limits(limits=settings["threads"], user_api="blas"):  # small systems: more threads only wait
        return Run(problem, settings, monitor, plan).solve()
