"""Compute the proved front of sensitivity and specificity of a topology.

Phase 1, the hull: the exact search finds the optimum for some class weights. The optima are corners of the front, and each proves a line
that no tree exceeds. Phase 2: a search over fronts (`trainer.families.odt.kernels.pareto`) joins the fronts of both sides of a test and
prunes a partial assignment that improves no entry. A stopped search returns the trees and lines so far.

Legend: A[t] the largest weight of correct negatives of a tree with at least t correct positives, t = 0 .. P.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from trainer.families.odt.groups import Groups
from trainer.families.odt.kernels import pareto as kernel
from trainer.families.odt.kernels.pareto import EntryFront
from trainer.families.odt.kernels.records import NodeBudget
from trainer.families.odt.kernels.subset import count_classes, group_value
from trainer.families.odt.levels import LevelLimitReached
from trainer.families.odt.search import SubsetSearch
from trainer.families.odt.topology import Shape
from trainer.tree.nodes import Draft, DraftLeaf

MAX_CACHED_FRONTS = 50_000  # limit on the entries of the cache
JOINS_PER_CALL = 4_000
# values in `EntryFront.groups` for trees without a test at the root
LEAF = -1
LEFT = -2
RIGHT = -3
FROM_HULL = -4


@dataclass(frozen=True, kw_only=True)
class RatePoint:
    """A reachable pair: `tp` correct positives and `tn` correct negatives, in row weight.

    No tree with at least `tp` correct positives has more than `bound` correct negatives.
    """

    tp: int
    tn: int
    bound: int
    proved: bool = False  # whether the search has proved that no tree dominates the pair


@dataclass(kw_only=True)
class RateFrontierSearch:
    """The frontier search of one problem; class 1 of `groups` is the positive one.

    After `solve`, even if it was stopped, `pairs`, `bound` and `tree` give the results.
    """

    groups: Groups
    root: Shape | None
    predict: Callable[[Draft], np.ndarray]  # returns the labels of all rows, 0 or 1
    required_positives: int | None = None  # if set, the search is limited to this entry
    stopped: Callable[[], bool] = lambda: False
    on_progress: Callable[[RateFrontierSearch], None] = lambda search: None
    flag: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    nodes: int = 0
    finished: bool = False
    _memo: dict[tuple[Shape | None, bytes], EntryFront] = field(default_factory=dict)
    # trees on the convex hull, by number of correct positives
    _hull_trees: dict[int, Draft] = field(default_factory=dict)
    _corners: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)  # results of `_best_for_weights`
    _ignores_limits: bool = False

    def __post_init__(self) -> None:
        g = self.groups
        self._start = g.start
        self._rows = np.arange(len(g.y))
        self.positives, self.negatives = (int(g.w[g.y == k].sum()) for k in (1, 0))
        self._front = self._leaf(self._rows)
        self.bound = np.full(self.positives + 1, self.negatives, np.int64)

    def search_all_entries(self) -> RateFrontierSearch:
        """Return a search of every entry that starts from the trees and bounds of this one."""
        search = replace(self, required_positives=None, finished=False)
        search._front = self._front
        search.bound = self.bound
        # for all rows, the cached frontier is complete at the required entry only
        search._memo.pop((self.root, self._rows.tobytes()), None)
        return search

    # -- the two phases

    def solve(self) -> None:
        """Run to the end or until stopped; never raises LevelLimitReached."""
        try:
            self._hull()
            if not self._is_settled():
                best = self._solve(self.root, self._rows).best
                proved = slice(None) if self.required_positives is None else self.required_positives
                self.bound[proved] = np.minimum(self.bound, best)[proved]
                # entry t covers all trees with at least t correct positives, so bounds cannot increase with t
                self.bound = np.minimum.accumulate(self.bound)
            self.finished = True
        except LevelLimitReached:
            self.finished = self._is_settled()

    def _is_settled(self) -> bool:
        """Return whether the bounds prove all entries that are searched."""
        if self.required_positives is not None:
            return bool(self._front.best[self.required_positives] == self.bound[self.required_positives])
        return bool((self._front.best == self.bound).all())

    def _hull(self) -> None:
        """Find the corners of the hull.

        For two neighbouring corners, search with the class weights under which both are equal. The optimum is a corner above their
        line, or proves that there is none.
        """
        P = self.positives
        N = self.negatives
        ends = [self._best_for_weights(1, P + 1), self._best_for_weights(N + 1, 1)]
        stack = [(ends[0], ends[1])]
        while stack:
            (tp1, tn1), (tp2, tn2) = stack.pop()
            if tp2 <= tp1 or tn1 <= tn2:
                continue
            if self.required_positives is not None and not tp1 < self.required_positives <= tp2:
                continue
            a = tn1 - tn2
            b = tp2 - tp1
            common = int(np.gcd(a, b))
            a = a // common
            b = b // common
            tp, tn = self._best_for_weights(a, b)
            if a * tp + b * tn > a * tp1 + b * tn1:
                stack += [((tp1, tn1), (tp, tn)), ((tp, tn), (tp2, tn2))]

    def _best_for_weights(self, a: int, b: int) -> tuple[int, int]:
        """Find the best tree if a correct positive counts `a` and a correct negative `b`; apply the line that it proves."""
        if (a, b) in self._corners:
            return self._corners[a, b]
        g = self.groups
        weights = g.w * np.where(g.y == 1, a, b)
        draft: Draft
        if self.root is None:
            tp, tn = (self.positives, 0) if a * self.positives >= b * self.negatives else (0, self.negatives)
            value = a * tp + b * tn
            draft = DraftLeaf(label=int(tp > 0))
        else:
            search = SubsetSearch(
                groups=replace(g, w=weights),
                root=self.root,
                stopped=self.stopped,
                flag=self.flag,
                on_incumbent=lambda _, solution: (self._record_tree(solution), None)[1],
            )
            try:
                value, solution = search.solve(self.root, self._rows)
            except LevelLimitReached:
                # the bound of a stopped search is also a valid line
                self._apply_line(search.bound, a, b)
                raise
            self.nodes += search.nodes
            if solution is None:
                raise LevelLimitReached
            draft = solution
            tp, tn = self._record_tree(draft)
        self._apply_line(value, a, b)
        self._corners[a, b] = tp, tn
        return tp, tn

    def _apply_line(self, value: int, a: int, b: int) -> None:
        """Tighten the bounds by a tp + b tn <= value, which holds for every tree."""
        t = np.arange(self.positives + 1)
        self.bound = np.minimum(self.bound, np.maximum((value - a * t) // b, -1))
        self.on_progress(self)

    def _record_tree(self, draft: Draft) -> tuple[int, int]:
        """Store a tree of all rows if it improves the front; return its correct positives and negatives."""
        g = self.groups
        labels = self.predict(draft)
        tp, tn = (int(g.w[(g.y == k) & (labels == k)].sum()) for k in (1, 0))
        front = self._front
        if tn > front.best[tp]:
            better = np.arange(len(front.best)) <= tp
            better &= front.best < tn
            front.best[better] = tn
            front.groups[better] = FROM_HULL
            front.masks[better] = tp
            self._hull_trees[tp] = draft
            self.on_progress(self)
        return tp, tn

    # -- the recurrence over frontiers

    def _solve(self, shape: Shape | None, rows: np.ndarray) -> EntryFront:
        key = (shape, rows.tobytes())
        if key in self._memo:
            return self._memo[key]
        self._check()
        self.nodes += 1
        is_root = shape == self.root and len(rows) == len(self._rows) and not self._ignores_limits
        front = self._front if is_root else self._leaf(rows)
        if shape is not None and len(rows) and self.groups.cat.shape[1]:
            if shape.is_last:
                self._last(front, rows)
            else:
                self._branch(shape, rows, front, is_root)
        if len(self._memo) >= MAX_CACHED_FRONTS:
            self._memo.clear()
        self._memo[key] = front
        return front

    def _leaf(self, rows: np.ndarray) -> EntryFront:
        y = self.groups.y[rows]
        w = self.groups.w[rows]
        best = np.zeros(int(w[y == 1].sum()) + 1, np.int64)
        best[0] = int(w[y == 0].sum())
        return EntryFront(best, np.full(len(best), LEAF, np.int64), np.zeros(len(best), np.int64))

    def _counts(self, rows: np.ndarray) -> np.ndarray:
        g = self.groups
        counts = np.zeros((self._start[-1], 2), np.int64)
        count_classes(g.cat, g.y, g.w, rows, self._start, 2, counts)
        return counts

    def _last(self, front: EntryFront, rows: np.ndarray) -> None:
        """Update the front by one test and two leaves; `_last_tree` computes the subset again."""
        g = self.groups
        counts = self._counts(rows)
        neg = np.ascontiguousarray(counts[:, 0])
        pos = np.ascontiguousarray(counts[:, 1])
        scratch = np.empty((g.card + 1, len(front.best)), np.int64)
        for h in range(len(g.sizes)):
            reached = np.full(len(front.best), kernel.UNREACHABLE)
            kernel.raise_by_group(neg, pos, self._start[h], self._start[h + 1], g.ordered[h], g.card, reached, scratch)
            kernel.make_monotone(reached)
            kernel.update_front(reached, front, h, -1)

    def _branch(self, shape: Shape, rows: np.ndarray, front: EntryFront, is_root: bool) -> None:
        for child, mark in ((shape.left, LEFT), (shape.right, RIGHT)):
            below = self._solve(child, rows)
            kernel.update_front(below.best, front, mark, 0)
        two = shape.left is not None and shape.right is not None and shape.left.is_last and shape.right.is_last
        for h in self._order(rows):
            if is_root and self._is_settled():
                return
            if two:
                self._two_levels(rows, h, front, is_root)
            else:
                self._assign(shape, rows, h, front, is_root)
            if is_root:
                self.on_progress(self)

    def _order(self, rows: np.ndarray) -> list[int]:
        """Sort groups by the value of their best single test, best first."""
        g = self.groups
        counts = self._counts(rows)
        start = self._start
        worth = [group_value(counts, start[h], start[h + 1], g.ordered[h], g.card) for h in range(len(g.sizes))]
        return sorted(range(len(worth)), key=lambda h: -worth[h])

    def _two_levels(self, rows: np.ndarray, h: int, front: EntryFront, is_root: bool) -> None:
        g = self.groups
        limit = JOINS_PER_CALL
        while True:
            self._check()
            budget = NodeBudget(limit, np.zeros(1, np.int64) if self._ignores_limits else self.flag)
            beat = self._front_to_beat(front, is_root).copy()
            if kernel.update_two_levels(g.select(rows), g.spans, h, front, beat, budget):
                return
            limit *= 4

    def _assign(self, shape: Shape, rows: np.ndarray, h: int, front: EntryFront, is_root: bool) -> None:
        """Search the tests of group h at the root of `shape`. Categories are assigned one at a time, the largest first."""
        g = self.groups
        categories = g.cat[rows, h]
        present = np.unique(categories)
        if len(present) < 2:
            return
        if g.ordered[h]:
            self._assign_intervals(shape, rows, h, present, front)
            return
        sizes = {int(a): g.w[rows[categories == a]].sum() for a in present}
        order = sorted(sizes, key=lambda a: -sizes[a])
        alone = self._fronts_alone(shape, rows, categories, order)
        if not kernel.improves(alone[0], self._front_to_beat(front, is_root)):
            return
        stack = [(1, 1 << order[0], 1)] + ([] if shape.is_symmetric else [(1, 0, 0)])
        while stack:
            decided, mask, size = stack.pop()
            if g.card and min(size, decided - size) > g.card:
                continue
            if decided == len(order):
                if 0 < size < decided:
                    self._take(shape, rows, h, mask, front)
                continue
            if decided >= 2:
                decided_rows = rows[np.isin(categories, order[:decided])]
                joined = kernel.join(self._joined_front(shape, decided_rows, h, mask), alone[decided])
                if not kernel.improves(joined, self._front_to_beat(front, is_root)):
                    continue
            stack.append((decided + 1, mask, size))
            stack.append((decided + 1, mask | 1 << order[decided], size + 1))

    def _assign_intervals(self, shape: Shape, rows: np.ndarray, h: int, present: np.ndarray, front: EntryFront) -> None:
        """Search the thresholds of an ordered group at the root of `shape`, each in both directions if they differ."""
        for cut in range(1, len(present)):
            self._take(shape, rows, h, _mask(present[:cut]), front)
            if not shape.is_symmetric:
                self._take(shape, rows, h, _mask(present[cut:]), front)

    def _fronts_alone(
        self, shape: Shape, rows: np.ndarray, categories: np.ndarray, order: list[int]
    ) -> list[np.ndarray]:
        """Return relaxed fronts; in entry t, each category from the t-th on has a subtree of its own on its better side."""
        alone = [np.zeros(1, np.int64)]
        for a in reversed(order):
            fronts = [self._solve(child, rows[categories == a]).best for child in {shape.left, shape.right}]
            alone.append(kernel.join(np.maximum.reduce(fronts), alone[-1]))
        return alone[::-1]

    def _front_to_beat(self, front: EntryFront, is_root: bool) -> np.ndarray:
        """Return the front to beat. Entries that are proved, or not searched, are set to the maximum."""
        if not is_root:
            return front.best
        settled = front.best >= self.bound
        if self.required_positives is not None:
            settled |= np.arange(len(settled)) != self.required_positives
        return np.where(settled, self.negatives, front.best)

    def _joined_front(self, shape: Shape, rows: np.ndarray, h: int, mask: int) -> np.ndarray:
        left, right = self._split_rows(rows, h, mask)
        return kernel.join(self._solve(shape.left, left).best, self._solve(shape.right, right).best)

    def _take(self, shape: Shape, rows: np.ndarray, h: int, mask: int, front: EntryFront) -> None:
        kernel.update_front(self._joined_front(shape, rows, h, mask), front, h, mask)

    def _split_rows(self, rows: np.ndarray, h: int, mask: int) -> tuple[np.ndarray, np.ndarray]:
        goes = ((np.int64(mask) >> self.groups.cat[rows, h].astype(np.int64)) & 1).astype(bool)
        return rows[goes], rows[~goes]

    def _check(self) -> None:
        if not self._ignores_limits and self.stopped():
            self.flag[0] = 1
            raise LevelLimitReached

    # -- results

    def most(self) -> np.ndarray:
        """Return for each number of correct positives an upper bound on the correct negatives."""
        return np.maximum(np.minimum.accumulate(self.bound), self._front.best)

    def pairs(self) -> list[RatePoint]:
        """Return the non-dominated pairs found so far, by increasing tp."""
        best = self._front.best
        most = self.most()
        # no tree lies beyond the last entry, so its bound is -1
        beyond = np.append(most[1:], -1)
        corners = [t for t in range(len(best)) if t + 1 == len(best) or best[t + 1] < best[t]]
        return [
            RatePoint(tp=t, tn=int(best[t]), bound=int(most[t]), proved=bool(beyond[t] < best[t] == most[t]))
            for t in corners
        ]

    def at(self, tp: int) -> RatePoint:
        """Return the pair with the most correct negatives among those with at least `tp` correct positives."""
        pair_at = next(pair for pair in self.pairs() if pair.tp >= tp)
        most = int(self.most()[tp])
        return replace(pair_at, bound=most, proved=pair_at.tn == most)

    def known_tree(self, tp: int) -> Draft | None:
        """Return the stored tree of a pair; None if `tree` must search for it again."""
        return self._hull_trees[int(self._front.masks[tp])] if self._front.groups[tp] == FROM_HULL else None

    def tree(self, tp: int) -> Draft:
        """Return the best known tree with at least `tp` correct positives. Limits do not interrupt it."""
        self._ignores_limits = True
        try:
            return self._tree(self.root, self._rows, tp, self._front)
        finally:
            self._ignores_limits = False

    def _tree(self, shape: Shape | None, rows: np.ndarray, t: int, front: EntryFront | None = None) -> Draft:
        """Return a tree for entry t of the front of the rows, by default the front that `_solve` returns."""
        front = front or self._solve(shape, rows)
        h = int(front.groups[t])
        mask = int(front.masks[t])
        if h == FROM_HULL:
            return self._hull_trees[mask]
        if h == LEAF or shape is None:
            return DraftLeaf(label=int(t > 0 or not front.best[0]))
        if h in (LEFT, RIGHT):
            return self._tree(shape.left if h == LEFT else shape.right, rows, t)
        if shape.is_last:
            return self._last_tree(rows, h, t, int(front.best[t]))
        left, right = self._split_rows(rows, h, mask)
        a = self._solve(shape.left, left)
        b = self._solve(shape.right, right)
        for s in range(max(0, t - len(b.best) + 1), min(t, len(a.best) - 1) + 1):
            if a.best[s] + b.best[t - s] >= front.best[t]:
                categories = [c for c in range(self.groups.sizes[h]) if mask >> c & 1]
                return self.groups.branch(
                    h, categories, self._tree(shape.left, left, s), self._tree(shape.right, right, t - s)
                )
        raise AssertionError("an entry of a frontier without its sides")

    def _last_tree(self, rows: np.ndarray, h: int, t: int, tn: int) -> Draft:
        """Return the test of group h that reaches (t, tn)."""
        g = self.groups
        part = self._counts(rows)[self._start[h] : self._start[h + 1]]
        positive = positive_categories(part, bool(g.ordered[h]), g.card, t, tn)
        if len(positive) in (0, len(part)):
            return DraftLeaf(label=int(len(positive) > 0))
        return g.branch(h, positive, DraftLeaf(label=1), DraftLeaf(label=0))


def positive_categories(part: np.ndarray, is_ordered: bool, card: int, t: int, tn: int) -> list[int]:
    """Return the categories to label positive for at least t correct positives and tn negatives; `part` int64 (categories, 2)."""
    return _positive_interval(part, t, tn) if is_ordered else _positive_subset(part, card, t, tn)


def _positive_interval(part: np.ndarray, t: int, tn: int) -> list[int]:
    m = len(part)
    for cut in range(m + 1):
        for chosen in (range(cut), range(cut, m)):
            inside = part[list(chosen)].sum(axis=0)
            if inside[1] >= t and part[:, 0].sum() - inside[0] >= tn:
                return list(chosen)
    raise AssertionError("no threshold reaches the pair")


def _positive_subset(part: np.ndarray, card: int, t: int, tn: int) -> list[int]:
    m = len(part)
    # (most positive, most negative) categories
    limits = [(m, m)] if not card or 2 * card >= m else [(card, m), (m, card)]
    for most, others in limits:
        # maps (size, correct positives) to correct negatives and the mask of categories, without dominated states
        states: dict[tuple[int, int], tuple[int, int]] = {(0, 0): (0, 0)}
        for f in range(m):
            # the number of categories matters only if it is limited
            states = _label_category(states, part, f, (most, others), is_limited=len(limits) == 2)
        for (_, tp), (true_negatives, mask) in states.items():
            if tp >= t and true_negatives >= tn:
                return [f for f in range(m) if mask >> f & 1]
    raise AssertionError("no subset reaches the pair")


def _label_category(
    states: dict[tuple[int, int], tuple[int, int]],
    part: np.ndarray,
    f: int,
    limits: tuple[int, int],
    *,
    is_limited: bool,
) -> dict[tuple[int, int], tuple[int, int]]:
    """Return the states after category f has got a label: negative or positive."""
    most, others = limits
    n = int(part[f, 0])
    p = int(part[f, 1])
    following: dict[tuple[int, int], tuple[int, int]] = {}
    for (size, tp), (true_negatives, mask) in states.items():
        for size2, tp2, true_negatives2, mask2 in (
            (size, tp, true_negatives + n, mask),
            (size + 1, tp + p, true_negatives, mask | 1 << f),
        ):
            if size2 > most or f + 1 - size2 > others:
                continue
            key = (size2 if is_limited else 0, tp2)
            if key not in following or following[key][0] < true_negatives2:
                following[key] = (true_negatives2, mask2)
    return following


def _mask(categories: np.ndarray) -> int:
    return sum(1 << int(a) for a in categories)
