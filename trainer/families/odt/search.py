"""Search exactly for trees with subset branching on a fixed topology.

The last level is solved by counting. Kernels solve two levels (`trainer.families.odt.kernels.signed` for two classes,
`trainer.families.odt.kernels.subset` for more) and three (`trainer.families.odt.kernels.depth3`). Above that, this module searches
depth first over groups and categories, largest category first, better side first. It prunes a partial assignment by a lower bound on
its errors: those of the decided rows, plus those of every undecided category by itself. Values of row sets are cached.

Legend: V(shape, D) is the largest weight of rows of D that a tree of the shape classifies correctly. The errors w(D) - V of the union
of two disjoint sets are at least the sum of their errors; every bound used here follows from that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from trainer.families.odt.depth3 import KernelLimits, ValueRange, search_three_levels
from trainer.families.odt.groups import (
    Groups,
    best_subset,
    better_test,
    goes_left_mask,
    predict_labels,
    random_test,
    split,
)
from trainer.families.odt.kernels import signed
from trainer.families.odt.kernels.records import NodeBudget, Spans
from trainer.families.odt.kernels.subset import count_classes, group_value, last_level, search_two_levels
from trainer.families.odt.levels import LevelLimitReached, RowSetValue, TopologyLevel
from trainer.families.odt.topology import Shape
from trainer.kernels.members import members
from trainer.tree.nodes import Draft, DraftLeaf

NODES_PER_CALL = 20_000  # nodes per kernel call, which takes well below a tenth of a second
PAIRS_PER_CHECK = 10_000_000  # counts of column pairs between two checks of the clock
MAX_CACHE_BYTES = 200_000_000
MAX_THREE_LEVEL_CELLS = 20_000_000  # limit on the table cells of one group
MAX_SIGNED_WEIGHT = 1 << 29  # up to this total weight, signed sums fit into 32 bits
LOCAL_SEARCHES = 40  # number of restarts of the local search
GAP_SHARE = 0.6  # each step searches the part of the gap above this share


@dataclass(kw_only=True)
class SubsetSearch:
    """The exact search of one problem. It calls `stopped` often; `flag[0] != 0` ends a kernel call."""

    groups: Groups
    root: Shape
    stopped: Callable[[], bool] = lambda: False
    on_incumbent: Callable[[int, Draft], None] = lambda value, draft: None
    on_bound: Callable[[int], None] = lambda bound: None
    flag: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    nodes: int = 0
    bound: int = field(init=False)  # upper bound for the set of all rows
    _cache: dict[tuple[int, bytes], RowSetValue] = field(default_factory=dict)
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
        self._signed = g.n_classes == 2 and int(g.w.sum()) < MAX_SIGNED_WEIGHT and g.cat.shape[1] > 0
        self._s = np.where(g.y == 1, g.w, -g.w).astype(np.int32)
        columns = int(self._start[-1])
        self._T = np.zeros((columns, columns), np.int32)
        self._size = np.zeros(columns, np.int64)
        self._fits = self._start[-1] ** 2 * (g.sizes.max(initial=0) * 3 + 2) <= MAX_THREE_LEVEL_CELLS
        self._entry = len(g.y) // 8 + 300
        self._top = self._level(self.root)
        self.bound = self.ceiling(np.arange(len(g.y)))

    def _level(self, shape: Shape | None) -> TopologyLevel:
        if shape not in self._levels:
            below = () if shape is None else (self._level(shape.left), self._level(shape.right))
            self._levels[shape] = TopologyLevel(len(self._levels), shape, below)
        return self._levels[shape]

    # -- public methods

    def ceiling(self, rows: np.ndarray) -> int:
        """Return an upper bound on V for all shapes: rows that are equal in all groups get one label."""
        if len(rows) == 0:
            return 0
        K = self.groups.n_classes
        table = np.bincount(
            self._identical[rows] * K + self.groups.y[rows], weights=self.groups.w[rows], minlength=K * self._distinct
        )
        return round(table.reshape(-1, K).max(axis=1).sum())

    def value(self, shape: Shape | None, rows: np.ndarray, lower: int = -1) -> int:
        """Return V(shape, rows) if it exceeds `lower`; otherwise `lower`."""
        return self._value(self._level(shape), rows, lower)[0]

    def solve(self, shape: Shape | None, rows: np.ndarray, lower: int = -1) -> tuple[int, Draft | None]:
        """Return (V, draft) if V > lower, else (lower, None). Raises LevelLimitReached."""
        level = self._level(shape)
        value, above = self._value(level, rows, lower)
        return value, self._draft(level, rows) if above else None

    # -- the recurrence

    def _value(self, level: TopologyLevel, rows: np.ndarray, lower: int) -> tuple[int, bool]:
        """Return (V, True) if V > lower, else (lower, False)."""
        self._check()
        if level.is_leaf or len(rows) == 0 or not self.groups.cat.shape[1]:
            best = self._majority(rows)
            return (best, True) if best > lower else (lower, False)
        key = self._key(level, rows)
        cached = self._cache.get(key)
        if cached is not None and (cached.exact or cached.value <= lower):
            return (cached.value, True) if cached.value > lower else (lower, False)
        top = cached.value if cached is not None else self.ceiling(rows)
        if top <= lower:
            return lower, False
        self.nodes += 1
        if level.shape is not None and level.shape.is_last:
            value, group = self.best_last(rows)
            entry = RowSetValue(value, True, group)
        else:
            entry = self._branch(level, rows, lower, top)
        if len(self._cache) * self._entry > MAX_CACHE_BYTES:
            self._cache.clear()
        self._cache[key] = entry
        return (entry.value, True) if entry.exact and entry.value > lower else (lower, False)

    def _key(self, level: TopologyLevel, rows: np.ndarray) -> tuple[int, bytes]:
        return level.key, members(rows, len(self.groups.y)).tobytes()

    def _majority(self, rows: np.ndarray) -> int:
        if len(rows) == 0:
            return 0
        return round(np.bincount(self.groups.y[rows], weights=self.groups.w[rows]).max())

    def best_last(self, rows: np.ndarray) -> tuple[int, int]:
        """Return V of one test and two leaves, and the group of the test."""
        G = self.groups
        value, group = last_level(self._counts(rows), self._start, G.ordered, G.card)
        return int(value), int(group)

    def _counts(self, rows: np.ndarray) -> np.ndarray:
        G = self.groups
        counts = np.zeros((self._start[-1], G.n_classes), np.int64)
        count_classes(G.cat, G.y, G.w, rows, self._start, G.n_classes, counts)
        return counts

    def _branch(self, level: TopologyLevel, rows: np.ndarray, lower: int, top: int) -> RowSetValue:
        """Search every test at the root of the level, the trivial ones first."""
        best = RowSetValue(lower, False)
        for mark, child in ((-1, level.left), (-2, level.right)):
            value, above = self._value(child, rows, best.value)
            if above:
                best = self._update_incumbent(level, rows, RowSetValue(value, True, mark))
        if level.is_two and self._signed:
            return self._two_signed(level, rows, best)
        is_root = level is self._top and len(rows) == len(self.groups.y) and self._signed
        deeper = level.shape is not None and level.shape.depth > 2
        if is_root and level.shallow and deeper:
            best = self._climb(level, rows, best, top, np.random.default_rng(0))
        order = self._order(rows)
        if level.is_three and self._signed and self._fits:
            return self._three_signed(level, rows, order, best, top)
        if is_root and not level.shallow:
            return self._tighten_bound(level, rows, order, best, top)
        if not level.is_two:
            return self._tests(level, rows, order, best, top)
        for g in order:
            if best.value >= top:
                break
            best = self._two_levels(level, rows, g, best)
        return best

    def _lower_bound_to(self, bound: int) -> None:
        """Store and report a better upper bound for all rows."""
        if bound < self.bound:
            self.bound = bound
            self.on_bound(bound)

    def _update_incumbent(self, level: TopologyLevel, rows: np.ndarray, entry: RowSetValue) -> RowSetValue:
        """Return `entry`; report its tree as the incumbent if it covers all rows and the whole topology."""
        if level is self._top and len(rows) == len(self.groups.y):
            self._cache[self._key(level, rows)] = entry
            self.on_incumbent(entry.value, self._draft(level, rows))
            # the entry is an incumbent and not the optimum, so it must not stay in the cache
            self._cache.pop(self._key(level, rows), None)
        return entry

    def _order(self, rows: np.ndarray) -> list[int]:
        """Sort groups by the value of their best single test, so that the incumbent is good early."""
        G = self.groups
        counts = self._counts(rows)
        worth = [
            int(group_value(counts, self._start[g], self._start[g + 1], G.ordered[g], G.card))
            for g in range(len(G.sizes))
        ]
        return sorted(range(len(G.sizes)), key=lambda g: -worth[g])

    def _two_signed(self, level: TopologyLevel, rows: np.ndarray, best: RowSetValue) -> RowSetValue:
        """Solve two levels for two classes; the kernel's unit is s = 2 V - w."""
        G = self.groups
        limit = NODES_PER_CALL
        self._count_pairs(rows)
        weight = int(G.w[rows].sum())
        closed_groups = np.zeros(len(G.sizes), np.int64)
        while True:
            self._check()
            lower = int(max(2 * best.value - weight, -1))
            value, group, mask, finished = signed.search_two_levels(
                self._T, self._size, self._spans, lower, closed_groups, NodeBudget(limit, self.flag)
            )
            if group >= 0:
                best = self._update_incumbent(
                    level, rows, RowSetValue((int(value) + weight) // 2, True, int(group), int(mask))
                )
            if finished:
                return best
            if self.flag[0]:
                raise LevelLimitReached
            limit *= 4

    def _count_pairs(self, rows: np.ndarray) -> None:
        """Fill the tables of two levels in pieces between checks of the clock, since a thousand columns take seconds."""
        G = self.groups
        self._size[:] = 0
        step = max(1, PAIRS_PER_CHECK // self._T.shape[1])
        # clear the table in pieces, because the first access to a large one takes seconds on some machines
        for first in range(0, len(self._T), step):
            self._check()
            self._T[first : first + step] = 0
        step = max(1, PAIRS_PER_CHECK // len(G.sizes) ** 2)
        for first in range(0, len(rows), step):
            self._check()
            signed.add_to_tables(G.cat, self._s, G.w, rows[first : first + step], self._start, self._T, self._size)

    def _three_signed(
        self, level: TopologyLevel, rows: np.ndarray, order: list[int], best: RowSetValue, top: int
    ) -> RowSetValue:
        """Solve three levels for two classes, in the units of `_two_signed`."""
        G = self.groups
        weight = int(self.groups.w[rows].sum())
        # the kernel expects the child with two levels as side 1
        mirrored = not level.right.is_two
        incumbent = [best]

        def take(value: int, g: int, mask: int) -> None:
            sent = (1 << int(G.sizes[g])) - 1 ^ mask if mirrored else mask
            incumbent[0] = self._update_incumbent(level, rows, RowSetValue((value + weight) // 2, True, g, sent))

        self.nodes += search_three_levels(
            G,
            self._s,
            rows,
            level.left.is_two and level.right.is_two,
            order,
            ValueRange(lower=2 * best.value - weight, top=2 * top - weight, take=take),
            KernelLimits(nodes=NODES_PER_CALL, check=self._check, flag=self.flag),
        )
        return incumbent[0]

    def _two_levels(self, level: TopologyLevel, rows: np.ndarray, g: int, best: RowSetValue) -> RowSetValue:
        G = self.groups
        limit = NODES_PER_CALL
        while True:
            self._check()
            value, mask, finished = search_two_levels(
                G.select(rows), self._spans, G.n_classes, g, best.value, NodeBudget(limit, self.flag)
            )
            self.nodes += 1
            if finished:
                break
            if self.flag[0]:
                raise LevelLimitReached
            # restart with a slice four times as large, so that at most a third of the work is lost
            limit *= 4
        return best if mask < 0 else self._update_incumbent(level, rows, RowSetValue(int(value), True, g, int(mask)))

    def _climb(
        self, level: TopologyLevel, rows: np.ndarray, best: RowSetValue, top: int, rng: np.random.Generator
    ) -> RowSetValue:
        """Improve the incumbent by local search: alternate optimal subtrees for tests and best tests for subtrees."""
        groups = len(self.groups.sizes)
        for climb in range(LOCAL_SEARCHES):
            if best.value >= top:  # the incumbent is optimal
                break
            tests = {"": random_test(self.groups, climb % groups, rng)}
            value = 0
            reached = -1
            while value > reached:
                reached = value
                g, mask = tests[""]
                value, draft, _ = self._polish(level, rows, tests, "", rng)
                if value > best.value:
                    best = self._update_incumbent(level, rows, RowSetValue(value, True, g, mask, draft))
        return best

    def _tighten_bound(
        self, level: TopologyLevel, rows: np.ndarray, order: list[int], best: RowSetValue, top: int
    ) -> RowSetValue:
        """Solve more than three levels by tightening the upper bound.

        Each step searches trees above a threshold within the gap. It finds the optimum or proves the threshold as a bound. High
        thresholds prune most.
        """
        rng = np.random.default_rng(0)
        best = self._climb(level, rows, best, top, rng)
        while best.value < top:
            least = best.value + int(GAP_SHARE * (top - best.value))
            entry = self._tests(level, rows, order, RowSetValue(least, False), top)
            if entry.exact:
                return entry
            top = least
            self._lower_bound_to(top)
            if best.value < top:
                best = self._climb(level, rows, best, top, rng)
        return best

    def _tests(
        self, level: TopologyLevel, rows: np.ndarray, order: list[int], best: RowSetValue, top: int
    ) -> RowSetValue:
        """Search all tests of all groups."""
        tests = [_Assignment(self, level, rows, g) for g in order]
        for place, test in enumerate(tests):
            if best.value >= top:
                break
            if level is self._top and level.shallow and len(rows) == len(self.groups.y):
                self._lower_bound_to(max(best.value, *(other.top for other in tests[place:])))
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
        """Return value, tree and labels for fixed tests above the last two levels; replace these tests by better ones.

        `tests` maps the path of a node to its test; a node without one gets a random test.
        """
        G = self.groups
        if level.shape is None or level.shape.depth <= 2:
            value = self._value(level, rows, -1)[0]
            draft = self._draft(level, rows)
            return value, draft, predict_labels(G, draft)
        if path not in tests:
            tests[path] = random_test(self.groups, int(rng.integers(len(G.sizes))), rng)
        g, mask = tests[path]
        left, right = split(G, rows, g, mask)
        left_value, left_draft, left_labels = self._polish(level.left, left, tests, path + "0", rng)
        right_value, right_draft, right_labels = self._polish(level.right, right, tests, path + "1", rng)
        tests[path] = better_test(G, rows, left_labels, right_labels)
        categories = [a for a in range(G.sizes[g]) if mask >> a & 1]
        predictions = np.where(goes_left_mask(G.cat[:, g], mask), left_labels, right_labels)
        if 0 < len(categories) < G.sizes[g]:
            draft = G.branch(g, categories, left_draft, right_draft)
        else:
            draft = left_draft if categories else right_draft
        return left_value + right_value, draft, predictions

    # -- trees

    def _draft(self, level: TopologyLevel, rows: np.ndarray) -> Draft:
        """Return an optimal tree of a row set."""
        G = self.groups
        if level.is_leaf or len(rows) == 0 or not G.cat.shape[1]:
            weights = np.bincount(G.y[rows], weights=G.w[rows], minlength=G.n_classes)
            return DraftLeaf(label=int(weights.argmax()))
        cached = self._cache.get(self._key(level, rows))
        if cached is None or not cached.exact:
            self._value(level, rows, -1)
            cached = self._cache[self._key(level, rows)]
        if level.shape is not None and level.shape.is_last:
            return self._last_draft(rows, cached.group)
        if cached.draft is not None:
            return cached.draft
        if cached.group < 0:
            return self._draft(level.left if cached.group == -1 else level.right, rows)
        left, right = split(G, rows, cached.group, cached.mask)
        categories = [a for a in range(G.sizes[cached.group]) if cached.mask >> a & 1]
        return G.branch(cached.group, categories, self._draft(level.left, left), self._draft(level.right, right))

    def _last_draft(self, rows: np.ndarray, g: int) -> Draft:
        """Return the best test of group g above two leaves."""
        G = self.groups
        part = self._counts(rows)[self._start[g] : self._start[g + 1]]
        subset = best_subset(part, bool(G.ordered[g]), G.card)
        all_counts = part.sum(axis=0)
        left_counts = part[subset].sum(axis=0)
        left_label = int(left_counts.argmax())
        right_label = int((all_counts - left_counts).argmax())
        if not 0 < len(subset) < len(part) or left_label == right_label:
            return DraftLeaf(label=int(all_counts.argmax()))
        return G.branch(g, [int(a) for a in subset], DraftLeaf(label=left_label), DraftLeaf(label=right_label))

    def _check(self) -> None:
        if self.stopped():
            self.flag[0] = 1
            raise LevelLimitReached


class _Assignment:
    """A search over all tests of one group at the root of a level.

    Categories are assigned to a side one at a time, the largest first, the better side first.
    """

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
        categories = G.cat[rows, g]
        present = np.unique(categories)
        if G.ordered[g]:
            self.order = [int(a) for a in present]
        else:
            weight = np.bincount(categories, G.w[rows], int(G.sizes[g]))
            self.order = [int(a) for a in sorted(present, key=lambda a: -weight[a])]
        self.parts = [rows[categories == a] for a in self.order]
        self.card = G.card

    @cached_property
    def remaining_values(self) -> np.ndarray:
        """Upper bounds on the values of the categories from the t-th on: each by itself, on its better side."""
        alone = [max(self.search._value(side, part, -1)[0] for side in self._distinct_sides()) for part in self.parts]
        return np.concatenate([np.cumsum(alone[::-1])[::-1], [0]]).astype(np.int64)

    @property
    def top(self) -> int:
        """Upper bound on all tests of the group."""
        return int(self.remaining_values[0])

    def run(self, best: RowSetValue) -> RowSetValue:
        """Return the best test if its value exceeds `best`; otherwise `best`."""
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
            value, above = self._side(side, rows[side], self.best.value - int(self.remaining_values[1]))
            if above:
                values = (value, 0) if side == 0 else (0, value)
                mask = 1 << self.order[0] if side == 0 else 0
                self._assign(1, rows[0], rows[1], values, mask, 1 - side)
        return self.best

    def _distinct_sides(self) -> tuple[TopologyLevel, ...]:
        return self.sides[:1] if self.sides[0] is self.sides[1] else self.sides

    def _side(self, side: int, rows: np.ndarray, lower: int) -> tuple[int, bool]:
        return self.search._value(self.sides[side], rows, lower)

    def _assign(
        self, t: int, left: np.ndarray, right: np.ndarray, values: tuple[int, int], mask: int, size: int
    ) -> None:
        """Assign the t-th category and all after it."""
        if t == len(self.parts):
            if values[0] + values[1] > self.best.value:
                entry = RowSetValue(values[0] + values[1], True, self.g, mask)
                self.best = self.search._update_incumbent(self.level, self.rows, entry)
            return
        self.search.nodes += 1
        rest_value = int(self.remaining_values[t + 1])
        part = self.parts[t]
        ways = []
        for side, side_rows in ((0, left), (1, right)):
            if self.card and min(size + 1 - side, t + side - size) > self.card:
                continue
            grown = np.sort(np.concatenate([side_rows, part]))
            value, above = self._side(side, grown, self.best.value - values[1 - side] - rest_value)
            if above:
                ways.append((value + values[1 - side], side, grown, value))
        for reach, side, grown, value in sorted(ways, key=lambda way: -way[0]):
            if reach + rest_value <= self.best.value:
                continue
            if side == 0:
                self._assign(t + 1, grown, right, (value, values[1]), mask | 1 << self.order[t], size + 1)
            else:
                self._assign(t + 1, left, grown, (values[0], value), mask, size)

    def _thresholds(self, low: int, high: int, left: int | None, right: int | None, flip: bool) -> None:
        """Search cuts strictly between `low` and `high`, the middle one first.

        `left` and `right` are the errors of the parts below `low` and from `high` on; None: unknown.
        """
        if high - low < 2:
            return
        if (left or 0) + (right or 0) >= int(self.search.groups.w[self.rows].sum()) - self.best.value:
            return
        cut = (low + high) // 2
        below = np.sort(np.concatenate(self.parts[:cut]))
        above = np.sort(np.concatenate(self.parts[cut:]))
        first, second = (1, 0) if flip else (0, 1)
        weights = [int(self.search.groups.w[part].sum()) for part in (below, above)]
        # errors are monotone: a set of rows has at least as many errors as each of its subsets
        first_value, first_exceeds = self._side(first, below, self.best.value - (weights[1] - (right or 0)))
        errors_below = weights[0] - first_value if first_exceeds else max(left or 0, weights[0] - first_value)
        errors_above = right or 0
        if first_exceeds:
            second_value, second_exceeds = self._side(second, above, self.best.value - first_value)
            errors_above = weights[1] - second_value if second_exceeds else max(errors_above, weights[1] - second_value)
            if second_exceeds:
                categories = self.order[cut:] if flip else self.order[:cut]
                mask = sum(1 << a for a in categories)
                self.best = self.search._update_incumbent(
                    self.level,
                    self.rows,
                    RowSetValue(first_value + second_value, True, self.g, self._fill_missing_bins(mask, flip)),
                )
        self._thresholds(low, cut, left, errors_above, flip)
        self._thresholds(cut, high, errors_below, right, flip)

    def _fill_missing_bins(self, mask: int, flip: bool) -> int:
        """Add the bins that do not occur to the side of their neighbours, so that the mask is a threshold."""
        size = int(self.search.groups.sizes[self.g])
        if flip:
            lowest = next(a for a in range(size) if mask >> a & 1)
            return ((1 << size) - 1) ^ ((1 << lowest) - 1)
        return (1 << mask.bit_length()) - 1
