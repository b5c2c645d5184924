"""Exact search for subset branching on a fixed topology, without a MIP.

Below a node with leaf children every group is solved by counting; two levels are one kernel call (`trainer.families.odt.kernels.signed`
for two classes, `trainer.families.odt.kernels.subset` for more), three levels another (`trainer.families.odt.kernels.depth3`); above that this module
searches depth first over groups and categories, largest category first, better side first. A partial assignment is cut off when the errors that its decided rows must make, and those that
every undecided category must make by itself, already reach the incumbent. Values of row sets are kept, for a set of rows reached
in two ways has one value.

Legend: V(shape, D) is the largest weight of rows of D that a tree of the shape classifies correctly; the errors w(D) - V of two
disjoint sets together are at least the sum of their own errors, which gives every bound used here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from trainer.families.odt.depth3 import three_levels
from trainer.families.odt.groups import Groups, best_subset, better_test, labels, random_test, sent_left, split
from trainer.families.odt.kernels import signed
from trainer.families.odt.kernels.records import NodeBudget, Spans
from trainer.families.odt.kernels.subset import count, last_level, last_level_of, two_levels_of
from trainer.families.odt.levels import LevelLimitReached, RowSetValue, TopologyLevel
from trainer.families.odt.topology import Shape
from trainer.kernels.members import members
from trainer.tree.nodes import Draft, DraftLeaf

SLICE = 20_000  # nodes of a kernel call, well below a tenth of a second
PAIRS = 10_000_000  # pairs of columns that are counted between two looks at the clock
MEMORY = 200_000_000  # bytes of row sets kept
THREE_CELLS = 20_000_000  # cells of the tables of three levels, for one group
SMALL_WEIGHT = 1 << 29  # total weight up to which signed sums fit into 32 bits
CLIMBS = 40  # local searches for a first tree
SQUEEZE = 0.6  # share of the gap that a step leaves below what it asks for


@dataclass(kw_only=True)
class SubsetSearch:
    """One search; `stopped` is called often, `flag[0] != 0` ends a kernel call."""

    groups: Groups
    root: Shape
    stopped: Callable[[], bool] = lambda: False
    on_incumbent: Callable[[int, Draft], None] = lambda value, draft: None
    on_bound: Callable[[int], None] = lambda bound: None
    flag: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    nodes: int = 0
    bound: int = field(init=False)  # no tree of all rows is better
    _known: dict[tuple[int, bytes], RowSetValue] = field(default_factory=dict)
    _levels: dict[Shape | None, TopologyLevel] = field(default_factory=dict)
    _start: np.ndarray = field(init=False)
    _spans: Spans = field(init=False)
    _identical: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        g = self.groups
        self._spans = g.spans
        self._start = self._spans.start
        _, inverse = np.unique(g.cat, axis=0, return_inverse=True)
        self._identical = inverse.reshape(-1).astype(np.int64)
        self._distinct = int(self._identical.max(initial=-1)) + 1
        self._signed = g.n_classes == 2 and int(g.w.sum()) < SMALL_WEIGHT and g.cat.shape[1] > 0
        self._s = np.where(g.y == 1, g.w, -g.w).astype(np.int32)
        columns = int(self._start[-1])
        self._T = np.zeros((columns, columns), np.int32)
        self._size = np.zeros(columns, np.int64)
        self._fits = self._start[-1] ** 2 * (g.sizes.max(initial=0) * 3 + 2) <= THREE_CELLS
        self._entry = len(g.y) // 8 + 300
        self._top = self._level(self.root)
        self.bound = self.ceiling(np.arange(len(g.y)))

    def _level(self, shape: Shape | None) -> TopologyLevel:
        if shape not in self._levels:
            below = () if shape is None else (self._level(shape.left), self._level(shape.right))
            self._levels[shape] = TopologyLevel(len(self._levels), shape, below)
        return self._levels[shape]

    # -- what others ask

    def ceiling(self, rows: np.ndarray) -> int:
        """No tree classifies more of `rows`: rows equal in all groups get one label."""
        if len(rows) == 0:
            return 0
        K = self.groups.n_classes
        table = np.bincount(
            self._identical[rows] * K + self.groups.y[rows], weights=self.groups.w[rows], minlength=K * self._distinct
        )
        return round(table.reshape(-1, K).max(axis=1).sum())

    def value(self, shape: Shape | None, rows: np.ndarray, lower: int = -1) -> int:
        """V(shape, rows) if it exceeds `lower`; otherwise `lower`."""
        return self._value(self._level(shape), rows, lower)[0]

    def solve(self, shape: Shape | None, rows: np.ndarray, lower: int = -1) -> tuple[int, Draft | None]:
        """(V, draft) where V > lower, else (lower, None). Raises LevelLimitReached."""
        level = self._level(shape)
        value, above = self._value(level, rows, lower)
        return value, self._draft(level, rows) if above else None

    # -- the recurrence

    def _value(self, level: TopologyLevel, rows: np.ndarray, lower: int) -> tuple[int, bool]:
        """(V, True) where V > lower, else (lower, False)."""
        self._check()
        if level.is_leaf or len(rows) == 0 or not self.groups.cat.shape[1]:
            best = self._majority(rows)
            return (best, True) if best > lower else (lower, False)
        key = self._key(level, rows)
        known = self._known.get(key)
        if known is not None and (known.exact or known.value <= lower):
            return (known.value, True) if known.value > lower else (lower, False)
        top = known.value if known is not None else self.ceiling(rows)
        if top <= lower:
            return lower, False
        self.nodes += 1
        if level.shape is not None and level.shape.is_last:
            value, group = self.best_last(rows)
            found = RowSetValue(value, True, group)
        else:
            found = self._branch(level, rows, lower, top)
        if len(self._known) * self._entry > MEMORY:
            self._known.clear()
        self._known[key] = found
        return (found.value, True) if found.exact and found.value > lower else (lower, False)

    def _key(self, level: TopologyLevel, rows: np.ndarray) -> tuple[int, bytes]:
        return level.key, members(rows, len(self.groups.y)).tobytes()

    def _majority(self, rows: np.ndarray) -> int:
        if len(rows) == 0:
            return 0
        return round(np.bincount(self.groups.y[rows], weights=self.groups.w[rows]).max())

    def best_last(self, rows: np.ndarray) -> tuple[int, int]:
        """V of one test and two leaves: (value, group)."""
        G = self.groups
        value, group = last_level(self._counts(rows), self._start, G.ordered, G.card)
        return int(value), int(group)

    def _counts(self, rows: np.ndarray) -> np.ndarray:
        G = self.groups
        counts = np.zeros((self._start[-1], G.n_classes), np.int64)
        count(G.cat, G.y, G.w, rows, self._start, G.n_classes, counts)
        return counts

    def _branch(self, level: TopologyLevel, rows: np.ndarray, lower: int, top: int) -> RowSetValue:
        """Every test at the root of the level; the trivial ones first."""
        best = RowSetValue(lower, False)
        for mark, child in ((-1, level.left), (-2, level.right)):
            value, above = self._value(child, rows, best.value)
            if above:
                best = self._take(level, rows, RowSetValue(value, True, mark))
        if level.is_two and self._signed:
            return self._two_signed(level, rows, best)
        whole = level is self._top and len(rows) == len(self.groups.y) and self._signed
        deeper = level.shape is not None and level.shape.depth > 2
        if whole and level.shallow and deeper:
            best = self._climb(level, rows, best, top, np.random.default_rng(0))
        order = self._order(rows)
        if level.is_three and self._signed and self._fits:
            return self._three_signed(level, rows, order, best, top)
        if whole and not level.shallow:
            return self._squeeze(level, rows, order, best, top)
        if not level.is_two:
            return self._tests(level, rows, order, best, top)
        for g in order:
            if best.value >= top:
                break
            best = self._two_levels(level, rows, g, best)
        return best

    def _limit(self, bound: int) -> None:
        """No tree of the whole problem is better than `bound`."""
        if bound < self.bound:
            self.bound = bound
            self.on_bound(bound)

    def _take(self, level: TopologyLevel, rows: np.ndarray, found: RowSetValue) -> RowSetValue:
        """Keep what was found; a better tree of the whole problem is news."""
        if level is self._top and len(rows) == len(self.groups.y):
            self._known[self._key(level, rows)] = found
            self.on_incumbent(found.value, self._draft(level, rows))
            # it is the best so far, not the best
            self._known.pop(self._key(level, rows), None)
        return found

    def _order(self, rows: np.ndarray) -> list[int]:
        """Groups by what one test of them is worth, best first, so that the incumbent is good early."""
        G = self.groups
        counts = self._counts(rows)
        worth = [
            int(last_level_of(counts, self._start[g], self._start[g + 1], G.ordered[g], G.card))
            for g in range(len(G.sizes))
        ]
        return sorted(range(len(G.sizes)), key=lambda g: -worth[g])

    def _two_signed(self, level: TopologyLevel, rows: np.ndarray, best: RowSetValue) -> RowSetValue:
        """Two levels for two classes: s = 2 V - w in the kernel's units."""
        G = self.groups
        limit = SLICE
        self._count_pairs(rows)
        weight = int(G.w[rows].sum())
        done = np.zeros(len(G.sizes), np.int64)
        while True:
            self._check()
            lower = int(max(2 * best.value - weight, -1))
            value, group, mask, finished = signed.two_levels(
                self._T, self._size, self._spans, lower, done, NodeBudget(limit, self.flag)
            )
            if group >= 0:
                best = self._take(level, rows, RowSetValue((int(value) + weight) // 2, True, int(group), int(mask)))
            if finished:
                return best
            if self.flag[0]:
                raise LevelLimitReached
            limit *= 4

    def _count_pairs(self, rows: np.ndarray) -> None:
        """Fill the tables of two levels, in pieces: the rows of a thousand columns take seconds."""
        G = self.groups
        self._size[:] = 0
        step = max(1, PAIRS // self._T.shape[1])
        for first in range(0, len(self._T), step):  # the first touch of a large table takes seconds on some machines
            self._check()
            self._T[first : first + step] = 0
        step = max(1, PAIRS // len(G.sizes) ** 2)
        for first in range(0, len(rows), step):
            self._check()
            signed.tables(G.cat, self._s, G.w, rows[first : first + step], self._start, self._T, self._size)

    def _three_signed(
        self, level: TopologyLevel, rows: np.ndarray, order: list[int], best: RowSetValue, top: int
    ) -> RowSetValue:
        """Three levels for two classes, in the units of `_two_signed`."""
        G = self.groups
        weight = int(self.groups.w[rows].sum())
        # the kernel's side 1 is the one with two levels
        mirrored = not level.right.is_two
        found = [best]

        def take(value: int, g: int, mask: int) -> None:
            sent = (1 << int(G.sizes[g])) - 1 ^ mask if mirrored else mask
            found[0] = self._take(level, rows, RowSetValue((value + weight) // 2, True, g, sent))

        self.nodes += three_levels(
            G, self._s, rows, level.left.is_two and level.right.is_two, order, 2 * best.value - weight,
            2 * top - weight, SLICE, take=take, check=self._check, flag=self.flag,
        )  # fmt: skip
        return found[0]

    def _two_levels(self, level: TopologyLevel, rows: np.ndarray, g: int, best: RowSetValue) -> RowSetValue:
        G = self.groups
        limit = SLICE
        while True:
            self._check()
            value, mask, finished = two_levels_of(
                G.chosen(rows), self._spans, G.n_classes, g, best.value, NodeBudget(limit, self.flag)
            )
            self.nodes += 1
            if finished:
                break
            if self.flag[0]:
                raise LevelLimitReached
            # start again with a larger slice: the work lost is at most a third
            limit *= 4
        return best if mask < 0 else self._take(level, rows, RowSetValue(int(value), True, g, int(mask)))

    def _climb(
        self, level: TopologyLevel, rows: np.ndarray, best: RowSetValue, top: int, rng: np.random.Generator
    ) -> RowSetValue:
        """First trees by local search: subtrees for a test, then the best test for these subtrees, until nothing improves."""
        groups = len(self.groups.sizes)
        for climb in range(CLIMBS):
            if best.value >= top:  # no tree is better
                break
            tests = {"": random_test(self.groups, climb % groups, rng)}
            value = 0
            reached = -1
            while value > reached:
                reached, (g, mask) = value, tests[""]
                value, draft, _ = self._polish(level, rows, tests, "", rng)
                if value > best.value:
                    best = self._take(level, rows, RowSetValue(value, True, g, mask, draft))
        return best

    def _squeeze(
        self, level: TopologyLevel, rows: np.ndarray, order: list[int], best: RowSetValue, top: int
    ) -> RowSetValue:
        """More than three levels: whether a value is exceeded is settled from above.

        The search is the faster the more must be reached, so each step proves a bound or ends with the optimum.
        """
        rng = np.random.default_rng(0)
        best = self._climb(level, rows, best, top, rng)
        while best.value < top:
            least = best.value + int(SQUEEZE * (top - best.value))
            found = self._tests(level, rows, order, RowSetValue(least, False), top)
            if found.exact:
                return found
            top = least
            self._limit(top)
            if best.value < top:
                best = self._climb(level, rows, best, top, rng)
        return best

    def _tests(
        self, level: TopologyLevel, rows: np.ndarray, order: list[int], best: RowSetValue, top: int
    ) -> RowSetValue:
        """All tests of all groups."""
        tests = [_Assignment(self, level, rows, g) for g in order]
        for place, test in enumerate(tests):
            if best.value >= top:
                break
            if level is self._top and level.shallow and len(rows) == len(self.groups.y):
                self._limit(max(best.value, *(other.top for other in tests[place:])))
            best = test.run(best)
        return best

    def _polish(
        self,
        level: TopologyLevel,
        rows: np.ndarray,
        tests: dict[str, tuple[int, int]],
        path: str,
        rng: np.random.Generator,
    ) -> tuple[int, Draft, np.ndarray]:
        """Value, tree and labels with the tests at the nodes above two levels, random where not given; better ones take their place."""
        G = self.groups
        if level.shape is None or level.shape.depth <= 2:
            value = self._value(level, rows, -1)[0]
            draft = self._draft(level, rows)
            return value, draft, labels(G, draft)
        if path not in tests:
            tests[path] = random_test(self.groups, int(rng.integers(len(G.sizes))), rng)
        g, mask = tests[path]
        left, right = split(G, rows, g, mask)
        one = self._polish(level.left, left, tests, path + "0", rng)
        two = self._polish(level.right, right, tests, path + "1", rng)
        tests[path] = better_test(G, rows, one[2], two[2])
        chosen = [a for a in range(G.sizes[g]) if mask >> a & 1]
        said = np.where(sent_left(G.cat[:, g], mask), one[2], two[2])
        draft = G.branch(g, chosen, one[1], two[1]) if 0 < len(chosen) < G.sizes[g] else (one if chosen else two)[1]
        return one[0] + two[0], draft, said

    # -- trees

    def _draft(self, level: TopologyLevel, rows: np.ndarray) -> Draft:
        """An optimal tree of a row set."""
        G = self.groups
        if level.is_leaf or len(rows) == 0 or not G.cat.shape[1]:
            weights = np.bincount(G.y[rows], weights=G.w[rows], minlength=G.n_classes)
            return DraftLeaf(label=int(weights.argmax()))
        known = self._known.get(self._key(level, rows))
        if known is None or not known.exact:
            self._value(level, rows, -1)
            known = self._known[self._key(level, rows)]
        if level.shape is not None and level.shape.is_last:
            return self._last_draft(rows, known.group)
        if known.draft is not None:
            return known.draft
        if known.group < 0:
            return self._draft(level.left if known.group == -1 else level.right, rows)
        left, right = split(G, rows, known.group, known.mask)
        chosen = [a for a in range(G.sizes[known.group]) if known.mask >> a & 1]
        return G.branch(known.group, chosen, self._draft(level.left, left), self._draft(level.right, right))

    def _last_draft(self, rows: np.ndarray, g: int) -> Draft:
        """One test of group g and its two leaves, for the subset that `last_level_of` has counted."""
        G = self.groups
        part = self._counts(rows)[self._start[g] : self._start[g + 1]]
        subset = best_subset(part, bool(G.ordered[g]), G.card)
        whole = part.sum(axis=0)
        own = part[subset].sum(axis=0)
        one = int(own.argmax())
        other = int((whole - own).argmax())
        if not 0 < len(subset) < len(part) or one == other:
            return DraftLeaf(label=int(whole.argmax()))
        return G.branch(g, [int(a) for a in subset], DraftLeaf(label=one), DraftLeaf(label=other))

    def _check(self) -> None:
        if self.stopped():
            self.flag[0] = 1
            raise LevelLimitReached


class _Assignment:
    """All tests of one group at the root of a level: categories are sent left or right, the largest first, the better side first."""

    def __init__(self, search: SubsetSearch, level: TopologyLevel, rows: np.ndarray, g: int) -> None:
        self.search = search
        self.level = level
        self.rows = rows
        self.g = g
        self.best = RowSetValue(-1, False)
        assert level.shape is not None
        self.sides = (level.left, level.right)
        self.symmetric = level.shape.is_symmetric
        G = search.groups
        here = G.cat[rows, g]
        present = np.unique(here)
        if G.ordered[g]:
            self.order = [int(a) for a in present]
        else:
            weight = np.bincount(here, G.w[rows], int(G.sizes[g]))
            self.order = [int(a) for a in sorted(present, key=lambda a: -weight[a])]
        self.parts = [rows[here == a] for a in self.order]
        self.card = G.card

    @cached_property
    def rest(self) -> np.ndarray:
        """What the categories from the t-th on are worth at most: each by itself, on its better side."""
        alone = [max(self.search._value(side, part, -1)[0] for side in self._different()) for part in self.parts]
        return np.concatenate([np.cumsum(alone[::-1])[::-1], [0]]).astype(np.int64)

    @property
    def top(self) -> int:
        """No test of the group is worth more."""
        return int(self.rest[0])

    def run(self, best: RowSetValue) -> RowSetValue:
        """The best test, if it exceeds the best so far."""
        self.best = best
        if len(self.parts) < 2 or self.top <= best.value:
            return best
        if self.search.groups.ordered[self.g]:
            for flip in (False,) if self.symmetric else (False, True):
                self._thresholds(0, len(self.parts), None, None, flip)
            return self.best
        empty = self.rows[:0]
        for side in (0,) if self.symmetric else (0, 1):
            rows = [empty, empty]
            rows[side] = self.parts[0]
            value, above = self._side(side, rows[side], self.best.value - int(self.rest[1]))
            if above:
                values = (value, 0) if side == 0 else (0, value)
                mask = 1 << self.order[0] if side == 0 else 0
                self._assign(1, rows[0], rows[1], values, mask, 1 - side)
        return self.best

    def _different(self) -> tuple[TopologyLevel, ...]:
        return self.sides[:1] if self.sides[0] is self.sides[1] else self.sides

    def _side(self, side: int, rows: np.ndarray, lower: int) -> tuple[int, bool]:
        return self.search._value(self.sides[side], rows, lower)

    def _assign(
        self, t: int, left: np.ndarray, right: np.ndarray, values: tuple[int, int], mask: int, size: int
    ) -> None:
        """Send the t-th category and all after it."""
        if t == len(self.parts):
            if values[0] + values[1] > self.best.value:
                found = RowSetValue(values[0] + values[1], True, self.g, mask)
                self.best = self.search._take(self.level, self.rows, found)
            return
        self.search.nodes += 1
        rest = int(self.rest[t + 1])
        part = self.parts[t]
        ways = []
        for side, own in ((0, left), (1, right)):
            if self.card and min(size + 1 - side, t + side - size) > self.card:
                continue
            grown = np.sort(np.concatenate([own, part]))
            value, above = self._side(side, grown, self.best.value - values[1 - side] - rest)
            if above:
                ways.append((value + values[1 - side], side, grown, value))
        for reach, side, grown, value in sorted(ways, key=lambda way: -way[0]):
            if reach + rest <= self.best.value:
                continue
            if side == 0:
                self._assign(t + 1, grown, right, (value, values[1]), mask | 1 << self.order[t], size + 1)
            else:
                self._assign(t + 1, left, grown, (values[0], value), mask, size)

    def _thresholds(self, low: int, high: int, left: int | None, right: int | None, flip: bool) -> None:
        """Cuts strictly between `low` and `high`, the middle one first; `left`, `right` the errors of all below low, all from high on."""
        if high - low < 2:
            return
        if (left or 0) + (right or 0) >= int(self.search.groups.w[self.rows].sum()) - self.best.value:
            return
        cut = (low + high) // 2
        below = np.sort(np.concatenate(self.parts[:cut]))
        above = np.sort(np.concatenate(self.parts[cut:]))
        first, second = (1, 0) if flip else (0, 1)
        weights = [int(self.search.groups.w[part].sum()) for part in (below, above)]
        # a part has at least the errors of the smaller part known inside it
        one, found = self._side(first, below, self.best.value - (weights[1] - (right or 0)))
        errors_below = weights[0] - one if found else max(left or 0, weights[0] - one)
        errors_above = right or 0
        if found:
            two, both = self._side(second, above, self.best.value - one)
            errors_above = weights[1] - two if both else max(errors_above, weights[1] - two)
            if both:
                chosen = self.order[cut:] if flip else self.order[:cut]
                mask = sum(1 << a for a in chosen)
                self.best = self.search._take(
                    self.level, self.rows, RowSetValue(one + two, True, self.g, self._closed(mask, flip))
                )
        self._thresholds(low, cut, left, errors_above, flip)
        self._thresholds(cut, high, errors_below, right, flip)

    def _closed(self, mask: int, flip: bool) -> int:
        """The threshold with the bins that do not occur on the side of their neighbours."""
        size = int(self.search.groups.sizes[self.g])
        if flip:
            lowest = next(a for a in range(size) if mask >> a & 1)
            return ((1 << size) - 1) ^ ((1 << lowest) - 1)
        return (1 << mask.bit_length()) - 1
