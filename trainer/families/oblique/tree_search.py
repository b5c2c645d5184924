"""Train a hyperplane tree.

The steps are presolve, start trees, local search, bounds, master model and claim. A method provides a function that
makes its master model over an instance; `solve_oblique` does the rest. A tree that meets the bound of the instance is
optimal without a solver. The bound holds because equal rows share a leaf and t leaves predict at most t classes.
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
from trainer.families.oblique.drawing import Drawing, drawing_seconds
from trainer.families.oblique.instance import DepthTwoErrors, ObliqueInstance, ObliqueTree
from trainer.families.oblique.local import LocalSearch
from trainer.families.oblique.master import PlaneModel
from trainer.families.oblique.plan import LEAVES_OPEN, Master, SolvePlan, scope_words
from trainer.families.oblique.presolve import build_trees, decompose_root, make_packing, separate_by_one_plane
from trainer.families.oblique.raising import BoundRaising
from trainer.families.oblique.starts import first_trees
from trainer.families.oblique.store import Store
from trainer.families.oblique.target import SearchClock, Target
from trainer.families.oblique.units import Units, make_draft
from trainer.methods.base import Settings, Solution
from trainer.methods.monitor import Monitor
from trainer.milo import BuildStopped, Outcome, backend
from trainer.solver_common.tree_model import STATUS_OF_LIMIT, drive, options_of, solve_record

MAX_MODEL_CELLS = 30_000  # limit on items × nodes; a larger master model does not finish its relaxation in time
MAX_ROUNDS_WITHOUT_GAIN = 500  # local search ends after this many rounds without a better tree, and the solver starts
MAX_ROUNDS_NEAR_OPTIMUM = 100  # the same limit if at most one row can be gained and the model is small
SMALL_MODEL_CELLS = 2_000  # limit on items × nodes of a small model


class Run:
    """One training: `target` is the problem, `search` has the incumbent, `bound` is the proved upper bound."""

    def __init__(self, problem: Problem, settings: Settings, monitor: Monitor, plan: SolvePlan) -> None:
        self.settings = settings
        self.monitor = monitor
        self.plan = plan
        self.target = Target(problem, settings, plan)
        self.clock = SearchClock(monitor, drawing_seconds(settings["hyperplanes"], monitor))
        instance = self.target.instance
        seed = settings["seed"]
        self.search = (
            DistantSearch(instance, seed, monitor.flag, plan.least, self.clock.is_over)
            if plan.least
            else LocalSearch(instance, seed, monitor.flag)
        )
        self.bound = instance.ceiling
        self.packed: tuple[DepthTwoErrors, ...] | None = None
        self.extra: list[ObliqueTree] = []  # known trees, which replace the start trees of other methods
        self.starts: list[ObliqueTree] = []
        self.trees: dict[int, ObliqueTree] = {}  # best reported tree for each number of leaves
        self.reported_value: Fraction | None = None
        self.first: float | None = None  # objective of the start tree
        self.raising: BoundRaising | None = None
        self.store: Store | None = None  # inseparable sets that an earlier run found
        self.form: Master | None = None
        self.outcome: Outcome | None = None
        self.limit_status: Status | None = None

    @property
    def instance(self) -> ObliqueInstance:
        """The instance, including packed sets."""
        return self.target.instance

    @property
    def units(self) -> Units:
        """Conversion to the columns' units."""
        return self.target.units

    def report(self) -> None:
        """Report incumbent and bound to the monitor, with a draft only of a new tree."""
        search = self.search
        draft = None
        if self.reported_value is None or search.value > self.reported_value:
            self.reported_value = search.value
            draft = make_draft(search.best, self.instance, self.units)
            self.trees[search.best.leaves] = search.best
        value = self.target.objective(search.value, search.best.leaves)
        self.monitor.report(
            incumbent=value,
            bound=max(value, self.target.upper(self.bound)),
            leaves=search.best.leaves,
            draft=draft,
            nodes=search.rounds,
        )

    def take(self, tree: ObliqueTree) -> None:
        """Consider a start tree, and report it if it is better."""
        self.search.consider(tree)
        if self.reported_value is None or self.search.value > self.reported_value:
            self.report()

    def solve(self) -> Solution:
        """Run start trees, local search, bounds of planes and cases, and the master model."""
        try:
            if self.target.splittable:
                self._local()
            self._pack()
            if self._has_work():
                self._raise()
            if self._has_work():
                self._master()
        except MemoryError:  # the incumbent and the bound stay valid, so return them
            self.limit_status = Status.MEMORY_LIMIT
        return self._solution()

    def _has_work(self) -> bool:
        """Return whether the gap is open and time remains."""
        is_done = self.target.meets(self.search.best, self.bound) or self.clock.is_over()
        return not is_done and self.target.splittable

    def _local(self) -> None:
        """Run presolve, start trees of other methods, and local search."""
        self.monitor.report(phase="first trees")
        if not self.extra:
            self.report()  # report the single leaf and the first bound at once
        self._presolve()
        seconds = min(self.settings["search_seconds"], 0.5 * self.clock.remaining())
        # even a run without local search needs a start tree
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
        """Return the size of the master model: items times nodes."""
        return int((self.instance.counts > 0).sum()) * (self.instance.size - 1)

    def _patience(self) -> int:
        """Return the rounds of local search without a better tree before the solver starts."""
        near = self.bound - self.search.value <= 1 and self._cells() <= SMALL_MODEL_CELLS
        return min(MAX_ROUNDS_WITHOUT_GAIN, MAX_ROUNDS_NEAR_OPTIMUM) if near else MAX_ROUNDS_WITHOUT_GAIN

    def _presolve(self) -> None:
        """Try one plane, then the decomposition of few points at the root."""
        tree = separate_by_one_plane(self.target, self.clock)
        if tree is not None:
            self.search.consider(tree)
        if self.search.value >= self.bound:
            return
        packed = decompose_root(self.target, self.clock, self.packed)
        if packed is not None:
            self.packed = packed
            for candidate in build_trees(self.target, packed):
                self.search.consider(candidate)
            self._use_packing(packed)

    def _pack(self) -> None:
        """Tighten the bound by rows that lie in planes."""
        if self.search.value >= self.bound or (self.packed is not None and self.instance.packed):
            return
        search = make_packing(self.target, self.clock)
        if search is None:
            return
        self.monitor.report(phase="bound of planes")
        if self.packed is None:
            self.packed = search.best()
        self._use_packing(self.packed)

    def _use_packing(self, packed: tuple[DepthTwoErrors, ...]) -> None:
        self.target.pack(packed)
        self.bound = min(self.bound, self.instance.ceiling)
        self.report()

    def _raise(self) -> None:
        """Tighten the bound by case analysis, which may also find a better tree."""
        self.monitor.report(phase="bound of cases")
        self.raising = BoundRaising(self.target, self.search, self.plan.least, self.clock, self.store)
        self.raising.run(self.bound, self._tighten)

    def _tighten(self, bound: Fraction) -> None:
        self.bound = min(self.bound, bound)
        self.report()

    def _search(self, starts: Sequence[ObliqueTree], seconds: float, patience: int = 1_000_000) -> None:
        stopped = self.clock.until(seconds)
        self.search.run(
            starts, enough=self.bound, stopped=stopped, on_improvement=lambda *_: self.report(), patience=patience
        )

    def _master(self) -> None:
        """Solve the master model, warm-started with the best tree."""
        instance = self.instance
        remaining = self.clock.remaining()
        solver = backend(self.settings["solver"])
        if self._cells() > MAX_MODEL_CELLS:
            # such a model does not complete its first relaxation, so give its time to local search
            self._search([], remaining if math.isfinite(remaining) else 60.0)
            return
        self.monitor.report(phase="model")
        try:
            form = self.form = self.plan.make(instance, self.clock.is_over)
        except BuildStopped:
            return
        self.monitor.report(phase="search")
        hooks = self.plan.hooks(form, self._improve)
        kind = PlaneModel(form, hooks, self.target, self.search, self.bound, self._on_progress)
        start = form.assignment(self.search.best)
        options = options_of(self.settings, self.monitor, remaining=self.clock.remaining(), stopped=self.clock.is_over)
        points = () if start is None else (start,)
        driven = drive(kind, solver, options, absolute_gap=self.target.absolute_gap, starts=points)
        self.outcome = driven.outcome
        self.bound = min(self.bound, driven.bound)
        if self.bound < self.search.value:
            self.bound = kind.accept_value(self.bound, solver.name)
        self.limit_status = STATUS_OF_LIMIT.get(driven.outcome.ended)

    def _improve(self, tree: ObliqueTree) -> ObliqueTree | None:
        """Return a better tree made of the routes of a rejected point, or None."""
        until = self.clock.until(0.5)
        improved = self.search.consider(tree) or self.search.consider(self.search.improve(tree, until))
        return self.search.best if improved else None

    def _on_progress(self, bound: float, nodes: int) -> bool:
        """Update the bound by the solver's; return whether to stop."""
        if not math.isinf(bound):
            self.bound = min(self.bound, max(self.target.round_down(bound), self.search.value))
        self.report()
        self.monitor.report(nodes=nodes)
        return self.clock.is_over() or self.search.value >= self.bound

    def _solution(self) -> Solution:
        if self.limit_status is None and self.clock.is_over():
            self.limit_status = Status.TIME_LIMIT
        drawing = Drawing(self.target, self.plan, self.search, self.monitor)
        tree, in_style = drawing.draw()
        claimed, draft = drawing.in_units(tree, self.starts)
        value = self.instance.value(claimed)
        outcome = self.outcome
        bound = max(self.bound, value)
        upper = self.target.upper(bound)
        claim = max(upper, self.target.objective(value, claimed.leaves)) if bound <= value else upper
        # the search may end within the requested gap; otherwise the tree must meet the bound
        finished = self.target.meets(claimed, self.bound)
        # the gap is open without a limit if the solver failed or was too imprecise, a tree could not be drawn, or there
        # was no model
        if not finished and self.monitor.reason is None and self.limit_status is not None:
            self.monitor.stop(self.limit_status)
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
            evidence=(self._evidence(claimed, in_style), *self._packing_evidence(), *self._distance_evidence()),
            note=self._note(claimed),
            proof=None if self.raising is None else partial(self.raising.make_proof, Fraction(claim)),
        )

    def _distance_evidence(self) -> Sequence[dict[str, Any]]:
        """Return the distance of planes from the rows on their right, in scaled units and in those of each column."""
        least = self.plan.least
        units = self.units
        if not least:
            return ()
        columns = {f.name: least * float(span) for f, span in zip(units.encoding.features, units.span, strict=True)}
        return ({"kind": Evidence.DISTANCE, "distance": least, "columns": columns},)

    def _note(self, claimed: ObliqueTree) -> str:
        """Return a note if a start tree with single-column splits is better than the best tree of the class."""
        plain = [tree for tree in self.starts if all(np.count_nonzero(tree.a[v]) <= 1 for v in tree.branches)]
        best = max(map(self.instance.prune, plain), key=self.instance.value, default=None)
        if not self.plan.least or best is None or self.instance.value(best) <= self.instance.value(claimed):
            return ""
        best_correct = self.instance.correct(best)
        correct = self.instance.correct(claimed)
        n = self.instance.total
        return (
            f"A tree of questions on single columns is better: {best_correct} of {n} rows correct with {best.leaves} leaves, against {correct} with "
            f"{claimed.leaves}. The hyperplanes of this method keep a distance of {self.plan.least} from the rows, and single columns "
            "need not. Use cart, exact or cut-h."
        )

    def _packing_evidence(self) -> Sequence[dict[str, Any]]:
        """Return the packed sets as evidence, so that their errors can be verified."""
        inst = self.instance
        if not inst.packed:
            return ()
        rows = [np.flatnonzero(np.isin(inst.group, packed.points)).tolist() for packed in inst.packed]
        groups = [{"rows": r, "errors": list(p.errors)} for r, p in zip(rows, inst.packed, strict=True)]
        return ({"kind": Evidence.PLANES, "bound": str(inst.ceiling), "groups": groups},)

    def _evidence_kind(self) -> Evidence:
        """Return the kind of evidence for the bound."""
        if self.outcome is not None:
            return Evidence.MIP
        return Evidence.BOUND_MET if self.raising is None or self.raising.bound is None else Evidence.CASES

    def _evidence(self, tree: ObliqueTree, in_style: bool) -> dict[str, Any]:
        solved = self.outcome is not None and self.form is not None
        return (
            {
                "kind": self._evidence_kind(),
                "value": str(self.instance.value(tree)),
                "bound": str(self.bound),
                "points": len(self.instance.Z),
                "rounds_of_local_search": self.search.rounds,
                "coefficients": int(sum(np.count_nonzero(tree.a[v]) for v in tree.branches)),
                "hyperplanes": self.settings["hyperplanes"] if in_style else "as found",
            }
            | ({} if self.raising is None else self.raising.record())
            | (solve_record(self.outcome, self.form.model) if solved and self.outcome and self.form else {})
        )


def solve_oblique(problem: Problem, settings: Settings, monitor: Monitor, plan: SolvePlan) -> Solution:
    """Train a hyperplane tree by the plan; return it with its bound and evidence."""
    with threadpool_limits(limits=settings["threads"], user_api="blas"):  # more threads slow small linear systems down
        return Run(problem, settings, monitor, plan).solve()
