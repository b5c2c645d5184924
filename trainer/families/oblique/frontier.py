"""Compute Pareto fronts of accuracy against leaves and coefficients of hyperplane trees.

Each number of leaves is one solve with the row Σ branchings <= N, warm-started with the earlier trees (Alston, Validi & Hicks, the
ε-constraint form of the two-objective problem). Trees with few coefficients come from these trees by removing coefficients. k
coefficients allow at most k + 1 leaves, so the bound of that number of leaves holds for them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from trainer.certificate import Evidence, Status
from trainer.data.problem import Problem
from trainer.families.oblique.instance import ObliqueInstance, ObliqueTree
from trainer.families.oblique.local import LocalSearch
from trainer.families.oblique.plan import LEAVES_OPEN, SolvePlan, scope_words
from trainer.families.oblique.proving import make_plane_proof
from trainer.families.oblique.refit import refit_planes
from trainer.families.oblique.separable import Separator
from trainer.families.oblique.sparse import eliminate_coefficients
from trainer.families.oblique.starts import InnerMonitor, first_trees
from trainer.families.oblique.store import Store
from trainer.families.oblique.tree_search import Run
from trainer.families.oblique.units import Units, make_draft
from trainer.methods.base import ProofSteps, Settings, Solution, unsettled
from trainer.methods.monitor import Monitor
from trainer.tree.nodes import Draft, Tree

MAX_DRAWING_SECONDS = 20.0  # time for planes with few columns; at most 15 % of the remaining time, too
THINNING_REPEATS = 3  # coefficients are eliminated this many times, with different seeds
MAX_THINNING_SECONDS = 10.0  # time for eliminating coefficients; at most half of the remaining time, too


@dataclass(frozen=True, kw_only=True)
class SizeOptimum:
    """The best tree with at most `leaves` leaves, and an upper bound on the correct rows."""

    leaves: int
    correct: int
    bound: int
    draft: Draft
    tree: ObliqueTree
    run: Run


def solve_frontier(problem: Problem, settings: Settings, monitor: Monitor, plan: SolvePlan) -> Solution:
    """Return the best tree by the objective, with both fronts as evidence. Numbers of leaves share the time."""
    most = settings["max_leaves"] or 1 << settings["depth"]
    most = min(most, 1 << settings["depth"])
    sizes: list[SizeOptimum] = []
    plain = replace(problem, leaf_penalty=Fraction(0))
    plain_settings = Settings(dict(settings) | {"then_fewest": False, "mip_gap": 0.0})
    first = Settings(dict(plain_settings) | {"max_leaves": most})
    known_trees, everything = _first_trees(plain, first, monitor, plan, problem.leaf_penalty)
    drawing_seconds = 0.0 if math.isinf(monitor.remaining()) else min(MAX_DRAWING_SECONDS, 0.15 * monitor.remaining())
    for t in range(1, most + 1):
        monitor.report(phase=f"at most {t} {'leaf' if t == 1 else 'leaves'}")
        share = max(0.0, monitor.remaining() - drawing_seconds) / (most + 1 - t)
        with SizeMonitor(monitor, share if math.isfinite(share) else 1e9, problem.leaf_penalty) as inner:
            run = Run(plain, Settings(dict(plain_settings) | {"max_leaves": t}), inner, plan)
            run.extra = list(known_trees)
            if sizes:
                run.packed = sizes[-1].run.packed
                run.store = _last_store(sizes)
            with threadpool_limits(limits=settings["threads"], user_api="blas"):
                solution = run.solve()
        known_trees += [*run.trees.values(), run.search.best]
        tree = problem.tree(solution.draft)
        correct = problem.correct(tree)
        bound = max(correct, math.floor(run.bound + Fraction(1, 10**6)))
        sizes.append(
            SizeOptimum(
                leaves=tree.n_leaves, correct=correct, bound=bound, draft=solution.draft, tree=run.search.best, run=run
            )
        )
        open_values = [s.bound - problem.kappa * (i + 1) for i, s in enumerate(sizes)]
        if t < most:
            open_values.append(everything - problem.kappa * (t + 1))
        monitor.report(bound=float(max(open_values) / problem.n))
        if correct >= run.target.max_correct:
            break  # no tree can classify more rows correctly, so more leaves cannot help
    return _solution(problem, settings, monitor, plan, _exchange_trees(problem, sizes), most)


def _exchange_trees(problem: Problem, sizes: list[SizeOptimum]) -> list[SizeOptimum]:
    """Give each size the best tree that any solve has reported for it."""
    run_trees = [(s.run, tree) for s in sizes for tree in s.run.trees.values()]
    improved: list[SizeOptimum] = []
    for t, s in enumerate(sizes, start=1):
        best = s
        for run, tree in run_trees:
            if tree.leaves > t or run.instance.value(tree) <= best.correct:
                continue
            draft = make_draft(tree, run.instance, run.units)
            if draft is not None:
                fitted = problem.tree(draft)
                correct = problem.correct(fitted)
                if correct > best.correct:
                    best = replace(s, leaves=fitted.n_leaves, correct=correct, draft=draft, tree=tree)
        improved.append(replace(best, bound=max(s.bound, best.correct)))
    for t in range(len(improved) - 1, 0, -1):  # a bound for larger trees also holds for smaller ones
        improved[t - 1] = replace(improved[t - 1], bound=min(improved[t - 1].bound, improved[t].bound))
    return improved


class SizeMonitor(InnerMonitor):
    """Monitor of a search without leaf price inside a run with one."""

    def __init__(self, outer: Monitor, seconds: float, price: Fraction) -> None:
        super().__init__(outer, seconds)
        self.price = float(price)

    def report(self, **progress: Any) -> None:
        """Store the report, and report trees to the run at the run's price."""
        super().report(**progress)
        if progress.get("incumbent") is not None and progress.get("leaves") is not None:
            value = progress["incumbent"] - self.price * progress["leaves"]
            self.outer.report(incumbent=value, leaves=progress["leaves"], draft=progress.get("draft"))


