"""The optimal tree of binary features with its proof: `solve_binary` runs the search of `exact_search` and reads its result."""

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
    """The best tree found, its cost in rows and the proved lower bound of every tree's cost, both exact."""

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
    start: Fraction | None = None  # cost of the tree that was given to begin with
    search: ExactSearch | None = field(default=None, repr=False, compare=False)
    lower: int = 0  # the bound in the search's own integers
    any_depth: bool = False  # whether the bound is proved for trees of any depth
    cases: Case | None = field(default=None, repr=False, compare=False)  # of a limit of columns

    def proof(self, stop: Callable[[], bool]) -> ProofSteps | None:
        """The steps that prove the bound, with the caches of the search."""
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
        The rows and the trees that are searched.
    limits : SearchLimits
        Threads, and what ends the search early.
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

    A bound far below the optimum often needs no step: equal rows and the classes alone cost so much.

    Returns
    -------
    Proof or None
        None if `stop` ended the search.
    """
    g = build_instance(problem)
    needed = math.ceil(cost * g.Q)
    target = g.scale * needed + (g.scale > 1)  # a tree has a leaf
    floor = least_cost(problem.X, problem.y, problem.row_weights, problem.n_classes, 1 << problem.depth, g.unit, g.leaf)
    if floor >= target:
        return ProofSteps(scale=g.scale, goal=floor, steps=[])
    search = ExactSearch(
        instance=g, depth=useful_depth(problem, g), min_leaf=problem.min_leaf, allowed=problem.allowed, stop=stop
    )
    known = search.solve(np.arange(len(g.rows), dtype=np.int32), (), search.depth, g.scale * (needed + 1))
    if known.exact:  # a tree of that cost, with the fewest leaves
        return build_proof(search, known.lower, stop)
    return build_proof(search, target, stop) if known.lower >= target else None


def _finish(search: ExactSearch, start: Shape) -> ExactResult:
    g = search.instance
    rows = np.arange(len(g.rows), dtype=np.int32)
    first = None
    if start is None:
        known, shape = _solve_root(search, rows)
    else:
        errors, leaves = evaluate(g, start)
        first = Fraction(g.Q * errors + g.P * leaves, g.Q)
        known, shape = _solve_from(search, rows, start, g.unit * errors + g.leaf * leaves)
    errors, leaves = evaluate(g, shape)
    cost = Fraction(g.Q * errors + g.P * leaves, g.Q)
    bound = cost if known.exact else min(cost, g.true_cost(known.lower))
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
        lower=g.unit * errors + g.leaf * leaves if known.exact else known.lower,
    )


def _solve_from(search: ExactSearch, rows: np.ndarray, start: Shape, cost: int) -> tuple[MemoEntry, Shape]:
    """A tree that costs less than `start`, or the proof that there is none, or whichever is better when the search is stopped."""
    search.root_lower = search.node_bounds(search.prepare(rows), search.depth)[1]
    search.incumbent = (cost, None, 0)
    search.report(cost, min(cost, search.root_lower), 0)
    known = search.solve(rows, (), search.depth, cost)
    if known.exact and known.lower < cost:
        return known, extract(search, rows, (), search.depth, known.lower)
    if known.exact or known.lower >= cost:
        return MemoEntry(cost, True), start
    better, feature, _ = search.incumbent
    if feature is not None and better < cost:
        return MemoEntry(search.root_lower, False), search.incumbent_shape()
    return MemoEntry(max(known.lower, search.root_lower), False), start


def _solve_root(search: ExactSearch, rows: np.ndarray) -> tuple[MemoEntry, Shape]:
    """The optimum, or the incumbent and the best bound if the search is stopped; a tree of depth two comes first.

    One that is stopped before there is any has the best tree of one question.
    """
    depth = search.depth
    node = search.prepare(rows)
    leaf, search.root_lower = search.node_bounds(node, depth)
    search.report(leaf, search.root_lower, 0)
    if search.stopped():
        return MemoEntry(search.root_lower, search.root_lower == leaf), None
    known = search.solve(rows, (), min(2, depth), int(INFINITE))
    if not known.exact:  # one question needs no counts of pairs
        one = search.solve(rows, (), 1, int(INFINITE))
        return MemoEntry(search.root_lower, False), extract(search, rows, (), 1, one.lower)
    search.report(known.lower, search.root_lower, search.nodes)
    if depth > 2:
        two = known.lower
        shape = extract(search, rows, (), 2, known.lower)
        if search.improved is not None:
            search.improved(shape)
        known = search.solve(rows, (), depth, int(INFINITE))
        if not known.exact:
            cost, feature, _ = search.incumbent
            if feature is not None and cost < two:
                return MemoEntry(search.root_lower, False), search.incumbent_shape()
            return MemoEntry(search.root_lower, False), shape
    return known, extract(search, rows, (), depth, known.lower)


def evaluate(instance: ExactInstance, shape: LabelledShape) -> tuple[int, int]:
    """(errors, leaves) of a tree whose leaves predict the majority, counted over the rows of the instance."""

    def visit(part: LabelledShape, rows: np.ndarray) -> tuple[int, int]:
        if not isinstance(part, tuple):
            counts = np.bincount(instance.classes[rows], instance.weights[rows], minlength=instance.n_classes).astype(
                np.int64
            )
            return int(counts.sum() - counts.max()), 1
        zero, one = dp_node.split_rows(instance.rows, rows, part[0])
        left = visit(part[1], zero)
        right = visit(part[2], one)
        return left[0] + right[0], left[1] + right[1]

    return visit(shape, np.arange(len(instance.rows), dtype=np.int32))
