"""Find an optimal tree over binary features and prove it (`solve_binary`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from trainer.families.exact.instance import ExactInstance, build_instance
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.search.column_cases import Case
from trainer.families.exact.search.memo import DEFAULT_OPTIONS, INFINITE, ExactOptions, MemoEntry
from trainer.families.exact.search.proof import build_proof
from trainer.families.exact.search.row_bounds import least_cost
from trainer.families.exact.search.search import UNLIMITED, ExactSearch, begin_search, useful_depth
from trainer.families.exact.search.tree_reader import extract
from trainer.methods.base import ProofSteps
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits
from trainer.tree.shapes import LabelledShape, Shape

__all__ = ["ExactOptions", "ExactResult", "LabelledShape", "Shape", "evaluate", "prove_binary", "solve_binary"]


@dataclass(frozen=True, kw_only=True)
class ExactResult:
    """The incumbent, its cost in rows and the proved lower bound on all trees, both exact."""

    shape: LabelledShape
    errors: int
    leaves: int
    cost: Fraction
    bound: Fraction
    optimal: bool
    nodes: int
    depth_two: int
    cache_entries: int
    evictions: int
    start: Fraction | None = None  # cost of the start tree, if there is one
    search: ExactSearch | None = field(default=None, repr=False, compare=False)
    lower: int = 0  # the bound in integer costs of the search
    any_depth: bool = False  # whether the bound holds for trees of any depth
    # root of the case distinction, if the number of columns is limited
    cases: Case | None = field(default=None, repr=False, compare=False)

    def proof(self, stop: Callable[[], bool]) -> ProofSteps | None:
        """Return the steps that prove the bound, from the caches of the search."""
        return None if self.search is None else build_proof(self.search, self.lower, stop)


def solve_binary(
    problem: BinaryProblem,
    *,
    limits: SearchLimits = UNLIMITED,
    options: ExactOptions = DEFAULT_OPTIONS,
    report: Callable[[Fraction, Fraction, int], None] | None = None,
    start: Shape = None,
    improved: Callable[[Shape], None] | None = None,
) -> ExactResult:
    """Find a tree of least cost and prove it.

    Parameters
    ----------
    problem : BinaryProblem
        The rows and the search space.
    limits : SearchLimits
        Threads and time limit.
    options : ExactOptions
        Switches of bounds and caches.
    report : callable, optional
        Called with cost and bound in rows, and the number of nodes.
    start : Shape, optional
        A known tree of the problem; only better ones are searched.
    improved : callable, optional
        Called with better trees during the search.

    Returns
    -------
    ExactResult
        If stopped early, the incumbent and a valid lower bound.
    """
    search = begin_search(problem, limits=limits, options=options)
    search.improved = improved
    if report is not None:
        search.report_in_rows(report)
    return _finish(search, start)


def prove_binary(problem: BinaryProblem, cost: Fraction, *, stop: Callable[[], bool]) -> ProofSteps | None:
    """Prove that no tree costs less than `cost` rows, or the optimum if that is less.

    A bound far below the optimum often needs no step, since equal rows and class sizes prove it.

    Returns
    -------
    ProofSteps or None
        None if `stop` ended the search.
    """
    g = build_instance(problem)
    target_units = math.ceil(cost * g.Q)
    target = g.scale * target_units + (g.scale > 1)  # a tree has at least one leaf, which adds 1 to its scaled cost
    floor = least_cost(problem.X, problem.y, problem.row_weights, problem.n_classes, 1 << problem.depth, g.unit, g.leaf)
    if floor >= target:
        return ProofSteps(scale=g.scale, goal=floor, steps=[])
    search = ExactSearch(
        instance=g, depth=useful_depth(problem, g), min_leaf=problem.min_leaf, allowed=problem.allowed, stop=stop
    )
    entry = search.solve(np.arange(len(g.rows), dtype=np.int32), (), search.depth, g.scale * (target_units + 1))
    if entry.exact:  # the search found a tree of at most that cost, so prove its optimum, including the fewest leaves
        return build_proof(search, entry.lower, stop)
    return build_proof(search, target, stop) if entry.lower >= target else None


def _finish(search: ExactSearch, start: Shape) -> ExactResult:
    g = search.instance
    rows = np.arange(len(g.rows), dtype=np.int32)
    first = None
    if start is None:
        entry, shape = _solve_root(search, rows)
    else:
        errors, leaves = evaluate(g, start)
        first = Fraction(g.Q * errors + g.P * leaves, g.Q)
        entry, shape = _solve_from(search, rows, start, g.unit * errors + g.leaf * leaves)
    errors, leaves = evaluate(g, shape)
    cost = Fraction(g.Q * errors + g.P * leaves, g.Q)
    bound = cost if entry.exact else min(cost, g.true_cost(entry.lower))
    return ExactResult(
        shape=shape,
        errors=errors,
        leaves=leaves,
        cost=cost,
        bound=bound,
        optimal=bound == cost,
        nodes=search.nodes + search.depth_two_solves,
        depth_two=search.depth_two_solves,
        cache_entries=len(search.memo),
        evictions=search.evictions,
        start=first,
        search=search,
        lower=g.unit * errors + g.leaf * leaves if entry.exact else entry.lower,
    )


def _solve_from(search: ExactSearch, rows: np.ndarray, start: Shape, cost: int) -> tuple[MemoEntry, Shape]:
    """Search for a tree cheaper than `start`; return it, or `start` if there is none. If stopped, return the better one."""
    search.root_lower = search.node_bounds(search.prepare(rows), search.depth)[1]
    search.incumbent = (cost, None, 0)
    search.report(cost, min(cost, search.root_lower), 0)
    entry = search.solve(rows, (), search.depth, cost)
    if entry.exact and entry.lower < cost:
        return entry, extract(search, rows, (), search.depth, entry.lower)
    if entry.exact or entry.lower >= cost:
        return MemoEntry(cost, True), start
    better, feature, _ = search.incumbent
    if feature is not None and better < cost:
        return MemoEntry(search.root_lower, False), search.incumbent_shape()
    return MemoEntry(max(entry.lower, search.root_lower), False), start


def _solve_root(search: ExactSearch, rows: np.ndarray) -> tuple[MemoEntry, Shape]:
    """Solve from the root, depth two first. If stopped, return the incumbent and the best bound.

    If stopped before depth two is done, return the best tree with one split.
    """
    depth = search.depth
    node = search.prepare(rows)
    leaf, search.root_lower = search.node_bounds(node, depth)
    search.report(leaf, search.root_lower, 0)
    if search.stopped():
        return MemoEntry(search.root_lower, search.root_lower == leaf), None
    entry = search.solve(rows, (), min(2, depth), int(INFINITE))
    if not entry.exact:  # the search was stopped; a single split needs no pair counts, so it is still quick
        one = search.solve(rows, (), 1, int(INFINITE))
        return MemoEntry(search.root_lower, False), extract(search, rows, (), 1, one.lower)
    search.report(entry.lower, search.root_lower, search.nodes)
    if depth > 2:
        two = entry.lower
        shape = extract(search, rows, (), 2, entry.lower)
        if search.improved is not None:
            search.improved(shape)
        entry = search.solve(rows, (), depth, int(INFINITE))
        if not entry.exact:
            cost, feature, _ = search.incumbent
            if feature is not None and cost < two:
                return MemoEntry(search.root_lower, False), search.incumbent_shape()
            return MemoEntry(search.root_lower, False), shape
    return entry, extract(search, rows, (), depth, entry.lower)


def evaluate(instance: ExactInstance, shape: LabelledShape) -> tuple[int, int]:
    """Return errors and leaves of a tree; leaves without a class predict the majority of the instance's rows."""

    def visit(part: LabelledShape, rows: np.ndarray) -> tuple[int, int]:
        if not isinstance(part, tuple):
            counts = np.bincount(instance.classes[rows], instance.weights[rows], minlength=instance.n_classes).astype(
                np.int64
            )
            return int(counts.sum() - (counts.max() if part is None else counts[part])), 1
        zero, one = dp_node.split_rows(instance.rows, rows, part[0])
        left = visit(part[1], zero)
        right = visit(part[2], one)
        return left[0] + right[0], left[1] + right[1]

    return visit(shape, np.arange(len(instance.rows), dtype=np.int32))
