"""Exact search under side constraints on the whole tree.

Constraints are minimum recalls, pairs of columns that no path may test, and leaves. If the optimum without them satisfies them, it
is the solution. Otherwise the search over Pareto vectors finds it. Branch and bound over columns limits the number of columns.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from trainer.constraints import Constraints
from trainer.dtypes import CountArray
from trainer.errors import InfeasibleError
from trainer.families.exact.search.column_cases import CHECKED_DEPTH, Case, Columns
from trainer.families.exact.search.frontier import cheapest_point, solve_frontier
from trainer.families.exact.search.memo import DEFAULT_OPTIONS, INFINITE, ExactOptions
from trainer.families.exact.search.pareto import ParetoSearch
from trainer.families.exact.search.priced import ColumnPrices, begin_priced, solve_priced
from trainer.families.exact.search.search import UNLIMITED, ExactSearch, begin_search, useful_depth
from trainer.families.exact.search.solve import solve_binary
from trainer.goal import lowered_recalls_words
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits
from trainer.tree.shapes import LabelledShape

MOST_SETS = 300  # limit on the column sets that are tried to compute the shortfall
Report = Callable[[Fraction, Fraction, int], None]


@dataclass(frozen=True, kw_only=True)
class ConstrainedResult:
    """The best tree within the constraints; `found` is False if the search stopped before it had one.

    Costs are in rows. If no tree exists, `shortfall` is the least amount by which all recalls must be lowered.
    """

    shape: LabelledShape
    found: bool
    cost: Fraction
    bound: Fraction
    nodes: int
    infeasible: bool = False
    shortfall: Fraction | None = None
    # the search that found the tree; None if constraints shaped it
    search: ExactSearch | None = field(default=None, repr=False, compare=False)
    # root of the case distinction, if the number of columns is limited
    cases: Case | None = field(default=None, repr=False, compare=False)

    @property
    def optimal(self) -> bool:
        return self.found and self.bound >= self.cost


def _without_tree(bound: Fraction, nodes: int) -> ConstrainedResult:
    """Return the result of a search that has no tree yet."""
    return ConstrainedResult(shape=None, found=False, cost=bound, bound=bound, nodes=nodes)


@dataclass(frozen=True)
class _Task:
    """The arguments that all searches of one constrained problem share; the clock of `limits` is running."""

    problem: BinaryProblem
    constraints: Constraints
    limits: SearchLimits
    options: ExactOptions
    prices: ColumnPrices | None = None

    def among_columns(self, usable: Columns) -> _Task:
        """Return the task with only some columns usable and no limit of their number."""
        columns = self.constraints.columns
        assert columns is not None
        allowed = self.problem.allowed_features.astype(bool) & np.isin(columns, list(usable))
        return replace(
            self,
            problem=replace(self.problem, allowed=allowed.astype(np.uint8)),
            constraints=replace(self.constraints, max_columns=None),
        )

    def begin_search(self) -> ExactSearch:
        """Return the search without constraints, whose bounds are lower bounds."""
        return begin_search(
            self.problem,
            limits=self.limits,
            options=self.options,
            depth=2,  # a depth of two skips the table of depth-two optima, which is wrong for a subset of the features
        )


def solve_constrained(
    problem: BinaryProblem,
    constraints: Constraints,
    *,
    limits: SearchLimits = UNLIMITED,
    options: ExactOptions = DEFAULT_OPTIONS,
    report: Report | None = None,
    prices: ColumnPrices | None = None,
) -> ConstrainedResult:
    """Find a tree of least cost within the constraints and prove it.

    Parameters
    ----------
    problem : BinaryProblem
        The rows and the search space.
    constraints : Constraints
        Limits on the whole tree.
    limits, options, report
        As for `solve_binary`.
    prices : ColumnPrices, optional
        Prices of columns.

    Returns
    -------
    ConstrainedResult
        If stopped early, a valid lower bound and the incumbent, if any.

    Raises
    ------
    InfeasibleError
        No tree satisfies the constraints. `best` is the least amount by which all recalls must be lowered.
    """
    task = _Task(problem, constraints, limits.start_clock(), options, prices)
    if constraints.max_columns is None:
        solution = _solve_without_column_limit(task, report)
    else:
        solution = _ColumnSearch(task, constraints.max_columns).run(report)
    _check_feasible(solution, constraints)
    return solution


def _check_feasible(solution: ConstrainedResult, constraints: Constraints) -> None:
    if solution.shortfall is not None:
        raise InfeasibleError(
            f"No tree satisfies the constraints. {lowered_recalls_words(solution.shortfall, len(constraints.recalls))}",
            best=float(solution.shortfall),
            of="shortfall of the recalls",
        )
    if solution.infeasible:
        raise InfeasibleError("No tree satisfies the constraints. Relax one of them or allow a deeper tree.")


def _solve_without_column_limit(task: _Task, report: Report | None) -> ConstrainedResult:
    """Solve under all constraints except the number of columns."""
    free = _solve_unconstrained(task) if task.prices is None else _solve_priced(task, task.prices)
    if satisfies(task.problem, free.shape, task.constraints):
        return free
    tolls = None
    if task.prices is None:
        search = task.begin_search()
    else:
        priced, _ = begin_priced(task.problem, task.prices, limits=task.limits, options=task.options)
        search = priced.search
        tolls = priced.tolls
    instance = search.instance
    if report is not None:
        search.report_in_rows(report)
    depth = useful_depth(task.problem, instance)
    pareto = ParetoSearch(search, task.constraints, instance.unit, instance.leaf, tolls)
    floor = math.ceil(free.bound * instance.Q) * instance.scale
    pareto.run(depth, floor)
    stopped = search.stopped()
    if pareto.best is None:
        none = _without_tree(instance.true_cost(floor), search.nodes)
        if stopped:
            return none
        return replace(none, infeasible=True, shortfall=_shortfall(search, task.constraints, depth))
    cost, front, place = pareto.best
    value = instance.true_cost(cost)
    bound = value
    if stopped:
        bound = min(value, instance.true_cost(max(floor, pareto.root_bound)))
    return ConstrainedResult(
        shape=pareto.tree(front, place),
        found=True,
        cost=value,
        bound=bound,
        nodes=search.nodes + search.depth_two_solves,
    )


def _solve_priced(task: _Task, prices: ColumnPrices) -> ConstrainedResult:
    """Solve with prices of columns and a limit of leaves only."""
    best = solve_priced(
        task.problem,
        prices,
        limits=task.limits,
        options=task.options,
        report=lambda cost, bound, nodes: None,
        improved=lambda shape: None,
        max_leaves=task.constraints.max_leaves,
    )
    return ConstrainedResult(shape=best.shape, found=True, cost=best.cost, bound=best.bound, nodes=best.nodes)


def _solve_unconstrained(task: _Task) -> ConstrainedResult:
    """Solve with a limit of leaves only."""
    most = task.constraints.max_leaves
    if most is None:
        best = solve_binary(task.problem, limits=task.limits, options=task.options)
        return ConstrainedResult(
            shape=best.shape, found=True, cost=best.cost, bound=best.bound, nodes=best.nodes, search=best.search
        )
    points = solve_frontier(task.problem, max_leaves=most, limits=task.limits, options=task.options)
    best_point, cost, bound = cheapest_point(points, task.problem.leaf_cost)
    return ConstrainedResult(shape=best_point.shape, found=True, cost=cost, bound=bound, nodes=0)


def _shortfall(search: ExactSearch, constraints: Constraints, depth: int) -> Fraction | None:
    """Return the least amount by which all recalls must be lowered for a tree to exist; None if stopped."""
    if not constraints.recalls:
        return None
    g = search.instance
    sizes = [int(g.weights[g.classes == k].sum()) for k, _ in constraints.recalls]
    reach = ParetoSearch(search, constraints, 0, 0)
    front = reach.solve(np.arange(len(g.rows), dtype=np.int32), depth, reach.allowed, int(INFINITE))
    if search.stopped():
        return None
    return min(
        max(
            share - Fraction(size - int(v[1 + j]), size)
            for j, ((_, share), size) in enumerate(zip(constraints.recalls, sizes, strict=True))
        )
        for v in front.vectors
    )


def satisfies(problem: BinaryProblem, shape: LabelledShape, constraints: Constraints) -> bool:
    """Return whether a tree satisfies recalls and pairs. A leaf without a class predicts the majority."""
    X = problem.X
    y = problem.y
    w = problem.row_weights
    correct = np.zeros(len(y), bool)
    conflict = constraints.conflict

    def visit(part: LabelledShape, rows: np.ndarray, path: tuple[int, ...]) -> bool:
        if not isinstance(part, tuple):
            if len(rows):
                counts = np.bincount(y[rows], w[rows])
                correct[rows] = y[rows] == (int(counts.argmax()) if part is None else part)
            return True
        if conflict is not None and any(conflict[part[0], f] for f in path):
            return False
        one = X[rows, part[0]] == 1
        inner = (*path, part[0])
        return visit(part[1], rows[~one], inner) and visit(part[2], rows[one], inner)

    if not visit(shape, np.arange(len(y)), ()):
        return False
    return all(int(w[correct & (y == k)].sum()) >= share * int(w[y == k].sum()) for k, share in constraints.recalls)


def columns_of(shape: LabelledShape, columns: CountArray) -> set[int]:
    """Return the columns that the splits of a tree use."""
    if not isinstance(shape, tuple):
        return set()
    return {int(columns[shape[0]])} | columns_of(shape[1], columns) | columns_of(shape[2], columns)


class _ColumnSearch:
    """Branch and bound over columns, best bound first; each node is a search over its usable columns.

    A node whose best tree uses too many columns branches on one of them: the tree must use it, or must not.
    """

    def __init__(self, task: _Task, most: int) -> None:
        assert task.constraints.columns is not None
        self.task = task
        self.most = most
        self.columns: CountArray = task.constraints.columns
        self.root = Case(frozenset(), frozenset(int(c) for c in self.columns))
        self.best: ConstrainedResult | None = None
        self.nodes = 0
        self.memory = task.options.memory // 4  # bytes that remain for searches that a proof reads later
        self.open: list[tuple[Fraction, int, Case]] = []
        self._numbers = itertools.count()
        self._push(Fraction(0), self.root)

    def run(self, report: Report | None) -> ConstrainedResult:
        """Search until the limits end it or no open case can be better."""
        while self.open:
            bound, _, case = self.open[0]
            if self._is_pruned(bound) or self.task.limits.stopped():
                break
            heapq.heappop(self.open)
            is_done = self._search_case(case, bound)
            if not is_done:
                break
            if self.best is not None and report is not None:
                report(self.best.cost, self._proved_bound(self.best), self.nodes)
        if self.best is not None:
            bound = self._proved_bound(self.best)
            return replace(self.best, bound=bound, nodes=self.nodes, search=None, cases=self.root)
        if self.open:
            return _without_tree(self.open[0][0], self.nodes)
        none = _without_tree(Fraction(0), self.nodes)
        return replace(none, infeasible=True, shortfall=self._shortfall())

    def _push(self, bound: Fraction, case: Case) -> None:
        heapq.heappush(self.open, (bound, next(self._numbers), case))

    def _is_pruned(self, bound: Fraction) -> bool:
        return self.best is not None and bound >= self.best.cost

    def _proved_bound(self, best: ConstrainedResult) -> Fraction:
        """Return the least cost that an open case may still reach."""
        return min([best.cost, *(bound for bound, _, _ in self.open)])

    def _search_case(self, case: Case, bound: Fraction) -> bool:
        """Search one case and branch on it; False if the limits ended its search."""
        if len(case.required) == self.most:
            case.usable = case.required
        solution = _solve_without_column_limit(self.task.among_columns(case.usable), None)
        self.nodes += solution.nodes
        if solution.infeasible:
            return True
        self._keep_for_proof(case, solution)
        bound = max(bound, solution.bound)
        if not solution.found:
            self._push(bound, case)
            return False
        used = columns_of(solution.shape, self.columns)
        if len(used) > self.most:
            self._branch(case, bound, used)
            return True
        if self.best is None or solution.cost < self.best.cost:
            self.best = solution
        if not solution.optimal:
            self._push(bound, case)
        return solution.optimal

    def _keep_for_proof(self, case: Case, solution: ConstrainedResult) -> None:
        """Store the bound of a case, and its search if the proof needs it and memory allows."""
        case.bound = solution.bound
        search = solution.search
        if self.task.problem.depth > CHECKED_DEPTH and search is not None and search.size <= self.memory:
            self.memory -= search.size
            case.search = search

    def _branch(self, case: Case, bound: Fraction, used: set[int]) -> None:
        """Open both children of a case whose best tree uses too many columns."""
        if self._is_pruned(bound) or len(case.required) >= self.most:
            return
        for side in case.branch(min(used - case.required)):
            self._push(bound, side)

    def _shortfall(self) -> Fraction | None:
        """Return the least shortfall over all sets of `most` columns; None if there are too many sets to try."""
        ids = sorted(self.root.usable)
        size = min(self.most, len(ids))
        if not self.task.constraints.recalls or math.comb(len(ids), size) > MOST_SETS:
            return None
        shortfalls: list[Fraction] = []
        for subset in itertools.combinations(ids, size):
            part = self.task.among_columns(frozenset(subset))
            search = part.begin_search()
            short = _shortfall(search, part.constraints, useful_depth(part.problem, search.instance))
            if short is None:
                return None
            shortfalls.append(max(short, Fraction(0)))
        return min(shortfalls)
