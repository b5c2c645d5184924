"""Search exactly with prices of columns.

Each row pays a column once if its path tests it. The key of a subproblem is its rows, its height, its most leaves and
the paid columns. The search without prices and without a limit of leaves gives lower bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from trainer.errors import ParameterError
from trainer.families.exact.instance import MOST_COST, ExactInstance, build_instance
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.search.memo import INFINITE, UNKNOWN_PATH, ExactOptions
from trainer.families.exact.search.pareto import ColumnTolls
from trainer.families.exact.search.search import ExactSearch, useful_depth
from trainer.families.exact.search.solve import ExactResult, evaluate
from trainer.kernels.members import members
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits
from trainer.tree.shapes import Shape

Report = Callable[[Fraction, Fraction, int], None]
Improved = Callable[[Shape], None]


@dataclass(frozen=True)
class PricedEntry:
    """A lower bound for a subproblem and, if `exact`, the tree of this cost."""

    lower: int
    exact: bool
    shape: Shape = None


@dataclass(frozen=True)
class ColumnPrices:
    """The column of each feature, and by column the price for one unit of weight, in rows."""

    columns: np.ndarray
    prices: Mapping[int, Fraction]


class Subproblem(NamedTuple):
    """Rows int32 (n,), the largest height and number of leaves of their trees, and the paid columns."""

    rows: np.ndarray
    height: int
    leaves: int
    paid: frozenset[int]


class PricedSearch:
    """The recurrence over (rows, height, most leaves, paid columns); `search` has the same costs without prices.

    Parameters
    ----------
    search : ExactSearch
        The search without prices; its instance is that of `priced_instance`.
    columns : int array of shape (features,)
        The column of each feature.
    charges : int64 array of shape (features,)
        The price of its column for one unit of weight, in the integers of the instance; 0 for a free column.
    """

    def __init__(self, search: ExactSearch, columns: np.ndarray, charges: np.ndarray) -> None:
        self.search = search
        self.columns = columns
        self.charges = charges
        self.tolls = ColumnTolls(columns, charges)
        self.memo: dict[tuple[int, int, frozenset[int], bytes], PricedEntry] = {}
        self.bytes = 0
        self.incumbent: tuple[int, Shape] = (int(INFINITE), None)
        self.root_bound = 0
        self.depth = self.full_depth = 0  # depths of the trees: in the current pass, and in the last one
        self.improved: Callable[[int, Shape], None] = lambda cost, shape: None

    def solve(self, part: Subproblem, ub: int) -> PricedEntry:
        """Return the optimum if it is below `ub`, else a lower bound of at least `ub`; less only if the search was stopped."""
        height = min(part.height, part.leaves - 1)
        part = part._replace(height=height, leaves=min(part.leaves, 1 << height))
        key = (*part[1:], members(part.rows, len(self.search.instance.rows)).tobytes())
        cached = self.memo.get(key)
        if cached is not None and (cached.exact or cached.lower >= ub):
            return cached
        self.search.nodes += 1
        node = self.prepare(part.rows)
        leaf, floor = self.search.node_bounds(node, height)
        if len(node.features) == 0 or height == 0 or floor >= leaf:
            entry = PricedEntry(leaf, True)
        elif floor >= ub:
            entry = PricedEntry(floor, False)
        elif height <= 2:
            entry = self._solve_small(node, part)
        else:
            entry = self._solve_large(node, part, ub, leaf)
        if not self.search.stopped():
            self._memoise(key, entry)
        return entry

    def _memoise(self, key: tuple[int, int, frozenset[int], bytes], entry: PricedEntry) -> None:
        self.bytes += 400 + len(key[-1])
        if self.bytes > self.search.options.memory // 2:
            self.memo.clear()
            self.bytes = 0
        self.memo[key] = entry

    def prepare(self, rows: np.ndarray) -> dp_node.NodeView:
        """Return the counts of rows; equal features stay apart, because their prices may differ."""
        context = self.search.context
        return dp_node.prepare(context.data, rows, context.allowed, self.search.min_leaf, False, True)

    def _solve_small(self, node: dp_node.NodeView, part: Subproblem) -> PricedEntry:
        """Return the cheapest tree of one or two levels, from pair counts."""
        g = self.search.instance
        totals = node.totals.astype(np.int64)
        ones = node.ones.astype(np.int64)
        charge = self.tolls.unpaid(node.features, part.paid)
        cost = int(totals.sum()) * charge
        below = np.full((2, len(charge)), -1)
        gains = np.zeros((2, len(charge)), np.int64)  # costs saved by splitting each child
        pairs = _pairs(node, g.n_classes) if part.height > 1 else None
        for s, side_counts in ((0, totals[:, None] - ones), (1, ones)):
            side = g.unit * (side_counts.sum(axis=0) - side_counts.max(axis=0)) + g.leaf
            if pairs is not None:
                inside = pairs if s else ones[:, None, :] - pairs
                split = self._split_costs(side_counts, inside, charge, self.columns[node.features])
                best = split.argmin(axis=1)
                least = split[np.arange(len(best)), best]
                below[s] = np.where(least < side, best, -1)
                gains[s] = np.maximum(0, side - least)
            cost = cost + side
        if part.leaves == 3:  # with three leaves, only one child may have a split, so drop the smaller gain
            other = gains.argmin(axis=0), np.arange(len(charge))
            gains[other] = 0
            below[other] = -1
        cost = cost - gains.sum(axis=0)
        p = int(cost.argmin())
        leaf = g.unit * int(totals.sum() - totals.max()) + g.leaf
        if leaf <= cost[p]:
            return PricedEntry(leaf, True)
        zero, one = (None if q < 0 else (int(node.features[q]), None, None) for q in below[:, p].tolist())
        return PricedEntry(int(cost[p]), True, (int(node.features[p]), zero, one))

    def _split_costs(
        self, side_counts: np.ndarray, inside: np.ndarray, charge: np.ndarray, columns: np.ndarray
    ) -> np.ndarray:
        """Return the cost of split q in a child of split f, int64 (f, q).

        side_counts (K, f): class weights of the child. inside (K, f, q): those with x_q = 1.
        """
        g = self.search.instance
        outside = side_counts[:, :, None] - inside
        size = side_counts.sum(axis=0)
        one = inside.sum(axis=0)
        errors = size[:, None] - inside.max(axis=0) - outside.max(axis=0)
        unpaid = np.where(columns[:, None] == columns[None, :], 0, charge[None, :])
        cost = g.unit * errors + 2 * g.leaf + size[:, None] * unpaid
        least = max(1, self.search.min_leaf)
        allowed = (one >= least) & (size[:, None] - one >= least)
        return np.where(allowed, cost, INFINITE)

    def _solve_large(self, node: dp_node.NodeView, part: Subproblem, ub: int, leaf: int) -> PricedEntry:
        """Return the cheapest tree of three or more levels, or a bound."""
        root = part.height == self.depth and len(part.rows) == len(self.search.instance.rows)
        unpriced = self.search.solve(part.rows, UNKNOWN_PATH, part.height, ub)
        if unpriced.lower >= ub:
            return PricedEntry(unpriced.lower, False)
        best = PricedEntry(leaf, True) if leaf < ub else PricedEntry(ub, False)
        shallow = self.solve(part._replace(height=part.height - 1), best.lower)
        if shallow.exact and shallow.lower < best.lower:
            best = shallow
        charges = int(node.totals.sum()) * self.tolls.unpaid(node.features, part.paid)
        lower = self.search.build_frame(node, part.height).lower
        bounds = charges + lower[0] + lower[1]
        for p in np.argsort(bounds, kind="stable").tolist():
            if self.search.stopped():
                break
            if bounds[p] >= best.lower:
                continue
            attempt = self._attempt(part, int(node.features[p]), best.lower, int(charges[p]), lower[:, p])
            bounds[p] = max(attempt.lower, bounds[p])
            if attempt.exact and attempt.lower < best.lower:
                best = attempt
                if root:
                    self._update_incumbent(best)
            if root and self.depth == self.full_depth:
                self.root_bound = max(self.root_bound, min(best.lower, int(bounds.min())))
        if self.search.stopped():
            return PricedEntry(max(unpriced.lower, min(best.lower, int(bounds.min()))), False)
        return best

    def _attempt(self, part: Subproblem, feature: int, best: int, charge: int, lower: np.ndarray) -> PricedEntry:
        """Return the best tree with this split at its root if it costs less than `best`, else a lower bound."""
        children = dp_node.split_rows(self.search.instance.rows, part.rows, feature)
        low = [int(lower[0]), int(lower[1])]
        for s in (0, 1):
            unpriced = self.search.solve(children[s], UNKNOWN_PATH, part.height - 1, best - charge - low[1 - s])
            low[s] = max(low[s], unpriced.lower)
            if charge + low[0] + low[1] >= best or self.search.stopped():
                return PricedEntry(charge + low[0] + low[1], False)
        paid = self.tolls.paid_below(part.paid, feature)
        most = 1 << (part.height - 1)  # most leaves of a child
        entries: list[PricedEntry] = []
        for count in range(max(1, part.leaves - most), min(most, part.leaves - 1) + 1):
            sides = [
                Subproblem(children[s], part.height - 1, leaves, paid)
                for s, leaves in enumerate((count, part.leaves - count))
            ]
            entries.append(self._combine(feature, sides, best, charge, list(low)))
            if entries[-1].exact:
                best = min(best, entries[-1].lower)
        # an entry without a tree can be the cheapest only if the search was stopped
        return min(entries, key=lambda entry: (entry.lower, not entry.exact))

    def _combine(
        self, feature: int, sides: Sequence[Subproblem], best: int, charge: int, low: list[int]
    ) -> PricedEntry:
        """Return the best tree with these numbers of leaves if it costs less than `best`, else a lower bound."""
        shapes: list[Shape] = [None, None]
        for s in (0, 1):
            child = self.solve(sides[s], best - charge - low[1 - s])
            low[s] = max(low[s], child.lower)
            shapes[s] = child.shape
            if not child.exact or charge + low[0] + low[1] >= best:
                return PricedEntry(charge + low[0] + low[1], False)
        return PricedEntry(charge + low[0] + low[1], True, (feature, shapes[0], shapes[1]))

    def _update_incumbent(self, entry: PricedEntry) -> None:
        if entry.lower < self.incumbent[0]:
            self.incumbent = (entry.lower, entry.shape)
            self.improved(*self.incumbent)

    def run(self, depth: int, leaves: int) -> None:
        """Search shallow trees of at most `leaves` leaves first; the bound is that of the whole depth."""
        rows = np.arange(len(self.search.instance.rows), dtype=np.int32)
        self.full_depth = depth
        for height in range(depth + 1):
            self.depth = height
            self.root_bound = 0
            entry = self.solve(Subproblem(rows, height, leaves, frozenset()), self.incumbent[0])
            if entry.exact:
                self._update_incumbent(entry)
            bound = entry.lower if self.search.stopped() else self.incumbent[0]
            if self.search.stopped():
                self.root_bound = min(bound, self.incumbent[0]) if height == depth else 0
                return
            self.root_bound = self.incumbent[0]


def _pairs(node: dp_node.NodeView, classes: int) -> np.ndarray:
    """Return the weight of each class by pair of features, int64 (K, m, m), symmetric."""
    m = len(node.features)
    P = np.zeros((classes, m, m), np.int32)
    dp_node.pair_counts(node, P)
    upper = np.triu(P.astype(np.int64), 1)
    pairs: np.ndarray = upper + upper.transpose(0, 2, 1)
    pairs[:, np.arange(m), np.arange(m)] = node.ones
    return pairs


def priced_instance(problem: BinaryProblem, prices: ColumnPrices) -> tuple[ExactInstance, np.ndarray]:
    """Return the instance with integer costs that represent the prices, and the charges of `PricedSearch`.

    Raises ParameterError if the prices have too many digits for exact integers.
    """
    g = build_instance(problem)
    used = {column: price for column, price in prices.prices.items() if price}
    factor = math.lcm(*(int((price * g.Q).denominator) for price in used.values()))
    unit = g.unit * factor
    leaf = g.scale * g.P * factor + (1 if g.scale > 1 else 0)
    charges = [int(used.get(int(column), Fraction(0)) * g.Q * factor) * g.scale for column in prices.columns]
    most = unit * g.total + (leaf << problem.depth) + max(charges, default=0) * g.total * problem.depth
    if most >= MOST_COST:
        words = (
            "a price is too large, or has too many digits, for exact costs. Give a smaller number with fewer digits."
        )
        raise ParameterError({"column_price": words})
    finer = replace(g, unit=unit, leaf=leaf, P=g.P * factor, Q=g.Q * factor)
    return finer, np.array(charges, np.int64)


def begin_priced(
    problem: BinaryProblem, prices: ColumnPrices, *, limits: SearchLimits, options: ExactOptions
) -> tuple[PricedSearch, int]:
    """Return the search of a problem with prices, and the depth that its trees can have; start the clock."""
    instance, charges = priced_instance(problem, prices)
    running = limits.start_clock()
    search = ExactSearch(
        instance=instance,
        depth=2,  # a depth of two skips the table of depth-two optima
        min_leaf=problem.min_leaf,
        allowed=problem.allowed_features,
        options=options,
        stop=running.stop,
        flag=running.flag,
    )
    return PricedSearch(search, prices.columns, charges), useful_depth(problem, instance)


def solve_priced(
    problem: BinaryProblem,
    prices: ColumnPrices,
    *,
    limits: SearchLimits,
    options: ExactOptions,
    report: Report,
    improved: Improved,
    max_leaves: int | None = None,
) -> ExactResult:
    """Find a tree of least cost, including the prices of its columns, and prove it.

    Parameters
    ----------
    problem, limits, options
        As for `solve_binary`.
    prices : ColumnPrices
        Prices of columns.
    report : callable
        Called with cost and bound in rows, and the number of nodes.
    improved : callable
        Called with better trees.
    max_leaves : int, optional
        The most leaves of a tree.

    Returns
    -------
    ExactResult
        If stopped early, the incumbent and a valid lower bound.
    """
    priced, depth = begin_priced(problem, prices, limits=limits, options=options)
    search = priced.search
    instance = search.instance

    def take(cost: int, shape: Shape) -> None:
        report(instance.true_cost(cost), instance.true_cost(min(priced.root_bound, cost)), search.nodes)
        improved(shape)

    priced.improved = take
    priced.run(depth, max_leaves or 1 << depth)
    cost, shape = priced.incumbent
    errors, leaves = evaluate(instance, shape)
    is_leaf_only = cost >= INFINITE  # the search stopped before it counted even a single leaf
    true_cost = instance.true_cost(instance.unit * errors + instance.leaf if is_leaf_only else cost)
    bound = min(true_cost, instance.true_cost(priced.root_bound))
    return ExactResult(
        shape=shape,
        errors=errors,
        leaves=leaves,
        cost=true_cost,
        bound=bound,
        optimal=bound == true_cost,
        nodes=search.nodes,
        depth_two=search.depth_two_solves,
        cache_entries=len(priced.memo),
        evictions=search.evictions,
    )
