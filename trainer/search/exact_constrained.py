"""Exact search under side constraints: recalls of classes, pairs of columns that no path holds, leaves, distinct columns.

Every node has the non-dominated vectors of (cost, errors of each bounded class, leaves) instead of one cost, as in van der
Linden, de Weerdt & Demirovic (2023).  The unconstrained search supplies lower bounds; where its own optimum satisfies the
constraints it is the answer.  Distinct columns are limited by branch and bound: the optimum without the limit asks some column
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
from trainer.kernels import dp_node, dp_pareto
from trainer.search.exact import INFINITE, ExactOptions, Search, solve_binary
from trainer.search.exact_frontier import solve_frontier
from trainer.search.exact_instance import ExactInstance, build

LabelledShape = (
    tuple[int, Any, Any] | int | None
)  # (feature, subtree of 0, subtree of 1), a class, or None: the majority
NO_LIMIT = int(INFINITE) - 1
MOST_SETS = 300  # sets of columns that are tried to say what can be reached


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """What a tree must satisfy besides its depth.

    `recalls` (class, share): so much of the weight of the class is classified correctly.  `conflict` uint8 (F, F), symmetric:
    1 for features that no path holds both (on the diagonal: that no path asks twice, which it never does).  `columns` int (F,):
    the column of each feature, for `max_columns`.
    """

    recalls: tuple[tuple[int, Fraction], ...] = ()
    conflict: BitArray | None = None
    max_leaves: int | None = None
    max_columns: int | None = None
    columns: CountArray | None = None


@dataclass(frozen=True, kw_only=True)
class ConstrainedResult:
    """The best tree within the constraints, or None where the search was stopped before it found one.

    Costs in rows.  `shortfall` is the least amount by which all recalls must be lowered for a tree to exist, where none does.
    """

    shape: LabelledShape
    found: bool
    cost: Fraction
    bound: Fraction
    nodes: int
    infeasible: bool = False
    shortfall: Fraction | None = None

    @property
    def optimal(self) -> bool:
        return self.found and self.bound >= self.cost


@dataclass(frozen=True)
class _Front:
    vectors: np.ndarray  # int64 (size, D)
    aux: np.ndarray  # int64 (size, AUX)
    below: int  # all vectors of smaller cost are here
    terminal: bool
    features: np.ndarray  # features of the positions in aux, where terminal
    children: dict[int, tuple[_Front, _Front]] = field(default_factory=dict)


class ParetoSearch:
    """The recurrence over non-dominated vectors, for one instance and one set of allowed features."""

    def __init__(self, search: Search, constraints: Constraints, unit: int, leaf: int) -> None:
        self.depth = self.full_depth = -1  # of the root
        self.search, self.constraints = search, constraints
        g = search.instance
        self.costs = np.array([unit, leaf], np.int64)
        self.bounded = np.array([k for k, _ in constraints.recalls], np.int64)
        self.caps = [recall_limit(g, k, share) for k, share in constraints.recalls] if unit else []
        self.caps = self.caps or [NO_LIMIT] * len(self.bounded)
        if constraints.max_leaves is not None:
            self.caps.append(constraints.max_leaves)
        self.conflict = constraints.conflict
        self.allowed = np.ones(g.features, np.uint8) if search.allowed is None else search.allowed
        self.memo: dict[Any, _Front] = {}
        self.bytes = 0
        self.best: tuple[int, _Front, int] | None = None  # cost, front, place of the incumbent
        self.root_bound = 0

    def limits(self, ub: int) -> np.ndarray:
        """Largest admissible vector below the cost `ub`."""
        return np.array([ub - 1, *self.caps], np.int64)

    def solve(self, rows: np.ndarray, height: int, allowed: np.ndarray, ub: int) -> _Front:
        """The vectors of cost below `ub` for `rows`; incomplete where the search was stopped."""
        key = (
            height,
            np.packbits(self._member(rows)).tobytes(),
            allowed.tobytes() if self.conflict is not None else b"",
        )
        known = self.memo.get(key)
        if known is not None and known.below >= ub:
            return known
        self.search.nodes += 1
        node = self._prepare(rows, allowed)
        if height <= 2 or not len(node.features):
            found = self._small(node, height, ub)
        else:
            found = self._large(rows, node, height, allowed, ub)
        if not self.search.stopped():
            self.bytes += 300 + len(key[1]) + len(key[2]) + found.vectors.nbytes + found.aux.nbytes
            if self.bytes > self.search.options.memory // 2:
                self.memo.clear()
                self.bytes = 0
            self.memo[key] = found
        return found

    def _member(self, rows: np.ndarray) -> np.ndarray:
        member = np.zeros(len(self.search.instance.rows), np.uint8)
        member[rows] = 1
        return member

    def _prepare(self, rows: np.ndarray, allowed: np.ndarray) -> dp_node.Node:
        g, s = self.search.instance, self.search
        # equal columns of different conflicts are not the same question
        reduce = self.conflict is None
        return dp_node.prepare(
            g.rows, rows, g.segment_of, g.segments, g.equal, g.n_classes, allowed, s.min_leaf, reduce, True
        )

    def _small(self, node: dp_node.Node, height: int, ub: int) -> _Front:
        m = len(node.features)
        limits = self.limits(ub)
        if height == 0 or m == 0:
            vectors, aux = dp_pareto.leaf_front(node.totals, self.costs, self.bounded, limits)
            return _Front(vectors, aux, ub, True, node.features)
        P = np.empty((self.search.instance.n_classes, m, m), np.int32)
        dp_node.pair_counts(node, P)
        vectors, aux = dp_pareto.small_front(
            node, P, self._conflict(node), height, self.search.min_leaf, self.costs, self.bounded, limits
        )
        return _Front(vectors, aux, ub, True, node.features)

    def _conflict(self, node: dp_node.Node) -> np.ndarray:
        m = len(node.features)
        if self.conflict is None:
            return np.zeros((m, m), np.uint8)
        return np.ascontiguousarray(self.conflict[np.ix_(node.features, node.features)])

    def _bounds(self, node: dp_node.Node, height: int, ub: int) -> np.ndarray:
        """Lower bounds (2, p) of the costs of both sides of each split, from the search without constraints."""
        if not self.costs[0]:
            return np.zeros((2, len(node.features)), np.int64)
        frame = self.search._frame(node, height)
        if height == 3:
            state = np.array([min(ub, NO_LIMIT), -2, 0, 0, 0], np.int64)
            self.search._run_three(frame, (0,), state, True)
        return frame.lower

    def _large(self, rows: np.ndarray, node: dp_node.Node, height: int, allowed: np.ndarray, ub: int) -> _Front:
        s, root, given = self.search, height == self.depth and len(rows) == len(self.search.instance.rows), ub
        lower = self._bounds(node, height, ub)
        vectors, aux = dp_pareto.leaf_front(node.totals, self.costs, self.bounded, self.limits(ub))
        children: dict[int, tuple[_Front, _Front]] = {}
        open_bound = int(INFINITE)
        for p in np.argsort(lower.sum(axis=0), kind="stable").tolist():
            total = int(lower[0, p] + lower[1, p])
            if s.stopped():
                open_bound = min(open_bound, total)
                break
            if total >= ub:
                continue
            f = int(node.features[p])
            pair = self._sides(rows, f, height, allowed, ub, lower[:, p])
            if s.stopped():
                open_bound = min(open_bound, total)
            if pair is None:
                continue
            children[f] = pair
            vectors, aux = dp_pareto.combine(vectors, aux, f, pair[0].vectors, pair[1].vectors, self.limits(ub))
            # with one entry only the cheapest vector counts; at the root that holds always
            if len(vectors) and (root or vectors.shape[1] == 1):
                ub = min(ub, int(vectors[:, 0].min()))
                if root:
                    self._news(_Front(vectors, aux, ub, False, node.features, children))
        if root and height == self.full_depth:
            # ascending bounds: what comes after the one at which the search stopped costs no less
            self.root_bound = max(self.root_bound, min(open_bound, ub))
        used = {int(f) for f in aux[:, 0]} if len(aux) else set()
        children = {f: pair for f, pair in children.items() if f in used}
        return _Front(vectors, aux, given, False, node.features, children)

    def _sides(
        self, rows: np.ndarray, f: int, height: int, allowed: np.ndarray, ub: int, lower: np.ndarray
    ) -> tuple[_Front, _Front] | None:
        s = self.search
        parts = dp_node.split_rows(s.instance.rows, rows, f)
        inner = allowed if self.conflict is None else (allowed & (1 - self.conflict[f])).astype(np.uint8)
        low = [int(lower[0]), int(lower[1])]
        if height > 3 and self.costs[0]:
            for side in (0, 1):
                low[side] = max(low[side], s.solve(parts[side], (0,), height - 1, ub - low[1 - side]).lower)
                if s.stopped() or low[0] + low[1] >= ub:
                    return None
        first = 0 if len(parts[0]) <= len(parts[1]) else 1
        a = self.solve(parts[first], height - 1, inner, ub - low[1 - first])
        if not len(a.vectors):
            return None
        b = self.solve(parts[1 - first], height - 1, inner, ub - int(a.vectors[:, 0].min()))
        return (a, b) if first == 0 else (b, a)

    def _news(self, front: _Front) -> None:
        place = int(front.vectors[:, 0].argmin())
        cost = int(front.vectors[place, 0])
        if self.best is None or cost < self.best[0]:
            self.best = (cost, replace(front, children=dict(front.children)), place)
            self.search.report(cost, self.root_bound, self.search.nodes)

    def run(self, depth: int, floor: int = 0) -> None:
        """Shallow trees first, each an incumbent for the next depth; the bound is that of the last depth."""
        g = self.search.instance
        rows = np.arange(len(g.rows), dtype=np.int32)
        self.full_depth, self.root_bound = depth, floor
        for height in range(min(depth, 1), depth + 1):
            self.depth = height
            ub = int(INFINITE) if self.best is None else self.best[0]
            front = self.solve(rows, height, self.allowed, ub)
            if len(front.vectors):
                self._news(front)
            if self.search.stopped():
                return
        self.root_bound = max(self.root_bound, int(INFINITE) if self.best is None else self.best[0])

    def tree(self, front: _Front, place: int) -> LabelledShape:
        """The tree behind a vector."""
        a = [int(x) for x in front.aux[place]]
        if a[0] < 0:
            return a[3]
        if not front.terminal:
            low, high = front.children[a[0]]
            return a[0], self.tree(low, a[1]), self.tree(high, a[2])
        names = front.features
        sides = [
            int(labels[0]) if split < 0 else (int(names[split]), *labels)
            for split, labels in ((a[1], (a[3], a[4])), (a[2], (a[5], a[6])))
        ]
        return int(names[a[0]]), sides[0], sides[1]


def recall_limit(instance: ExactInstance, label: int, share: Fraction) -> int:
    """The largest number of errors among the rows of class `label` that leaves `share` of them right."""
    weights = np.int64(1) << instance.shifts.astype(np.int64)
    size = int(weights[instance.classes == label].sum())
    return size - math.ceil(share * size)


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

    Arguments as for `solve_binary`.  Raises InfeasibleError where no tree satisfies the constraints; its `best` is the least
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
        found = _within(X, y, constraints, common, allowed, report)
    else:
        found = _few_columns(X, y, constraints, common, allowed, report)
    if found.infeasible and found.shortfall is None:
        raise InfeasibleError("No tree satisfies the constraints. Relax one of them or allow a deeper tree.")
    if found.shortfall is not None:
        raise InfeasibleError(
            "No tree satisfies the constraints. The recalls can be reached together if each is "
            f"{float(found.shortfall):.4g} lower.",
            best=float(found.shortfall),
        )
    return found


def _within(
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
    """The optimum that knows of leaves only; None where it was not found in time."""
    if constraints.max_leaves is None:
        best = solve_binary(X, y, allowed=allowed, **common)
        return ConstrainedResult(
            shape=best.shape, found=True, cost=best.cost, bound=best.bound, nodes=best.nodes
        )  # fmt: skip
    rest = {k: v for k, v in common.items() if k not in ("leaf_cost", "threads")}
    points = solve_frontier(X, y, allowed=allowed, max_leaves=constraints.max_leaves, **rest)
    penalty = common["leaf_cost"]
    cost, _, best_at = min((p.errors + penalty * p.leaves, p.leaves, k) for k, p in enumerate(points))
    bound = min(p.bound + penalty * (p.leaves if p.bound == p.errors else k + 1) for k, p in enumerate(points))
    return ConstrainedResult(shape=points[best_at].shape, found=True, cost=cost, bound=min(cost, bound), nodes=0)


def _shortfall(search: Search, constraints: Constraints, depth: int) -> Fraction | None:
    """The least common amount by which the recalls fall short, over all trees within the other constraints."""
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
    most, columns = constraints.max_columns, constraints.columns
    assert most is not None
    assert columns is not None
    inner = replace(constraints, max_columns=None)
    ids = itertools.count()
    best: ConstrainedResult | None = None
    nodes = 0
    open_nodes: list[tuple[Fraction, int, frozenset[int], frozenset[int]]] = [
        (Fraction(0), next(ids), frozenset(), frozenset(int(c) for c in columns))
    ]
    while open_nodes:
        bound, _, required, usable = open_nodes[0]
        if (best is not None and bound >= best.cost) or common["stop"]() or common["flag"][0]:
            break
        heapq.heappop(open_nodes)
        if len(required) == most:
            usable = required
        mask = (allowed.astype(bool) & np.isin(columns, list(usable))).astype(np.uint8)
        found = _within(X, y, inner, common, mask, None)
        nodes += found.nodes
        if found.infeasible:
            continue
        bound = max(bound, found.bound)
        asked = columns_of(found.shape, columns) if found.found else set()
        if found.found and len(asked) <= most:
            if best is None or found.cost < best.cost:
                best = found
            if not found.optimal:
                heapq.heappush(open_nodes, (bound, next(ids), required, usable))
                break
        elif found.found and (best is None or bound < best.cost) and len(required) < most:
            column = min(asked - required)
            heapq.heappush(open_nodes, (bound, next(ids), required | {column}, usable))
            heapq.heappush(open_nodes, (bound, next(ids), required, usable - {column}))
        elif not found.found:
            heapq.heappush(open_nodes, (bound, next(ids), required, usable))
            break
        if best is not None and report is not None:
            report(best.cost, min([best.cost, *(b for b, *_ in open_nodes)]), nodes)
    floor = min((b for b, *_ in open_nodes), default=None)
    if best is None:
        if floor is None:
            short = _column_shortfall(X, y, inner, common, allowed, most, columns)
            return ConstrainedResult(
                shape=None,
                found=False,
                cost=Fraction(0),
                bound=Fraction(0),
                nodes=nodes,
                infeasible=True,
                shortfall=short,
            )
        return ConstrainedResult(shape=None, found=False, cost=floor, bound=floor, nodes=nodes)
    bound = best.cost if floor is None else min(best.cost, floor)
    return replace(best, bound=bound, nodes=nodes)


def _column_shortfall(
    X: BitArray, y: CodeArray, constraints: Constraints, common: dict[str, Any], allowed: BitArray, most: int,
    columns: CountArray,
) -> Fraction | None:  # fmt: skip
    """The least shortfall over all sets of `most` columns; None where there are too many sets to try."""
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