def _first_trees(
    problem: Problem, settings: Settings, monitor: Monitor, plan: SolvePlan, price: Fraction
) -> tuple[list[ObliqueTree], int]:
    """Return the start trees of other methods, and an upper bound on the correct rows of all trees."""
    monitor.report(phase="first trees")
    run = Run(problem, settings, SizeMonitor(monitor, min(monitor.remaining(), 1e9), price), plan)
    run.report()
    monitor.report(bound=float((run.target.max_correct - price * problem.n) / problem.n))
    if not run.instance.depth or not run.instance.Z.shape[1]:
        return [], run.target.max_correct
    seconds = max(min(0.5 * settings["search_seconds"], 0.2 * monitor.remaining()), min(2.0, 0.1 * monitor.remaining()))
    with threadpool_limits(limits=settings["threads"], user_api="blas"):
        trees = first_trees(problem, settings, monitor, run.instance, run.units, run.bound, seconds, run.take)
    return trees, run.target.max_correct


def _solution(
    problem: Problem, settings: Settings, monitor: Monitor, plan: SolvePlan, sizes: list[SizeOptimum], most: int
) -> Solution:
    kappa = problem.kappa
    best = max(sizes, key=lambda s: (s.correct - kappa * s.leaves, -s.leaves))
    # entry t bounds trees with t + 1 leaves; more leaves than were solved for gain nothing
    bound = max(s.bound - kappa * (t + 1) for t, s in enumerate(sizes))
    bound = max(bound, best.correct - kappa * best.leaves)
    monitor.report(incumbent=float((best.correct - kappa * best.leaves) / problem.n), bound=float(bound / problem.n))
    outcomes = [s.run.outcome for s in sizes if s.run.outcome is not None]
    smaller = [s.bound - kappa * (t + 1) for t, s in enumerate(sizes[: best.leaves - 1])]
    fewest = not settings["then_fewest"] or max(smaller, default=bound - 1) < best.correct - kappa * best.leaves
    finished = fewest and bound <= best.correct - kappa * best.leaves
    points = _leaf_points(problem, sizes)
    reached = [max(s.correct for s in sizes[: t + 1]) for t in range(len(sizes))]
    still = unsettled(reached, [s.bound for s in sizes], {p["leaves"] for p in points})
    coefficients = _coefficient_points(problem, sizes, monitor, most)
    if not finished:
        monitor.stop(sizes[-1].run.monitor.reason or Status.TIME_LIMIT)
    return Solution(
        draft=best.draft,
        bound=float(bound / problem.n),
        finished=finished,
        unproved="" if fewest else LEAVES_OPEN,
        scope=scope_words(plan.scope, problem),
        nodes=sum(outcome.nodes for outcome in outcomes),
        encoded_features=best.run.instance.Z.shape[1],
        solver=outcomes[-1].solver if outcomes else "octweb",
        solver_version=outcomes[-1].version if outcomes else "",
        evidence=(
            {"kind": Evidence.LEAF_FRONTIER, "n": problem.n, "most": most, "points": points, "unsettled": still},
            {"kind": Evidence.COEFFICIENT_FRONTIER, "n": problem.n, "points": coefficients},
        ),
        proof=lambda stop: _prove(problem, plan, sizes, most, stop),
    )


def _last_store(sizes: list[SizeOptimum]) -> Store | None:
    """Return the store of the last case analysis."""
    stores = [s.run.raising.proof.store for s in sizes if s.run.raising is not None]
    return stores[-1] if stores else None


