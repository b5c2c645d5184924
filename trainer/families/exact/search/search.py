"""Search trees of binary features exactly, by dynamic programming with bounds.

(Demirovic et al. 2022; van der Linden et al. 2023; Aglin et al. 2020.)
cost = unit * errors + leaf * leaves in integers. E(D, h) is the smallest cost of a tree of depth ≤ h for the rows D.
Python searches the levels above three. One compiled kernel searches a node of height three with all its depth-two subtrees.
Each node stores every lower bound in its arrays, so a stopped search still has a valid bound.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.errors import DataError
from trainer.families.exact.instance import ExactInstance, build_instance
from trainer.families.exact.kernels import depth4 as dp_depth4
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.kernels import solve_subtree as dp_subtree
from trainer.families.exact.kernels.bounds import (
    SideBounds,
    bound_children_by_node,
    child_bounds,
    count_bounds,
    node_bounds,
)
from trainer.families.exact.kernels.depth2 import best_depth2, cheapest_cost, node_errors_by_leaves
from trainer.families.exact.kernels.depth2_signed import class_differences
from trainer.families.exact.kernels.depth3 import (
    BEST,
    CHOICE,
    DEPTH_TWO_SOLVES,
    STOPPED,
    NodeState,
    PairBudget,
    PairCache,
    binomial_table,
    solve_depth3,
)
from trainer.families.exact.kernels.first_split_bounds import (
    first_bounds_of_child,
    new_first_bounds,
    store_first_bounds,
    update_similar_bounds,
)
from trainer.families.exact.search.frame import RootBounds, SearchFrame
from trainer.families.exact.search.memo import INFINITE, SHALLOWER, ExactOptions, MemoEntry, known_path
from trainer.families.exact.search.root_splits import REPORT_SECONDS, choice_of_root, in_parallel, in_slices
from trainer.families.exact.search.tree_reader import split_tree
from trainer.kernels.members import members
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits
from trainer.tree.shapes import Shape, stump

SLICE_NANOSECONDS = 5e7
PAIR_COUNTS_PER_CHECK = 20_000_000  # counts of feature pairs between two checks of the clock
WEIGHTED_WORD_FACTOR = 5  # a word with listed weights takes as long as this many plain words
TREE_SECONDS = 0.5


def _check_pairs(classes: int, features: int, depth: int, memory: int) -> None:
    """Raise DataError if the pair counts exceed the memory limit, before their allocation makes the machine swap."""
    needed_bytes = 4 * classes * features**2
    if depth >= 2 and needed_bytes > memory:
        raise DataError(
            f"{features} questions and {classes} classes need {needed_bytes // 1_000_000} MB to count pairs of questions, "
            f"but {memory // 1_000_000} MB are allowed. Use fewer bins, leave columns out, or raise the memory limit."
        )


@dataclass
class ExactSearch:
    """The exact search of one instance, with its caches and its incumbent.

    It calls `stop` about every 50 ms. `flag[0] != 0` ends a kernel at once.
    """

    instance: ExactInstance
    depth: int
    min_leaf: int = 1
    allowed: np.ndarray | None = None
    options: ExactOptions = field(default_factory=ExactOptions)
    threads: int = 1
    stop: Callable[[], bool] = lambda: False
    flag: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    report: Callable[[int, int, int], None] = lambda cost, bound, nodes: None
    # maps the incumbent cost to the pruning threshold at the root; counting all good trees needs one above the optimum
    pruning_threshold: Callable[[int], int] = lambda cost: cost
    improved: Callable[[Shape], None] | None = None  # called with better trees, at most every TREE_SECONDS

    def __post_init__(self) -> None:
        g = self.instance
        o = self.options
        if self.allowed is None:
            self.allowed = np.ones(g.features, np.uint8)
        _check_pairs(g.n_classes, int(np.count_nonzero(self.allowed)), self.depth, 2 * o.memory)
        # similarity bounds remove rows from a tree, which may violate a minimum leaf size
        similar = o.similarity and self.min_leaf <= 1
        self.similar = similar
        self.costs = np.array([g.unit, g.leaf, self.min_leaf, similar], np.int64)
        self.memo: dict[Any, MemoEntry] = {}
        self.memo_bytes = 0
        self.evictions = 0
        self.nodes = 0
        self.depth_two_solves = 0
        self.incumbent: tuple[int, int | None, int] = (int(INFINITE), None, 0)  # cost, feature of the root, and height
        self.root_lower = 0
        self.root: RootBounds | None = None  # set when all splits of the root have been searched
        self.lock = threading.Lock()
        self.last_tree_reported_at = -math.inf  # in seconds of time.perf_counter
        self.last_bound_reported_at = -math.inf
        self.tree_pending = False
        self.incumbent_tree: tuple[tuple[int, int, int], Shape] | None = None  # caches the tree of an incumbent
        self.root_shapes: dict[int, Shape] = {}  # for the set of all rows, trees of one and two levels by height
        self.no_flag = np.zeros(1, np.int64)
        self.no_floors = np.zeros(0, np.int64)
        self.bounds = np.array([o.equivalent, o.class_count, o.support], np.uint8)
        features = int(np.count_nonzero(self.allowed))
        # small nodes of height three and four end before the next check of the clock, so one kernel call may solve them
        pairs = self.slice_size(features, len(g.rows) // 64 + len(g.segments)) if o.one_call else -1
        self.height3_fits_slice = pairs >= features
        self.height4_fits_slice = pairs >= 2 * features**2
        self._make_tables(self.allowed)

    def report_in_rows(self, report: Callable[[Fraction, Fraction, int], None]) -> None:
        """Report costs and bounds to `report` in rows instead of the search's own integers."""
        g = self.instance
        self.report = lambda cost, bound, nodes: report(g.true_cost(cost), g.true_cost(min(bound, cost)), nodes)

    def _make_tables(self, allowed: np.ndarray) -> None:
        size = self.depth - 2  # number of literals on the path to a subtree of depth two
        entries = math.comb(self.instance.literals, size) if size >= 2 else 0
        fits = 0 < entries * 8 <= self.options.memory // 2
        self.binomials = binomial_table(self.instance.literals, size if fits else 1)
        self.table = np.zeros(entries if fits and self.options.branch_cache else 0, np.int64)
        self.no_table = np.zeros(0, np.int64)
        # cache by path of bounds for subtrees of height three below nodes of height four
        sizes = [math.comb(self.instance.literals, s) for s in range(max(0, size))]
        self.starts = np.cumsum([0, *sizes])
        is_used = self.height4_fits_slice and len(self.table) > 0
        self.height3_table = np.zeros(self.starts[-1] if is_used else 0, np.int64)
        g = self.instance
        o = self.options
        self.context = dp_subtree.SearchContext(
            data=g.data,
            allowed=allowed,
            reduce=bool(o.reduce),
            deepen=bool(o.deepening),
            bounds=self.bounds,
            costs=self.costs,
            binomials=self.binomials,
        )

    def pair_table(self, path: tuple[int, ...], height: int) -> np.ndarray:
        """Return the cache of depth-two subtrees if these reach the full depth below the node, else an empty one."""
        return self.table if known_path(path) and len(path) == self.depth - height else self.no_table

    @property
    def size(self) -> int:
        """Bytes of the rows, caches and bounds."""
        learned = 0 if self.root is None else self.root.size
        return self.instance.rows.nbytes + self.memo_bytes + self.table.nbytes + self.height3_table.nbytes + learned

    # -- subproblems ---------------------------------------------------------------------------------------------------

    def prepare(self, rows: np.ndarray, sort: bool = True) -> dp_node.NodeView:
        """Return the compact node of `rows`."""
        return dp_node.prepare(self.context.data, rows, self.allowed, self.min_leaf, self.options.reduce, sort)

    def pair_counts(self, node: dp_node.NodeView, stoppable: bool) -> np.ndarray | None:
        """Count the weight of each class by pair of features, int32 (K, m, m); return None if the search was stopped."""
        m = len(node.features)
        P = np.empty((self.instance.n_classes, m, m), np.int32)
        if not stoppable or P.size <= PAIR_COUNTS_PER_CHECK:
            dp_node.pair_counts(node, P)
            return P
        for f in range(m):
            if f % max(1, PAIR_COUNTS_PER_CHECK * m // P.size) == 0 and self.stopped():
                return None
            dp_node.pair_row(node.columns, node.segment, node.weights, f, f + 1, P[:, f, :])
        dp_node.mirror(node, P)
        return P

    def _zero_floors(self) -> np.ndarray:
        return np.zeros(self.instance.features, np.int64)

    def build_frame(self, node: dp_node.NodeView, height: int, P: np.ndarray | None = None) -> SearchFrame:
        """Create the search frame of a node from its pair counts."""
        g = self.instance
        m = len(node.features)
        if P is None:
            P = np.empty((g.n_classes, m, m), np.int32)
            dp_node.pair_counts(node, P)
        lower = np.zeros((2, m), np.int64)
        exact = np.zeros((2, m), np.uint8)
        count_bounds(node, g.unit, g.leaf, height - 1, self.bounds, SideBounds(lower, exact))
        firsts = new_first_bounds(m, g.features, height == 4 and self.similar)
        roots = np.full((2, m), dp_subtree.NO_SPLIT, np.int64)
        return SearchFrame(node, P, lower, exact, self._leaf_cost(node), firsts, roots)

    def _leaf_cost(self, node: dp_node.NodeView) -> int:
        total = int(node.totals.sum())
        return (total - int(node.totals.max())) * self.instance.unit + self.instance.leaf

    def node_bounds(self, node: dp_node.NodeView, height: int) -> tuple[int, int]:
        """Return the cost of the node as a leaf, and a lower bound on its optimum."""
        leaf, floor = node_bounds(node, self.instance.unit, self.instance.leaf, height, self.bounds)
        return int(leaf), int(floor)

    def memo_entry(self, rows: np.ndarray, path: tuple[int, ...], height: int) -> MemoEntry | None:
        """Return the memo entry of a subproblem, if there is one."""
        return self.memo.get(self._key(rows, path, height))

    def memoise_side(self, members: np.ndarray, literal: int, entry: MemoEntry) -> None:
        """Memoise a child of height three below the root."""
        self._memoise((3, members.tobytes() if self.options.dataset_cache else (literal,)), entry)

    def _key(self, rows: np.ndarray, path: tuple[int, ...], height: int) -> Any:
        if self.options.dataset_cache or not known_path(path):
            return height, members(rows, len(self.instance.rows)).tobytes()
        return height, path

    def _memoise(self, key: Any, entry: MemoEntry) -> MemoEntry:
        size = 220 + (len(key[1]) if isinstance(key[1], bytes) else 36 * len(key[1]))
        with self.lock:
            if self.memo_bytes > self.options.memory // 2:
                self.evictions += len(self.memo)
                self.memo.clear()
                self.memo_bytes = 0
            self.memo_bytes += 0 if key in self.memo else size
            self.memo[key] = entry
        return entry

    def solve(
        self,
        rows: np.ndarray,
        path: tuple[int, ...],
        height: int,
        ub: int,
        stoppable: bool = True,
        floors: np.ndarray | None = None,
    ) -> MemoEntry:
        """Return E(rows, height) if it is below `ub`, else a lower bound of at least `ub`; less only if the search was stopped.

        Parameters
        ----------
        rows : int32 array
            Ascending row numbers.
        path : tuple of int
            Ascending literals that exactly these rows satisfy; UNKNOWN_PATH for any other rows.
        height : int
            Largest height of a tree.
        ub : int
            Only trees below this cost are searched.
        stoppable : bool
            Whether the limits may end the search.
        floors : int64 array of shape (features,), optional
            Lower bounds by split at the root, read and raised at height three (see `NodeState`).
        """
        key = self._key(rows, path, height)
        entry = self.memo.get(key)
        if entry is not None and (entry.exact or entry.lower >= ub):
            return entry
        self.nodes += 1
        floors = self._zero_floors() if floors is None else floors
        if (height == 3 and path and self.height3_fits_slice) or (
            height == 4 and height < self.depth and self.height4_fits_slice
        ):
            return self._memoise(key, self._solve_in_one_call(rows, path, height, ub, stoppable, floors))
        node = self.prepare(rows)
        leaf, floor = self.node_bounds(node, height)
        if len(node.features) == 0 or height == 0 or floor >= leaf:
            return self._memoise(key, MemoEntry(leaf, True))
        if floor >= ub:
            return self._memoise(key, MemoEntry(floor, False))
        P = self.pair_counts(node, stoppable) if height > 1 else np.empty((self.instance.n_classes, 0, 0), np.int32)
        if P is None:
            return self._memoise(key, MemoEntry(floor, False))
        if height <= 2:
            return self._memoise(key, self._solve_small(node, P, rows, height))
        frame = self.build_frame(node, height, P)
        if height == 3:
            return self._memoise(key, self._solve_height3(frame, path, ub, stoppable, floors))
        return self._memoise(key, self._search_splits(frame, rows, path, height, ub, stoppable))

    def _solve_small(self, node: dp_node.NodeView, P: np.ndarray, rows: np.ndarray, height: int) -> MemoEntry:
        shape, cost = self._best_depth2(node, P, height)
        if len(rows) == len(self.instance.rows):
            self.root_shapes[height] = shape
        return MemoEntry(cost, True, shape[0] if isinstance(shape, tuple) else None)

    def _best_depth2(self, node: dp_node.NodeView, P: np.ndarray, height: int) -> tuple[Shape, int]:
        """Return a cheapest tree of one or two levels, and its cost."""
        g = self.instance
        positions, cost = best_depth2(node, P, g.unit, g.leaf, self.min_leaf, 1 << height)
        root, zero, one = (int(node.features[p]) if p >= 0 else -1 for p in positions)
        return (None if root < 0 else (root, stump(zero), stump(one))), int(cost)

    def _own_depth2_cost(self, frame: SearchFrame) -> int:
        e = np.empty(4, np.int64)
        children = node_errors_by_leaves(frame.node, frame.P, self.min_leaf, e)
        child_bounds(frame.node, children, self.costs, self.bounds, SideBounds(frame.lower, frame.exact))
        return int(cheapest_cost(e, self.instance.unit, self.instance.leaf, 4))

    def _solve_in_one_call(
        self, rows: np.ndarray, path: tuple[int, ...], height: int, ub: int, stoppable: bool, floors: np.ndarray
    ) -> MemoEntry:
        """Solve a node of height three or four in one kernel call."""
        answer = np.empty(dp_subtree.ANSWERS, np.int64)
        literals = np.array(path, np.int64)
        table = self.pair_table(path, height)
        flag = self.flag if stoppable else self.no_flag
        if height == 3:
            query = dp_subtree.NodeQuery(ub, floors, flag)
            dp_subtree.solve_subtree3(self.context, rows, literals, table, query, answer)
        else:
            within = known_path(path) and len(path) <= self.depth - height
            caches = dp_depth4.Caches(table, self.height3_table if within else self.no_table, self.starts)
            dp_depth4.solve_subtree4(self.context, rows, literals, caches, ub, flag, answer)
        cost, exact, root, solved, nodes = answer.tolist()
        self.depth_two_solves += solved
        self.nodes += nodes
        return MemoEntry(cost, bool(exact), choice_of_root(root))

    def slice_size(self, m: int, words: int) -> int:
        """Return the number of depth-two pairs over m features and 64 * words rows that take about 50 ms."""
        if self.instance.weighted:
            words *= WEIGHTED_WORD_FACTOR
        return max(1, int(SLICE_NANOSECONDS / (m * m * (0.8 + 0.12 * words) * self.instance.n_classes / 2 + 2000)))

    def _solve_height3(
        self, frame: SearchFrame, path: tuple[int, ...], ub: int, stoppable: bool, floors: np.ndarray
    ) -> MemoEntry:
        depth2_cost = self._own_depth2_cost(frame)
        self._inherit(frame, depth2_cost)
        best, choice = (depth2_cost, SHALLOWER) if depth2_cost < ub else (ub, None)
        if frame.leaf < best or (frame.leaf == best < ub):
            best = frame.leaf
            choice = None
        state = np.array([best, -2, 0, 0, 0], np.int64)
        self.run_height3(frame, path, state, stoppable, floors)
        if state[STOPPED]:
            return MemoEntry(frame.bound(), False)
        if state[CHOICE] >= 0:
            return MemoEntry(int(state[BEST]), True, int(frame.node.features[state[CHOICE]]))
        if best < ub:
            return MemoEntry(best, True, choice)
        return MemoEntry(max(ub, frame.bound()), False)

    def _inherit(self, frame: SearchFrame, lower: int) -> None:
        """Bound the children by `lower`, a bound of the node at the height of its children."""
        if self.similar:
            bound_children_by_node(frame.node, lower, self.instance.unit, frame.lower)

    def run_height3(
        self,
        frame: SearchFrame,
        path: tuple[int, ...],
        state: np.ndarray,
        stoppable: bool,
        floors: np.ndarray | None = None,
    ) -> None:
        floors = self._zero_floors() if floors is None else floors
        literals = np.array(path, np.int64)
        D = class_differences(frame.node, frame.P, self.min_leaf)
        cache = PairCache(literals, self.binomials, self.pair_table(path, 3))
        sides = SideBounds(frame.lower, frame.exact)
        node_state = NodeState(state, floors)
        pairs = self.slice_size(frame.node.columns.shape[1], len(frame.node.valid))
        budget = PairBudget(pairs, self.flag if stoppable else self.no_flag)
        before = 0
        while True:
            solve_depth3(frame.node, frame.P, D, self.costs, cache, sides, node_state, budget)
            self.depth_two_solves += int(state[DEPTH_TWO_SOLVES]) - before
            before = int(state[DEPTH_TWO_SOLVES])
            if not path:
                p = state[CHOICE]
                self.report_root(frame, int(state[BEST]), int(frame.node.features[p]) if p >= 0 else None, 3)
            if not state[STOPPED] or (stoppable and self.stopped()):
                return

    def report_root(self, frame: SearchFrame, cost: int, choice: int | None, height: int) -> None:
        """Update the incumbent and, at the full height, the bound of the root; report both.

        Several threads may call it. The callbacks run without the lock, since they may call methods that need it.
        """
        with self.lock:
            if choice is not None and choice >= 0 and cost < self.incumbent[0]:
                self.incumbent = (cost, choice, height)
                self.tree_pending = True
            if height == self.depth:
                self.root_lower = max(self.root_lower, frame.bound())
            least = min(cost, self.incumbent[0])
            lower = self.root_lower
        self.report(least, lower, self.nodes + self.depth_two_solves)
        self.last_bound_reported_at = time.perf_counter()
        self._report_tree()

    def _report_tree(self) -> None:
        """Report the incumbent tree. Its subtrees are cached, so building it takes only a few small searches."""
        if self.improved is None or not self.tree_pending:
            return
        if self.stopped():  # the caller builds the tree at the end anyway
            return
        with self.lock:
            now = time.perf_counter()
            due = (
                self.tree_pending and self.incumbent[1] is not None and now - self.last_tree_reported_at >= TREE_SECONDS
            )
            if due:
                self.last_tree_reported_at = now
                self.tree_pending = False
        if due:
            self.improved(self.incumbent_shape())

    def incumbent_shape(self) -> Shape:
        """Build the tree of the incumbent, whose root is a split; cached, since thousands of features take a second."""
        cost, feature, height = self.incumbent
        assert feature is not None
        if (cached := self.incumbent_tree) is not None and cached[0] == (cost, feature, height):
            return cached[1]
        rows = np.arange(len(self.instance.rows), dtype=np.int32)
        shape = split_tree(self, rows, (), height, feature)
        self.incumbent_tree = (cost, feature, height), shape
        return shape

    def stopped(self) -> bool:
        """Return True once the search has to end."""
        if not self.flag[0] and self.stop():
            self.flag[0] = 1
        return bool(self.flag[0])

    def _search_splits(
        self, frame: SearchFrame, rows: np.ndarray, path: tuple[int, ...], height: int, ub: int, stoppable: bool
    ) -> MemoEntry:
        best, choice = (frame.leaf, None) if frame.leaf < ub else (ub, None)
        if self.options.deepening:
            floors = self._zero_floors()
            below = self.solve(rows, path, height - 1, best, stoppable, floors)
            store_first_bounds(frame.firsts, -1, floors)
            if below.exact and below.lower < best:
                best = below.lower
                choice = SHALLOWER
            self._inherit(frame, below.lower)
        if not path:
            self.report_root(frame, best, None, height)
        if not path and self.threads > 1:
            best, choice = in_parallel(self, frame, rows, height, best, choice)
        elif not path and height == 4 and self.height3_fits_slice:
            best, choice = in_slices(self, frame, rows, best, choice, stoppable)
        else:
            best, choice = self._try_splits_in_order(frame, rows, path, height, best, choice, stoppable)
        if not path:
            self.report_root(frame, best, choice, height)
        if not path and height == self.depth:
            self.root = frame.root_bounds
        if stoppable and self.stopped():
            return MemoEntry(frame.bound(), False)
        if best < ub:
            return MemoEntry(best, True, choice)
        return MemoEntry(max(ub, frame.bound()), False)

    def _try_splits_in_order(
        self,
        frame: SearchFrame,
        rows: np.ndarray,
        path: tuple[int, ...],
        height: int,
        best: int,
        choice: int | None,
        stoppable: bool,
    ) -> tuple[int, int | None]:
        """Return the cost and feature of the best split if it costs less than `best`, else the arguments."""
        for p in range(len(frame.node.features)):
            if stoppable and self.stopped():
                break
            cost = self.attempt(frame, rows, path, height, p, _constant(best), stoppable)
            better = cost < best
            if better:
                best = cost
                choice = int(frame.node.features[p])
            if not path and (better or time.perf_counter() - self.last_bound_reported_at >= REPORT_SECONDS):
                self.report_root(frame, best, choice, height)
        return best, choice

    def attempt(
        self,
        frame: SearchFrame,
        rows: np.ndarray,
        path: tuple[int, ...],
        height: int,
        p: int,
        best: Callable[[], int],
        stoppable: bool,
    ) -> int:
        """Return the cost of the best tree with split p if it is below best(), else some cost of at least best()."""
        lower = frame.lower
        exact = frame.exact
        most = best if path else lambda: self.pruning_threshold(best())
        if lower[0, p] + lower[1, p] >= most():
            return int(INFINITE)
        feature = int(frame.node.features[p])
        parts = dp_node.split_rows(self.instance.rows, rows, feature)
        first = 0 if len(parts[0]) >= len(parts[1]) else 1
        for s in (first, 1 - first):
            floors = self.no_floors
            if not exact[s, p]:
                target = most() - int(lower[1 - s, p])
                literals = tuple(sorted((*path, 2 * feature + s)))
                floors = first_bounds_of_child(frame.node, frame.P, p, s, self.instance.unit, frame.firsts)
                child = self.solve(parts[s], literals, height - 1, target, stoppable, floors)
                if child.exact or child.lower > lower[s, p]:
                    lower[s, p] = max(child.lower, int(lower[s, p]))
                    exact[s, p] = child.exact
            if self.similar:
                update_similar_bounds(
                    frame.node, frame.P, 2 * p + s, lower[s, p], self.costs, frame.firsts, floors, lower
                )
            if lower[0, p] + lower[1, p] >= most():
                return int(INFINITE)
        return int(lower[0, p] + lower[1, p]) if exact[0, p] and exact[1, p] else int(INFINITE)

    def small_tree(self, rows: np.ndarray, height: int) -> Shape:
        """Return a cheapest tree of one or two levels."""
        if len(rows) == len(self.instance.rows) and height in self.root_shapes:
            return self.root_shapes[height]  # counting all pairs again would take seconds with thousands of features
        node = self.prepare(rows)
        P = self.pair_counts(node, False)
        assert P is not None
        return self._best_depth2(node, P, height)[0]


def _constant(value: int) -> Callable[[], int]:
    return lambda: value


UNLIMITED = SearchLimits()


def useful_depth(problem: BinaryProblem, instance: ExactInstance) -> int:
    """Return the depth that a tree of these rows and features can have."""
    return min(problem.depth, problem.X.shape[1], len(instance.rows) - 1)


def begin_search(
    problem: BinaryProblem, *, limits: SearchLimits, options: ExactOptions, depth: int | None = None
) -> ExactSearch:
    """Return the search of a problem and start its clock.

    `depth` sizes the table of depth-two subtrees: 2 for no table, by default the full depth.
    """
    instance = build_instance(problem)
    running = limits.start_clock()
    return ExactSearch(
        instance=instance,
        depth=useful_depth(problem, instance) if depth is None else depth,
        min_leaf=problem.min_leaf,
        allowed=problem.allowed,
        options=options,
        threads=limits.threads,
        stop=running.stop,
        flag=running.flag,
    )
