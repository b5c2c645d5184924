"""Exact search where asking a column has a price: each row pays it once if its path asks the column.

A subproblem is keyed by its rows, its height and the priced columns that are paid. The search without prices bounds it from below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from trainer.errors import ParameterError
from trainer.families.exact.instance import MOST_COST, ExactInstance, build_instance
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.search.memo import INFINITE, UNKNOWN_PATH, ExactOptions
from trainer.families.exact.search.search import ExactSearch, useful_depth
from trainer.families.exact.search.solve import ExactResult, evaluate
from trainer.kernels.members import members
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits
from trainer.tree.shapes import Shape

Report = Callable[[Fraction, Fraction, int], None]
Improved = Callable[[Shape], None]


@dataclass(frozen=True)
class PricedEntry:
    """What is known of a subproblem: a lower bound of its cost and, where `exact`, the tree of this cost."""

    lower: int
    exact: bool
    shape: Shape = None


@dataclass(frozen=True)
class ColumnPrices:
    """The column of each feature, and what it costs one unit of weight, in rows, by column."""

    columns: np.ndarray
    prices: Mapping[int, Fraction]


class PricedSearch:
    """The recurrence over (rows, height, paid columns); `search` has the same costs without prices.

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
        self.memo: dict[tuple[int, frozenset[int], bytes], PricedEntry] = {}
        self.bytes = 0
        self.incumbent: tuple[int, Shape] = (int(INFINITE), None)
        self.root_bound = 0
        self.depth = 0  # of the trees that are searched now
        self.improved: Callable[[int, Shape], None] = lambda cost, shape: None

    def solve(self, rows: np.ndarray, height: int, paid: frozenset[int], ub: int) -> PricedEntry:
        """Return the least cost if it is below `ub`, else a lower bound of at least `ub` (less only if the search was stopped)."""
        key = (height, paid, members(rows, len(self.search.instance.rows)).tobytes())
        known = self.memo.get(key)
        if known is not None and (known.exact or known.lower >= ub):
            return known
        self.search.nodes += 1
        given = self.search.given
        node = dp_node.prepare(given.data, rows, given.allowed, self.search.min_leaf, False, True)
        leaf, floor = self.search.node_bounds(node, height)
        if len(node.features) == 0 or height == 0 or floor >= leaf:
            found = PricedEntry(leaf, True)
        elif floor >= ub:
            found = PricedEntry(floor, False)
        elif height <= 2:
            found = self._small(node, height, paid)
        else:
            found = self._large(rows, node, height, paid, ub, leaf)
        if not self.search.stopped():
            self._remember(key, found)
        return found

    def _remember(self, key: tuple[int, frozenset[int], bytes], found: PricedEntry) -> None:
        self.bytes += 400 + len(key[2])
        if self.bytes > self.search.options.memory // 2:
            self.memo.clear()
            self.bytes = 0
        self.memo[key] = found

    def _unpaid(self, features: np.ndarray, paid: frozenset[int]) -> np.ndarray:
        """Return the charge of each feature for one unit of weight where its column is not paid, int64."""
        free = np.isin(self.columns[features], list(paid)) if paid else np.zeros(len(features), bool)
        return np.where(free, 0, self.charges[features])

    def _small(self, node: dp_node.NodeView, height: int, paid: frozenset[int]) -> PricedEntry:
        """Return the cheapest tree of one or two levels, from the counts of pairs."""
        g = self.search.instance
        totals = node.totals.astype(np.int64)
        ones = node.ones.astype(np.int64)
        charge = self._unpaid(node.features, paid)
        cost = int(totals.sum()) * charge
        below = np.full((2, len(charge)), -1)
        pairs = _pairs(node, g.n_classes) if height > 1 else None
        for s, own in ((0, totals[:, None] - ones), (1, ones)):
            side = g.unit * (own.sum(axis=0) - own.max(axis=0)) + g.leaf
            if pairs is not None:
                inside = pairs if s else ones[:, None, :] - pairs
                split = self._split_costs(own, inside, charge, self.columns[node.features])
                best = split.argmin(axis=1)
                least = split[np.arange(len(best)), best]
                below[s] = np.where(least < side, best, -1)
                side = np.minimum(side, least)
            cost = cost + side
        p = int(cost.argmin())
        leaf = g.unit * int(totals.sum() - totals.max()) + g.leaf
        if leaf <= cost[p]:
            return PricedEntry(leaf, True)
        zero, one = (None if q < 0 else (int(node.features[q]), None, None) for q in below[:, p].tolist())
        return PricedEntry(int(cost[p]), True, (int(node.features[p]), zero, one))

    def _split_costs(self, own: np.ndarray, inside: np.ndarray, charge: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the cost of one split q on a side of each split f, int64 (f, q); own (K, f), inside (K, f, q): with x_q = 1."""
        g = self.search.instance
        outside = own[:, :, None] - inside
        size = own.sum(axis=0)
        one = inside.sum(axis=0)
        errors = size[:, None] - inside.max(axis=0) - outside.max(axis=0)
        unpaid = np.where(columns[:, None] == columns[None, :], 0, charge[None, :])
        cost = g.unit * errors + 2 * g.leaf + size[:, None] * unpaid
        least = max(1, self.search.min_leaf)
        allowed = (one >= least) & (size[:, None] - one >= least)
        return np.where(allowed, cost, INFINITE)

    def _large(
        self, rows: np.ndarray, node: dp_node.NodeView, height: int, paid: frozenset[int], ub: int, leaf: int
    ) -> PricedEntry:
        root = height == self.depth and len(rows) == len(self.search.instance.rows)
        free = self.search.solve(rows, UNKNOWN_PATH, height, ub)
        if free.lower >= ub:
            return PricedEntry(free.lower, False)
        best = PricedEntry(leaf, True) if leaf < ub else PricedEntry(ub, False)
        shallow = self.solve(rows, height - 1, paid, best.lower)
        if shallow.exact and shallow.lower < best.lower:
            best = shallow
        asked = int(node.totals.sum()) * self._unpaid(node.features, paid)
        lower = self.search.frame(node, height).lower
        bounds = asked + lower[0] + lower[1]
        for p in np.argsort(bounds, kind="stable").tolist():
            if self.search.stopped():
                break
            if bounds[p] >= best.lower:
                continue
            found = self._attempt(rows, int(node.features[p]), height, paid, best.lower, int(asked[p]), lower[:, p])
            bounds[p] = max(found.lower, bounds[p])
            if found.exact and found.lower < best.lower:
                best = found
                if root:
                    self._take(best)
            if root:
                self.root_bound = max(self.root_bound, min(best.lower, int(bounds.min())))
        if self.search.stopped():
            return PricedEntry(max(free.lower, min(best.lower, int(bounds.min()))), False)
        return best

    def _attempt(
        self,
        rows: np.ndarray,
        feature: int,
        height: int,
        paid: frozenset[int],
        best: int,
        asked: int,
        lower: np.ndarray,
    ) -> PricedEntry:
        """Return the best tree with a split at its root if it costs less than `best`, else a lower bound."""
        parts = dp_node.split_rows(self.search.instance.rows, rows, feature)
        low = [int(lower[0]), int(lower[1])]
        for s in (0, 1):
            free = self.search.solve(parts[s], UNKNOWN_PATH, height - 1, best - asked - low[1 - s])
            low[s] = max(low[s], free.lower)
            if asked + low[0] + low[1] >= best or self.search.stopped():
                return PricedEntry(asked + low[0] + low[1], False)
        inner = paid | {int(self.columns[feature])} if self.charges[feature] else paid
        shapes: list[Shape] = [None, None]
        for s in (0, 1):
            found = self.solve(parts[s], height - 1, inner, best - asked - low[1 - s])
            low[s] = max(low[s], found.lower)
            shapes[s] = found.shape
            if not found.exact or asked + low[0] + low[1] >= best:
                return PricedEntry(asked + low[0] + low[1], False)
        return PricedEntry(asked + low[0] + low[1], True, (feature, shapes[0], shapes[1]))

    def _take(self, found: PricedEntry) -> None:
        if found.lower < self.incumbent[0]:
            self.incumbent = (found.lower, found.shape)
            self.improved(*self.incumbent)

    def run(self, depth: int) -> None:
        """Search shallow trees first; the bound is that of the whole depth."""
        rows = np.arange(len(self.search.instance.rows), dtype=np.int32)
        for height in range(depth + 1):
            self.depth = height
            self.root_bound = 0
            found = self.solve(rows, height, frozenset(), self.incumbent[0])
            if found.exact:
                self._take(found)
            bound = found.lower if self.search.stopped() else self.incumbent[0]
            if self.search.stopped():
                self.root_bound = min(bound, self.incumbent[0]) if height == depth else 0
                return
            self.root_bound = self.incumbent[0]


def _pairs(node: dp_node.NodeView, classes: int) -> np.ndarray:
    """Return the weight of each class in each pair of features, int64 (K, m, m), on both sides of the diagonal."""
    m = len(node.features)
    P = np.zeros((classes, m, m), np.int32)
    dp_node.pair_counts(node, P)
    upper = np.triu(P.astype(np.int64), 1)
    found: np.ndarray = upper + upper.transpose(0, 2, 1)
    found[:, np.arange(m), np.arange(m)] = node.ones
    return found


def priced_instance(problem: BinaryProblem, prices: ColumnPrices) -> tuple[ExactInstance, np.ndarray]:
    """Return the instance with costs fine enough for the prices, and the charge of each feature for one unit of weight, int64.

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
        raise ParameterError({"column_price": "the prices have too many digits for exact costs. Round them."})
    finer = replace(g, unit=unit, leaf=leaf, P=g.P * factor, Q=g.Q * factor)
    return finer, np.array(charges, np.int64)


def solve_priced(
    problem: BinaryProblem,
    prices: ColumnPrices,
    *,
    limits: SearchLimits,
    options: ExactOptions,
    report: Report,
    improved: Improved,
) -> ExactResult:
    """Find a tree of least cost, the prices of its columns included, and prove it.

    Parameters
    ----------
    problem, limits, options
        As for `solve_binary`.
    prices : ColumnPrices
        What asking a column costs.
    report, improved
        Called with cost and bound in rows and the number of nodes, and with better trees.

    Returns
    -------
    ExactResult
        If stopped early, the incumbent and a valid lower bound.
    """
    instance, charges = priced_instance(problem, prices)
    running = limits.start_clock()
    search = ExactSearch(
        instance=instance,
        depth=2,  # no table of depth-two optima
        min_leaf=problem.min_leaf,
        allowed=problem.allowed_features,
        options=options,
        stop=running.stop,
        flag=running.flag,
    )
    priced = PricedSearch(search, prices.columns, charges)

    def take(cost: int, shape: Shape) -> None:
        report(instance.true_cost(cost), instance.true_cost(min(priced.root_bound, cost)), search.nodes)
        improved(shape)

    priced.improved = take
    priced.run(useful_depth(problem, instance))
    cost, shape = priced.incumbent
    errors, leaves = evaluate(instance, shape)
    whole = cost >= INFINITE  # stopped before the leaf was counted
    exact = instance.true_cost(instance.unit * errors + instance.leaf if whole else cost)
    bound = min(exact, instance.true_cost(priced.root_bound))
    return ExactResult(
        shape=shape,
        errors=errors,
        leaves=leaves,
        cost=exact,
        bound=bound,
        optimal=bound == exact,
        nodes=search.nodes,
        depth_two=search.depth_two_solves,
        cache_entries=len(priced.memo),
        evictions=search.evictions,
    )
