"""Exact search over trees of binary features: dynamic programming with branch and bound (Demirovic et al. 2022; van der
Linden et al. 2023; Aglin et al. 2020).

cost = unit * errors + leaf * leaves in integers; E(D, h) the smallest cost of a tree of depth ≤ h for the rows D.
Levels above three are searched here; a node of height three and all its depth-two subtrees are one compiled kernel.
Every lower bound that is learned stays in the arrays of its node, so a stopped search has a valid bound.
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
from trainer.families.exact.kernels import depth4 as dp_four
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.kernels import solve_subtree as dp_whole
from trainer.families.exact.kernels.bounds import SideBounds, child_bounds, count_bounds, inherit, node_bounds
from trainer.families.exact.kernels.depth2 import best_two, own_values, price
from trainer.families.exact.kernels.depth2_signed import differences
from trainer.families.exact.kernels.depth3 import (
    BEST,
    CHOICE,
    DEPTH_TWO_SOLVES,
    STOPPED,
    NodeState,
    PairBudget,
    PairCache,
    binomial_table,
    three,
)
from trainer.families.exact.kernels.first_split_bounds import firsts_of, floors_of, learn, update_similar_bounds
from trainer.families.exact.search.frame import RootBounds, SearchFrame
from trainer.families.exact.search.memo import INFINITE, SHALLOWER, ExactOptions, MemoEntry, known_path
from trainer.families.exact.search.root_splits import NEWS_SECONDS, in_parallel, in_slices
from trainer.families.exact.search.tree_reader import split
from trainer.kernels.members import members
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits
from trainer.tree.shapes import Shape

SLICE_NS = 5e7
COUNTED = 20_000_000  # counts of pairs of questions between two looks at the clock
LISTED_WORD = 5  # words of plain rows that take as long as one whose weights are listed
TREE_SECONDS = 0.5


def _check_pairs(classes: int, features: int, depth: int, memory: int) -> None:
    """Refuse counts of pairs that do not fit, before they are allocated and the machine begins to swap."""
    needed = 4 * classes * features**2
    if depth >= 2 and needed > memory:
        raise DataError(
            f"{features} questions and {classes} classes need {needed // 1_000_000} MB to count pairs of questions; "
            f"{memory // 1_000_000} MB are allowed. Use fewer bins, leave columns out, or raise the memory limit."
        )


@dataclass
class ExactSearch:
    """One search; `stop` is asked about every 50 ms, `flag[0] != 0` ends a kernel at once."""

    instance: ExactInstance
    depth: int
    min_leaf: int = 1
    allowed: np.ndarray | None = None
    options: ExactOptions = field(default_factory=ExactOptions)
    threads: int = 1
    stop: Callable[[], bool] = lambda: False
    flag: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    report: Callable[[int, int, int], None] = lambda cost, bound, nodes: None
    # up to which costs sides of the root are searched, by the cost of the best tree: further than it where trees are counted afterwards
    room: Callable[[int], int] = lambda cost: cost
    improved: Callable[[Shape], None] | None = None  # hears of better trees, at most one in TREE_SECONDS

    def __post_init__(self) -> None:
        g = self.instance
        o = self.options
        if self.allowed is None:
            self.allowed = np.ones(g.features, np.uint8)
        _check_pairs(g.n_classes, int(np.count_nonzero(self.allowed)), self.depth, 2 * o.memory)
        similar = o.similarity and self.min_leaf <= 1  # with a smallest leaf a tree need not fit fewer rows
        self.similar = similar
        self.costs = np.array([g.unit, g.leaf, self.min_leaf, similar], np.int64)
        self.memo: dict[Any, MemoEntry] = {}
        self.memo_bytes = 0
        self.evictions = 0
        self.nodes = 0
        self.depth_two_solves = 0
        self.incumbent: tuple[int, int | None, int] = (int(INFINITE), None, 0)  # cost, root feature, height
        self.root_lower = 0
        self.root: RootBounds | None = None  # of the whole, once its splits have been searched
        self.lock = threading.Lock()
        self.last_tree_reported_at = -math.inf  # when a tree was last passed on
        self.last_bound_reported_at = -math.inf  # when costs and bounds were last told
        self.tree_pending = False
        self.drawn: tuple[tuple[int, int, int], Shape] | None = None  # an incumbent and its tree
        self.root_shapes: dict[int, Shape] = {}  # trees of one and two levels for all rows
        self.no_flag = np.zeros(1, np.int64)
        self.no_floors = np.zeros(0, np.int64)
        self.bounds = np.array([o.equivalent, o.class_count, o.support], np.uint8)
        questions = int(np.count_nonzero(self.allowed))
        # nodes of height three, and of height four, that end before the next look at the clock
        pairs = self.slice_size(questions, len(g.rows) // 64 + len(g.segments)) if o.one_call else -1
        self.brief = pairs >= questions
        self.brief_four = pairs >= 2 * questions**2
        self._make_table(self.allowed)

    def report_in_rows(self, report: Callable[[Fraction, Fraction, int], None]) -> None:
        """Report costs and bounds to `report` in rows instead of the search's own integers."""
        g = self.instance
        self.report = lambda cost, bound, nodes: report(g.true_cost(cost), g.true_cost(min(bound, cost)), nodes)

    def _make_table(self, allowed: np.ndarray) -> None:
        size = self.depth - 2  # literals on the path to a subtree of depth two
        entries = math.comb(self.instance.literals, size) if size >= 2 else 0
        fits = 0 < entries * 8 <= self.options.memory // 2
        self.binomials = binomial_table(self.instance.literals, size if fits else 1)
        self.table = np.zeros(entries if fits and self.options.branch_cache else 0, np.int64)
        self.no_table = np.zeros(0, np.int64)
        # subtrees of height three below nodes of height four, by their path
        sizes = [math.comb(self.instance.literals, s) for s in range(max(0, size))]
        self.starts = np.cumsum([0, *sizes])
        wanted = self.brief_four and len(self.table) > 0
        self.known = np.zeros(self.starts[-1] if wanted else 0, np.int64)
        g = self.instance
        o = self.options
        self.given = dp_whole.SearchContext(
            data=g.data, allowed=allowed, reduce=bool(o.reduce), deepen=bool(o.deepening), bounds=self.bounds,
            costs=self.costs, binomials=self.binomials,
        )  # fmt: skip

    def table_of(self, path: tuple[int, ...], height: int) -> np.ndarray:
        """The cache of depth-two subtrees, for nodes so deep that these are as deep as the search; else an empty one."""
        return self.table if known_path(path) and len(path) == self.depth - height else self.no_table

    @property
    def size(self) -> int:
        """Bytes that it holds: its rows and what it has learned."""
        learned = 0 if self.root is None else self.root.size
        return self.instance.rows.nbytes + self.memo_bytes + self.table.nbytes + self.known.nbytes + learned

    # -- subproblems ---------------------------------------------------------------------------------------------------

    def prepare(self, rows: np.ndarray, sort: bool = True) -> dp_node.NodeView:
        """The compact node of `rows`."""
        return dp_node.prepare(self.given.data, rows, self.allowed, self.min_leaf, self.options.reduce, sort)

    def pairs(self, node: dp_node.NodeView, stoppable: bool) -> np.ndarray | None:
        """The weights of each class in pairs of questions, int32 (K, m, m) as the kernels fill it; None if the search was stopped."""
        m = len(node.features)
        P = np.empty((self.instance.n_classes, m, m), np.int32)
        if not stoppable or P.size <= COUNTED:
            dp_node.pair_counts(node, P)
            return P
        for f in range(m):
            if f % max(1, COUNTED * m // P.size) == 0 and self.stopped():
                return None
            dp_node.pair_row(node.columns, node.segment, node.weights, f, f + 1, P[:, f, :])
        dp_node.mirror(node, P)
        return P

    def _none_known(self) -> np.ndarray:
        """Floors of which nothing is known yet."""
        return np.zeros(self.instance.features, np.int64)

    def frame(self, node: dp_node.NodeView, height: int, P: np.ndarray | None = None) -> SearchFrame:
        """A node of which its counts are known."""
        g = self.instance
        m = len(node.features)
        if P is None:
            P = np.empty((g.n_classes, m, m), np.int32)
            dp_node.pair_counts(node, P)
        lower = np.zeros((2, m), np.int64)
        exact = np.zeros((2, m), np.uint8)
        count_bounds(node, g.unit, g.leaf, height - 1, self.bounds, SideBounds(lower, exact))
        firsts = firsts_of(m, g.features, height == 4 and self.similar)
        roots = np.full((2, m), dp_whole.NO_SPLIT, np.int64)
        return SearchFrame(node, P, lower, exact, self._leaf(node), firsts, roots)

    def _leaf(self, node: dp_node.NodeView) -> int:
        total = int(node.totals.sum())
        return (total - int(node.totals.max())) * self.instance.unit + self.instance.leaf

    def node_bounds(self, node: dp_node.NodeView, height: int) -> tuple[int, int]:
        """Cost of the node as a leaf, and a lower bound of what it costs."""
        leaf, floor = node_bounds(node, self.instance.unit, self.instance.leaf, height, self.bounds)
        return int(leaf), int(floor)

    def kept(self, rows: np.ndarray, path: tuple[int, ...], height: int) -> MemoEntry | None:
        """What it keeps of a subproblem."""
        return self.memo.get(self._key(rows, path, height))

    def remember_side(self, members: np.ndarray, literal: int, known: MemoEntry) -> None:
        """Keep what is known of a side of height three below the root."""
        self._remember((3, members.tobytes() if self.options.dataset_cache else (literal,)), known)

    def _key(self, rows: np.ndarray, path: tuple[int, ...], height: int) -> Any:
        if self.options.dataset_cache or not known_path(path):
            return height, members(rows, len(self.instance.rows)).tobytes()
        return height, path

    def _remember(self, key: Any, known: MemoEntry) -> MemoEntry:
        size = 220 + (len(key[1]) if isinstance(key[1], bytes) else 36 * len(key[1]))
        with self.lock:
            if self.memo_bytes > self.options.memory // 2:
                self.evictions += len(self.memo)
                self.memo.clear()
                self.memo_bytes = 0
            self.memo_bytes += 0 if key in self.memo else size
            self.memo[key] = known
        return known

    def solve(
        self, rows: np.ndarray, path: tuple[int, ...], height: int, ub: int, stoppable: bool = True,
        floors: np.ndarray | None = None,
    ) -> MemoEntry:  # fmt: skip
        """E(rows, height) if below `ub`, else a lower bound of at least `ub` (less only if the search was stopped).

        path: the literals that all of these rows, and no others, keep, ascending; UNKNOWN_PATH for any other rows.
        floors: at height three, what is known of each first question, and what is found of it (see `kernels.three`).
        """
        key = self._key(rows, path, height)
        known = self.memo.get(key)
        if known is not None and (known.exact or known.lower >= ub):
            return known
        self.nodes += 1
        floors = self._none_known() if floors is None else floors
        if (height == 3 and path and self.brief) or (height == 4 and height < self.depth and self.brief_four):
            return self._remember(key, self._whole(rows, path, height, ub, stoppable, floors))
        node = self.prepare(rows)
        leaf, floor = self.node_bounds(node, height)
        if len(node.features) == 0 or height == 0 or floor >= leaf:
            return self._remember(key, MemoEntry(leaf, True))
        if floor >= ub:
            return self._remember(key, MemoEntry(floor, False))
        P = self.pairs(node, stoppable) if height > 1 else np.empty((self.instance.n_classes, 0, 0), np.int32)
        if P is None:
            return self._remember(key, MemoEntry(floor, False))
        if height <= 2:
            return self._remember(key, self._small(node, P, rows, height))
        frame = self.frame(node, height, P)
        if height == 3:
            return self._remember(key, self._three(frame, path, ub, stoppable, floors))
        return self._remember(key, self._branch(frame, rows, path, height, ub, stoppable))

    def _small(self, node: dp_node.NodeView, P: np.ndarray, rows: np.ndarray, height: int) -> MemoEntry:
        shape, cost = self._two(node, P, height)
        if len(rows) == len(self.instance.rows):
            self.root_shapes[height] = shape
        return MemoEntry(cost, True, shape[0] if isinstance(shape, tuple) else None)

    def _two(self, node: dp_node.NodeView, P: np.ndarray, height: int) -> tuple[Shape, int]:
        """A cheapest tree of one or two levels, and its cost."""
        g = self.instance
        positions, cost = best_two(node, P, g.unit, g.leaf, self.min_leaf, 1 << height)
        root, zero, one = (int(node.features[p]) if p >= 0 else -1 for p in positions)
        below = None if zero < 0 else (zero, None, None), None if one < 0 else (one, None, None)
        return (None if root < 0 else (root, *below)), int(cost)

    def _own_two(self, frame: SearchFrame) -> int:
        e = np.empty(4, np.int64)
        children = own_values(frame.node, frame.P, self.min_leaf, e)
        child_bounds(frame.node, children, self.costs, self.bounds, SideBounds(frame.lower, frame.exact))
        return int(price(e, self.instance.unit, self.instance.leaf, 4))

    def _whole(
        self, rows: np.ndarray, path: tuple[int, ...], height: int, ub: int, stoppable: bool, floors: np.ndarray
    ) -> MemoEntry:
        """A node of height three or four in one call."""
        answer = np.empty(dp_whole.ANSWERS, np.int64)
        literals = np.array(path, np.int64)
        table = self.table_of(path, height)
        flag = self.flag if stoppable else self.no_flag
        if height == 3:
            asked = dp_whole.NodeQuery(ub, floors, flag)
            dp_whole.whole_three(self.given, rows, literals, table, asked, answer)
        else:
            within = known_path(path) and len(path) <= self.depth - height
            caches = dp_four.Caches(table, self.known if within else self.no_table, self.starts)
            dp_four.whole_four(self.given, rows, literals, caches, ub, flag, answer)
        cost, exact, root, solved, nodes = answer.tolist()
        self.depth_two_solves += solved
        self.nodes += nodes
        choice = None if root == dp_whole.NO_SPLIT else SHALLOWER if root == dp_whole.LESS_DEEP else root
        return MemoEntry(cost, bool(exact), choice)

    def slice_size(self, m: int, words: int) -> int:
        """Depth-two pairs over m questions and 64 * words rows that take about 50 ms."""
        if self.instance.weighted:
            words *= LISTED_WORD
        return max(1, int(SLICE_NS / (m * m * (0.8 + 0.12 * words) * self.instance.n_classes / 2 + 2000)))

    def _three(
        self, frame: SearchFrame, path: tuple[int, ...], ub: int, stoppable: bool, floors: np.ndarray
    ) -> MemoEntry:
        own = self._own_two(frame)
        self._inherit(frame, own)
        best, choice = (own, SHALLOWER) if own < ub else (ub, None)
        if frame.leaf < best or (frame.leaf == best < ub):
            best = frame.leaf
            choice = None
        state = np.array([best, -2, 0, 0, 0], np.int64)
        self._run_three(frame, path, state, stoppable, floors)
        if state[STOPPED]:
            return MemoEntry(frame.bound(), False)
        if state[CHOICE] >= 0:
            return MemoEntry(int(state[BEST]), True, int(frame.node.features[state[CHOICE]]))
        if best < ub:
            return MemoEntry(best, True, choice)
        return MemoEntry(max(ub, frame.bound()), False)

    def _inherit(self, frame: SearchFrame, lower: int) -> None:
        """A lower bound of a node at the height of its sides bounds these, too."""
        if self.similar:
            inherit(frame.node, lower, self.instance.unit, frame.lower)

    def _run_three(
        self,
        frame: SearchFrame,
        path: tuple[int, ...],
        state: np.ndarray,
        stoppable: bool,
        floors: np.ndarray | None = None,
    ) -> None:
        floors = self._none_known() if floors is None else floors
        literals = np.array(path, np.int64)
        D = differences(frame.node, frame.P, self.min_leaf)
        kept = PairCache(literals, self.binomials, self.table_of(path, 3))
        sides = SideBounds(frame.lower, frame.exact)
        found = NodeState(state, floors)
        pairs = self.slice_size(frame.node.columns.shape[1], len(frame.node.valid))
        budget = PairBudget(pairs, self.flag if stoppable else self.no_flag)
        before = 0
        while True:
            three(frame.node, frame.P, D, self.costs, kept, sides, found, budget)
            self.depth_two_solves += int(state[DEPTH_TWO_SOLVES]) - before
            before = int(state[DEPTH_TWO_SOLVES])
            if not path:
                p = state[CHOICE]
                self.root_news(frame, int(state[BEST]), int(frame.node.features[p]) if p >= 0 else None, 3)
            if not state[STOPPED] or (stoppable and self.stopped()):
                return

    def root_news(self, frame: SearchFrame, cost: int, choice: int | None, height: int) -> None:
        """Keep a better tree and, at the full height, a better bound; tell the listeners.

        Several threads may call it. The listeners are called without the lock: what they ask for may need it.
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
        self._show()

    def _show(self) -> None:
        """Pass the incumbent tree on: its subtrees are in the caches, so it takes only a few small searches."""
        if self.improved is None or not self.tree_pending:
            return
        if self.stopped():  # the tree is put together at the end anyway
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
        """The tree of the incumbent, which has a question at its root; put together once, as thousands of questions take a second."""
        cost, feature, height = self.incumbent
        assert feature is not None
        if (kept := self.drawn) is not None and kept[0] == (cost, feature, height):
            return kept[1]
        rows = np.arange(len(self.instance.rows), dtype=np.int32)
        shape = split(self, rows, (), height, feature)
        self.drawn = (cost, feature, height), shape
        return shape

    def stopped(self) -> bool:
        """True once the search has to end."""
        if not self.flag[0] and self.stop():
            self.flag[0] = 1
        return bool(self.flag[0])

    def _branch(
        self, frame: SearchFrame, rows: np.ndarray, path: tuple[int, ...], height: int, ub: int, stoppable: bool
    ) -> MemoEntry:
        best, choice = (frame.leaf, None) if frame.leaf < ub else (ub, None)
        if self.options.deepening:
            floors = self._none_known()
            below = self.solve(rows, path, height - 1, best, stoppable, floors)
            learn(frame.firsts, -1, floors)
            if below.exact and below.lower < best:
                best = below.lower
                choice = SHALLOWER
            self._inherit(frame, below.lower)
        if not path:
            self.root_news(frame, best, None, height)
        if not path and self.threads > 1:
            best, choice = in_parallel(self, frame, rows, height, best, choice)
        elif not path and height == 4 and self.brief:
            best, choice = in_slices(self, frame, rows, best, choice, stoppable)
        else:
            best, choice = self._one_by_one(frame, rows, path, height, best, choice, stoppable)
        if not path:
            self.root_news(frame, best, choice, height)
        if not path and height == self.depth:
            self.root = frame.learned
        if stoppable and self.stopped():
            return MemoEntry(frame.bound(), False)
        if best < ub:
            return MemoEntry(best, True, choice)
        return MemoEntry(max(ub, frame.bound()), False)

    def _one_by_one(
        self, frame: SearchFrame, rows: np.ndarray, path: tuple[int, ...], height: int, best: int, choice: int | None, stoppable: bool
    ) -> tuple[int, int | None]:  # fmt: skip
        """The best split of a node, if it costs less than `best`; its cost and feature."""
        for p in range(len(frame.node.features)):
            if stoppable and self.stopped():
                break
            found = self.attempt(frame, rows, path, height, p, _constant(best), stoppable)
            better = found < best
            if better:
                best = found
                choice = int(frame.node.features[p])
            if not path and (better or time.perf_counter() - self.last_bound_reported_at >= NEWS_SECONDS):
                self.root_news(frame, best, choice, height)
        return best, choice

    def attempt(
        self, frame: SearchFrame, rows: np.ndarray, path: tuple[int, ...], height: int, p: int,
        best: Callable[[], int], stoppable: bool,
    ) -> int:  # fmt: skip
        """The cost of the best tree with split p if it is below best(), else something that is not."""
        lower = frame.lower
        exact = frame.exact
        most = best if path else lambda: self.room(best())
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
                floors = floors_of(frame.node, frame.P, p, s, self.instance.unit, frame.firsts)
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

    def small(self, rows: np.ndarray, height: int) -> Shape:
        """A cheapest tree of one or two levels."""
        if len(rows) == len(self.instance.rows) and height in self.root_shapes:
            return self.root_shapes[height]  # to count all pairs of thousands of questions again takes seconds
        node = self.prepare(rows)
        P = self.pairs(node, False)
        assert P is not None
        return self._two(node, P, height)[0]


def _constant(value: int) -> Callable[[], int]:
    return lambda: value


UNLIMITED = SearchLimits()


def useful_depth(problem: BinaryProblem, instance: ExactInstance) -> int:
    """Return the depth that a tree of these rows and features can have."""
    return min(problem.depth, problem.X.shape[1], len(instance.rows) - 1)


def begin_search(
    problem: BinaryProblem, *, limits: SearchLimits, options: ExactOptions, depth: int | None = None
) -> ExactSearch:
    """Return the search of a problem; its clock runs from now.

    `depth` is that of the table of subtrees of depth two: 2 for no table, the whole depth by default.
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