def _prove(
    problem: Problem, plan: SolvePlan, sizes: list[SizeOptimum], most: int, stop: Callable[[], bool]
) -> ProofSteps | None:
    """Prove the bounds of all numbers of leaves; None if that takes too long."""
    target = sizes[0].run.target
    instance = replace(target.instance, max_leaves=most)
    proof = make_plane_proof(problem, instance, target.units, plan.least, stop, min_leaf=instance.min_leaf)
    proof.store = (_last_store(sizes) or proof.store).restart(stop)
    goals = [problem.n - s.bound for s in sizes][: proof.leaves]
    steps = proof.frontier(goals)
    kappa = problem.kappa
    cost = min(errors + t * kappa for t, errors in enumerate(goals, start=1)) * kappa.denominator
    return None if steps is None else ProofSteps(scale=1, goal=int(cost), steps=steps, goals=goals)


def _leaf_points(problem: Problem, sizes: list[SizeOptimum]) -> list[dict[str, Any]]:
    """Return the non-dominated sizes, the smallest first. A stopped search may find a small tree at a later size."""
    points: list[dict[str, Any]] = []
    for s in sorted(sizes, key=lambda s: (s.leaves, -s.correct)):
        if points and s.correct <= points[-1]["correct"]:
            continue
        bound = sizes[s.leaves - 1].bound if s.leaves <= len(sizes) else s.bound
        points.append(
            {
                "leaves": s.leaves,
                "branchings": s.leaves - 1,
                "correct": s.correct,
                "bound": bound,
                "proved": bound == s.correct,
                "tree": problem.finish(problem.tree(s.draft)).to_json(),
            }
        )
    return points


def _coefficient_points(
    problem: Problem, sizes: list[SizeOptimum], monitor: Monitor, most: int
) -> list[dict[str, Any]]:
    """Return the non-dominated points of coefficients and correct rows.

    Candidates are the trees of all sizes, their sparse drawings, trees with coefficients removed, and the start trees.
    """
    measured: list[tuple[int, int, Tree]] = []
    seconds = min(MAX_THINNING_SECONDS, 0.5 * monitor.remaining()) / len(sizes)
    stopped = monitor.stopped
    for s in sizes:
        instance = s.run.instance
        units = s.run.units
        measured += [_size_and_correct(problem, s.draft)]
        sparse = _draw_sparse(instance, units, s.tree, stopped)
        limits = [instance] if s is not sizes[-1] else [instance, replace(instance, max_leaves=most)]
        # a larger tree of another method may have fewer coefficients
        starts = [] if stopped() else [limit.prune(start) for start in s.run.starts for limit in limits]
        for tree in _non_dominated(instance, [sparse, *starts, *_thinned_trees(s, sparse, stopped, seconds)]):
            draft = make_draft(tree, instance, units)
            if draft is not None:
                measured.append(_size_and_correct(problem, draft))
    points: list[dict[str, Any]] = []
    for coefficients, correct, tree_found in sorted(measured, key=lambda f: (f[0], -f[1])):
        if not points or correct > points[-1]["correct"]:
            # each split has at least one coefficient, so k coefficients allow at most k + 1 leaves
            bound = max(correct, sizes[min(coefficients, len(sizes) - 1)].bound)
            points.append(
                {
                    "coefficients": coefficients,
                    "leaves": tree_found.n_leaves,
                    "correct": correct,
                    "bound": bound,
                    "proved": correct == bound,
                    "tree": tree_found.to_json(),
                }
            )
    return points


def _thinned_trees(
    size: SizeOptimum, sparse: ObliqueTree, stopped: Callable[[], bool], seconds: float
) -> list[ObliqueTree]:
    """Return the trees met while coefficients of the tree and of its sparse form are removed."""
    end = time.perf_counter() + seconds

    def late() -> bool:
        return stopped() or time.perf_counter() > end

    return [
        thin
        for seed in range(THINNING_REPEATS)
        for tree in (sparse, size.tree)
        for thin in eliminate_coefficients(LocalSearch(size.run.instance, seed), tree, late)
    ]


def _non_dominated(instance: ObliqueInstance, trees: Sequence[ObliqueTree]) -> list[ObliqueTree]:
    """Return the trees with more correct rows than all trees with fewer coefficients."""
    front: list[ObliqueTree] = []
    best = -1
    for tree in sorted(trees, key=lambda t: (t.coefficients, -instance.correct(t))):
        if instance.correct(tree) > best:
            best = instance.correct(tree)
            front.append(tree)
    return front


def _draw_sparse(
    instance: ObliqueInstance, units: Units, tree: ObliqueTree, stopped: Callable[[], bool]
) -> ObliqueTree:
    columns = np.array([f.column for f in units.encoding.features], np.int64)
    return instance.prune(refit_planes(instance, tree, Separator(instance.Z), "sparse", columns, stopped)[0])


def _size_and_correct(problem: Problem, draft: Draft) -> tuple[int, int, Tree]:
    """Return non-zero coefficients, correct rows and the tree; a threshold or subset counts as one coefficient."""
    tree = problem.finish(problem.tree(draft))
    coefficients = sum(v.split.parts() for v in tree.branches if v.split is not None)
    return coefficients, problem.correct(tree), tree
