"""Exact search under side constraints: recalls of classes, pairs of columns that no path holds, leaves, distinct columns.

Where the optimum without constraints satisfies them it is the answer; else the search over non-dominated vectors is.  Distinct columns are limited by branch and bound: the optimum without the limit asks some column
that the best tree within the limit either asks as well or may not ask.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.dtypes import BitArray, CodeArray, CountArray
from trainer.errors import InfeasibleError
from trainer.families.exact.instance import ExactInstance, build
from trainer.families.exact.search.column_cases import COUNTED, Case
from trainer.families.exact.search.frontier import solve_frontier
from trainer.families.exact.search.memo import INFINITE, ExactOptions
from trainer.families.exact.search.pareto import Constraints, ParetoSearch
from trainer.families.exact.search.search import Search
from trainer.families.exact.search.solve import solve_binary
from trainer.goal import lowered
from trainer.tree.shapes import LabelledShape

MOST_SETS = 300  # sets of columns that are tried to say what can be reached


@dataclass(frozen=True, kw_only=True)
class ConstrainedResult:
    """The best tree within the constraints, or None if the search was stopped before it found one.

    Costs in rows.  `shortfall` is the least amount by which all recalls must be lowered for a tree to exist, where none does.
    """

    shape: LabelledShape
    found: bool
    cost: Fraction
    bound: Fraction
    nodes: int
    infeasible: bool = False
    shortfall: Fraction | None = None
    search: Search | None = field(
        default=None, repr=False, compare=False
    )  # where the tree is that of a search without constraints
    cases: Case | None = field(default=None, repr=False, compare=False)  # of a limit of columns

    @property
    def optimal(self) -> bool:
        return self.found and self.bound >= self.cost


def solve_constrained(
    X: BitArray,
    y: CodeArray,
    constraints: Constraints,
    *,
    n_classes: int,
    depth: int,
    leaf_cost: Fraction = Fraction(0),
    weights: CountArray | None = None,
    min_leaf: int = 1,
    allowed: BitArray | None = None,
    threads: int = 1,
    time_limit: float | None = None,
    stop: Callable[[], bool] | None = None,
    flag: np.ndarray | None = None,
    options: ExactOptions | None = None,
    report: Callable[[Fraction, Fraction, int], None] | None = None,
) -> ConstrainedResult:
    """The tree with the smallest errors + leaf_cost * leaves that satisfies the constraints, and the proof of it.

    Arguments as for `solve_binary`.  Raises InfeasibleError if no tree satisfies the constraints; its `best` is the least
    amount by which all recalls must be lowered.
    """
    end = math.inf if time_limit is None else time.perf_counter() + time_limit
    allowed = np.ones(X.shape[1], np.uint8) if allowed is None else allowed.astype(np.uint8)
    common: dict[str, Any] = {
        "n_classes": n_classes,
        "depth": depth,
        "leaf_cost": leaf_cost,
        "weights": weights,
        "min_leaf": min_leaf,
        "threads": threads,
        "stop": lambda: time.perf_counter() >= end or (stop is not None and stop()),
        "flag": np.zeros(1, np.int64) if flag is None else flag,
        "options": options or ExactOptions(),
    }
    if constraints.max_columns is None:
        found = _solve_without_column_limit(X, y, constraints, common, allowed, report)
    else:
        found = _few_columns(X, y, constraints, common, allowed, report)
    if found.infeasible and found.shortfall is None:
        raise InfeasibleError("No tree satisfies the constraints. Relax one of them or allow a deeper tree.")
    if found.shortfall is not None:
        raise InfeasibleError(
            f"No tree satisfies the constraints. {lowered(found.shortfall, len(constraints.recalls))}",
            best=float(found.shortfall),
            of="shortfall of the recalls",
        )
    return found


def _solve_without_column_limit(
    X: BitArray, y: CodeArray, constraints: Constraints, common: dict[str, Any], allowed: BitArray,
    report: Callable[[Fraction, Fraction, int], None] | None,
) -> ConstrainedResult:  # fmt: skip
    """All constraints but the number of columns."""
    free = _unconstrained(X, y, constraints, common, allowed)
    if free is not None and satisfies(X, y, common["weights"], free.shape, constraints):
        return free
    search, depth = _search(X, y, common, allowed)
    instance = search.instance
    if report is not None:
        heard = report
        search.report = lambda cost, bound, nodes: heard(
            instance.true_cost(cost), instance.true_cost(min(bound, cost)), nodes
        )
    pareto = ParetoSearch(search, constraints, instance.unit, instance.leaf)
    floor = 0
    if free is not None:
        floor = math.ceil(free.bound * instance.Q) * instance.scale
    pareto.run(depth, floor)
    stopped = search.stopped()
    if pareto.best is None:
        bound = instance.true_cost(floor)
        if stopped:
            return ConstrainedResult(shape=None, found=False, cost=bound, bound=bound, nodes=search.nodes)
        return ConstrainedResult(
            shape=None, found=False, cost=bound, bound=bound, nodes=search.nodes, infeasible=True,
            shortfall=_shortfall(search, constraints, depth),
        )  # fmt: skip
    cost, front, place = pareto.best
    value = Fraction(*_price(instance, cost))
    bound = value if not stopped else min(value, instance.true_cost(max(floor, pareto.root_bound)))
    return ConstrainedResult(
        shape=pareto.tree(front, place), found=True, cost=value, bound=bound, nodes=search.nodes + search.twos
    )


def _search(X: BitArray, y: CodeArray, common: dict[str, Any], allowed: BitArray) -> tuple[Search, int]:
    """The search without constraints that bounds from below, and the depth that can be of use."""
    options = {k: v for k, v in common.items() if k in ("n_classes", "weights", "leaf_cost", "depth")}
    instance = build(X, y, **options)
    search = Search(
        instance=instance,
        depth=2,  # its table of depth-two optima would not be right for some of the features only
        min_leaf=common["min_leaf"],
        allowed=allowed,
        options=common["options"],
        stop=common["stop"],
        flag=common["flag"],
    )
    return search, min(common["depth"], X.shape[1], len(instance.rows) - 1)


def _price(instance: ExactInstance, cost: int) -> tuple[int, int]:
    return cost // instance.scale, instance.Q


def _unconstrained(
    X: BitArray, y: CodeArray, constraints: Constraints, common: dict[str, Any], allowed: BitArray
) -> ConstrainedResult | None:
    """The optimum with limits on leaves only; None if it was not found in time."""
    if constraints.max_leaves is None:
        best = solve_binary(X, y, allowed=allowed, **common)
        return ConstrainedResult(
            shape=best.shape, found=True, cost=best.cost, bound=best.bound, nodes=best.nodes, search=best.search
        )  # fmt: skip
    rest = {k: v for k, v in common.items() if k not in ("leaf_cost", "threads")}
    points = solve_frontier(X, y, allowed=allowed, max_leaves=constraints.max_leaves, **rest)
    penalty = common["leaf_cost"]
    cost, _, best_at = min((p.errors + penalty * p.leaves, p.leaves, k) for k, p in enumerate(points))
    bound = min(p.bound + penalty * (p.leaves if p.bound == p.errors else k + 1) for k, p in enumerate(points))
    return ConstrainedResult(shape=points[best_at].shape, found=True, cost=cost, bound=min(cost, bound), nodes=0)


def _shortfall(search: Search, constraints: Constraints, depth: int) -> Fraction | None:
    """How far all recalls must be lowered, at least and by the same amount, so that some tree keeps the other constraints."""
    if not constraints.recalls:
        return None
    g = search.instance
    weights = np.int64(1) << g.shifts.astype(np.int64)
    sizes = [int(weights[g.classes == k].sum()) for k, _ in constraints.recalls]
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


def satisfies(
    X: BitArray, y: CodeArray, weights: CountArray | None, shape: LabelledShape, constraints: Constraints
) -> bool:
    """True if the tree satisfies the constraints; leaves without a class predict the majority of their rows."""
    w = np.ones(len(y), np.int64) if weights is None else weights
    right = np.zeros(len(y), bool)
    conflict = constraints.conflict

    def visit(part: LabelledShape, rows: np.ndarray, path: tuple[int, ...]) -> bool:
        if not isinstance(part, tuple):
            if len(rows):
                counts = np.bincount(y[rows], w[rows])
                right[rows] = y[rows] == (int(counts.argmax()) if part is None else part)
            return True
        if conflict is not None and any(conflict[part[0], f] for f in path):
            return False
        one = X[rows, part[0]] == 1
        inner = (*path, part[0])
        return visit(part[1], rows[~one], inner) and visit(part[2], rows[one], inner)

    if not visit(shape, np.arange(len(y)), ()):
        return False
    return all(int(w[right & (y == k)].sum()) >= share * int(w[y == k].sum()) for k, share in constraints.recalls)


def columns_of(shape: LabelledShape, columns: CountArray) -> set[int]:
    """The columns that a tree asks."""
    if not isinstance(shape, tuple):
        return set()
    return {int(columns[shape[0]])} | columns_of(shape[1], columns) | columns_of(shape[2], columns)


def _few_columns(
    X: BitArray, y: CodeArray, constraints: Constraints, common: dict[str, Any], allowed: BitArray,
    report: Callable[[Fraction, Fraction, int], None] | None,
) -> ConstrainedResult:  # fmt: skip
    """Branch and bound over columns: best bound first, each node a search among the columns that it leaves."""
    most = constraints.max_columns
    columns = constraints.columns
    assert most is not None
    assert columns is not None
    inner = replace(constraints, max_columns=None)
    ids = itertools.count()
    best: ConstrainedResult | None = None
    # for searches that are kept
    nodes = 0
    room = common["options"].memory // 4
    root = Case(frozenset(), frozenset(int(c) for c in columns))
    open_nodes: list[tuple[Fraction, int, Case]] = [(Fraction(0), next(ids), root)]
    while open_nodes:
        bound, _, case = open_nodes[0]
        if (best is not None and bound >= best.cost) or common["stop"]() or common["flag"][0]:
            break
        heapq.heappop(open_nodes)
        if len(case.required) == most:
            case.usable = case.required
        mask = (allowed.astype(bool) & np.isin(columns, list(case.usable))).astype(np.uint8)
        found = _solve_without_column_limit(X, y, inner, common, mask, None)
        nodes += found.nodes
        if found.infeasible:
            continue
        case.bound = found.bound
        if common["depth"] > COUNTED and found.search is not None and found.search.size <= room:
            room = room - found.search.size
            case.search = found.search
        bound = max(bound, found.bound)
        asked = columns_of(found.shape, columns) if found.found else set()
        if found.found and len(asked) <= most:
            if best is None or found.cost < best.cost:
                best = found
            if not found.optimal:
                heapq.heappush(open_nodes, (bound, next(ids), case))
                break
        elif found.found and (best is None or bound < best.cost) and len(case.required) < most:
            for side in case.part(min(asked - case.required)):
                heapq.heappush(open_nodes, (bound, next(ids), side))
        elif not found.found:
            heapq.heappush(open_nodes, (bound, next(ids), case))
            break
        if best is not None and report is not None:
            report(best.cost, min([best.cost, *(b for b, *_ in open_nodes)]), nodes)
    floor = min((b for b, *_ in open_nodes), default=None)
    if best is None:
        if floor is None:
            short = _column_shortfall(X, y, inner, common, allowed, most, columns)
            return ConstrainedResult(
                shape=None, found=False, cost=Fraction(0), bound=Fraction(0), nodes=nodes, infeasible=True, shortfall=short
            )  # fmt: skip
        return ConstrainedResult(shape=None, found=False, cost=floor, bound=floor, nodes=nodes)
    bound = best.cost if floor is None else min(best.cost, floor)
    return replace(best, bound=bound, nodes=nodes, search=None, cases=root)


def _column_shortfall(
    X: BitArray, y: CodeArray, constraints: Constraints, common: dict[str, Any], allowed: BitArray, most: int,
    columns: CountArray,
) -> Fraction | None:  # fmt: skip
    """The least shortfall over all sets of `most` columns; None if there are too many sets to try."""
    ids = sorted({int(c) for c in columns})
    most = min(most, len(ids))
    if not constraints.recalls or math.comb(len(ids), most) > MOST_SETS:
        return None
    found: list[Fraction] = []
    for chosen in itertools.combinations(ids, most):
        mask = (allowed.astype(bool) & np.isin(columns, chosen)).astype(np.uint8)
        search, depth = _search(X, y, common, mask)
        short = _shortfall(search, constraints, depth)
        if short is None:
            return None
        found.append(max(short, Fraction(0)))
    return min(found)
