"""The frontier of accuracy against size for trees of hyperplanes: the most rows correct for each number of leaves, and of coefficients.

One solve for each number of leaves, the limit as a row of the model (Σ branchings <= N), begun with the trees of the solves before
(Alston, Validi & Hicks, the ε-constraint form of the two-objective problem). Trees with few
coefficients are made from the trees that were found, by leaving coefficients out; their bounds are the bounds for their numbers of leaves.
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
from trainer.families.oblique.proving import analysis
from trainer.families.oblique.refit import refitted
from trainer.families.oblique.separable import Separator
from trainer.families.oblique.sparse import thinned
from trainer.families.oblique.starts import Inner, first_trees
from trainer.families.oblique.store import Store
from trainer.families.oblique.tree_search import Run
from trainer.families.oblique.units import Units, draft_of
from trainer.methods.base import ProofSteps, Settings, Solution, unsettled
from trainer.methods.monitor import Monitor
from trainer.tree.nodes import Draft, Tree

DRAWING = 20.0  # seconds for planes with few columns, at most 15 % of the limit
REPEATS = 3  # times that coefficients are left out, with other random choices
THINNING = 10.0  # seconds for leaving out coefficients, at most half of what is left


@dataclass(frozen=True, kw_only=True)
class SizeOptimum:
    """The best tree with at most `leaves` leaves, and a proved largest number of correct rows."""

    leaves: int
    correct: int
    bound: int
    draft: Draft
    tree: ObliqueTree
    run: Run


def solve_frontier(problem: Problem, settings: Settings, monitor: Monitor, plan: SolvePlan) -> Solution:
    """The best tree by the objective, with the whole frontier as evidence; the time is shared by the numbers of leaves."""
    most = settings["max_leaves"] or 1 << settings["depth"]
    most = min(most, 1 << settings["depth"])
    sizes: list[SizeOptimum] = []
    plain = replace(problem, leaf_penalty=Fraction(0))
    asked = Settings(dict(settings) | {"then_fewest": False, "mip_gap": 0.0})
    first = Settings(dict(asked) | {"max_leaves": most})
    known, everything = _first(plain, first, monitor, plan, problem.leaf_penalty)
    kept = 0.0 if math.isinf(monitor.remaining()) else min(DRAWING, 0.15 * monitor.remaining())
    for t in range(1, most + 1):
        monitor.report(phase=f"at most {t} {'leaf' if t == 1 else 'leaves'}")
        share = max(0.0, monitor.remaining() - kept) / (most + 1 - t)
        with SizeMonitor(monitor, share if math.isfinite(share) else 1e9, problem.leaf_penalty) as inner:
            run = Run(plain, Settings(dict(asked) | {"max_leaves": t}), inner, plan)
            run.extra = list(known)
            if sizes:
                run.packed = sizes[-1].run.packed
                run.store = _store(sizes)
            with threadpool_limits(limits=settings["threads"], user_api="blas"):
                solution = run.solve()
        known += [*run.trees.values(), run.search.best]
        tree = problem.tree(solution.draft)
        correct = problem.correct(tree)
        bound = max(correct, math.floor(run.bound + Fraction(1, 10**6)))
        sizes.append(
            SizeOptimum(
                leaves=tree.n_leaves, correct=correct, bound=bound, draft=solution.draft, tree=run.search.best, run=run
            )
        )
        left = [s.bound - problem.kappa * (i + 1) for i, s in enumerate(sizes)]
        if t < most:
            left.append(everything - problem.kappa * (t + 1))
        monitor.report(bound=float(max(left) / problem.n))
        if correct >= run.target.everything:
            break  # no number of leaves gives more
    return _solution(problem, settings, monitor, plan, _exchanged(problem, sizes), most)


def _exchanged(problem: Problem, sizes: list[SizeOptimum]) -> list[SizeOptimum]:
    """Each size with the best tree that any solve has shown for it."""
    shown = [(s.run, tree) for s in sizes for tree in s.run.trees.values()]
    found: list[SizeOptimum] = []
    for t, s in enumerate(sizes, start=1):
        best = s
        for run, tree in shown:
            if tree.leaves > t or run.instance.value(tree) <= best.correct:
                continue
            draft = draft_of(tree, run.instance, run.units)
            if draft is not None:
                whole = problem.tree(draft)
                correct = problem.correct(whole)
                if correct > best.correct:
                    best = replace(s, leaves=whole.n_leaves, correct=correct, draft=draft, tree=tree)
        found.append(replace(best, bound=max(s.bound, best.correct)))
    for t in range(len(found) - 1, 0, -1):  # what no larger tree exceeds, no smaller one does
        found[t - 1] = replace(found[t - 1], bound=min(found[t - 1].bound, found[t].bound))
    return found


class SizeMonitor(Inner):
    """The monitor of a search at no price of leaves: its trees count for the whole run, at the price that leaves have there."""

    def __init__(self, outer: Monitor, seconds: float, price: Fraction) -> None:
        super().__init__(outer, seconds)
        self.price = float(price)

    def report(self, **news: Any) -> None:
        """Keep the news, and pass trees on."""
        super().report(**news)
        if news.get("incumbent") is not None and news.get("leaves") is not None:
            value = news["incumbent"] - self.price * news["leaves"]
            self.outer.report(incumbent=value, leaves=news["leaves"], draft=news.get("draft"))


def _first(
    problem: Problem, settings: Settings, monitor: Monitor, plan: SolvePlan, price: Fraction
) -> tuple[list[ObliqueTree], int]:
    """The trees of other methods, which every number of leaves begins with, and the rows that no tree exceeds."""
    monitor.report(phase="first trees")
    run = Run(problem, settings, SizeMonitor(monitor, min(monitor.remaining(), 1e9), price), plan)
    run.report()
    monitor.report(bound=float((run.target.everything - price * problem.n) / problem.n))
    if not run.instance.depth or not run.instance.Z.shape[1]:
        return [], run.target.everything
    seconds = max(min(0.5 * settings["search_seconds"], 0.2 * monitor.remaining()), min(2.0, 0.1 * monitor.remaining()))
    with threadpool_limits(limits=settings["threads"], user_api="blas"):
        trees = first_trees(problem, settings, monitor, run.instance, run.units, run.bound, seconds, run.take)
    return trees, run.target.everything


def _solution(
    problem: Problem, settings: Settings, monitor: Monitor, plan: SolvePlan, sizes: list[SizeOptimum], most: int
) -> Solution:
    kappa = problem.kappa
    best = max(sizes, key=lambda s: (s.correct - kappa * s.leaves, -s.leaves))
    # a tree with t + 1 leaves has at most the rows of its own solve; more leaves than were solved for gain nothing
    bound = max(s.bound - kappa * (t + 1) for t, s in enumerate(sizes))
    bound = max(bound, best.correct - kappa * best.leaves)
    monitor.report(incumbent=float((best.correct - kappa * best.leaves) / problem.n), bound=float(bound / problem.n))
    outcomes = [s.run.outcome for s in sizes if s.run.outcome is not None]
    smaller = [s.bound - kappa * (t + 1) for t, s in enumerate(sizes[: best.leaves - 1])]
    fewest = not settings["then_fewest"] or max(smaller, default=bound - 1) < best.correct - kappa * best.leaves
    finished = fewest and bound <= best.correct - kappa * best.leaves
    points = _by_leaves(problem, sizes)
    reached = [max(s.correct for s in sizes[: t + 1]) for t in range(len(sizes))]
    still = unsettled(reached, [s.bound for s in sizes], {p["leaves"] for p in points})
    coefficients = _by_coefficients(problem, sizes, monitor, most)
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
        proof=lambda stop: _proof(problem, plan, sizes, most, stop),
    )


def _store(sizes: list[SizeOptimum]) -> Store | None:
    """What the last case analysis learnt of the points."""
    found = [s.run.raising.proof.store for s in sizes if s.run.raising is not None]
    return found[-1] if found else None


def _proof(
    problem: Problem, plan: SolvePlan, sizes: list[SizeOptimum], most: int, stop: Callable[[], bool]
) -> ProofSteps | None:
    """That no tree of any number of leaves has more rows right than its bound says; None if that is not found in time."""
    target = sizes[0].run.target
    instance = replace(target.instance, max_leaves=most)
    proof = analysis(problem, instance, target.units, plan.least, stop, min_leaf=instance.min_leaf)
    proof.store = (_store(sizes) or proof.store).until(stop)
    goals = [problem.n - s.bound for s in sizes][: proof.leaves]
    steps = proof.frontier(goals)
    kappa = problem.kappa
    cost = min(errors + t * kappa for t, errors in enumerate(goals, start=1)) * kappa.denominator
    return None if steps is None else ProofSteps(scale=1, goal=int(cost), steps=steps, goals=goals)


def _by_leaves(problem: Problem, sizes: list[SizeOptimum]) -> list[dict[str, Any]]:
    """The sizes that are better than all smaller ones, the smallest first; a search that was stopped may find a small tree late."""
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
                "tree": problem.stored(problem.tree(s.draft)).to_json(),
            }
        )
    return points


def _by_coefficients(problem: Problem, sizes: list[SizeOptimum], monitor: Monitor, most: int) -> list[dict[str, Any]]:
    """Coefficients other than 0 and rows correct: each tree as it is, drawn with few columns, and thinned; and the first trees."""
    found: list[tuple[int, int, Tree]] = []
    seconds = min(THINNING, 0.5 * monitor.remaining()) / len(sizes)
    stopped = monitor.stopped
    for s in sizes:
        instance = s.run.instance
        units = s.run.units
        found += [_size_and_correct(problem, s.draft)]
        sparse = _sparse(instance, units, s.tree, stopped)
        limits = [instance] if s is not sizes[-1] else [instance, replace(instance, max_leaves=most)]
        # a larger tree of another method may have fewer coefficients
        starts = [] if stopped() else [limit.pruned(start) for start in s.run.starts for limit in limits]
        for tree in _staircase(instance, [sparse, *starts, *_thin(s, sparse, stopped, seconds)]):
            draft = draft_of(tree, instance, units)
            if draft is not None:
                found.append(_size_and_correct(problem, draft))
    points: list[dict[str, Any]] = []
    for coefficients, correct, whole in sorted(found, key=lambda f: (f[0], -f[1])):
        if not points or correct > points[-1]["correct"]:
            # each question has a coefficient, so that so many coefficients make at most one leaf more
            bound = max(correct, sizes[min(coefficients, len(sizes) - 1)].bound)
            points.append(
                {
                    "coefficients": coefficients,
                    "leaves": whole.n_leaves,
                    "correct": correct,
                    "bound": bound,
                    "proved": correct == bound,
                    "tree": whole.to_json(),
                }
            )
    return points


def _thin(size: SizeOptimum, sparse: ObliqueTree, stopped: Callable[[], bool], seconds: float) -> list[ObliqueTree]:
    """What is left of the tree and of its sparse form when coefficients are left out, one after the other."""
    end = time.perf_counter() + seconds

    def late() -> bool:
        return stopped() or time.perf_counter() > end

    return [
        thin
        for seed in range(REPEATS)
        for tree in (sparse, size.tree)
        for thin in thinned(LocalSearch(size.run.instance, seed), tree, late)
    ]


def _staircase(instance: ObliqueInstance, trees: Sequence[ObliqueTree]) -> list[ObliqueTree]:
    """Those with more rows right than all with fewer coefficients."""
    kept: list[ObliqueTree] = []
    best = -1
    for tree in sorted(trees, key=lambda t: (t.coefficients, -instance.correct(t))):
        if instance.correct(tree) > best:
            best = instance.correct(tree)
            kept.append(tree)
    return kept


def _sparse(instance: ObliqueInstance, units: Units, tree: ObliqueTree, stopped: Callable[[], bool]) -> ObliqueTree:
    columns = np.array([f.column for f in units.encoding.features], np.int64)
    return instance.pruned(refitted(instance, tree, Separator(instance.Z), "sparse", columns, stopped)[0])


def _size_and_correct(problem: Problem, draft: Draft) -> tuple[int, int, Tree]:
    """Coefficients other than 0, rows correct, the tree; a threshold or a set of categories counts as one."""
    tree = problem.stored(problem.tree(draft))
    used = sum(v.split.parts() for v in tree.branches if v.split is not None)
    return used, problem.correct(tree), tree
