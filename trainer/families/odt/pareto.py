"""The whole frontier of reachable (sensitivity, specificity) pairs of a topology with subset branching, each point proved.

Two phases. The hull: for some class weights the plain exact search finds the optimum; this gives the corners of the frontier and lines that
no tree exceeds. The rest: a search over frontiers (`trainer.families.odt.kernels.pareto`) that combines the frontiers of both sides of a test and
cuts a partial assignment off when it improves no entry. A search that is stopped keeps its trees and the lines.

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
from trainer.families.odt.kernels.subset import count, last_level_of
from trainer.families.odt.search import LevelLimitReached, SubsetSearch
from trainer.families.odt.topology import Shape
from trainer.tree.nodes import Draft, DraftLeaf

MEMORY = 50_000  # frontiers kept
SLICE = 4_000  # joins of a kernel call
# how an entry of `EntryFront.groups` was reached without a test
LEAF = -1
LEFT = -2
RIGHT = -3
GIVEN = -4


@dataclass(frozen=True, kw_only=True)
class RatePoint:
    """A reachable pair: `tp` correct positives and `tn` correct negatives, in row weight; no tree with as many `tp` has more than `bound`."""

    tp: int
    tn: int
    bound: int
    proved: bool = False  # no tree has as many of both and more of one


@dataclass(kw_only=True)
class RateFrontierSearch:
    """The frontier of one problem; class 1 of `groups` is the positive one.

    After `solve` (also one that was stopped), `pairs`, `bound` and `tree` say what is known.
    """

    groups: Groups
    root: Shape | None
    predict: Callable[[Draft], np.ndarray]  # labels 0 and 1 of all rows
    wanted: int | None = None  # only trees with so many correct positives matter
    stopped: Callable[[], bool] = lambda: False
    on_progress: Callable[[RateFrontierSearch], None] = lambda search: None
    flag: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    nodes: int = 0
    finished: bool = False
    _memo: dict[tuple[Shape | None, bytes], EntryFront] = field(default_factory=dict)
    _given: dict[int, Draft] = field(default_factory=dict)  # trees of the hull by correct positives
    _corners: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)  # what `_weighted` has proved
    _patient: bool = False

    def __post_init__(self) -> None:
        g = self.groups
        self._start = g.start
        self._rows = np.arange(len(g.y))
        self.positives, self.negatives = (int(g.w[g.y == k].sum()) for k in (1, 0))
        self._front = self._leaf(self._rows)
        self.bound = np.full(self.positives + 1, self.negatives, np.int64)

    def widened(self) -> RateFrontierSearch:
        """A search for every entry that starts from the trees and bounds of this one."""
        search = replace(self, wanted=None, finished=False)
        search._front = self._front
        search.bound = self.bound
        # the frontier of all rows is complete at the wanted entry only
        search._memo.pop((self.root, self._rows.tobytes()), None)
        return search

    # -- the two phases

    def solve(self) -> None:
        """Run to the end or until stopped; never raises LevelLimitReached."""
        try:
            self._hull()
            if not self._met():
                best = self._solve(self.root, self._rows).best
                proved = slice(None) if self.wanted is None else self.wanted
                self.bound[proved] = np.minimum(self.bound, best)[proved]
                # a tree with more correct positives is also one with fewer
                self.bound = np.minimum.accumulate(self.bound)
            self.finished = True
        except LevelLimitReached:
            self.finished = self._met()

    def _met(self) -> bool:
        """True if the lines prove all that matters."""
        if self.wanted is not None:
            return bool(self._front.best[self.wanted] == self.bound[self.wanted])
        return bool((self._front.best == self.bound).all())

    def _hull(self) -> None:
        """Corners by class weights: between two neighbours the weights that make both equal find a tree above their line, or none."""
        P = self.positives
        N = self.negatives
        ends = [self._weighted(1, P + 1), self._weighted(N + 1, 1)]
        stack = [(ends[0], ends[1])]
        while stack:
            (tp1, tn1), (tp2, tn2) = stack.pop()
            if tp2 <= tp1 or tn1 <= tn2:
                continue
            if self.wanted is not None and not tp1 < self.wanted <= tp2:
                continue
            a = tn1 - tn2
            b = tp2 - tp1
            common = int(np.gcd(a, b))
            a = a // common
            b = b // common
            tp, tn = self._weighted(a, b)
            if a * tp + b * tn > a * tp1 + b * tn1:
                stack += [((tp1, tn1), (tp, tn)), ((tp, tn), (tp2, tn2))]

    def _weighted(self, a: int, b: int) -> tuple[int, int]:
        """The best tree if a correct positive counts a and a correct negative b, and the line that it proves."""
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
                groups=replace(g, w=weights), root=self.root, stopped=self.stopped, flag=self.flag,
                on_incumbent=lambda _, found: (self._note(found), None)[1],
            )  # fmt: skip
            try:
                value, found = search.solve(self.root, self._rows)
            except LevelLimitReached:
                # what was proved by then still is a line
                self._line(search.bound, a, b)
                raise
            self.nodes += search.nodes
            if found is None:
                raise LevelLimitReached
            draft = found
            tp, tn = self._note(draft)
        self._line(value, a, b)
        self._corners[a, b] = tp, tn
        return tp, tn

    def _line(self, value: int, a: int, b: int) -> None:
        """a tp + b tn <= value for every tree."""
        t = np.arange(self.positives + 1)
        self.bound = np.minimum(self.bound, np.maximum((value - a * t) // b, -1))
        self.on_progress(self)

    def _note(self, draft: Draft) -> tuple[int, int]:
        """Keep a tree of the whole problem that improves the frontier; its correct positives and negatives."""
        g = self.groups
        labels = self.predict(draft)
        tp, tn = (int(g.w[(g.y == k) & (labels == k)].sum()) for k in (1, 0))
        front = self._front
        if tn > front.best[tp]:
            better = np.arange(len(front.best)) <= tp
            better &= front.best < tn
            front.best[better] = tn
            front.groups[better] = GIVEN
            front.masks[better] = tp
            self._given[tp] = draft
            self.on_progress(self)
        return tp, tn

    # -- the recurrence over frontiers

    def _solve(self, shape: Shape | None, rows: np.ndarray) -> EntryFront:
        key = (shape, rows.tobytes())
        if key in self._memo:
            return self._memo[key]
        self._check()
        self.nodes += 1
        whole = shape == self.root and len(rows) == len(self._rows) and not self._patient
        front = self._front if whole else self._leaf(rows)
        if shape is not None and len(rows) and self.groups.cat.shape[1]:
            if shape.is_last:
                self._last(front, rows)
            else:
                self._branch(shape, rows, front, whole)
        if len(self._memo) >= MEMORY:
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
        count(g.cat, g.y, g.w, rows, self._start, 2, counts)
        return counts

    def _last(self, front: EntryFront, rows: np.ndarray) -> None:
        """One test and two leaves; the subset is found again when a tree is asked for."""
        g = self.groups
        counts = self._counts(rows)
        neg = np.ascontiguousarray(counts[:, 0])
        pos = np.ascontiguousarray(counts[:, 1])
        scratch = np.empty((g.card + 1, len(front.best)), np.int64)
        for h in range(len(g.sizes)):
            reached = np.full(len(front.best), kernel.NONE)
            kernel.last_of(neg, pos, self._start[h], self._start[h + 1], g.ordered[h], g.card, reached, scratch)
            kernel.settle(reached)
            kernel.take(reached, front, h, -1)

    def _branch(self, shape: Shape, rows: np.ndarray, front: EntryFront, whole: bool) -> None:
        for child, mark in ((shape.left, LEFT), (shape.right, RIGHT)):
            below = self._solve(child, rows)
            kernel.take(below.best, front, mark, 0)
        two = shape.left is not None and shape.right is not None and shape.left.is_last and shape.right.is_last
        for h in self._order(rows):
            if whole and self._met():
                return
            if two:
                self._two_levels(rows, h, front, whole)
            else:
                self._assign(shape, rows, h, front, whole)
            if whole:
                self.on_progress(self)

    def _order(self, rows: np.ndarray) -> list[int]:
        """Groups by what one test of them is worth, best first, so that much is reached early."""
        g = self.groups
        counts = self._counts(rows)
        start = self._start
        worth = [last_level_of(counts, start[h], start[h + 1], g.ordered[h], g.card) for h in range(len(g.sizes))]
        return sorted(range(len(worth)), key=lambda h: -worth[h])

    def _two_levels(self, rows: np.ndarray, h: int, front: EntryFront, whole: bool) -> None:
        g = self.groups
        limit = SLICE
        while True:
            self._check()
            budget = NodeBudget(limit, np.zeros(1, np.int64) if self._patient else self.flag)
            beat = self._open(front, whole).copy()
            if kernel.two_levels(g.chosen(rows), g.spans, h, front, beat, budget):
                return
            limit *= 4

    def _assign(self, shape: Shape, rows: np.ndarray, h: int, front: EntryFront, whole: bool) -> None:
        """Tests of group h at the root of `shape`: categories go left or right one after the other, the largest first."""
        g = self.groups
        here = g.cat[rows, h]
        present = np.unique(here)
        if len(present) < 2:
            return
        sizes = {int(a): np.bincount(g.y[rows[here == a]], g.w[rows[here == a]], 2) for a in present}
        both = [0] if shape.is_symmetric else [0, 1]
        if g.ordered[h]:
            for cut in range(1, len(present)):
                for flip in both:
                    chosen = present[cut:] if flip else present[:cut]
                    self._take(shape, rows, h, _mask(chosen), front)
            return
        order = sorted(sizes, key=lambda a: -sizes[a].sum())
        # the frontier of the categories from the t-th on, each by itself on its better side
        alone = [np.zeros(1, np.int64)]
        for a in reversed(order):
            own = [self._solve(child, rows[here == a]).best for child in {shape.left, shape.right}]
            alone.append(kernel.join(np.maximum.reduce(own), alone[-1]))
        alone.reverse()
        if not kernel.improves(alone[0], self._open(front, whole)):
            return
        stack = [(1, 1 << order[0], 1)] + ([(1, 0, 0)] if len(both) == 2 else [])
        while stack:
            decided, mask, size = stack.pop()
            if g.card and min(size, decided - size) > g.card:
                continue
            if decided == len(order):
                if 0 < size < decided:
                    self._take(shape, rows, h, mask, front)
                continue
            if decided >= 2:
                known = rows[np.isin(here, order[:decided])]
                joined = kernel.join(self._joined(shape, known, h, mask), alone[decided])
                if not kernel.improves(joined, self._open(front, whole)):
                    continue
            stack.append((decided + 1, mask, size))
            stack.append((decided + 1, mask | 1 << order[decided], size + 1))

    def _open(self, front: EntryFront, whole: bool) -> np.ndarray:
        """The frontier to beat; entries that are proved, or do not matter, count as beyond reach."""
        if not whole:
            return front.best
        settled = front.best >= self.bound
        if self.wanted is not None:
            settled |= np.arange(len(settled)) != self.wanted
        return np.where(settled, self.negatives, front.best)

    def _joined(self, shape: Shape, rows: np.ndarray, h: int, mask: int) -> np.ndarray:
        left, right = self._parts(rows, h, mask)
        return kernel.join(self._solve(shape.left, left).best, self._solve(shape.right, right).best)

    def _take(self, shape: Shape, rows: np.ndarray, h: int, mask: int, front: EntryFront) -> None:
        kernel.take(self._joined(shape, rows, h, mask), front, h, mask)

    def _parts(self, rows: np.ndarray, h: int, mask: int) -> tuple[np.ndarray, np.ndarray]:
        goes = ((np.int64(mask) >> self.groups.cat[rows, h].astype(np.int64)) & 1).astype(bool)
        return rows[goes], rows[~goes]

    def _check(self) -> None:
        if not self._patient and self.stopped():
            self.flag[0] = 1
            raise LevelLimitReached

    # -- what was found

    def most(self) -> np.ndarray:
        """For each number of correct positives: no tree with at least as many has more correct negatives."""
        return np.maximum(np.minimum.accumulate(self.bound), self._front.best)

    def pairs(self) -> list[RatePoint]:
        """The reachable pairs that no other one found beats in both, by rising tp."""
        best = self._front.best
        most = self.most()
        # beyond the last entry no tree is left
        beyond = np.append(most[1:], -1)
        corners = [t for t in range(len(best)) if t + 1 == len(best) or best[t + 1] < best[t]]
        return [
            RatePoint(tp=t, tn=int(best[t]), bound=int(most[t]), proved=bool(beyond[t] < best[t] == most[t]))
            for t in corners
        ]

    def at(self, tp: int) -> RatePoint:
        """Among the pairs with at least `tp` correct positives the one with the most correct negatives; bound and proof are about it."""
        found = next(pair for pair in self.pairs() if pair.tp >= tp)
        most = int(self.most()[tp])
        return replace(found, bound=most, proved=found.tn == most)

    def at_hand(self, tp: int) -> Draft | None:
        """The tree of a pair if it is known as such; None if `tree` would have to search for it again."""
        return self._given[int(self._front.masks[tp])] if self._front.groups[tp] == GIVEN else None

    def tree(self, tp: int) -> Draft:
        """A tree with at least `tp` correct positives and as many correct negatives as are known to be reachable."""
        self._patient = True
        try:
            return self._tree(self.root, self._rows, tp, self._front)
        finally:
            self._patient = False

    def _tree(self, shape: Shape | None, rows: np.ndarray, t: int, front: EntryFront | None = None) -> Draft:
        front = front or self._solve(shape, rows)
        h = int(front.groups[t])
        mask = int(front.masks[t])
        if h == GIVEN:
            return self._given[mask]
        if h == LEAF or shape is None:
            return DraftLeaf(label=int(t > 0 or not front.best[0]))
        if h in (LEFT, RIGHT):
            return self._tree(shape.left if h == LEFT else shape.right, rows, t)
        if shape.is_last:
            return self._last_tree(rows, h, t, int(front.best[t]))
        left, right = self._parts(rows, h, mask)
        a = self._solve(shape.left, left)
        b = self._solve(shape.right, right)
        for s in range(max(0, t - len(b.best) + 1), min(t, len(a.best) - 1) + 1):
            if a.best[s] + b.best[t - s] >= front.best[t]:
                chosen = [c for c in range(self.groups.sizes[h]) if mask >> c & 1]
                return self.groups.branch(
                    h, chosen, self._tree(shape.left, left, s), self._tree(shape.right, right, t - s)
                )
        raise AssertionError("an entry of a frontier without its sides")

    def _last_tree(self, rows: np.ndarray, h: int, t: int, tn: int) -> Draft:
        """The test of group h that reaches (t, tn)."""
        g = self.groups
        part = self._counts(rows)[self._start[h] : self._start[h + 1]]
        positive = positive_categories(part, bool(g.ordered[h]), g.card, t, tn)
        if len(positive) in (0, len(part)):
            return DraftLeaf(label=int(len(positive) > 0))
        return g.branch(h, positive, DraftLeaf(label=1), DraftLeaf(label=0))


def positive_categories(part: np.ndarray, is_ordered: bool, card: int, t: int, tn: int) -> list[int]:
    """Categories to label positive so that at least t positives and tn negatives are correct; `part` int64 (categories, 2)."""
    m = len(part)
    if is_ordered:
        for cut in range(m + 1):
            for chosen in (range(cut), range(cut, m)):
                inside = part[list(chosen)].sum(axis=0)
                if inside[1] >= t and part[:, 0].sum() - inside[0] >= tn:
                    return list(chosen)
        raise AssertionError("no threshold reaches the pair")
    limits = [(m, m)] if not card or 2 * card >= m else [(card, m), (m, card)]  # (most positive, most negative)
    for most, others in limits:
        # states: (positives labelled, correct positives) -> correct negatives and the categories, kept where not dominated
        states: dict[tuple[int, int], tuple[int, int]] = {(0, 0): (0, 0)}
        for f in range(m):
            n = int(part[f, 0])
            p = int(part[f, 1])
            following: dict[tuple[int, int], tuple[int, int]] = {}
            for (size, tp), (own, mask) in states.items():
                for size2, tp2, own2, mask2 in ((size, tp, own + n, mask), (size + 1, tp + p, own, mask | 1 << f)):
                    if size2 > most or f + 1 - size2 > others:
                        continue
                    # the size matters only where it is limited
                    key = (size2 if len(limits) == 2 else 0, tp2)
                    if key not in following or following[key][0] < own2:
                        following[key] = (own2, mask2)
            states = following
        for (_, tp), (own, mask) in states.items():
            if tp >= t and own >= tn:
                return [f for f in range(m) if mask >> f & 1]
    raise AssertionError("no subset reaches the pair")


def _mask(categories: np.ndarray) -> int:
    return sum(1 << int(a) for a in categories)
