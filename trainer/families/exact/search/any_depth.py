"""Search exactly with a large depth limit, or without one.

Two searches take turns over one table of bounds. One proves the best tree of depth 6, 7, … in turn. The other has no depth limit,
so its lower bound holds for every limit; its trees are incumbents of every limit that admits them. Neither depends on the requested
limit, which only says when to stop. So at every moment a larger limit has a tree at least as good.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

import numpy as np

from trainer.families.exact.instance import ExactInstance, build_instance
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.kernels.bound_table import (
    copy_entries,
    empty_table,
    find,
    is_full,
    store,
)
from trainer.families.exact.kernels.depth2 import best_depth2
from trainer.families.exact.kernels.refine import (
    ANY_HEIGHT,
    RefineContext,
    more_leaves,
    refine,
    smallest_side,
)
from trainer.families.exact.search.memo import DEFAULT_OPTIONS, ExactOptions
from trainer.families.exact.search.search import UNLIMITED, useful_depth
from trainer.families.exact.search.solve import ExactResult, evaluate, solve_binary
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits
from trainer.tree.shapes import LabelledShape, Shape, shape_depth

SHALLOW = 5  # up to this depth, the search with a table of depth-two subtrees is faster
NOT_IN_TABLE = -3  # marks a choice whose tree is known, but not stored in the table
UNLIMITED_SLICES = 2  # number of slices of the search without a limit for each slice of a depth
FIRST_PLACES = 1 << 14  # number of slots of the first table; full tables are enlarged
SLICE_OPERATIONS = 100_000_000  # pair counts between two checks of the clock
TREE_SECONDS = 0.5

Report = Callable[[Fraction, Fraction, int], None]


@dataclass
class KnownTree:
    """The best known tree of a depth limit, its cost in the integers of the search, and its depth."""

    cost: int
    shape: Shape
    depth: int


def solve_any_depth(
    problem: BinaryProblem,
    *,
    limits: SearchLimits = UNLIMITED,
    options: ExactOptions = DEFAULT_OPTIONS,
    report: Report | None = None,
    start: Shape = None,
    improved: Callable[[Shape], None] | None = None,
) -> ExactResult:
    """Find a tree of least cost and prove it, like `solve_binary`, also for large depths.

    Parameters
    ----------
    problem : BinaryProblem
        The rows and the search space. A depth of at least the number of features is not a limit.
    limits, options, report, start, improved
        As for `solve_binary`.

    Returns
    -------
    ExactResult
        If stopped early, the incumbent and a valid lower bound.
    """
    if problem.depth <= SHALLOW:
        return solve_binary(problem, limits=limits, options=options, report=report, start=start, improved=improved)
    running = limits.start_clock()
    search = AnyDepthSearch(problem, running, options, report)
    search.improved = improved
    is_shallow = shape_depth(start) <= SHALLOW
    shallow = solve_binary(
        replace(problem, depth=SHALLOW),
        limits=running,
        options=options,
        report=search.report_shallow,
        start=start if is_shallow else None,
        improved=improved,
    )
    search.begin(shallow)
    first = None if start is None else search.add_tree(start)
    search.run()
    return search.result(shallow, first)


class AnyDepthSearch:
    """The state of one search: a table of bounds, incumbents by depth, and the bound of all trees."""

    def __init__(
        self, problem: BinaryProblem, limits: SearchLimits, options: ExactOptions, report: Report | None = None
    ) -> None:
        g = build_instance(problem, any_depth=True)
        self.instance = g
        self.limits = limits
        self.report = report
        self.improved: Callable[[Shape], None] | None = None
        self.depth = useful_depth(problem, g)
        self.rows = np.arange(len(g.rows), dtype=np.int32)
        self.costs = np.array(
            [g.unit, g.leaf, problem.min_leaf, problem.min_leaf <= 1 and options.similarity], np.int64
        )
        self.allowed = problem.allowed_features
        self.most_bytes = options.memory
        words = 2 * g.rows.shape[1] + 1
        self.table = empty_table(FIRST_PLACES, words)
        self.work = np.zeros(2, np.int64)
        self.key = self._root_key()
        self.incumbents: list[KnownTree] = []  # ascending by depth, with decreasing costs
        self.lower = 0  # bound of all trees up to the depth limit
        self.any_lower = 0  # bound of all trees of any depth
        self.last_reported_tree: KnownTree | None = None
        self.last_tree_reported_at = -math.inf
        self.out_of_memory = False

    # -- bounds of all trees -------------------------------------------------------------------------------------------

    def deeper(self, depth: int) -> int:
        """Return a lower bound on trees deeper than `depth`, which have at least depth + 2 leaves."""
        g = self.instance
        counts = np.sort(np.bincount(g.classes, g.weights, g.n_classes).astype(np.int64))[::-1].copy()
        inseparable = int(g.weights[g.equal == 1].sum())
        most = 1 << min(self.depth, 40)
        return int(more_leaves(counts, inseparable, depth + 2, most, g.unit, g.leaf))

    def report_shallow(self, cost: Fraction, bound: Fraction, nodes: int) -> None:
        """Report cost and bound of the shallow search as those of all trees."""
        if self.report is not None:
            deeper = self.instance.true_cost(self.deeper(SHALLOW))
            self.report(cost, min(bound, deeper), nodes)

    def begin(self, shallow: ExactResult) -> None:
        """Take over the best tree and the bound of the shallow search."""
        self.add_tree(shallow.shape)
        g = self.instance
        if shallow.optimal:
            bound = self.incumbents[-1].cost
        else:
            bound = math.ceil(shallow.bound * g.Q) * g.scale + (1 if g.scale > 1 else 0)
        self.nodes_before = shallow.nodes
        self.proved_depth = SHALLOW if shallow.optimal else 0
        self.any_lower = self.lower = min(bound, self.deeper(SHALLOW))

    def add_tree(self, shape: LabelledShape) -> Fraction:
        """Add a tree to the incumbents if no cheaper one is as shallow; return its cost in rows."""
        g = self.instance
        errors, leaves = evaluate(g, shape)
        new = KnownTree(g.unit * errors + g.leaf * leaves, cast(Shape, shape), shape_depth(shape))
        if all(old.cost > new.cost or old.depth > new.depth for old in self.incumbents):
            others = [old for old in self.incumbents if old.depth < new.depth or old.cost < new.cost]
            self.incumbents = sorted([*others, new], key=lambda tree: tree.depth)
        return Fraction(g.Q * errors + g.P * leaves, g.Q)

    def best(self, depth: int) -> KnownTree:
        """Return the best known tree of at most `depth`."""
        return min((tree for tree in self.incumbents if tree.depth <= depth), key=lambda tree: tree.cost)

    # -- the two searches ----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Search until the best tree is proved or the limits end it."""
        if not self.proved_depth:
            return
        stage = SHALLOW + 1
        self.lower = max(self.lower, min(self.best(self.depth).cost, self.any_lower))
        while not self.is_proved() and not self.limits.stopped() and not self.out_of_memory:
            for _ in range(UNLIMITED_SLICES):
                self._advance(ANY_HEIGHT)
            self.lower = max(self.lower, min(self.any_lower, self.best(self.depth).cost))
            self._report_progress()
            if self.is_proved() or self.limits.stopped() or self.out_of_memory or stage > self.depth:
                continue
            bound = self._advance(stage)
            cost = self.best(stage).cost
            deeper = self.deeper(stage) if stage < self.depth else cost
            self.lower = max(self.lower, min(bound, cost, deeper))
            if bound >= cost:  # the best tree of this depth is proved, so go on to the next depth
                self.any_lower = max(self.any_lower, min(cost, self.deeper(stage)))
                stage += 1
            self._report_progress()

    def is_proved(self) -> bool:
        """Return True if it is proved that no tree within the depth limit costs less than the incumbent."""
        return self.lower >= self.best(self.depth).cost

    def _advance(self, height: int) -> int:
        """Raise the bound of trees of a height for one time slice and return it."""
        self.key[-1] = height
        lower = self._root_bounds(height)
        g = self.instance
        self.work[1] = self.work[0] + self.visits_per_slice()
        context = RefineContext(g.data, self.allowed, self.costs, self.table, self.work, self.limits.flag)
        bounds = refine(context, self.rows, self.key, height, 1 << 62, lower)
        if bounds[1] < self.best(height).cost:
            self.add_tree(self._read(self.rows, self.key, height, int(bounds[1])))
        if is_full(self.table):
            self.grow()
        if height == ANY_HEIGHT:
            self.any_lower = max(self.any_lower, int(bounds[0]))
        return int(bounds[0])

    def _root_bounds(self, height: int) -> int:
        """Store the bounds of the root in the table and return the lower bound."""
        best = self.best(height)
        lower = min(self.any_lower, best.cost)
        self.key[-1] = height
        store(self.table, self.key, lower, best.cost, NOT_IN_TABLE, best.depth)
        return lower

    def visits_per_slice(self) -> int:
        """Return the number of visits that take about 50 ms. It depends on the data alone, so the search is reproducible."""
        words = len(self.rows) // 64 + len(self.instance.segments)
        pairs = max(1, int(self.allowed.sum())) ** 2
        return max(16, min(1 << 11, SLICE_OPERATIONS // (pairs * words + 10_000)))

    def grow(self) -> None:
        """Enlarge the table; beyond the memory limit evict entries whose trees can be computed from their rows."""
        places = len(self.table.lower)
        words = self.table.keys.shape[1]
        keep = np.ones(places, np.uint8)
        if 3 * places * (8 * words + 24) > self.most_bytes:
            keep = (self.table.choice >= 0).astype(np.uint8)
            if 4 * int(keep.sum()) > places:
                self.out_of_memory = True
                return
        else:
            places *= 2
        larger = empty_table(places, words)
        copy_entries(self.table, larger, keep)
        self.table = larger

    # -- trees ---------------------------------------------------------------------------------------------------------

    def _root_key(self) -> np.ndarray:
        words = self.instance.rows.shape[1]
        key = np.zeros(2 * words + 1, np.uint64)
        write_rows(self.instance, self.rows, key)
        return key

    def _read(self, rows: np.ndarray, key: np.ndarray, height: int, cost: int) -> Shape:
        """Read a tree of at most `cost` from the table or from pair counts."""
        g = self.instance
        node = dp_node.prepare(g.data, rows, self.allowed, smallest_side(self.costs), True, True)
        total = int(node.totals.sum())
        if (total - int(node.totals.max())) * g.unit + g.leaf <= cost or not len(node.features):
            return None
        shape, two = self._two_levels(node, height)
        if two <= cost:
            return shape
        feature = self._choice(key, height, cost)
        parts = dp_node.split_rows(g.rows, rows, feature)
        below = height if height == ANY_HEIGHT else height - 1
        return feature, self._read_side(parts[0], below), self._read_side(parts[1], below)

    def _read_side(self, rows: np.ndarray, height: int) -> Shape:
        """Read the best known tree of a child."""
        key = np.zeros_like(self.key)
        write_rows(self.instance, rows, key)
        costs = []
        for tallest in (height, ANY_HEIGHT):
            at = self._find(key, tallest)
            if at >= 0 and self.table.depth[at] <= height:
                costs.append(int(self.table.upper[at]))
        g = self.instance
        node = dp_node.prepare(g.data, rows, self.allowed, smallest_side(self.costs), True, True)
        shape, two = self._two_levels(node, min(height, 1))
        if not costs or two <= min(costs):
            return shape
        return self._read(rows, key, height, min(costs))

    def _find(self, key: np.ndarray, height: int) -> int:
        key[-1] = height
        return int(find(self.table, key))

    def _choice(self, key: np.ndarray, height: int, cost: int) -> int:
        """Return the root split that the table has for a tree of `cost`."""
        for tallest in (height, ANY_HEIGHT):
            at = self._find(key, tallest)
            fits = at >= 0 and self.table.upper[at] <= cost and self.table.depth[at] <= height
            if fits and self.table.choice[at] >= 0:
                return int(self.table.choice[at])
        raise AssertionError("A tree of the table has no split.")

    def _two_levels(self, node: dp_node.NodeView, height: int) -> tuple[Shape, int]:
        """Return a cheapest tree of at most two levels, and its cost."""
        g = self.instance
        P = np.empty((g.n_classes, len(node.features), len(node.features)), np.int32)
        dp_node.pair_counts(node, P)
        most = 1 << min(height, 2)
        positions, cost = best_depth2(node, P, g.unit, g.leaf, int(self.costs[2]), most)
        root, zero, one = (int(node.features[p]) if p >= 0 else -1 for p in positions)
        if root < 0:
            return None, int(cost)
        below = [None if child < 0 else (child, None, None) for child in (zero, one)]
        return (root, below[0], below[1]), int(cost)

    # -- reports -------------------------------------------------------------------------------------------------------

    def _report_progress(self) -> None:
        """Report cost and bound, and a better tree at most every half second."""
        best = self.best(self.depth)
        g = self.instance
        nodes = self.nodes_before + int(self.work[0])
        if self.report is not None:
            self.report(g.true_cost(best.cost), g.true_cost(min(self.lower, best.cost)), nodes)
        now = time.perf_counter()
        if (
            self.improved is not None
            and best is not self.last_reported_tree
            and now - self.last_tree_reported_at >= TREE_SECONDS
        ):
            self.last_reported_tree = best
            self.last_tree_reported_at = now
            self.improved(best.shape)

    def result(self, shallow: ExactResult, first: Fraction | None) -> ExactResult:
        """Return the best tree and the bound."""
        g = self.instance
        best = self.best(self.depth)
        errors, leaves = evaluate(g, best.shape)
        cost = Fraction(g.Q * errors + g.P * leaves, g.Q)
        bound = cost if self.is_proved() else min(cost, g.true_cost(self.lower))
        return ExactResult(
            shape=best.shape,
            errors=errors,
            leaves=leaves,
            cost=cost,
            bound=bound,
            optimal=bound == cost,
            nodes=shallow.nodes + int(self.work[0]),
            depth_two=shallow.depth_two,
            cache_entries=shallow.cache_entries + int(self.table.used[0]),
            evictions=shallow.evictions,
            start=first,
            any_depth=self.any_lower >= best.cost,
        )


def write_rows(instance: ExactInstance, rows: np.ndarray, key: np.ndarray) -> None:
    """Write the features that are 1 in all rows, then those that are 0 in all rows."""
    words = instance.rows.shape[1]
    bits = instance.rows[rows]
    key[:words] = np.bitwise_and.reduce(bits, axis=0)
    zeros = ~np.bitwise_or.reduce(bits, axis=0)
    for word in range(words):
        bits_in_word = min(64, instance.features - 64 * word)
        key[words + word] = zeros[word] & np.uint64((1 << bits_in_word) - 1)
